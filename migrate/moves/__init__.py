"""The commands as Python functions that take the flags as parameters and return typed results.

Import the functions from ``migrate``, as in ``from migrate import plan, to_spark``. The command
line calls the same functions and shows their results. ``plan``, ``scan``, and the dry runs of
``commit_group`` and ``rollback`` return any reasons against a move as data. In all other calls,
such reasons raise ``migrate.Refused``, and nothing is written. Progress goes to the ``migrate``
logger: warnings, and at level INFO the messages that the command line shows on stderr.
"""
