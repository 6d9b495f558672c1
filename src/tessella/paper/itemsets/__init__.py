"""Table 2: every method on sets of items."""
