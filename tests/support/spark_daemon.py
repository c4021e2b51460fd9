"""Start the Python workers of Spark as ``pyspark.daemon`` does, with less work for each task.

Spark puts PySpark's zip file and one of Spark's jars on Python's path. For every task, a worker
rereads the directory of both, and then collects the garbage of all modules. This daemon takes
PySpark from its folder. It imports the large packages before it forks the workers, and excludes
their objects from garbage collection.

    spark.python.daemon.module=tests.support.spark_daemon
"""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from importlib.util import find_spec

# The imports of the tests' functions and the data sources, without this project, because Spark may
# send it.
_LARGE = ("numpy", "pandas", "pyarrow", "numba")


def main() -> None:
    sys.path[:] = [entry for entry in sys.path if not entry.endswith((".zip", ".jar"))]
    sys.path_importer_cache.clear()
    daemon = import_module("pyspark.daemon")
    # The other workers plan a query or run alongside it, and end soon.
    if sys.argv[1:] == ["pyspark.worker"]:
        for package in _LARGE:
            if find_spec(package) is not None:
                import_module(package)
    gc.collect()
    gc.freeze()
    daemon.manager()


if __name__ == "__main__":
    main()
