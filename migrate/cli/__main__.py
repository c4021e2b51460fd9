"""``python -m migrate.cli``."""

from migrate.cli.main import main

main()
