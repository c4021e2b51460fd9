"""A cut-over: stop a Flink job and start its target, step by step.

Each step observes, decides, and acts. A run after a crash therefore continues at the step that the
last run did not finish.

``spec`` is the input, and ``record`` is the output. ``observe`` reads the ``facts``.
``target_state`` derives the contents of the target from the facts, and ``decide`` chooses the next
action. Both do no I/O. ``steps`` lists the steps and actions. ``run`` executes the steps, and
``roll_back`` undoes the write.
"""

from migrate.model.extensions import CHANGE, CommandText

COMMANDS = {
    "cut-over": CommandText(
        CHANGE,
        "Move a running Flink job to its target: stop, plan, apply, start, verify.",
        """\
# Write a first spec from the running job
$ migrate cut-over --init orders.yaml --flink-rest http://jobmanager:8081
# The obstacles, on the job's newest checkpoint
$ migrate cut-over orders.yaml
# Do it, or continue after a crash
$ migrate cut-over orders.yaml --execute
# Up to the plan, to have it reviewed
$ migrate cut-over orders.yaml --execute --until plan
# Undo it, if nothing has begun to read from the target
$ migrate cut-over orders.yaml --back --execute
""",
    ),
}
CALLS = {"migrate.extensions.cutover.run": ("CutOver", "cut_over")}
SCHEMAS = {
    "cut-over": (
        "migrate.extensions.cutover.report",
        "CutOverRecord",
        "The record of migrate cut-over",
    )
}
