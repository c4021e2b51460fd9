"""The command line: arguments, output, and exit codes.

Data goes to stdout, and messages go to stderr. Modules that take a long time to import (the Kafka
client, Spark) are imported only by the commands that need them.
"""

import gc

# The objects that the imports create exist until the process ends. Searching them for reference
# cycles would take a twentieth of the startup time.
_collects = gc.isenabled()
gc.disable()
try:
    from migrate.cli.main import main
except KeyboardInterrupt:  # Ctrl-C during the import
    raise SystemExit(130) from None
finally:
    gc.freeze()
    # Search for cycles less often (the default in Python 3.11 is after 700 new objects), because
    # few objects are in cycles.
    gc.set_threshold(10_000)
    if _collects:
        gc.enable()

__all__ = ["main"]
