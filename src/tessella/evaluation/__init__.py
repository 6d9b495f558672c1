"""Valid numbers: exact values and bounds with their standard errors, entropy floors and audits."""

from tessella.evaluation.agreement import agreement_audit
from tessella.evaluation.audits import AuditResult, entropy_floor_audit
from tessella.evaluation.evaluate import Evaluation, evaluate
from tessella.evaluation.mass import Grid, integral_audit, sum_to_one_audit
from tessella.evaluation.sandwich import sandwich_audit

__all__ = [
    "AuditResult",
    "Evaluation",
    "Grid",
    "agreement_audit",
    "entropy_floor_audit",
    "evaluate",
    "integral_audit",
    "sandwich_audit",
    "sum_to_one_audit",
]
