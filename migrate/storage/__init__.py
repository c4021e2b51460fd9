"""Access to local files and object stores, writing of new files, and strict JSON models."""
