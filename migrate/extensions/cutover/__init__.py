"""A cut-over: stop a Flink job and start its target, step by step.

Each step observes, decides, and acts. Therefore, a run after a crash resumes at the step that the
previous run did not finish.

``spec`` is the input, and ``record`` is the output. ``observe`` reads the ``facts``.
``target_state`` derives the contents of the target from the facts, and ``decide`` chooses the next
action. These two modules do no I/O. ``steps`` lists the steps and actions. ``run`` executes the
steps, and ``roll_back`` undoes the write to the target.
"""

from migrate.model.extensions import CHANGE, CommandText

COMMANDS = {
    "cut-over": CommandText(
        CHANGE,
        "Move a running Flink job to its target: stop, plan, apply, start, verify.",
        """\
# Write the first version of a spec from the running job
$ migrate cut-over --init orders.yaml --flink-rest http://jobmanager:8081
# Check for obstacles, with the job's newest checkpoint
$ migrate cut-over orders.yaml
# Run the cut-over, or resume it after a crash
$ migrate cut-over orders.yaml --execute
# Stop after planning, so that the plan can be reviewed
$ migrate cut-over orders.yaml --execute --until plan
# Roll back, if nothing has started to read from the target
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
