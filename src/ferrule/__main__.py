"""`python -m ferrule` is `ferrule`."""

from ferrule.cli.main import main

main()
