"""What audits say, what they forgive, and the shortest of them."""

from dataclasses import dataclass, field

from tessella.evaluation.evaluate import Evaluation

MOST_MASS_LOST = 0.03  # of all rows together; a bound that misses more is too loose to rank models by
WIDEST, WIDEST_SHARE = 0.1, 0.01  # nats, or share of the value, that a bound may be away from the truth


@dataclass(frozen=True)
class AuditResult:
    """What an audit measured, in words and as numbers, and whether it passed; None where it could not tell."""

    name: str
    passed: bool | None
    message: str
    value: dict[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        verdict = {True: "pass", False: "FAIL", None: "cannot tell"}[self.passed]
        return f"{verdict}  {self.name}: {self.message}"


def slack_allowed(value: float) -> float:
    """Nats that a bound on a log-likelihood of about `value` may be loose by."""
    return max(WIDEST, WIDEST_SHARE * abs(value))


def entropy_floor_audit(evaluation: Evaluation) -> AuditResult | None:
    """No value below a known entropy floor by more than three standard errors; None when no floor is known."""
    if evaluation.entropy_floor is None:
        return None
    above = evaluation.iw_nll - evaluation.entropy_floor
    return AuditResult(
        "entropy floor",
        passed=above >= -3 * evaluation.stderr,
        message=f"{evaluation.iw_nll:.4f} is {above:+.4f} from the entropy floor {evaluation.entropy_floor:.4f} "
        f"(standard error {evaluation.stderr:.4f})",
        value={"above_entropy_floor": above, "error": evaluation.stderr},
    )
