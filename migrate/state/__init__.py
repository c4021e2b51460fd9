"""Keyed state as it is shown."""
