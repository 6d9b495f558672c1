"""docs/results.md and docs/ablations.md, written from the records."""
