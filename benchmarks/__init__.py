"""Benchmark checkpoint reading against Flink's own readers; `make bench` runs the benchmarks.

``checkpoints`` creates the checkpoints with Flink's serializers, and ``readers`` has the commands
that read them. ``measuring`` runs these commands in turn, ``growth`` with checkpoints of increasing
size. ``results`` defines docs/performance.json. ``page`` and ``plots`` write docs/performance.md
and its plot from it.
"""
