"""Operator state: the stream a partitionable handle points at, and where its bytes lie."""
