"""A Spark query: how far it has come, what it is seeded with, what its source and sink are told.

``running`` is what runs Spark. Its names are loaded when one is first asked for, as PySpark is
there only with the extra ``spark``. ``FlinkCheckpointDataSource`` is the data source
``flink_checkpoint`` of Spark 4, ``read_checkpoints`` the same as a function from Spark 3.5 on;
``FlinkStateDataSource`` and ``read_keyed_state`` are those of keyed state. ``add_package`` sends
this package to a cluster's executors; ``write_package`` writes what is sent.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from migrate.wording import install

if TYPE_CHECKING:
    from migrate.spark.running.data_source import FlinkCheckpointDataSource
    from migrate.spark.running.dataframe import read_checkpoints
    from migrate.spark.running.session import add_package, write_package
    from migrate.spark.running.state_frame import read_keyed_state
    from migrate.spark.running.state_source import FlinkStateDataSource

__all__ = [
    "FlinkCheckpointDataSource",
    "FlinkStateDataSource",
    "add_package",
    "read_checkpoints",
    "read_keyed_state",
    "write_package",
]

_MODULES = {
    "FlinkCheckpointDataSource": "running.data_source",
    "FlinkStateDataSource": "running.state_source",
    "add_package": "running.session",
    "read_checkpoints": "running.dataframe",
    "read_keyed_state": "running.state_frame",
    "write_package": "running.session",
}
# Before Spark 4.
_INSTEAD = {
    "FlinkCheckpointDataSource": "read_checkpoints(spark, PATH, view=…)",
    "FlinkStateDataSource": "read_keyed_state(spark, CHK, operator=…, state=…)",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if find_spec("pyspark") is None:
        raise ImportError(f"{name} needs PySpark: {install('spark')}")
    if name in _INSTEAD and find_spec("pyspark.sql.datasource") is None:
        from importlib.metadata import version

        raise ImportError(
            f"{name} needs PySpark 4.0 or newer, and this is {version('pyspark')}: use "
            f"migrate.spark.{_INSTEAD[name]} instead"
        )
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
