"""Functions that access local files and object stores or write files, and strict JSON models."""
