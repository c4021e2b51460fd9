"""List the blocks of documentation pages that no test runs, with the reason for each block.

A block is identified by its page and its first line. Console and Python blocks are always run, so
they are not listed. In the listed blocks, only the options of `migrate` commands are checked
(test_pages.py).
"""

from __future__ import annotations

_FLINK = "stops a Flink job of the reader's; tests/integration/test_mission.py stops one of its own"
_DOCKER = "wants a Docker engine; `make demo` and its test tell the same story without"
_HOURS = "runs Flink or Spark for minutes and writes into the tree; what it names must exist"

_TWO_CLUSTERS = "needs two clusters; tests/integration/test_another_cluster.py runs two"

UNRUN = {
    (
        "docs/how-to/secured-kafka.md",
        "pip install --force-reinstall --no-binary confluent-kafka confluent-kafka",
    ): "needs a librdkafka with Cyrus SASL, which CI does not build",
    (
        "docs/how-to/another-cluster.md",
        "migrate to-spark SAVEPOINT --checkpoint-dir DIR -b west:9092 \\",
    ): _TWO_CLUSTERS,
    (
        "docs/how-to/another-cluster.md",
        "migrate to-spark SAVEPOINT --checkpoint-dir DIR -b west:9092 --to-bootstrap-servers "
        "east:9092 --compare all",
    ): _TWO_CLUSTERS,
    (
        "docs/how-to/another-cluster.md",
        "migrate verify plan:plan.json spark:DIR -b west:9092 --to-kafka-config east.properties",
    ): _TWO_CLUSTERS,
    (
        "docs/how-to/cut-over.md",
        "migrate cut-over orders.yaml               # a dry run, while the job runs",
    ): "stops a Flink job of the reader's; tests/integration/test_cut_over.py stops three",
    (
        "docs/how-to/cut-over.md",
        "version: 1",
    ): "tests/unit/extensions/cutover/test_spec.py reads it",
    (
        "docs/how-to/cut-over.md",
        "states:                               # in the format of prime --state: OPERATOR/NAME",
    ): "tests/unit/extensions/cutover/test_spec.py reads it",
    (
        "docs/how-to/rehearse.md",
        "rehearse: python rehearse.py",
    ): "tests/integration/test_cut_over_check.py runs such a command",
    (
        "README.md",
        "make demo          # moves running jobs from Flink to Spark and back: 3 to 5 minutes",
    ): "minutes; tests/integration/test_examples.py runs the demo's story, test_howtos.py the "
    "playground",
    (
        "README.md",
        "# 1. Preview the move while the job runs. This writes nothing.",
    ): "the outline; each command is run where docs/how-to tells of it",
    (
        "CONTRIBUTING.md",
        "make mutants MODULE=decoder/cursor.py "
        'TESTS="tests/unit/decoder/test_bounds.py '
        'tests/unit/decoder/operator_state/test_stream.py"',
    ): "minutes; a tool for whoever changes the module",
    (
        "CONTRIBUTING.md",
        "make setup    # makes .venv from the hash-locked requirements; finds a JDK 17 to 23, or "
        "installs one as root on Debian",
    ): "is how this test came to run",
    ("CONTRIBUTING.md", "python -m tests.support.jars lock"): _HOURS,
    ("CONTRIBUTING.md", "python -m tests.golden.sinks.generate hudi-6"): _HOURS,
    ("CONTRIBUTING.md", "python -m tests.golden.generate --only 'X.Y/*'"): _HOURS,
    ("CONTRIBUTING.md", "python -m tests.golden.support_matrix"): _HOURS,
    ("CONTRIBUTING.md", "python -m tests.support.spark_matrix X.Y"): _HOURS,
    ("CONTRIBUTING.md", "python -m tests.support.state_matrix X.Y"): _HOURS,
    (
        "docs/how-to/stateful-job.md",
        "migrate verify-state SAVEPOINT spark:spark/totals --state totals/total --sample 10000",
    ): "starts a second Spark; tests/integration/test_state_rows.py does it in one",
    ("CONTRIBUTING.md", "python -m tests.support.broker_matrix X.Y.Z"): _HOURS,
    (
        "docs/how-to/compare.md",
        "migrate verify CHK spark:DIR --run -b broker:9092      "
        "# needs the `spark` extra and a JDK",
    ): "starts a second Spark; tests/integration/test_verify_run.py does",
    (
        "docs/how-to/consumer-group.md",
        "flink stop --savepointPath file:///home/me/migration/savepoints $JOB_ID",
    ): _FLINK,
    (
        "docs/how-to/going-back.md",
        "migrate commit-group spark:$DIR --group orders -b broker:9092 --execute   "
        "# commits the completed batches",
    ): "needs a Flink job of the reader's; `make demo` and its test go there and back",
    (
        "docs/how-to/going-back.md",
        "migrate to-flink SAVEPOINT --from spark:$DIR --out /home/me/migration/again "
        "-b broker:9092 --flink-rest URL",
    ): "needs a Flink job of the reader's; tests/integration/test_to_flink.py restores one",
    (
        "docs/how-to/same-state.md",
        "migrate copy-query spark:OLD --from SIDE --checkpoint-dir NEW -b broker:9092",
    ): "needs a stateful query; tests/integration/test_spark_versions.py copies one",
    (
        "docs/how-to/same-state.md",
        "flink run -s /home/me/migration/again …   # without --allowNonRestoredState, because all "
        "state must fit",
    ): "needs a Flink job of the reader's; tests/integration/test_to_flink.py restores one",
    (
        "docs/how-to/going-back.md",
        "migrate commit-group spark:$DIR --group orders -b broker:9092 --sink s3://warehouse/orders"
        "   # reports job IDs and checkpoint numbers",
    ): "needs a table of the reader's; tests/integration/test_spark_group.py asks one",
    (
        "docs/how-to/spark-checkpoint.md",
        "flink stop --savepointPath file:///home/me/migration/savepoints $JOB_ID",
    ): _FLINK,
    (
        "docs/spark.md",
        "migrate to-spark CHK -b broker:9092 --checkpoint-dir DIR --spark-source 0=orders "
        "--spark-source 1=payments",
    ): "forms of one command; tests/integration/test_spark_shapes.py runs each",
    ("examples/README.md", "docker compose up --detach"): _DOCKER,
    ("examples/README.md", "docker compose exec jobmanager flink list"): _DOCKER,
    (
        "docs/reference/commands.md",
        "tar -xzf migrate-*-linux-x86_64.tar.gz -C /opt",
    ): "installs it; tests/packaging/test_program.py runs it from such a place",
    ("docs/tutorial.md", "make demo"): "minutes; CI runs tests/integration/test_examples.py",
    (
        "docs/how-to/fleet.md",
        "submit=$(python -c 'from migrate.cli import submit; print(submit.__file__)')",
    ): "needs a cluster; tests/integration/test_scan.py submits it to a local one",
}
