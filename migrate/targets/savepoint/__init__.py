"""A new savepoint with other positions: the only place that writes Flink's formats.

The package reads the bytes of a savepoint and writes a new, self-contained savepoint with the
changed positions. All bytes that do not belong to a position stay the same.
"""

from migrate.targets.savepoint.positions import ClusterPartition, OffsetChanges
from migrate.targets.savepoint.write import write_savepoint

__all__ = ["ClusterPartition", "OffsetChanges", "write_savepoint"]
