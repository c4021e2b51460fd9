"""Run diff and verify against a broker, Kafka's own tool, and a Spark query."""

from __future__ import annotations

import json
import os
import re
import uuid
from pathlib import Path

import pytest

from migrate.inputs.ask_broker import ask_group, ask_logs
from migrate.inputs.compared_sides import Sides, load_sides
from migrate.inputs.group_csv import group_csv, read_group_csv
from migrate.inputs.position_inputs import parse_side
from migrate.inputs.spark_log import committed_positions, starting_positions
from migrate.inputs.spark_query import QueryStart
from migrate.model.cluster_snapshot import LogRange
from migrate.model.positions import Marker, PositionSet, Start
from migrate.planning.diff import Relation, diff
from migrate.planning.verify import StartOutcome, verify_group, verify_query
from tests.support.checkpoints import (
    SourceState,
    source_operator,
    splits,
    write_checkpoint,
    write_source,
)
from tests.support.command import migrate
from tests.support.encoder import EARLIEST
from tests.support.jars import classpath
from tests.support.jdk import compile_java, run_java
from tests.support.kafka import Broker
from tests.support.spark import Spark
from tests.support.spark_files import spark_directory

pytestmark = pytest.mark.integration

_JAVA = Path(__file__).parents[1] / "support" / "java"
# The class is in this package of Flink, because it calls package-private methods.
_TABLE = "org.apache.flink.streaming.connectors.kafka.table"


def config(broker: Broker) -> dict[str, str]:
    return {"bootstrap.servers": broker.bootstrap_servers}


def sides(broker: Broker, left: str, right: str) -> Sides:
    return load_sides(parse_side(left), parse_side(right), config(broker))


def compared(loaded: Sides) -> list[tuple[int, Relation, int | None]]:
    rows = diff(loaded.left, loaded.right, loaded.logs).rows
    return [(row.partition, row.relation, row.difference) for row in rows]


# -- diff: brokers of a different cluster ----------------------------------------------------------


def test_diff_warns_if_records_below_positions_are_newer_than_checkpoint(
    tmp_path: Path, broker: Broker
) -> None:
    """Regression: A checkpoint was compared with topics of the same name in another cluster."""
    topic = f"t-{uuid.uuid4().hex[:8]}"
    broker.create_topic(topic, 1)
    broker.produce(topic, 0, map(str, range(9)))
    broker.commit(topic, {(topic, 0): 5})
    chk = write_source(tmp_path / "chk-7", {0: splits(topic, [5])})
    compared = ("diff", chk, f"group:{topic}", "-b", broker.bootstrap_servers)
    same = migrate(*compared)
    assert (same.code, "[maybe-recreated]" in same.stderr) == (0, False), same.stderr
    os.utime(chk / "_metadata", (1_600_000_000, 1_600_000_000))  # long before these records
    other = migrate(*compared)
    assert (other.code, other.stdout) == (0, same.stdout)
    assert f"{chk}: 1 partition may belong to a recreated topic or to a different" in other.stderr
    beyond = write_source(tmp_path / "chk-8", {0: splits(topic, [50])})
    longer = migrate("diff", beyond, f"group:{topic}", "-b", broker.bootstrap_servers)
    assert f"{beyond}: 1 partition may belong to a recreated topic" in longer.stderr


# -- verify: start of a new partition ------------------------------------------------------------


@pytest.mark.parametrize(
    ("discovery_finished", "code", "says"), [(True, 0, "2 ok"), (False, 5, "1 cannot tell")]
)
def test_verify_accepts_new_partition_only_after_initial_discovery(
    tmp_path: Path, broker: Broker, discovery_finished: bool, code: int, says: str
) -> None:
    """Before the initial discovery, ``verify`` cannot determine where Flink would start."""
    topic = f"t-{uuid.uuid4().hex[:8]}"
    broker.create_topic(topic, 2)
    for partition in range(2):
        broker.produce(topic, partition, map(str, range(9)))
    state = SourceState({0: splits(topic, [3])}, initial_discovery_finished=discovery_finished)
    chk = write_checkpoint(tmp_path / "chk-7", source_operator(state))
    offsets = json.dumps({topic: {"0": 3, "1": 0}}, separators=(",", ":"))
    seed = spark_directory(tmp_path / "seed", {"sources/0/0": f"\0v1\n{offsets}"})
    result = migrate("verify", chk, f"spark:{seed}", "-b", broker.bootstrap_servers)
    assert result.code == code, result.stderr
    assert says in result.stdout


# -- diff with a broker --------------------------------------------------------------------------


def test_diff_compares_checkpoint_with_group(tmp_path: Path, broker: Broker, topic: str) -> None:
    broker.delete_records(topic, 1, before=4)
    broker.commit(f"g-{topic}", {(topic, 0): 5, (topic, 1): 4})
    chk = write_source(tmp_path / "chk-7", {0: splits(topic, [3, EARLIEST, 2])})
    loaded = sides(broker, str(chk), f"group:g-{topic}")
    assert compared(loaded) == [
        (0, Relation.AHEAD, 2),
        (1, Relation.SAME, 0),
        (2, Relation.ONLY_LEFT, None),
    ]
    assert loaded.logs[topic][1] == LogRange(4, 10, first_since=10)


def test_diff_with_broker_compares_only_topics_of_other_side(
    tmp_path: Path, broker: Broker, topic: str
) -> None:
    """The sides ``broker:earliest`` and ``broker:latest`` contain only these topics."""
    broker.delete_records(topic, 1, before=4)
    path = tmp_path / "offsets.json"
    path.write_text(json.dumps({topic: {"0": 0, "1": 2}}))
    assert compared(sides(broker, f"json:{path}", "broker:earliest")) == [
        (0, Relation.SAME, 0),
        (1, Relation.AHEAD, 2),
        (2, Relation.ONLY_RIGHT, None),
    ]
    assert compared(sides(broker, "broker:latest", f"json:{path}")) == [
        (0, Relation.BEHIND, -10),
        (1, Relation.BEHIND, -8),
        (2, Relation.ONLY_LEFT, None),
    ]


def test_diff_with_broker_warns_about_positions_outside_logs(
    tmp_path: Path, broker: Broker, topic: str
) -> None:
    """Regression: A wrong offset was only "ahead", and a misspelled topic was only on one side."""
    right, wrong = tmp_path / "right.json", tmp_path / "wrong.json"
    right.write_text(json.dumps({topic: {"0": 10, "1": 0}}))
    wrong.write_text(json.dumps({topic: {"0": 99_999, "3": 1}, "paymnts": {"0": -2}}))
    servers = ("-b", broker.bootstrap_servers)
    shown = migrate("diff", f"json:{right}", f"json:{wrong}", *servers)
    assert shown.code == 0
    absent, beyond = (line for line in shown.stderr.splitlines() if line.startswith("warning: "))
    assert absent == (
        f"warning: json:{wrong}: the broker does not have 2 partitions (the first is paymnts-0) "
        "[partitions-absent]"
    )
    assert f"json:{wrong}: 1 partition may belong to a recreated topic" in beyond
    assert f"(the first is {topic}-0)" in beyond
    assert migrate("diff", f"json:{right}", "broker:latest", *servers).stderr == ""


def test_diff_compares_two_groups_and_reports_missing_group(broker: Broker, topic: str) -> None:
    broker.commit(f"a-{topic}", {(topic, 0): 5})
    broker.commit(f"b-{topic}", {(topic, 0): 6})
    assert compared(sides(broker, f"group:a-{topic}", f"group:b-{topic}")) == [
        (0, Relation.AHEAD, 1)
    ]
    loaded = sides(broker, f"group:a-{topic}", "group:no-such-group")
    assert loaded.right.note == "the group does not exist"


def test_broker_request_succeeds_despite_invalid_topic_names(
    tmp_path: Path, broker: Broker, topic: str
) -> None:
    path = tmp_path / "offsets.json"
    path.write_text(json.dumps({topic: {"0": 10}, "": {"0": 1}, "<b>/": {"0": 1}}))
    rows = compared(sides(broker, f"json:{path}", "broker:latest"))
    assert (0, Relation.SAME, 0) in rows
    assert rows.count((0, Relation.ONLY_LEFT, None)) == 2


def test_commit_is_verified_until_group_has_newer_commits(broker: Broker, topic: str) -> None:
    kafka, group = config(broker), f"v-{topic}"
    expected = PositionSet("chk", {(topic, 0): 3, (topic, 1): 4, (topic, 2): Marker.EARLIEST})

    def outcomes() -> list[StartOutcome]:
        checked = verify_group(
            expected,
            ask_group(kafka, group),
            ask_logs(kafka, expected.topics),
            new_at_earliest=True,
        )
        return [partition.outcome for partition in checked.partitions]

    assert outcomes() == [StartOutcome.MISSING] * 3
    broker.commit(group, {(topic, 0): 3, (topic, 1): 3, (topic, 2): 0})
    assert outcomes() == [StartOutcome.OK, StartOutcome.REPEATED, StartOutcome.OK]
    broker.commit(group, {(topic, 0): 9, (topic, 1): 4, (topic, 2): 1})
    assert outcomes() == [StartOutcome.MOVED_ON, StartOutcome.OK, StartOutcome.MOVED_ON]


# -- kafka-consumer-groups -----------------------------------------------------------------------


def kafka_consumer_groups(broker: Broker, *arguments: str) -> str:
    return run_java(
        "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
        classpath("kafka-tools-4.1.1"),
        ["--bootstrap-server", broker.bootstrap_servers, *arguments],
        heap="256m",
    )


def test_kafka_tool_accepts_exported_csv(tmp_path: Path, broker: Broker, topic: str) -> None:
    offsets = {(topic, 0): 3, (topic, 1): 0, (topic, 2): 10}
    path = tmp_path / "offsets.csv"
    path.write_text(group_csv(offsets))
    told = kafka_consumer_groups(
        broker, "--group", "g", "--reset-offsets", "--from-file", str(path), "--dry-run"
    )
    rows = re.findall(rf"^g +{topic} +(\d+) +(\d+)", told, re.MULTILINE)
    assert {(topic, int(partition)): int(offset) for partition, offset in rows} == offsets


def test_flink_sql_accepts_exported_offsets(tmp_path: Path) -> None:
    offsets = {"t": {"0": 3, "10": 2**63 - 1, "2": 0}, "u": {"1": 7}}
    path = tmp_path / "offsets.json"
    path.write_text(json.dumps(offsets))
    written = migrate("diff", f"json:{path}", f"json:{path}", "--format", "flink-sql").stdout
    values = re.findall(r"^'scan.startup.specific-offsets' = '(.*)'$", written, re.MULTILINE)
    jars = classpath("flink-2.2-table")
    compiled = compile_java([_JAVA / "SpecificOffsets.java"], jars)
    told = run_java(f"{_TABLE}.SpecificOffsets", [compiled, *jars], values, heap="256m")
    assert told.splitlines() == [f"{{0=3, 2=0, 10={2**63 - 1}}}", "{1=7}"]


@pytest.mark.parametrize("groups", [1, 2])
def test_csv_of_kafka_tool_is_read(tmp_path: Path, broker: Broker, topic: str, groups: int) -> None:
    offsets = {(topic, 0): 3, (topic, 1): 0, (topic, 2): 10}
    names = [f"{topic}-{number}" for number in range(groups)]
    for name in names:
        broker.commit(name, offsets)
    selected = [argument for name in names for argument in ("--group", name)]
    told = kafka_consumer_groups(
        broker, *selected, "--reset-offsets", "--all-topics", "--to-current", "--export"
    )
    # With several groups, each row starts with its group. `migrate` reads the rows of one group.
    lines = [line for line in told.splitlines() if groups == 1 or names[1] in line]
    path = tmp_path / "offsets.csv"
    path.write_text("\n".join(lines))
    assert read_group_csv("csv:x", path).starts == offsets


# -- Spark ---------------------------------------------------------------------------------------


def test_diff_reads_start_and_committed_positions_of_spark_query(
    tmp_path: Path, broker: Broker, spark: Spark
) -> None:
    one, two = topics = [f"{name}-{uuid.uuid4().hex[:8]}" for name in ("one", "two")]
    for name in topics:
        broker.create_topic(name, 2)
        for partition in range(2):
            broker.produce(name, partition, map(str, range(500)))
    starts: dict[tuple[str, int], Start] = {
        (one, 0): 7,
        (one, 1): 0,
        (two, 0): 500,
        (two, 1): 100,
    }
    option = {one: {"0": 7, "1": 0}, two: {"0": 500, "1": -1}}

    def run() -> None:
        spark.read_all(
            broker.bootstrap_servers,
            {"subscribe": ",".join(topics)},
            tmp_path / "query",
            starting_offsets=json.dumps(option),
        )

    run()
    # A query that was started with startingOffsets also has a seed, with resolved markers.
    started = starting_positions("spark:query", tmp_path / "query")
    assert started.starts == {**starts, (two, 1): 500}
    ends = {(name, partition): 500 for name in topics for partition in range(2)}
    gone_on = committed_positions("spark:query", tmp_path / "query")
    assert gone_on.starts == ends
    assert re.fullmatch("after batch [1-9]", gone_on.note)  # the query needed several batches

    broker.produce(one, 0, map(str, range(20)))
    run()
    again = committed_positions("spark:query", tmp_path / "query")
    assert again.starts == {**ends, (one, 0): 520}
    assert starting_positions("spark:query", tmp_path / "query") == started

    logs = ask_logs(config(broker), topics)
    checked = verify_query(
        PositionSet("chk", starts), QueryStart(started), logs, new_at_earliest=True
    )
    assert not checked.verified
    assert [(p.partition, p.outcome, p.records) for p in checked.partitions if p.records] == [
        (1, StartOutcome.LOST, 400)
    ]
