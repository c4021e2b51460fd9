"""Local files and files in stores; writing of new files; JSON files with strict models."""
