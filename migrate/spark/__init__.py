"""What runs Spark. Nothing outside this room imports PySpark, which is there only with the extra
``spark``, and this room itself imports it when one of its names is first asked for.

``FlinkCheckpointDataSource`` is the data source ``flink_checkpoint`` of Spark 4,
``read_checkpoints`` the same as a function from Spark 3.5 on, and ``add_package`` sends this
package to a cluster's executors.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from migrate.spark.data_source import FlinkCheckpointDataSource
    from migrate.spark.dataframe import read_checkpoints
    from migrate.spark.package import add_package

__all__ = ["FlinkCheckpointDataSource", "add_package", "read_checkpoints"]

_MODULES = {
    "FlinkCheckpointDataSource": "data_source",
    "add_package": "package",
    "read_checkpoints": "dataframe",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if find_spec("pyspark") is None:
        raise ImportError(f"{name} needs PySpark: pip install 'flink-offset-migrate[spark]'")
    if name == "FlinkCheckpointDataSource" and find_spec("pyspark.sql.datasource") is None:
        from pyspark import __version__

        raise ImportError(
            f"{name} needs PySpark 4.0 or newer, and this is {__version__}: use "
            "migrate.spark.read_checkpoints(spark, PATH, view=…) instead"
        )
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
