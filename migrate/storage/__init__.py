"""Local files and files in object stores, the writing of new files, and strict JSON models."""
