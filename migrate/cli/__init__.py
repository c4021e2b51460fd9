"""The command line: arguments, output, and exit codes.

Data goes to stdout, and messages go to stderr. Modules that take a long time to import (the Kafka
client, Spark) are imported only by the commands that need them.
"""

import gc

# Turn off the garbage collector during the imports. The imported objects exist until the process
# ends, and searching them for reference cycles would take a twentieth of the startup time.
_collects = gc.isenabled()
gc.disable()
try:
    from migrate.cli.main import main
except KeyboardInterrupt:  # Ctrl-C during the import
    raise SystemExit(130) from None
finally:
    gc.freeze()
    # From now on, search for reference cycles less often, because few objects are in cycles. (By
    # default, Python 3.11 searches after every 700 new objects.)
    gc.set_threshold(10_000)
    if _collects:
        gc.enable()

__all__ = ["main"]
