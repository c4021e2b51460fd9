"""Functions and data sources for PySpark: the only import of pyspark.

Names are loaded when they are first used: PySpark is installed with the extra ``spark`` alone.

``FlinkCheckpointDataSource`` is the data source ``flink_checkpoint`` of Spark 4, and
``read_checkpoints`` the same as a function from Spark 3.5 on; ``FlinkStateDataSource`` and
``read_keyed_state`` are those of keyed state. ``prime`` starts a query with such state, over rows
that ``aggregate_rows`` and ``seen_rows`` make of it; ``unexpired`` leaves out its expired entries;
``initial_state`` gives it to a processor of one's own. ``CommitToGroup`` keeps a consumer group
where a query is. ``add_package`` sends this package to a cluster's executors; ``write_package``
writes what is sent.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from migrate.model.wording import install_command

if TYPE_CHECKING:
    from migrate.planning.state_proof import StateProof
    from migrate.spark.checkpoint_data_source import FlinkCheckpointDataSource
    from migrate.spark.checkpoint_frame import read_checkpoints
    from migrate.spark.commit_to_group import CommitToGroup
    from migrate.spark.session import add_package, write_package
    from migrate.spark.state_data_source import FlinkStateDataSource
    from migrate.spark.state_frame import read_keyed_state
    from migrate.spark.transfer.initial_state import initial_state
    from migrate.spark.transfer.prime import Primed, prime
    from migrate.spark.transfer.rows import StateRows, aggregate_rows, seen_rows
    from migrate.spark.transfer.time_to_live import unexpired
    from migrate.spark.transfer.windows import session_windows

__all__ = [
    "CommitToGroup",
    "FlinkCheckpointDataSource",
    "FlinkStateDataSource",
    "Primed",
    "StateProof",
    "StateRows",
    "add_package",
    "aggregate_rows",
    "initial_state",
    "prime",
    "read_checkpoints",
    "read_keyed_state",
    "seen_rows",
    "session_windows",
    "unexpired",
    "write_package",
]

_MODULES = {
    "CommitToGroup": "migrate.spark.commit_to_group",
    "FlinkCheckpointDataSource": "migrate.spark.checkpoint_data_source",
    "FlinkStateDataSource": "migrate.spark.state_data_source",
    "Primed": "migrate.spark.transfer.prime",
    "StateProof": "migrate.planning.state_proof",
    "StateRows": "migrate.spark.transfer.rows",
    "add_package": "migrate.spark.session",
    "aggregate_rows": "migrate.spark.transfer.rows",
    "initial_state": "migrate.spark.transfer.initial_state",
    "prime": "migrate.spark.transfer.prime",
    "read_checkpoints": "migrate.spark.checkpoint_frame",
    "read_keyed_state": "migrate.spark.state_frame",
    "seen_rows": "migrate.spark.transfer.rows",
    "session_windows": "migrate.spark.transfer.windows",
    "unexpired": "migrate.spark.transfer.time_to_live",
    "write_package": "migrate.spark.session",
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
        raise ImportError(f"{name} needs PySpark: {install_command('spark')}")
    if name in _INSTEAD and find_spec("pyspark.sql.datasource") is None:
        from importlib.metadata import version

        raise ImportError(
            f"{name} needs PySpark 4.0 or newer, and this is {version('pyspark')}: use "
            f"migrate.spark.{_INSTEAD[name]} instead"
        )
    return getattr(import_module(_MODULES[name]), name)
