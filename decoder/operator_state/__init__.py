"""The elements of list state (operator state) in the stream of a handle."""
