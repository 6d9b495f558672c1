"""Table 3 of the paper: characters of text8 and enwik8."""
