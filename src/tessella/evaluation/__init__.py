"""Valid numbers: bounds with their standard errors, floors and audits."""

from tessella.evaluation.audits import AuditResult, floor_audit, sandwich_audit, sum_to_one_audit
from tessella.evaluation.evaluate import Evaluation, evaluate

__all__ = ["AuditResult", "Evaluation", "evaluate", "floor_audit", "sandwich_audit", "sum_to_one_audit"]
