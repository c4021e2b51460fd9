"""Metadata files with every kind of state handle, written by Flink's own serializers.

No job has run for them: their handles point at files that don't exist. `manifest.json` holds what
Flink finds on loading each, `properties.json` the CheckpointProperties that end the metadata of
version 4 and later; `generate.py` makes all of it again.
"""
