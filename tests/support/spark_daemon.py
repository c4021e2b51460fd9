"""Start the Python workers of Spark as ``pyspark.daemon`` does, with less work for each task.

Spark puts PySpark's zip file and one of its own jars on Python's path. A worker reads the directory
of both again for every task, and collects the garbage of all modules after it. Here PySpark comes
from its folder, the large packages are imported before the workers are forked, and their objects
are no garbage.

    spark.python.daemon.module=tests.support.spark_daemon
"""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from importlib.util import find_spec

# What the functions of tests and the data sources import; not this project, which Spark may send.
_LARGE = ("numpy", "pandas", "pyarrow", "numba")


def main() -> None:
    sys.path[:] = [entry for entry in sys.path if not entry.endswith((".zip", ".jar"))]
    sys.path_importer_cache.clear()
    daemon = import_module("pyspark.daemon")
    # The other workers plan a query or run beside it, and end soon.
    if sys.argv[1:] == ["pyspark.worker"]:
        for package in _LARGE:
            if find_spec(package) is not None:
                import_module(package)
    gc.collect()
    gc.freeze()
    daemon.manager()


if __name__ == "__main__":
    main()
