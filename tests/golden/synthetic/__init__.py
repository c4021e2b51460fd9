"""Metadata files with every kind of state handle, written by Flink's own serializers.

No job has run for them, so their handles point at files that don't exist. `manifest.json` contains
the content that Flink reads from each of them. `properties.json` contains the CheckpointProperties
that end the metadata of version 4 and later. `generate.py` regenerates all of them.
"""
