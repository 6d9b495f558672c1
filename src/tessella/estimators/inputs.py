"""Whether a frame is one that can be fitted, or one like that which was."""

from tessella.data.tables.values import Value, shown
from tessella.estimators.frames import Frame, Layout


def check_rows(frame: Frame, least: int) -> None:
    """There are columns, and at least so many rows."""
    if not frame.columns:
        raise ValueError(f"0 feature(s) (shape=({frame.rows}, 0)) while a minimum of 1 is required: no columns")
    if frame.rows < least:
        raise ValueError(
            f"Found {frame.rows} sample(s) (n_samples = {frame.rows}) while a minimum of {least} is required: "
            "too few rows"
        )


def matched(frame: Frame, layout: Layout) -> list[list[Value]]:
    """The columns in the order of the fitted frame: by name; by position where one of the two is an array."""
    if frame.layout.is_array or layout.is_array:
        got, expected = len(frame.columns), len(layout.labels)
        if got != expected:
            raise ValueError(f"X has {got} features, but TabularFlow is expecting {expected} features as input")
        return list(frame.columns)
    fitted = [str(label) for label in layout.labels]
    absent = [name for name in fitted if name not in frame.names]
    extra = [name for name in frame.names if name not in fitted]
    if absent or extra:
        parts = [f"{shown(names)} {what}" for names, what in ((absent, "missing"), (extra, "not seen in fit")) if names]
        raise ValueError(f"columns: {'; '.join(parts)}; expected the {len(fitted)} columns of fit: {shown(fitted)}")
    columns = dict(zip(frame.names, frame.columns, strict=True))
    return [columns[name] for name in fitted]
