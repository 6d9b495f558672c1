"""Audits of a trained run."""

import torch

from tessella.baselines.choosing import fit_mixture
from tessella.evaluation import (
    AuditResult,
    Evaluation,
    agreement_audit,
    floor_audit,
    sandwich_audit,
    sum_to_one_audit,
)
from tessella.runs.run import TrainedRun

REFERENCE_ROWS, VALIDATION_ROWS = 5000, 1000  # drawn from the model, for latent classes to learn from
SECONDS = 20.0  # as many classes as that leaves time for


@torch.no_grad()
def audit(run: TrainedRun, evaluation: Evaluation, samples: int) -> list[AuditResult]:
    """Those audits that apply: sum to one (small tables), entropy floor (where known), sandwich, agreement."""
    model, counts = run.model, run.table.schema.counts
    drawn = model.sample(REFERENCE_ROWS + VALIDATION_ROWS)
    reference = fit_mixture(counts, drawn[VALIDATION_ROWS:], drawn[:VALIDATION_ROWS], seconds=SECONDS)
    found = [
        sum_to_one_audit(model, counts, samples),
        floor_audit(evaluation),
        sandwich_audit(model, samples=samples),
        agreement_audit(model, reference, samples=samples),
    ]
    return [one for one in found if one is not None]
