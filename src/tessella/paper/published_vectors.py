"""Table 4 of the paper as it was published: test NLL of continuous tables, and what it says of the budget."""

from tessella.paper.published import Published

_ORDER = ("power", "gas", "hepmass", "miniboone", "bsds300")
_TABLE_4 = {
    "Real NVP": ((-0.17, 0.01), (-8.33, 0.07), (18.71, 0.01), (13.55, 0.26), (-153.28, 0.89)),
    "MAF": ((-0.24, 0.01), (-10.08, 0.01), (17.73, 0.01), (12.24, 0.22), (-154.93, 0.14)),
    "FFJORD": ((-0.46, 0.01), (-8.59, 0.12), (14.92, 0.08), (10.43, 0.22), (-157.40, 0.19)),
    "coupling": ((-0.44, 0.01), (-11.75, 0.02), (16.78, 0.08), (10.87, 0.06), (-155.14, 0.04)),
    "mixture": ((-0.52, 0.01), (-12.63, 0.05), (16.16, 0.01), (10.24, 0.14), (-156.59, 0.14)),
}

PUBLISHED_VECTORS: dict[str, dict[str, Published]] = {
    data: {method: Published(*row[i]) for method, row in _TABLE_4.items()} for i, data in enumerate(_ORDER)
}
"""By table, then by method; the first three methods are quoted there from other papers."""

BUDGET = (
    "16 to 64 coupling blocks with 3 hidden layers of width 64, 8 to 128 cells, batches of 1,048 rows, learning rate "
    "1e-3 or 5e-3, chosen with early stopping on validation rows; the number of steps is not stated"
)
"""Of the paper's own two methods, from its appendix."""
