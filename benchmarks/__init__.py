"""How fast checkpoints are read, beside Flink's own readers: `make bench`.

``checkpoints`` has Flink's serializers write what is read, ``readers`` are the processes that read
it, ``measuring`` runs them in turn and ``growth`` along larger and larger ones; ``results`` is what
docs/performance.json holds of it, and ``page`` and ``plots`` make docs/performance.md of that.
"""
