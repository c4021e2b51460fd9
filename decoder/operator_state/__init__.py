"""The elements of list state (operator state) in a handle's stream."""
