"""Everything that reproduces the paper: published values, recipes, runs, result pages, figures."""
