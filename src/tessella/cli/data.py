"""`tessella data`."""

from typing import Literal

import tyro


def data(action: tyro.conf.Positional[Literal["list", "get", "check"]], name: tyro.conf.Positional[str] = "") -> None:
    """List the data sets, get one (find or download it), or check that what is found is what it should be.

    Args:
        action: list; get NAME; check [NAME], all that are found without a name.
        name: a table's name.
    """
    from tessella.data import TABLES, available, check, get

    if action == "list":
        for row in available():
            kind = f"variables, at most {row.categories:2} categories" if row.categories else "real numbers"
            size = f"rows {row.variables:3} {kind}" if row.variables else f"characters, {row.categories} different"
            print(f"{row.name:12} {row.rows:>11,} {size}")
            print(f"{'':12} {row.where}" + (f"\n{'':12} {row.partial}" if row.partial else ""))
        return
    if action == "get":
        if not name:
            raise ValueError(f"name: got nothing; expected one of {', '.join(TABLES)}")
        print(*get(name), sep="\n")
        return
    results = [check(one) for one in ([name] if name else TABLES)]
    for result in results:
        print(f"{'ok  ' if result.ok else 'FAIL'} {result.name}: {result.message}")
    if not all(result.ok for result in results):
        raise SystemExit(2)
