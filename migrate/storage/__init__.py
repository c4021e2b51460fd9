"""Files, local and in stores; new files that are complete or absent; JSON by strict models."""
