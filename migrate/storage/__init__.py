"""Where bytes come from and go to: files, local and in stores; new files that are whole or not
there at all; JSON by strict models."""
