"""`tessella results`."""

from pathlib import Path


def results(results: Path = Path("results"), out: Path = Path("docs")) -> None:
    """Render the records as results.md, ablations.md, peers.md, parts of mixtures.md, and pictures, in docs/.

    Args:
        results: folder of the records.
        out: folder of the pages.
    """
    from tessella.paper.figures.regimes import draw_regimes
    from tessella.paper.figures.results import draw_results
    from tessella.paper.figures.texts import draw_characters
    from tessella.paper.pages.mixtures import mixtures_page
    from tessella.paper.pages.peers import peers_page
    from tessella.paper.pages.results import ablations_page, pictures, results_page
    from tessella.paper.pages.texts import PICTURE, mapped

    out.mkdir(parents=True, exist_ok=True)
    pages = {"results.md": results_page(results, out), "ablations.md": ablations_page(results, out)}
    pages["peers.md"] = peers_page(results, out)
    if (out / "mixtures.md").exists():  # its words are not in the records
        pages["mixtures.md"] = mixtures_page(results, out)
    for name, text in pages.items():
        (out / name).write_text(text, encoding="utf-8")
        print(out / name)
    print(*draw_results(results, out / "pictures", list(pictures(results))), sep="\n")
    if any((results / "regimes").glob("*.json")):
        print(draw_regimes(out / "pictures" / "mixture-regimes.png", results))
    if learned := mapped(results):
        titles = tuple(f"{record['data']}, D = {record['dim']}" for record in learned)
        maps = [record["characters"] for record in learned]
        print(draw_characters(out / "pictures" / PICTURE, *maps, titles=titles))
