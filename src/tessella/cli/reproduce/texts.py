"""`tessella reproduce text`."""

import re
from pathlib import Path
from typing import Annotated, Literal

import tyro

from tessella.paper.effort import Effort
from tessella.paper.texts.recipes import Dequantization, Network, Preset

EFFORT = Effort()


def text(
    data: Literal["text8", "enwik8"] | None = None,
    file: Path | None = None,
    dequantizer: Dequantization = "voronoi",
    dim: int = 8,
    network: Network = "transformer",
    preset: Preset = "best",
    effort: Annotated[Effort, tyro.conf.arg(name="")] = EFFORT,
    out: Path = Path("runs/text"),
    results: Path = Path("results"),
    length: int = 0,
    test_windows: int = 8_000,
    samples: int = 20,
    change: Annotated[tuple[str, ...], tyro.conf.arg(name="set")] = (),
    variant: str = "",
) -> None:
    """Table 3: characters, one after another, through cells or without; a record in results/text.

    Args:
        data: which text; docs/data.md says where its files are looked for.
        file: a text of your own instead, cut 90/5/5 %.
        dequantizer: voronoi, binary-argmax, ordinal: a flow of points, scored by a bound; exact: disjoint mixtures over
            the same cells, whose bound is tight; none: a softmax over characters, no cells.
        dim: D, coordinates of a character's point (voronoi, exact).
        network: over the characters before: a transformer, or an LSTM.
        preset: best, for a GPU; small, for a CPU.
        effort: how long, on what, from which seed. Minutes include all that is compiled.
        out: a folder for the run is made there; `tessella sample FOLDER` draws from it.
        results: folder of the records.
        length: characters of a window; 0 as published, 256 for text8 and 320 for enwik8.
        test_windows: evaluate at most the first so many test windows, which do not overlap; 0 for all.
        samples: importance samples of the bound, one weight for a whole window.
        change: fields to change, e.g. --set model.network.layers=12 training.batch_size=128.
        variant: where fields are changed: what, in words; part of the record's name.
    """
    from tessella import records
    from tessella.configs import parse_changes
    from tessella.paper.figures.style import can_draw
    from tessella.paper.figures.texts import draw_characters
    from tessella.paper.texts.run import TextTask, run_text

    if (data is None) == (file is None):
        raise ValueError(f"data, file: got {data} and {file}; expected one of them")
    if change and not variant:
        raise ValueError(f"variant: got none for {len(change)} changes; expected words that say what was changed")
    task = TextTask(
        str(file) if file else str(data),
        dequantizer,
        dim,
        network,
        preset,
        length,
        samples,
        test_windows,
        parse_changes(change),
        **vars(effort),
    )
    name = re.sub("[^a-z0-9]+", "-", f"{task.name} {variant}".lower()).strip("-")
    record = run_text(task, out / name) | ({"variant": variant} if variant else {})
    path = results / "text" / f"{name}.json"
    records.write(path, record)
    kind = "exact" if record["exact"] else f"IW-{record['iw_samples']}, ELBO {record['elbo_bpc']:.4f}"
    print(f"{name}: {record['bpc']:.4f} +- {record['stderr']:.4f} bits per character ({kind})")
    print(f"by counting characters {record['unigram_bpc']:.4f}, pairs {record['bigram_bpc']:.4f}")
    speed = f"{record['steps_per_second']:.2f} steps/s, {record['characters_per_second']:,} characters/s"
    print(f"{record['steps']:,} steps, {record['seconds']:.1f} s, {speed}, validation {record['validation_bpc']:.4f}")
    print(f"drawing: {record['generation']['per_second']:,} characters/s, {record['generation']['rows']} side by side")
    for note in ("partial", "sandwich", "tight"):
        if record.get(note):
            print(
                record[note]["message"] if note == "sandwich" else f"{note}: {record[note]}".replace("partial: ", "", 1)
            )
    if can_draw():
        print(draw_characters(out / name / "characters.png", record["characters"]))
    print(f"{path}\n\n{record['sample']}")
