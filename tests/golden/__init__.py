"""Real checkpoints and savepoints, with what Flink's own classes say of them.

`manifest.json` lists each with its provenance; `generate.py` makes them again.
"""
