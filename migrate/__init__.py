"""Positions that Flink stored, checked against Kafka, written where Spark starts from.

The room in one line: a decoded checkpoint in; a plan that says what would happen; a target written
or a refusal, with nothing in between.
"""
