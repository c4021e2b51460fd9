"""Real checkpoints and savepoints, with the report of Flink's own classes about each of them.

`manifest.json` lists each one with its provenance. `generate.py` regenerates them.
"""
