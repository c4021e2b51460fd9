"""A savepoint with other positions, written: the only place that writes Flink's formats.

The room in one line: the bytes of a savepoint and the positions to change in; a directory with a
savepoint of its own out. What is not a position stays byte for byte.

``data_output`` (Java's primitives), ``stream`` (the elements of a list state), ``splits`` and
``enumerator`` (what a reader holds, and what an enumerator knows), ``source`` (both together, for
each kind of source), ``metadata`` (the handles in ``_metadata``), ``files`` (what else belongs to
it), joined by ``write``.
"""

from migrate.savepoint.source import Place, Wanted
from migrate.savepoint.write import write_savepoint

__all__ = ["Place", "Wanted", "write_savepoint"]
