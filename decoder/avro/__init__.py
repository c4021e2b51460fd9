"""Avro schemas and their types, for keyed state and for the files of tables."""
