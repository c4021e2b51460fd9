"""The examples that ``--help`` ends with: what for, and the command."""

from __future__ import annotations

EXAMPLES: dict[str, tuple[tuple[str, str], ...]] = {
    "inspect": (
        ("The newest complete checkpoint of a job", "migrate inspect checkpoints/JOB_ID"),
        (
            "All positions, for a program",
            "migrate inspect s3://bucket/savepoints/savepoint-1 --format json",
        ),
        ("The checkpoints that a job has kept", "migrate inspect checkpoints/JOB_ID --list"),
    ),
    "state": (
        ("Which keyed states there are", "migrate state savepoint-1"),
        (
            "The first entries of one",
            "migrate state savepoint-1 --operator orders --state totals --limit 10",
        ),
        (
            "All of its entries, for a program",
            "migrate state s3://bucket/savepoints/savepoint-1 --operator orders --state totals",
        ),
    ),
    "to-spark": (
        (
            "startingOffsets, checked against the brokers",
            "migrate to-spark savepoint-1 -b broker:9092",
        ),
        (
            "A seeded checkpoint location, and the code that starts from it",
            "migrate to-spark savepoint-1 -b broker:9092 --checkpoint-dir s3://bucket/query "
            "--format python",
        ),
        (
            "One source of several",
            "migrate to-spark savepoint-1 -b broker:9092 --source topic:orders",
        ),
        (
            "Plan now, review, apply later",
            "migrate to-spark savepoint-1 -b broker:9092 --plan-out plan.json",
        ),
        (
            "The same, later",
            "migrate to-spark --plan plan.json -b broker:9092 --checkpoint-dir /data/query",
        ),
    ),
    "to-flink": (
        (
            "Back to Flink from where a Spark query stopped, with the job's state",
            "migrate to-flink savepoint-1 --from spark:/data/query --out savepoint-2 "
            "-b broker:9092 --allow-state-mismatch",
        ),
        (
            "From a file, topic,partition,offset a line",
            "migrate to-flink savepoint-1 --from csv:offsets.csv --out savepoint-2",
        ),
    ),
    "commit-group": (
        (
            "What would change",
            "migrate commit-group savepoint-1 --group orders -b broker:9092",
        ),
        (
            "Change it; on a terminal it asks once",
            "migrate commit-group savepoint-1 --group orders -b broker:9092 --execute",
        ),
        (
            "Did the job run on? Its own group and its JobManager tell",
            "migrate commit-group savepoint-1 --group orders -b broker:9092 "
            "--source-group flink-orders --flink-rest http://jobmanager:8081",
        ),
    ),
    "rollback": (
        ("What would come back", "migrate rollback rollback-orders-20260102T030405.000000Z.json"),
        (
            "Bring it back",
            "migrate rollback rollback-orders-20260102T030405.000000Z.json --execute",
        ),
    ),
    "diff": (
        ("Checkpoint and group", "migrate diff savepoint-1 group:orders -b broker:9092"),
        (
            "How far behind the log end a Spark query is",
            "migrate diff spark:/data/query broker:latest -b broker:9092",
        ),
        (
            "One page to send around",
            "migrate diff savepoint-1 spark:/data/query --format html",
        ),
    ),
    "show": (
        ("A plan before it is applied", "migrate show plan.json"),
        ("What a rollback would bring back", "migrate show rollback-orders-20260102T030405.json"),
        ("Where a seeded query starts", "migrate show spark:/data/query"),
    ),
    "verify": (
        ("Did the query start there?", "migrate verify savepoint-1 spark:/data/query"),
        (
            "Let a real Spark show where it begins",
            "migrate verify savepoint-1 spark:/data/query --run -b broker:9092",
        ),
        (
            "Does the group hold it? Before its consumers start",
            "migrate verify savepoint-1 group:orders -b broker:9092",
        ),
    ),
    "cut-over": (
        ("Would it go through? On the job's newest checkpoint", "migrate cut-over orders.yaml"),
        ("Do it, or go on after a crash", "migrate cut-over orders.yaml --execute"),
        (
            "Up to the plan, to have it reviewed",
            "migrate cut-over orders.yaml --execute --until plan",
        ),
        (
            "Back, as long as the target has written nothing",
            "migrate cut-over orders.yaml --back --execute",
        ),
    ),
    "follow": (
        (
            "Let the lag of a query show, as long as this runs",
            "migrate follow spark:/data/query --group orders -b broker:9092",
        ),
        (
            "From cron, with a file for Prometheus",
            "migrate follow spark:/data/query --group orders -b broker:9092 --once "
            "--metrics-file /var/lib/node_exporter/orders.prom",
        ),
    ),
    "scan": (
        ("Every job below a directory", "migrate scan s3://bucket/flink --latest-only"),
        (
            "With lag, as tables, and a plan for each job that can move",
            "migrate scan s3://bucket/flink -b broker:9092 --output inventory --plans plans",
        ),
    ),
}
