"""The command line: the only reader of arguments and of the environment.

stdout is data, stderr is messages. What costs time to import (Kafka's client, Spark) is imported by
the commands that need it.
"""

try:
    from migrate.cli.main import main
except KeyboardInterrupt:  # of a user who thinks better of it while this is imported
    raise SystemExit(130) from None

__all__ = ["main"]
