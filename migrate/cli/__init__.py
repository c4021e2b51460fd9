"""The command line: the only reader of arguments and of the environment.

stdout is data, stderr is messages. What costs time to import (Kafka's client, Spark) is imported
by the commands that need it.

stdout is data, stderr is talk. Rooms that cost time to import (Kafka's client, Spark) are imported
by the commands that need them.
"""

try:
    from migrate.cli.main import main
except KeyboardInterrupt:  # of a user who thinks better of it while this is imported
    raise SystemExit(130) from None

__all__ = ["main"]
