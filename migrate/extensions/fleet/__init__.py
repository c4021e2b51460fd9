"""Find many checkpoints and read them into a few flat tables.

``discovery`` finds candidates under the roots. ``candidates`` reads each candidate, and ``rows``
turns the result into table rows. ``lag`` computes the lag of a position. ``inventory`` creates a
``ScannedJob`` from the row and lags of a checkpoint. ``write_tables`` writes the tables.

``scan_run`` runs the steps after ``discovery`` on this machine, and ``scan_on_spark`` runs them on
Spark. ``data_source`` and ``frames`` create DataFrames of checkpoints.
"""

from migrate.model.extensions import READ, CommandText

COMMANDS = {
    "scan": CommandText(
        READ,
        "List the jobs under a directory: newest checkpoint, lag, and obstacles to a move.",
        """\
# List every job under a directory
$ migrate scan s3://bucket/flink --latest-only
# Write tables with the lag, and a plan for each job without an obstacle
$ migrate scan s3://bucket/flink -b broker:9092 --output inventory --plans plans
""",
    ),
}
CALLS = {
    "migrate.extensions.fleet.inventory": ("Inventory",),
    "migrate.extensions.fleet.scan": ("scan",),
}
SPARK_CALLS = {
    "migrate.extensions.fleet.data_source": ("FlinkCheckpointDataSource",),
    "migrate.extensions.fleet.frames": ("read_checkpoints",),
}
# The codes of obstacles that are not findings.
OBSTACLE_CODES = ("no-positions", "several-clusters", "sources-disagree", "cluster-not-named")
EXPLANATIONS = {
    code: f"{code} is an obstacle that `migrate scan` reports; see docs/how-to/fleet.md"
    for code in OBSTACLE_CODES
}
