"""The command line: the only package that reads arguments and environment variables.

Data goes to stdout, messages go to stderr. Modules that take long to import (Kafka's client, Spark)
are imported only by the commands that need them.
"""

try:
    from migrate.cli.main import main
except KeyboardInterrupt:  # Ctrl-C during the import
    raise SystemExit(130) from None

__all__ = ["main"]
