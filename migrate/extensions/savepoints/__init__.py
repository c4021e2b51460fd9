"""Write a new savepoint with different positions; only this package writes Flink formats.

The new savepoint is self-contained. Apart from the positions, only the file handles change, because
each handle points to the copy of its file (see the ``files`` module).
"""

from migrate.model.extensions import WRITE, CommandText

COMMANDS = {
    "to-flink": CommandText(
        WRITE,
        "Write a new savepoint with different Kafka positions and the same state.",
        """\
# From a CSV file with the columns topic, partition, and offset
$ migrate to-flink savepoint-1 --from csv:offsets.csv --out savepoint-2
# From a different checkpoint
$ migrate to-flink savepoint-1 --from savepoint-2 --out savepoint-3 -b broker:9092
# Back to Flink from a stopped Spark query, with the job's state
$ migrate to-flink savepoint-1 --from spark:/data/query --out savepoint-2 -b broker:9092 \
--allow-state-mismatch
""",
    ),
}
CALLS = {"migrate.extensions.savepoints.to_flink": ("NewSavepoint", "to_flink")}
