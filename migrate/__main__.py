"""The entry point of ``python -m migrate``."""

from migrate.cli import main

main()
