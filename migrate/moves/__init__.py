"""The commands as Python functions, with the flags as parameters and typed results.

Import them with ``from migrate import plan, to_spark, commit_group, rollback, diff, verify,
inspect, scan``. The command line calls the same functions and shows their results. ``plan``,
``scan``, and the dry runs of ``commit_group`` and ``rollback`` return the reasons against a move as
data. Other calls raise ``migrate.Refused`` for them, and write nothing. Progress goes to the logger
``migrate``: warnings, and at level INFO the messages that the command line shows on stderr.
"""
