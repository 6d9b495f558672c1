"""Audits of a trained run."""

import torch

from tessella.baselines.choosing import fit_mixture
from tessella.evaluation import (
    AuditResult,
    Evaluation,
    agreement_audit,
    entropy_floor_audit,
    sandwich_audit,
    sum_to_one_audit,
)
from tessella.runs.run import TrainedRun

REFERENCE_ROWS, VALIDATION_ROWS = 5000, 1000  # drawn from the model, for a mixture of categoricals to learn from
SECONDS = 20.0  # as many components as that leaves time for


@torch.no_grad()
def audit(run: TrainedRun, evaluation: Evaluation, samples: int) -> list[AuditResult]:
    """Those audits that apply: sum to one (small tables), entropy floor (where known), sandwich, agreement.

    A table with numbers has the sandwich and the entropy floor only.
    """
    model, shape = run.model, run.encoding.shape
    found = [entropy_floor_audit(evaluation), sandwich_audit(model, samples=samples)]
    if not shape.numbers:
        (drawn,) = model.sample(REFERENCE_ROWS + VALIDATION_ROWS)
        rows = drawn[VALIDATION_ROWS:], drawn[:VALIDATION_ROWS]
        reference = fit_mixture(shape.counts, *rows, seconds=SECONDS)
        found = [
            sum_to_one_audit(model, shape.counts, samples),
            *found,
            agreement_audit(model, reference, samples=samples),
        ]
    return [one for one in found if one is not None]
