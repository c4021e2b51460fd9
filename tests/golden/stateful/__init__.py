"""The savepoint of a job with keyed state that reads Kafka, for the pages that move it.

``python -m tests.golden.stateful.generate`` makes it anew, with a real broker and Flink. What is
in one is not asserted here: tests/integration/test_state_moves.py moves one that it has just made.
"""
