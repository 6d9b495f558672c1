"""What the documentation site adds to Sphinx. Nothing here imports it, so that the tests need no site."""
