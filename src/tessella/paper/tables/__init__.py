"""Table 1: every method on every discrete table."""
