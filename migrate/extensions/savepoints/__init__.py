"""A new savepoint with other positions; the only place that writes Flink's formats.

The new savepoint is self-contained. Apart from the positions, only the file handles change. Each
handle points to the copy of its file (module ``files``).
"""
