"""`python -m tessella.cli COMMAND`, where the package is not installed."""

from tessella.cli.main import main

main()
