"""The command line: arguments, output and exit codes.

Data goes to stdout, messages go to stderr. Modules that take long to import (Kafka's client, Spark)
are imported only by the commands that need them.
"""

import gc

# What the imports create stays until the process ends. To search it for reference cycles takes a
# twentieth of the time of a start.
_collects = gc.isenabled()
gc.disable()
try:
    from migrate.cli.main import main
except KeyboardInterrupt:  # Ctrl-C during the import
    raise SystemExit(130) from None
finally:
    gc.freeze()
    # The number of new objects after which cycles are searched: 700 by default. Few have any.
    gc.set_threshold(10_000)
    if _collects:
        gc.enable()

__all__ = ["main"]
