"""A savepoint with other positions, written: the only place that writes Flink's formats.

The room in one line: the bytes of a savepoint and the positions to change in; a directory with a
savepoint of its own out. What is not a position stays byte for byte.

``layouts`` (Java's primitives, handles of ``_metadata``, elements of a list state), ``kafka_state``
(what a reader holds, and what an enumerator knows), ``source`` (both together, for each kind of
source), ``files`` (what else belongs to it), joined by ``write``.
"""

from migrate.targets.savepoint.source import ClusterPartition, OffsetChanges
from migrate.targets.savepoint.write import write_savepoint

__all__ = ["ClusterPartition", "OffsetChanges", "write_savepoint"]
