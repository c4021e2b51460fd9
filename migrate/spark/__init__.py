"""A Spark query: how far it has come, what it is seeded with, what its source and sink are told.

``running`` is what runs Spark. Its names are loaded when one is first asked for, as PySpark is
there only with the extra ``spark``. ``FlinkCheckpointDataSource`` is the data source
``flink_checkpoint`` of Spark 4, ``read_checkpoints`` the same as a function from Spark 3.5 on;
``FlinkStateDataSource`` and ``read_keyed_state`` are those of keyed state. ``prime`` has a query go
on with such state, over rows that ``aggregate_rows`` and ``seen_rows`` make of it
(``unexpired`` has what a time to live leaves of a state);
``initial_state`` gives it to a processor of one's own. ``CommitToGroup`` keeps a consumer group
where a query is. ``add_package`` sends this package to a cluster's executors; ``write_package``
writes what is sent.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from migrate.wording import install

if TYPE_CHECKING:
    from migrate.spark.running.checkpoint_data_source import FlinkCheckpointDataSource
    from migrate.spark.running.checkpoint_frame import read_checkpoints
    from migrate.spark.running.commit_to_group import CommitToGroup
    from migrate.spark.running.initial_state import initial_state
    from migrate.spark.running.prime import Primed, prime
    from migrate.spark.running.session import add_package, write_package
    from migrate.spark.running.state_data_source import FlinkStateDataSource
    from migrate.spark.running.state_frame import read_keyed_state
    from migrate.spark.running.state_proof import StateProof
    from migrate.spark.running.state_rows import (
        StateRows,
        aggregate_rows,
        seen_rows,
    )
    from migrate.spark.running.state_windows import session_windows
    from migrate.spark.running.time_to_live import unexpired

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
    "CommitToGroup": "running.commit_to_group",
    "FlinkCheckpointDataSource": "running.checkpoint_data_source",
    "FlinkStateDataSource": "running.state_data_source",
    "Primed": "running.prime",
    "StateProof": "running.state_proof",
    "StateRows": "running.state_rows",
    "add_package": "running.session",
    "aggregate_rows": "running.state_rows",
    "initial_state": "running.initial_state",
    "prime": "running.prime",
    "read_checkpoints": "running.checkpoint_frame",
    "read_keyed_state": "running.state_frame",
    "seen_rows": "running.state_rows",
    "session_windows": "running.state_windows",
    "unexpired": "running.time_to_live",
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
