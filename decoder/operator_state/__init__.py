"""Operator state: the elements of list state in the stream of a handle."""
