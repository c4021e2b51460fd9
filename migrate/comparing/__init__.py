"""Two position sets side by side, and whether a target started where it should."""
