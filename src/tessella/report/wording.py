"""Numbers and verdicts in plain words."""

from math import exp, log
from typing import Any

SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
SPACE = "\u00a0"  # at which no line ends
MINUS, TIMES = "\u2212", "\u00d7"
CLEAR = 2.0  # standard errors
SEVERAL = {"independent columns"}  # baselines whose name is a plural
SMALL = 0.02  # nats per row: a row is two hundredths likelier, which nobody will notice


def number(value: float, digits: int = 2, sign: bool = False) -> str:
    """A number with a true minus sign.

    >>> number(-1234.567), number(0.5, 1, sign=True), number(-0.001, sign=True)
    ('−1,234.57', '+0.5', '0.00')
    """
    written = f"{abs(value):,.{digits}f}"
    nothing = float(written.replace(",", "")) == 0
    return ("" if nothing else MINUS if value < 0 else "+" if sign else "") + written


def nats(value: float, error: float) -> str:
    """A value and its standard error, to two digits of the error.

    >>> nats(9.0912, 0.0186).replace(SPACE, " "), nats(-22.5, 0.157).replace(SPACE, " ")
    ('9.091 ± 0.019', '−22.50 ± 0.16')
    """
    digits = 2 if error >= 0.1 or error == 0 else 3
    return f"{number(value, digits)}{SPACE}±{SPACE}{number(error, digits)}"


def times(difference: float) -> str:
    """How many times likelier so many nats are.

    >>> times(0.05), times(1.0), times(7.6), times(40.0)
    ('1.05 times', '2.7 times', '2,000 times', '2.4 × 10¹⁷ times')
    """
    if difference > log(1e6):
        power = int(difference // log(10))
        return f"{exp(difference - power * log(10)):.1f} {TIMES} 10{str(power).translate(SUPERSCRIPTS)} times"
    ratio = exp(difference)
    if ratio < 10:
        return f"{ratio:.2f} times" if ratio < 1.2 else f"{ratio:.1f} times"
    return f"{float(f'{ratio:.2g}'):,.0f} times"


def duration(seconds: float) -> str:
    """Seconds as one would say them.

    >>> duration(29.0), duration(305.0), duration(7330)
    ('29 s', '5 min 5 s', '2 h 2 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.0f} s" if whole >= 10 else f"{seconds:.1f} s"
    if whole < 3600:
        return f"{whole // 60} min" + (f" {whole % 60} s" if whole % 60 else "")
    return f"{whole // 3600} h {whole % 3600 // 60} min"


STOPPED = {
    "steps": "all planned steps done",
    "patience": "no more progress on the validation rows",
    "time_budget": "time budget spent",
    "interrupted": "interrupted; the best model so far was kept",
}


def ended(overview: dict[str, Any]) -> str:
    """Why training ended."""
    reason = str(overview["stopped"])
    return STOPPED.get(reason, reason)


def learned(overview: dict[str, Any]) -> str:
    """What training added to what it began with, on the validation rows.

    >>> learned({"learning": {"start": "independent columns", "before": 20.0, "after": 12.5}})
    'Training began with independent columns, 20.000 nats per validation row, and brought 7.500 nats: 12.500.'
    """
    said = overview["learning"]
    began = f"Training began with {said['start']}, {number(said['before'], 3)} nats per validation row"
    if said["after"] >= said["before"]:
        return f"{began}, and found nothing better: the model is that start."
    gain = number(said["before"] - said["after"], 3)
    return f"{began}, and brought {gain} nats: {number(said['after'], 3)}."


def named(baseline: dict[str, Any]) -> str:
    """A baseline's name in a sentence.

    >>> named({"name": "Chow-Liu tree"}), named({"name": "independent columns"})
    ('the Chow-Liu tree', 'independent columns')
    """
    name = str(baseline["name"])
    return name if name in SEVERAL else f"the {name}"


def verdict(overview: dict[str, Any]) -> tuple[str, str]:
    """Who predicts unseen rows best, and by how much: a headline and the sentences that go with it."""
    own, *baselines = overview["likelihoods"]
    best, independent = min(baselines, key=lambda baseline: baseline["nll"]), baselines[-1]
    other = named(best)
    seen = f"On {overview['scored_rows']:,} {overview['held_out']} rows"
    seen += " that it never saw, " if overview["held_out"] == "test" else ", "
    most = "" if own["exact"] else "at most "
    figure = f"{seen}the model's negative log-likelihood is {most}{nats(own['nll'], own['error'])} nats per row. "
    by = nats(abs(best["lead"]), best["lead_error"])
    clear = abs(best["lead"]) > CLEAR * best["lead_error"]
    if not clear or abs(best["lead"]) < SMALL:
        title = f"{own['name']} and {other} predict these rows about equally well"
        ahead = own["name"] if best["lead"] > 0 else other
        what = f"in favour of {ahead}: a clear difference, but a small one" if clear else "which is no clear difference"
        far = f" Under independent columns an average row is {times(independent['lead'])} less likely."
        said = best is not independent and independent["lead"] > SMALL
        return title, f"{figure}Between the two lie {by} nats per row, {what}.{far if said else ''}"
    if best["lead"] > 0:
        far = f"; it is {times(independent['lead'])} likelier than under independent columns"
        ratio = f"An average row is {times(best['lead'])} likelier under it than under {other}, the best of the "
        title = f"{own['name']} predicts these rows best, ahead of {other} by {number(best['lead'])} nats"
        return title, f"{figure}{ratio}baselines{'' if best is independent else far}."
    predicts = "predict" if best["name"] in SEVERAL else "predicts"
    title = f"Here {other} {predicts} rows better than {own['name']}"
    ratio = f"An average row is {times(-best['lead'])} likelier under {other}: {by} nats per row. "
    return title, f"{figure}{ratio}Train longer, or use that model for likelihoods."
