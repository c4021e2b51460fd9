"""A new savepoint with other positions: the only place that writes Flink's formats.

The bytes of a savepoint and the changed positions go in; a directory with a savepoint of its own
comes out. What is not a position stays byte for byte.
"""

from migrate.targets.savepoint.positions import ClusterPartition, OffsetChanges
from migrate.targets.savepoint.write import write_savepoint

__all__ = ["ClusterPartition", "OffsetChanges", "write_savepoint"]
