"""The commands as Python functions, with the flags as parameters and typed results.

Import them with ``from migrate import plan, to_spark, commit_group, rollback, diff, verify,
inspect, scan``. The command line calls the same functions and shows their results. A function that
only reads returns the refusals of its plan as data. A function that would write raises
``migrate.Refused`` instead, and writes nothing. Progress goes to the logger ``migrate``: warnings,
and at level INFO the messages that the command line shows on stderr.
"""
