"""Functions and data sources for PySpark; no other package of ``migrate`` imports pyspark.

Names are loaded when they are first used, because PySpark is installed only with the ``spark``
extra.

- ``FlinkCheckpointDataSource`` is the ``flink_checkpoint`` data source for Spark 4.
  ``read_checkpoints`` is the function for Spark 3.5 and later.
- ``FlinkStateDataSource`` and ``read_keyed_state`` do the same for keyed state.
- ``prime`` creates a checkpoint location from which a query starts with Flink's keyed state.
  ``aggregate_rows`` and ``seen_rows`` create the rows that ``prime`` needs.
- ``rehearse`` runs a query over the records between two Flink checkpoints, and compares the query's
  state with the state of the second checkpoint.
- ``unexpired`` removes expired entries from a state.
- ``initial_state`` passes a state to your stateful processor.
- ``CommitToGroup`` commits a query's offsets to a consumer group.
- ``add_package`` sends ``decoder`` and ``migrate`` to the executors. ``write_package`` writes both
  to a zip file.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from migrate.model.extensions import declared_names
from migrate.model.wording import install_command

if TYPE_CHECKING:
    from migrate.extensions.fleet.data_source import (
        FlinkCheckpointDataSource as FlinkCheckpointDataSource,
    )
    from migrate.extensions.fleet.frames import read_checkpoints as read_checkpoints
    from migrate.extensions.keyed_state.data_source import (
        FlinkStateDataSource as FlinkStateDataSource,
    )
    from migrate.extensions.keyed_state.frames import read_keyed_state as read_keyed_state
    from migrate.extensions.stateful_query.rehearsal.rehearse import rehearse as rehearse
    from migrate.extensions.stateful_query.rehearsal.report import Rehearsal as Rehearsal
    from migrate.extensions.stateful_query.state_proof import StateProof as StateProof
    from migrate.extensions.stateful_query.transfer.initial_state import (
        initial_state as initial_state,
    )
    from migrate.extensions.stateful_query.transfer.prime import Primed as Primed
    from migrate.extensions.stateful_query.transfer.prime import prime as prime
    from migrate.extensions.stateful_query.transfer.rows import StateRows as StateRows
    from migrate.extensions.stateful_query.transfer.rows import aggregate_rows as aggregate_rows
    from migrate.extensions.stateful_query.transfer.rows import seen_rows as seen_rows
    from migrate.extensions.stateful_query.transfer.time_to_live import unexpired as unexpired
    from migrate.extensions.stateful_query.transfer.windows import (
        session_windows as session_windows,
    )
    from migrate.spark.commit_to_group import CommitToGroup as CommitToGroup
    from migrate.spark.session import add_package as add_package
    from migrate.spark.session import write_package as write_package

_NAMES = {
    "migrate.spark.commit_to_group": ("CommitToGroup",),
    "migrate.spark.session": ("add_package", "write_package"),
}
_MODULES = {
    **{name: module for module, names in _NAMES.items() for name in names},
    **declared_names("SPARK_CALLS"),
}
__all__ = sorted(_MODULES)
# The functions to use instead of the data sources in Spark versions before 4.
_ALTERNATIVES = {
    "FlinkCheckpointDataSource": "read_checkpoints(spark, PATH, view=…)",
    "FlinkStateDataSource": "read_keyed_state(spark, CHK, operator=…, state=…)",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if find_spec("pyspark") is None:
        raise ImportError(f"{name} requires PySpark: {install_command('spark')}")
    if name in _ALTERNATIVES and find_spec("pyspark.sql.datasource") is None:
        from importlib.metadata import version

        raise ImportError(
            f"{name} requires PySpark 4.0 or newer, but this is {version('pyspark')}; use "
            f"migrate.spark.{_ALTERNATIVES[name]} instead"
        )
    return getattr(import_module(_MODULES[name]), name)
