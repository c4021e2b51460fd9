"""A consumer group: changed, brought back to what it was, and the file that makes that possible."""
