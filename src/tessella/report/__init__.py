"""The HTML page of a fitted table, from its `overview.json` alone."""
