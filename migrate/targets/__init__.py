"""Targets: each writes the next offsets of a plan where the other side starts from them."""
