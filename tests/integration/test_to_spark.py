"""Run ``to-spark --bootstrap-servers`` on a real broker, for every verdict and its output.

The encoder writes each checkpoint with the position of one trap. `test_mission.py` uses real jobs.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

import migrate as library
from tests.support.checkpoints import (
    SourceState,
    source_operator,
    splits,
    write_checkpoint,
    write_source,
)
from tests.support.command import Result, migrate
from tests.support.encoder import COMMITTED, EARLIEST, LATEST, EnumeratorSplit, KafkaSplit
from tests.support.golden_topics import GOLDEN, create_golden_topics, topic_map
from tests.support.groups import member
from tests.support.kafka import Broker

pytestmark = pytest.mark.integration


def _to_spark(
    tmp_path: Path, broker: Broker, topic: str, starts: Sequence[int], *arguments: str
) -> Result:
    chk = write_source(tmp_path / "chk-7", {0: splits(topic, starts)})
    seed = tmp_path / "seed"
    result = migrate(
        "to-spark", chk, "-b", broker.bootstrap_servers, "--checkpoint-dir", seed, *arguments
    )
    if result.code == 0:
        assert (seed / "sources/0/0").read_text() == f"\0v1\n{result.stdout.strip()}"
    else:
        assert result.stdout == ""
        assert not seed.exists()
    return result


def _offsets(result: Result, topic: str) -> dict[int, int]:
    assert result.code == 0, result.stderr
    written: dict[str, dict[str, int]] = json.loads(result.stdout)
    assert written.keys() == {topic}
    return {int(partition): offset for partition, offset in written[topic].items()}


def test_listener_without_sasl_is_reported(tmp_path: Path, broker: Broker, topic: str) -> None:
    """Regression: The error suggested checking the user name, the password, and the mechanism."""
    chk = write_source(tmp_path / "chk-7", {0: splits(topic, [0])})
    sasl = "security.protocol=SASL_PLAINTEXT sasl.mechanism=PLAIN sasl.username=a sasl.password=b"
    options = (word for setting in sasl.split() for word in ("-X", setting))
    result = migrate("to-spark", chk, "-b", broker.bootstrap_servers, *options)
    assert result.code == 6
    assert "[no-sasl-at-listener]" in result.stderr


def test_positions_within_log_are_start_offsets(tmp_path: Path, broker: Broker, topic: str) -> None:
    result = _to_spark(tmp_path, broker, topic, [0, 4, 10])
    assert _offsets(result, topic) == {0: 0, 1: 4, 2: 10}


def test_earliest_marker_is_resolved_to_log_start_offset(
    tmp_path: Path, broker: Broker, topic: str
) -> None:
    broker.delete_records(topic, 1, 6)
    result = _to_spark(tmp_path, broker, topic, [EARLIEST, EARLIEST, 1])
    assert _offsets(result, topic) == {0: 0, 1: 6, 2: 1}
    assert f"{topic}-1: marker resolved, from 6" in result.stderr


def test_latest_marker_is_refused(tmp_path: Path, broker: Broker, topic: str) -> None:
    result = _to_spark(tmp_path, broker, topic, [1, LATEST, 1])
    assert result.code == 4
    assert f"{topic}-1: unresolved" in result.stderr


def test_committed_marker_requires_source_group(tmp_path: Path, broker: Broker, topic: str) -> None:
    group = f"flink-{topic}"
    broker.commit(group, {(topic, 1): 7, (topic, 0): 1})
    without = _to_spark(tmp_path / "a", broker, topic, [1, COMMITTED, 1])
    assert without.code == 4
    assert "--source-group" in without.stderr
    nothing = _to_spark(
        tmp_path / "b", broker, topic, [1, COMMITTED, COMMITTED], "--source-group", group
    )
    assert nothing.code == 4
    assert f"{topic}-2: unresolved" in nothing.stderr
    assert f"{topic}-1 is" not in nothing.stderr
    resolved = _to_spark(tmp_path / "c", broker, topic, [1, COMMITTED, 1], "--source-group", group)
    assert _offsets(resolved, topic) == {0: 1, 1: 7, 2: 1}


def test_newer_commits_of_source_group_require_override(
    tmp_path: Path, broker: Broker, topic: str
) -> None:
    group = f"flink-{topic}"
    broker.commit(group, {(topic, 0): 5})
    refused = _to_spark(tmp_path / "a", broker, topic, [4, 1, 1], "--source-group", group)
    assert refused.code == 4
    assert "the committed offsets of Flink's group are 1 record ahead" in refused.stderr
    allowed = _to_spark(
        tmp_path / "b", broker, topic, [4, 1, 1], "--source-group", group, "--allow-ran-on"
    )
    assert _offsets(allowed, topic) == {0: 4, 1: 1, 2: 1}
    assert f"{topic}-0: ok, from 4, duplicates up to 1 records" in allowed.stderr
    assert "warning: the job kept running after this checkpoint" in allowed.stderr


def test_expired_positions_are_refused(tmp_path: Path, broker: Broker, topic: str) -> None:
    broker.delete_records(topic, 0, 6)
    result = _to_spark(tmp_path, broker, topic, [5, 1, 1])
    assert result.code == 4
    assert f"{topic}-0: expired" in result.stderr
    assert "up to 1 records were deleted" in result.stderr


def test_topic_recreated_with_fewer_records_is_refused(
    tmp_path: Path, broker: Broker, topic: str
) -> None:
    broker.delete_topic(topic)
    broker.create_topic(topic, 2)
    broker.produce(topic, 0, ["new"])
    result = _to_spark(tmp_path, broker, topic, [5, 0, 3])
    assert result.code == 4
    assert f"{topic}-0: beyond end" in result.stderr
    assert f"{topic}-2: partition gone" in result.stderr
    assert f"{topic}-1 is" not in result.stderr


def test_deleted_topic_is_refused(tmp_path: Path, broker: Broker) -> None:
    name = f"gone-{uuid.uuid4().hex[:8]}"
    result = _to_spark(tmp_path, broker, name, [5])
    assert result.code == 4
    assert f"{name}-0: topic gone" in result.stderr


def test_misspelled_topic_gets_suggestion(tmp_path: Path, broker: Broker, topic: str) -> None:
    result = _to_spark(tmp_path, broker, f"{topic}z", [5])
    assert result.code == 4
    assert f"the broker has no such topic (did you mean '{topic}'" in result.stderr


def test_new_partitions_start_at_log_start_offset(
    tmp_path: Path, broker: Broker, topic: str
) -> None:
    broker.add_partitions(topic, 5)
    broker.produce(topic, 4, ["a", "b", "c"])
    broker.delete_records(topic, 4, 2)
    result = _to_spark(tmp_path, broker, topic, [1, 2, 3])
    assert _offsets(result, topic) == {0: 1, 1: 2, 2: 3, 3: 0, 4: 2}
    assert f"{topic}-4: new partition, from 2" in result.stderr


def test_unlisted_partition_with_records_older_than_checkpoint_triggers_warning(
    tmp_path: Path, broker: Broker, topic: str
) -> None:
    """The job may deliberately read only partition 0 and ignore the other partitions."""
    time.sleep(0.05)  # timestamps are in milliseconds
    result = _to_spark(tmp_path / "all", broker, topic, [4])
    assert _offsets(result, topic) == {0: 4, 1: 0, 2: 0}
    assert "[unlisted-partition]" in result.stderr
    assert "2 partitions are missing from the checkpoint, but already had records" in result.stderr
    assert f"(the first is {topic}-1, with up to 10 records)" in result.stderr
    named = _to_spark(tmp_path / "named", broker, topic, [4], "--partitions", f"{topic}:0")
    assert _offsets(named, topic) == {0: 4}
    assert "new partition" not in named.stderr
    assert "use the option assign, and list exactly the partitions to move" in named.stderr
    broker.add_partitions(topic, 4)
    broker.produce(topic, 3, ["since"])
    os.utime(tmp_path / "named/chk-7/_metadata", (1_600_000_000,) * 2)  # before all records
    chk = tmp_path / "named/chk-7"
    assert (
        "[unlisted-partition]"
        not in migrate("to-spark", chk, "-b", broker.bootstrap_servers).stderr
    )


@pytest.mark.parametrize(("version", "finished"), [(1, True), (2, False), (3, False)])
def test_undiscovered_partition_is_unresolved_if_job_settings_determine_its_start(
    tmp_path: Path, broker: Broker, topic: str, version: int, finished: bool
) -> None:
    """The checkpoint does not prove that Flink's initial discovery has finished.

    Flink starts partitions of the initial discovery at the starting offsets in the job's settings.
    """
    state = SourceState(
        {0: splits(topic, [1, 2])},
        enumerator_version=version,
        initial_discovery_finished=finished,
    )
    chk = write_checkpoint(tmp_path / "chk-7", source_operator(state))
    result = migrate("to-spark", chk, "-b", broker.bootstrap_servers)
    assert (result.code, result.stdout) == (4, "")
    assert f"{topic}-2: unresolved" in result.stderr


def test_partition_without_reader_starts_at_stopping_offset_of_enumerator(
    tmp_path: Path, broker: Broker, topic: str
) -> None:
    """A bounded source removes finished splits from its readers."""
    state = SourceState(
        {0: [KafkaSplit(topic, 0, 3, 10)]},
        entries=[EnumeratorSplit(KafkaSplit(topic, n, EARLIEST, 8)) for n in range(3)],
    )
    chk = write_checkpoint(tmp_path / "chk-7", source_operator(state))
    result = migrate("to-spark", chk, "-b", broker.bootstrap_servers)
    assert _offsets(result, topic) == {0: 3, 1: 8, 2: 8}


def test_lookup_of_missing_topic_does_not_create_topic(tmp_path: Path) -> None:
    with Broker({"auto.create.topics.enable": "true"}) as eager:
        result = _to_spark(tmp_path, eager, "never-there", [1])
        assert result.code == 4
        topics = AdminClient({"bootstrap.servers": eager.bootstrap_servers}).list_topics(timeout=10)
        assert "never-there" not in topics.topics


def test_stopped_broker_exits_with_6(tmp_path: Path) -> None:
    with Broker() as mortal:
        mortal.create_topic("t", 1)
        assert _to_spark(tmp_path / "before", mortal, "t", [0]).code == 0
        mortal.stop()
        result = _to_spark(tmp_path / "after", mortal, "t", [0])
    assert result.code == 6
    (line,) = result.stderr.splitlines()
    assert line.startswith("migrate: no broker answered")


def test_topic_recreated_with_more_records_is_suspect(
    tmp_path: Path, broker: Broker, topic: str
) -> None:
    """The position exists in the new topic, so only the timestamps show that it was recreated."""
    chk = write_source(tmp_path / "chk-7", {0: splits(topic, [8, 8, 8])})
    before = migrate("to-spark", chk, "-b", broker.bootstrap_servers)
    assert "suspect" not in before.stderr
    time.sleep(0.05)  # timestamps are in milliseconds
    broker.delete_topic(topic)
    broker.create_topic(topic, 3)
    for partition in range(3):
        broker.produce(topic, partition, map(str, range(30)))
    result = migrate("to-spark", chk, "-b", broker.bootstrap_servers)
    assert _offsets(result, topic) == {0: 8, 1: 8, 2: 8}  # a warning, not a refusal
    assert "3 partitions may belong to a recreated topic" in result.stderr
    assert f"{topic}-0: suspect, from 8" in result.stderr


@pytest.mark.parametrize(
    ("starts", "flags", "expected"),
    [
        ([2, 9, 9], ("--on-expired", "earliest"), {0: 6, 1: 9, 2: 9, 3: 0}),
        ([9, 99, 9], ("--on-beyond-end", "latest"), {0: 9, 1: 10, 2: 9, 3: 0}),
        ([9, 9, 9], ("--new-partitions", "latest"), {0: 9, 1: 9, 2: 9, 3: 2}),
        (
            [9, 9, 9, 9, 9],
            ("--gone", "skip", "--on-beyond-end", "latest"),
            {**dict.fromkeys(range(3), 9), 3: 2},
        ),
        ([9, LATEST, 9], ("--unresolved", "latest"), {0: 9, 1: 10, 2: 9, 3: 0}),
        ([9, 8, 7], ("--partitions", "TOPIC:1-2"), {1: 8, 2: 7}),
    ],
)
def test_policy_and_partition_options_determine_start_offsets(
    tmp_path: Path,
    broker: Broker,
    topic: str,
    starts: list[int],
    flags: tuple[str, ...],
    expected: dict[int, int],
) -> None:
    """Without the option, some of these moves would be refused."""
    broker.delete_records(topic, 0, 6)
    broker.add_partitions(topic, 4)
    broker.produce(topic, 3, ["a", "b"])
    flags = tuple(flag.replace("TOPIC", topic) for flag in flags)
    result = _to_spark(tmp_path, broker, topic, starts, *flags)
    assert _offsets(result, topic) == expected


def test_topic_map_option_moves_positions_to_renamed_topic(
    tmp_path: Path, broker: Broker, topic: str
) -> None:
    chk = write_source(tmp_path / "chk-7", {0: splits("of-old", [3, 4])})
    result = migrate(
        "to-spark", chk, "-b", broker.bootstrap_servers, "--topic-map", f"of-old={topic}"
    )
    assert _offsets(result, topic) == {0: 3, 1: 4, 2: 0}


# -- positions from other inputs -----------------------------------------------------------------


def _side(broker: Broker, side: str, *options: str) -> Result:
    return migrate("to-spark", side, "-b", broker.bootstrap_servers, *options)


def test_offsets_of_group_or_csv_file_become_start_offsets(
    tmp_path: Path, broker: Broker, topic: str
) -> None:
    group = f"g-{topic}"
    broker.commit(group, {(topic, 0): 3, (topic, 1): 9, (topic, 2): 10})
    assert _offsets(_side(broker, f"group:{group}"), topic) == {0: 3, 1: 9, 2: 10}
    csv = tmp_path / "offsets.csv"
    csv.write_text(f"{topic},0,3\n{topic},1,9\n{topic},2,10\n")
    assert _offsets(_side(broker, f"csv:{csv}"), topic) == {0: 3, 1: 9, 2: 10}


def test_group_that_lacks_offset_of_partition_requires_start_policy(
    broker: Broker, topic: str
) -> None:
    group = f"g-{topic}"
    broker.commit(group, {(topic, 0): 3, (topic, 1): 9})
    refused = _side(broker, f"group:{group}")
    assert (refused.code, refused.stdout) == (4, "")
    assert f"{topic}-2: unresolved: the positions do not contain the partition" in refused.stderr
    chosen = _side(broker, f"group:{group}", "--new-partitions", "earliest")
    assert _offsets(chosen, topic) == {0: 3, 1: 9, 2: 0}


def test_active_or_missing_group_is_refused_as_start_position(broker: Broker, topic: str) -> None:
    group = f"g-{topic}"
    broker.commit(group, {(topic, n): 5 for n in range(3)})
    with member(broker, group, topic):
        refused = _side(broker, f"group:{group}")
        assert (refused.code, refused.stdout) == (4, "")
        assert "[group-reads]" in refused.stderr
        assert f"group '{group}' has 1 member; " in refused.stderr
        assert _side(broker, f"group:{group}", "--allow-ran-on").code == 0
    assert _side(broker, f"group:{group}").code == 0
    nobody = _side(broker, f"group:no-{topic}")
    assert (nobody.code, nobody.stdout) == (4, "")
    assert "[group-missing]" in nobody.stderr


def test_start_at_earliest_latest_or_timestamp_is_resolved_by_broker(
    broker: Broker, topic: str
) -> None:
    """A timestamp resolves to the first record at or after it, or else to the log end offset."""
    broker.delete_records(topic, 0, before=4)
    these = ("--partitions", f"{topic}:0-2")
    assert _offsets(_side(broker, "broker:earliest", *these), topic) == {0: 4, 1: 0, 2: 0}
    assert _offsets(_side(broker, "broker:latest", *these), topic) == {0: 10, 1: 10, 2: 10}
    time.sleep(0.01)
    at = time.time_ns() // 1_000_000
    time.sleep(0.01)
    broker.produce(topic, 1, ["late", "later"])
    iso = datetime.fromtimestamp(at / 1000, timezone.utc).isoformat().replace("+00:00", "Z")
    for text in (str(at), iso):
        found = _side(broker, f"broker:{text}", *these)
        assert _offsets(found, topic) == {0: 10, 1: 10, 2: 10}
    assert _offsets(_side(broker, "broker:2001-01-01", *these), topic) == {0: 4, 1: 0, 2: 0}
    unnamed = _side(broker, "broker:latest")
    assert unnamed.code == 2
    assert "contains no topics" in unnamed.stderr


def test_diff_resolves_timestamp_to_offsets(tmp_path: Path, broker: Broker, topic: str) -> None:
    chk = write_source(tmp_path / "chk-7", {0: splits(topic, [3, 10, 10])})
    shown = migrate(
        *("diff", chk, "broker:2001-01-01", "-b", broker.bootstrap_servers, "--format", "json")
    )
    rows = json.loads(shown.stdout)["partitions"]
    assert [(row["left"]["next_offset"], row["right"]["next_offset"]) for row in rows] == [
        *((3, 0), (10, 0), (10, 0))
    ]


def test_refusal_suggests_option_in_syntax_of_caller(tmp_path: Path, broker: Broker) -> None:
    """The caller is a command line, a function call, or a spec. The position has expired."""
    names = create_golden_topics(broker, "orders", "payments")
    broker.produce(names["orders"], 0, map(str, range(50)))
    broker.delete_records(names["orders"], 0, 40)  # the position is 12
    (savepoint,) = (GOLDEN / "2.2/stop").glob("savepoint-*")
    spec = tmp_path / "orders.yaml"
    content = {
        "version": 1,
        "flink": {"savepoint": str(savepoint)},
        "kafka": {"bootstrap-servers": broker.bootstrap_servers},
        "move": {"topic-map": names},
        "target": {"checkpoint-dir": "query"},
    }
    spec.write_text(json.dumps(content))  # also YAML

    servers = broker.bootstrap_servers
    command: tuple[str | Path, ...] = ("to-spark", savepoint, "-b", servers, *topic_map(names))
    shown = migrate(*command)
    assert (shown.code, shown.stdout) == (4, "")
    assert "continue after the gap with --on-expired earliest" in shown.stderr
    with pytest.raises(library.Refused, match='continue after the gap with on_expired="earliest"'):
        library.to_spark(savepoint, bootstrap_servers=servers, topic_map=names)
    with pytest.raises(library.Refused, match=r"after the gap with move\.on-expired: earliest"):
        library.cut_over(spec)

    shown = migrate(*command, "--sink-writer", "name")
    assert (shown.code, shown.stdout) == (2, "")
    assert "--sink-writer requires --sink" in shown.stderr
    with pytest.raises(library.UsageError, match="sink_writer requires sink"):
        library.to_spark(savepoint, bootstrap_servers=servers, topic_map=names, sink_writer="name")
    spec.write_text(json.dumps({**content, "sink-writer": "name"}))
    with pytest.raises(library.Refused, match="sink-writer requires sink"):
        library.cut_over(spec)
