"""Avro schemas and their types, for keyed state and table files."""
