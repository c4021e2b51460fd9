"""Every command as a call, with the names of its flags and a typed result.

``from migrate import plan, to_spark, commit_group, rollback, diff, verify, inspect`` reaches them;
the command line calls the same functions and shows what they return. What only looks returns its
refusals as data; what would act raises ``migrate.Refused`` and writes nothing. What happens on the
way is told to the logger ``migrate``: warnings, and at INFO what the command line says on stderr.

The rooms: ``arguments`` (what all of them take), ``reading`` (a checkpoint or a query, and the
broker), ``telling`` (that logger); ``inspecting``; ``planning``; ``spark`` with ``streams`` and
``sink``; ``group`` with ``running`` (has the job stopped?), ``going_back``, both with ``keeping``
(the rollback file); ``comparing``; ``scanning`` with ``bulk``.
"""
