"""`TabularFlow` against other libraries that learn tables: same rows, same minutes, same threads."""
