"""A new savepoint with other positions; the only place that writes Flink's formats.

The new savepoint is self-contained. Apart from the positions, only the file handles change. Each
handle points to the copy of its file (module ``files``).
"""

from migrate.extensions.savepoints.positions import ClusterPartition, OffsetChanges
from migrate.extensions.savepoints.write import write_savepoint

__all__ = ["ClusterPartition", "OffsetChanges", "write_savepoint"]
