"""The command line: joins the rooms; the only reader of arguments and of the environment.

stdout is data, stderr is talk. Rooms that cost time to import (Kafka's client, Spark) are imported
by the commands that need them.
"""

from migrate.cli.main import main

__all__ = ["main"]
