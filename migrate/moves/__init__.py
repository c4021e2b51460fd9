"""Every command as a call, with the names of its flags and a typed result.

``from migrate import plan, to_spark, commit_group, rollback, diff, verify, inspect, scan`` reaches
them; the command line calls the same functions and shows what they return. What only looks returns
its refusals as data; what would act raises ``migrate.Refused`` and writes nothing. Progress goes to
the logger ``migrate``: warnings, and at INFO what the command line says on stderr.
"""
