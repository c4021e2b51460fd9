"""The savepoint of a job with keyed state that reads Kafka, for the pages that move it.

``python -m tests.golden.stateful.generate`` regenerates it with a real broker and Flink. No test
here checks its contents. tests/integration/test_state_moves.py moves a savepoint that it has just
made.
"""
