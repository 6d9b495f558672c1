"""Where tables are found, how they are fetched, and what is said about them."""

import http.server
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.data.published import rebuilt, zipped

from tessella.data import ITEMSETS, TABLES, TEXTS, VECTORS, Listing, available, check, get, load_table, locate
from tessella.data.locate import SHIPPED, fetch  # the real one, before any test replaces it


def listing(name: str) -> Listing:
    return next(line for line in available() if line.name == name)


def test_the_catalogue_lists_every_table_without_opening_a_file(empty_data: Path) -> None:
    entries = {**TABLES, **VECTORS, **ITEMSETS, **TEXTS}
    assert [line.name for line in available()] == list(entries)
    for line in available():
        entry = entries[line.name]
        assert (line.rows, line.variables) == (entry.extent.rows, entry.extent.variables)
        assert line.categories == (0 if line.name in VECTORS else entry.extent.categories)
        assert (line.partial, line.licence) == (None, entry.licence)
    (empty_data / "covtype.data.gz").write_bytes(b"not looked at")
    assert listing("forests").where == str(empty_data / "covtype.data.gz")
    assert listing("nursery").where == "shipped with tessella"


def test_a_table_that_is_not_here_says_how_to_get_it(empty_data: Path) -> None:
    expected = "not here: get('pokerhands') downloads it; or put poker+hand.zip or poker-hand-testing.data and "
    assert listing("pokerhands").where.startswith(expected)
    assert "simulated=True" in listing("pokerhands").where
    assert not check("pokerhands").ok
    assert expected in check("pokerhands").message
    with pytest.raises(
        FileNotFoundError, match=r"the download of https://archive.*poker\+hand.zip failed \(no network.*simulated"
    ):
        load_table("pokerhands")


@pytest.mark.parametrize("name", ["connect4", "mushroom", "nursery"])
def test_shipped_tables_pass_their_check_and_need_no_download(name: str, empty_data: Path) -> None:
    found = check(name)
    assert found.ok
    assert f"{TABLES[name].extent.rows:,} rows" in found.message
    assert get(name) == (SHIPPED / f"{name}.npz.xz",)


def test_the_order_is_package_then_given_folder_then_cache(empty_data: Path) -> None:
    assert list(locate.folders()) == [SHIPPED, empty_data, empty_data.parent / "cache"]


def test_a_given_folder_that_does_not_exist_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESSELLA_DATA", "/no/such/folder")
    with pytest.raises(FileNotFoundError, match="TESSELLA_DATA: folder '/no/such/folder' does not exist"):
        available()
    assert not check("forests").ok


def test_a_damaged_file_fails_its_check(nothing_shipped: Path) -> None:
    (nothing_shipped / "nursery.data").write_bytes(rebuilt("nursery").replace(b"usual", b"UNUSUAL"))
    found = check("nursery")
    assert not found.ok
    assert "nursery.data" in found.message
    assert "expected 8e0389c3" in found.message


def stub(contents: bytes, url: str, path: Path) -> Path:
    assert url == "https://archive.ics.uci.edu/static/public/76/nursery.zip"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(contents)
    return path


def test_get_downloads_into_the_cache_once(nothing_shipped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = nothing_shipped.parent / "cache"
    monkeypatch.setattr(locate, "folders", lambda: iter([nothing_shipped, cache]))
    with monkeypatch.context() as patch:
        patch.setattr(locate, "fetch", partial(stub, zipped("nursery.data", rebuilt("nursery"))))
        assert get("nursery") == (cache / "nursery.zip",)
    assert get("nursery") == (cache / "nursery.zip",)
    assert check("nursery").ok
    assert len(load_table("nursery").test) == 1296


def test_a_download_that_fails_its_checksum_does_not_stay(
    nothing_shipped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locate, "fetch", partial(stub, zipped("nursery.data", b"an error page")))
    with pytest.raises(ValueError, match=r"nursery.zip \(nursery.data\): the sha256 checksum of its 13 bytes"):
        get("nursery")
    assert not (nothing_shipped.parent / "cache" / "nursery.zip").exists()


def test_a_part_gives_way_to_the_whole(given_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("poker_partial.npz.xz", "poker_partial.json"):
        (tmp_path / name).write_bytes((given_data / name).read_bytes())
    monkeypatch.setenv("TESSELLA_DATA", str(tmp_path))
    monkeypatch.setenv("TESSELLA_CACHE", str(tmp_path / "cache"))
    found = listing("pokerhands")
    assert (found.rows, found.partial is None) == (125_010, False)
    assert "900,000" in check("pokerhands").message
    for file in TABLES["pokerhands"].forms[0].files:
        (tmp_path / file.name).write_bytes(b"")
    found = listing("pokerhands")
    assert (found.rows, found.partial) == (1_025_010, None)
    assert "poker-hand-testing.data" in found.where


def test_the_tables_given_here_pass_their_check(given_data: Path) -> None:
    for line in available():
        if line.name in TABLES:
            assert check(line.name).ok or line.where.startswith("not here")


def test_an_unknown_name_lists_tables_of_both_kinds() -> None:
    for ask in (get, check):
        with pytest.raises(ValueError, match=r"table 'chess': not known; expected one of connect4, .*bsds300"):
            ask("chess")


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A web server on this machine, with one file."""
    (tmp_path / "table.zip").write_bytes(b"contents")
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as web:
        threading.Thread(target=web.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{web.server_port}"
        web.shutdown()


def test_fetch_downloads_over_http(server: str, tmp_path: Path) -> None:
    path = tmp_path / "cache" / "table.zip"
    assert fetch(f"{server}/table.zip", path) == path
    assert path.read_bytes() == b"contents"
    with pytest.raises(OSError, match="404"):
        fetch(f"{server}/nothing.zip", tmp_path / "cache" / "nothing.zip")
