"""A new savepoint with other positions: the only place that writes Flink's formats.

The package reads the bytes of a savepoint and writes a new, self-contained savepoint with the
changed positions. Apart from these, only the file handles change: each names the copy of its file
(module ``files``).
"""

from migrate.targets.savepoint.positions import ClusterPartition, OffsetChanges
from migrate.targets.savepoint.write import write_savepoint

__all__ = ["ClusterPartition", "OffsetChanges", "write_savepoint"]
