"""The version, in one place: pyproject.toml, `tessella.__version__` and every saved file read it here."""

__version__ = "0.2.0"
