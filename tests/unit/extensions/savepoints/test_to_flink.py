"""Rewrite a savepoint with `migrate to-flink`: refusals, changes, and unchanged parts."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import uuid
from collections import UserDict
from collections.abc import KeysView, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from decoder import KafkaSource, read_checkpoint
from decoder.kafka.enumerator import AssignmentStatus
from decoder.operator_state.fetch import SubtaskState, state_elements
from decoder.state_files import StateFiles
from migrate import to_flink
from migrate.inputs.flink.source import Source
from migrate.inputs.plan_input import listed_source
from migrate.model.catalog import READER_CLUSTER_UNKNOWN
from migrate.model.policies import Policies
from migrate.model.positions import SAVEPOINT, ClusterPartition, Origin, PositionSet, TopicPartition
from migrate.planning import Plan, PlannedPartition, Verdict
from migrate.planning.source_changes import (
    SourceChange,
    remove_partitions_of_others,
    source_change,
)
from migrate.storage import uris
from migrate.storage.files import Files
from tests.support.checkpoints import (
    OPERATOR_ID,
    SourceState,
    in_flight_operator,
    legacy_operator,
    operator_with_elements,
    operator_with_states,
    source_operator,
    splits,
    write_checkpoint,
    write_source,
)
from tests.support.command import Result, migrate
from tests.support.encoder import (
    LEGACY_STATE,
    UNASSIGNED,
    EnumeratorSplit,
    KafkaSplit,
    StreamCluster,
    encode_coordinator,
    encode_dynamic_enumerator,
    encode_dynamic_reader_element,
    encode_enumerator,
    encode_legacy_element,
)
from tests.support.golden import golden
from tests.support.spark_files import COMMIT, SEED, batch, spark_directory
from tests.support.state_files import write_savepoint_with_files

_MARKER = -(1 << 63)
_OTHER = bytes(range(16, 32))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _side(offsets: Mapping[str, Sequence[int | None]], name: str = "side.json") -> str:
    """Write a file of offsets by topic. The partition is the index, and None omits a partition."""
    told = {
        topic: {str(n): at for n, at in enumerate(starts) if at is not None}
        for topic, starts in offsets.items()
    }
    Path(name).write_text(json.dumps(told))
    return f"json:{name}"


def _to_flink(savepoint: Path, side: str, *options: str) -> Result:
    return migrate("to-flink", savepoint, "--from", side, "--out", "new", *options)


def _positions(directory: str | Path = "new", source: int = 0) -> dict[str, int | str | None]:
    found = json.loads(migrate("inspect", directory, "--format", "json").stdout)
    return {
        f"{one['topic']}-{one['partition']}": one["next_offset"]
        if one["next_offset"] is not None
        else one["state"]
        for one in found["sources"][source]["positions"]
    }


def _refused(result: Result) -> str:
    assert (result.code, result.stdout) == (4, ""), result
    assert not Path("new").exists()
    assert not [one for one in Path().iterdir() if one.name.startswith(".new")]
    return result.stderr


# -- written positions ---------------------------------------------------------------------------


def test_to_flink_writes_positions_passed_with_option_from_and_prints_path(here: Path) -> None:
    chk = write_source(here / "chk-7", {0: splits("t", [3, 4]), 1: splits("u", [-2])})
    before = (chk / "_metadata").read_bytes()
    written = _to_flink(chk, _side({"t": [9, 1], "u": [2]}))
    assert (written.code, written.stdout) == (0, f"{here}/new\n")
    assert _positions() == {"t-0": 9, "t-1": 1, "u-0": 2}
    assert "t-0 advances from 3 to 9, so Flink skips up to 6 records" in written.stderr
    assert "t-1 rewinds from 4 to 1, so Flink reprocesses up to 3 records" in written.stderr
    assert "u-0 resumes from 2 [position-changed]\n" in written.stderr
    assert "next, restore the unchanged job: flink run -s" in written.stderr
    assert (chk / "_metadata").read_bytes() == before
    assert [file.name for file in chk.iterdir()] == ["_metadata"]


def test_to_flink_call_returns_plan(here: Path) -> None:
    chk = write_source(here / "chk-7", {0: splits("t", [3, 4])})
    made = to_flink(chk, from_side=_side({"t": [9, 4]}), out="new")
    assert made.path == str(here / "new")
    (partitions,) = made.partitions.values()
    assert [(one.current, one.next_offset) for one in partitions] == [(3, 9), (4, 4)]


def test_other_states_of_source_are_unchanged(here: Path) -> None:
    operator = legacy_operator({0: [encode_legacy_element("t", 0, 41)]})
    chk = write_checkpoint(here / "chk-7", operator)
    done = _to_flink(chk, _side({"t": [50]}))
    assert done.code == 0, done.stderr
    assert _positions() == {"t-0": 50}
    (new,) = json.loads(migrate("inspect", "new", "--format", "json").stdout)["operators"]
    assert new["state_names"] == ["_default_", LEGACY_STATE, "zebra"]
    written = b"".join(one.read_bytes() for one in Path("new").iterdir() if one.is_file())
    assert b"after" in written


def test_added_partition_is_assigned_to_reader_and_enumerator(here: Path) -> None:
    """Without the enumerator entry, Flink would discover the partition and reread its records."""
    readers = {0: splits("t", [3]), 1: splits("u", [4])}
    chk = write_source(here / "chk-7", readers)
    assert _to_flink(chk, _side({"t": [3, 5, 6], "u": [4]})).code == 0
    (source,) = read_checkpoint("new").sources.values()
    assert isinstance(source, KafkaSource) and source.enumerator is not None
    entries = {(e.topic, e.partition): e.status for e in source.enumerator.entries}
    assert entries == dict.fromkeys(
        [("t", 0), ("t", 1), ("t", 2), ("u", 0)], AssignmentStatus.ASSIGNED
    )
    held = {(s.split.topic, s.split.partition): s.subtask for s in source.reader_splits}
    # The hash of "t" is 116. (116 * 31) % 2 is 0, so subtask 1 reads partition 1.
    assert held == {("t", 0): 0, ("u", 0): 1, ("t", 1): 1, ("t", 2): 0}


def test_unassigned_partition_is_assigned(here: Path) -> None:
    entries = [
        EnumeratorSplit(KafkaSplit("t", 0, 3)),
        EnumeratorSplit(KafkaSplit("t", 1, _MARKER), UNASSIGNED),
    ]
    for version in (2, 3):
        state = SourceState({0: splits("t", [3])}, entries, enumerator_version=version)
        chk = write_checkpoint(here / f"v{version}/chk-7", source_operator(state))
        result = migrate(
            *("to-flink", chk, "--from", _side({"t": [3, 8]}), "--out", f"new-{version}")
        )
        assert result.code == 0, result.stderr
        assert _positions(f"new-{version}") == {"t-0": 3, "t-1": 8}


@pytest.mark.parametrize("name", ["1.20/compressed", "1.20/legacy", "2.2/dynamic", "2.2/stop"])
def test_positions_of_spark_query_are_written_to_savepoint(here: Path, name: str) -> None:
    """The query has read more records than the Flink job.

    If the savepoint has several clusters, ``--cluster`` selects one.
    """
    cluster = ("--cluster", "east") if name == "2.2/dynamic" else ()
    found = json.loads(migrate("inspect", golden(name), "--format", "json").stdout)
    (source,) = found["sources"]
    held = [p for p in source["positions"] if p["cluster"] in (None, "east")]
    offsets: dict[str, dict[str, int]] = {}
    for one in held:
        at = one["next_offset"] if one["next_offset"] is not None else 0
        offsets.setdefault(one["topic"], {})[str(one["partition"])] = at + 2
    files = {"metadata": f'{{"id":"{uuid.uuid4()}"}}', "sources/0/0": SEED, "commits/0": COMMIT}
    query = spark_directory(here / "query", {**files, "offsets/0": batch(json.dumps(offsets))})
    options = ("--allow-state-mismatch", *cluster)
    result = _to_flink(golden(name), f"spark:{query}", *options)
    assert result.code == 0, result.stderr
    after = json.loads(migrate("inspect", "new", "--format", "json").stdout)
    assert {
        (one["cluster"], one["topic"], one["partition"]): one["next_offset"]
        for one in after["sources"][0]["positions"]
        if one["cluster"] in (None, "east")
    } == {
        (one["cluster"], one["topic"], one["partition"]): offsets[one["topic"]][
            str(one["partition"])
        ]
        for one in held
    }


def test_positions_of_second_checkpoint_are_applied_per_operator(here: Path) -> None:
    """Two sources of the same topic have different positions, and each resumes from its own."""

    def job(name: str, *starts: int) -> Path:
        operators = [
            source_operator(SourceState({0: splits("t", [start])}, operator_id=bytes([n]) * 16))
            for n, start in enumerate(starts)
        ]
        return write_checkpoint(here / name, *operators)

    result = _to_flink(job("a/chk-7", 3, 4), str(job("b/chk-7", 5, 8)))
    assert result.code == 0, result.stderr
    assert [_positions(source=n) for n in (0, 1)] == [{"t-0": 5}, {"t-0": 8}]


def test_partitions_missing_from_partitions_option_keep_their_positions(here: Path) -> None:
    chk = write_source(here / "chk-7", {0: splits("t", [3, 4, -1])})
    assert _to_flink(chk, _side({"t": [9, 9, 9]}), "--partitions", "t:0").code == 0
    assert _positions() == {"t-0": 9, "t-1": 4, "t-2": "latest"}


@pytest.mark.parametrize("header_per_state", [False, True], ids=["2.2", "1.18.1"])
def test_to_flink_does_not_change_compressed_states_without_offsets(
    here: Path, header_per_state: bool
) -> None:
    """Regression: A savepoint was refused unless it had Flink 1.18.1's header for each state."""
    held = {n: [encode_legacy_element("t", n, 10)] for n in range(2)}
    operator = legacy_operator(held, compressed=True, header_per_state=header_per_state)
    chk = write_checkpoint(here / "chk-7", operator)
    result = _to_flink(chk, _side({"t": [5, 11, 7]}), "--allow-state-mismatch")
    assert result.code == 0, result.stderr
    assert _positions() == {"t-0": 5, "t-1": 11, "t-2": 7}
    before, after = (_other_states(directory) for directory in (chk, "new"))
    assert after == before
    assert before == {(n, name): [text] for n in (0, 1) for name, text in _OTHER_STATES.items()}


_OTHER_STATES = {"_default_": b"x", "zebra": b"after"}


def _other_states(directory: str | Path) -> dict[tuple[int, str], list[bytes]]:
    files = StateFiles(str(directory), Files(), False)
    (operator,) = read_checkpoint(directory).operators
    return {
        (subtask.index, state.name): [
            element
            for _, element in state_elements(
                [SubtaskState(subtask.index, handle, state)], files, "it"
            )
        ]
        for subtask in operator.subtasks
        if (handle := subtask.managed_operator_state) is not None
        for state in handle.states
        if state.name in _OTHER_STATES
    }


def test_bounded_split_keeps_its_stopping_offset(here: Path) -> None:
    chk = write_source(here / "chk-7", {0: [KafkaSplit("t", 0, 3, 20)]})
    assert _to_flink(chk, _side({"t": [7]})).code == 0
    (source,) = read_checkpoint("new").sources.values()
    assert isinstance(source, KafkaSource)
    assert [one.split for one in source.reader_splits] == [("t", 0, 7, 20)]


# -- refusals ------------------------------------------------------------------------------------


def test_state_mismatch_is_refused_unless_allowed(here: Path) -> None:
    chk = write_checkpoint(
        here / "chk-7",
        source_operator(SourceState({0: splits("t", [3, 4, 5])})),
        operator_with_states({"totals": [b"x"]}, operator_id=_OTHER),
    )
    refusal = _refused(_to_flink(chk, _side({"t": [9, 1, 5]})))
    assert "bytes in 1 operator) matches only" in refusal
    assert "t-0 advances from 3 to 9, so up to 6 records are missing from the state" in refusal
    assert "t-1 rewinds from 4 to 1, so up to 3 records are double-counted" in refusal
    assert "t-2 " not in refusal  # the path may contain "pytest-2"
    assert "--allow-state-mismatch" in refusal
    assert _to_flink(chk, _side({"t": [3, 4, 5]})).code == 0  # no position changes


def test_in_flight_records_of_savepoint_require_override(here: Path) -> None:
    source = source_operator(SourceState({0: splits("t", [3])}))
    chk = write_checkpoint(here / "chk-7", source, in_flight_operator(64))
    assert "the savepoint contains in-flight records" in _refused(_to_flink(chk, _side({"t": [3]})))
    assert _to_flink(chk, _side({"t": [3]}), "--allow-in-flight").code == 0
    assert (here / "new/_metadata").read_bytes() == (chk / "_metadata").read_bytes()


def test_checkpoint_requires_override_if_job_has_newer_checkpoint(here: Path) -> None:
    chk = write_source(here / "job/chk-7", {0: splits("t", [3])})
    write_source(here / "job/chk-9", {0: splits("t", [5])})
    assert "kept running" in _refused(_to_flink(chk, _side({"t": [4]})))
    assert _to_flink(chk, _side({"t": [4]}), "--allow-ran-on").code == 0


@pytest.mark.parametrize(
    ("side", "told"),
    [
        ({"t": [3]}, "[no-position]"),
        ({"t": [3, 4], "x": [1]}, "[topics-left-out]"),
        (
            {"x": [1]},
            "has positions for x, but the savepoint has positions for t; check that the "
            "savepoint belongs to the same job",
        ),
        ({"t": [3, -1]}, "[latest-marker-offline]"),
    ],
)
def test_positions_not_matching_savepoint_are_refused(
    here: Path, side: dict[str, list[int | None]], told: str
) -> None:
    chk = write_source(here / "chk-7", {0: splits("t", [3, 4])})
    assert told in _refused(_to_flink(chk, _side(side)))


def test_topics_of_other_sources_are_omitted_with_source_option(here: Path) -> None:
    chk = write_source(here / "chk-7", {0: splits("t", [3])})
    result = _to_flink(chk, _side({"t": [4], "x": [1]}), "--source", "topic:t")
    assert result.code == 0
    assert "--source omits x" in result.stderr
    assert _positions() == {"t-0": 4}


def test_partition_is_not_added_to_bounded_source(here: Path) -> None:
    chk = write_source(here / "chk-7", {0: [KafkaSplit("t", 0, 3, 20)]})
    assert "is bounded" in _refused(_to_flink(chk, _side({"t": [7, 0]})))


def test_partition_is_not_added_to_finished_bounded_source(here: Path) -> None:
    """Regression: The partition was read without a stopping offset."""
    state = SourceState({0: []}, [EnumeratorSplit(KafkaSplit("t", 0, 0, 9))])
    chk = write_checkpoint(here / "chk-7", source_operator(state))
    assert "is bounded" in _refused(_to_flink(chk, _side({"t": [9, 2]})))


def test_partition_in_two_readers_is_refused_unless_option_excludes_it(here: Path) -> None:
    """Regression: Both splits were moved, and each record was then read twice."""
    entries = [EnumeratorSplit(KafkaSplit("t", n, 0)) for n in (0, 1)]
    readers = {0: [KafkaSplit("t", 0, 3)], 1: [KafkaSplit("t", 0, 5), KafkaSplit("t", 1, 9)]}
    chk = write_checkpoint(here / "chk-7", source_operator(SourceState(readers, entries)))
    assert "t-0 is assigned to 2 readers, " in _refused(_to_flink(chk, _side({"t": [4, 9]})))
    assert _to_flink(chk, _side({"t": [4, 8]}), "--partitions", "t:1").code == 0


def test_unknown_topics_of_different_job_are_refused(here: Path) -> None:
    """Regression: The other job's topics were added to the reader."""
    chk = write_source(here / "a/chk-7", {0: splits("t", [3])})
    other = write_source(here / "b/chk-9", {0: [*splits("t", [4]), *splits("payments", [6])]})
    assert "has positions for topics payments, but no source" in _refused(
        _to_flink(chk, str(other))
    )


@pytest.mark.parametrize("discovered", [True, False])
def test_new_partition_is_added_unless_flink_discovers_it_from_log_start(discovered: bool) -> None:
    """Regression: Flink started the partition by the job's policy, for example at the log end."""
    source = listed_source("op", "op", PositionSet("it", {("t", 0): 3}), starts_others=discovered)
    new = PlannedPartition("t", 1, Verdict.NEW_PARTITION, 0)
    known = PlannedPartition("t", 0, Verdict.OK, 3)
    plan = Plan(Origin("positions", "json:x", 0), SAVEPOINT, (known, new))
    change = source_change(source, None, plan, "json:x", Policies())
    assert change.new_offsets == ({} if discovered else {(None, "t", 1): 0})


def test_finished_partition_cannot_be_rewound(here: Path) -> None:
    entries = [EnumeratorSplit(KafkaSplit("t", 0, 0, 9)), EnumeratorSplit(KafkaSplit("t", 1, 0))]
    state = SourceState({0: [KafkaSplit("t", 1, 4)]}, entries)
    chk = write_checkpoint(here / "chk-7", source_operator(state))
    told = _refused(_to_flink(chk, _side({"t": [2, 4]})))
    assert "the bounded source has read t-0 to the end" in told
    assert _to_flink(chk, _side({"t": [9, 5]})).code == 0
    assert _positions() == {"t-0": 9, "t-1": 5}


def test_savepoint_with_several_clusters_requires_cluster_option(here: Path) -> None:
    held = json.loads(migrate("inspect", golden("2.2/dynamic"), "--format", "json").stdout)
    topics = {one["topic"] for one in held["sources"][0]["positions"]}
    side = _side({topic: [1, 1, 1] for topic in topics})
    told = _refused(_to_flink(golden("2.2/dynamic"), side, "--allow-state-mismatch"))
    assert "the savepoint reads several Kafka clusters, including 'east', 'west'" in told


def test_topic_pattern_with_two_sources_is_usage_error(here: Path) -> None:
    operators = [
        source_operator(SourceState({0: splits(topic, [3])}, operator_id=bytes([n]) * 16))
        for n, topic in enumerate(("t", "u"))
    ]
    chk = write_checkpoint(here / "chk-7", *operators)
    options = ("--topic-pattern", "[tuv]", "-b", "127.0.0.1:1")
    result = _to_flink(chk, _side({"t": [3], "u": [3], "v": [1]}), *options)
    assert (result.code, result.stdout) == (2, "")
    assert "it is unclear which of several sources reads a new topic" in result.stderr


# -- several clusters, and several sources of a topic --------------------------------------------


def _dynamic(directory: Path, clusters: Mapping[str, int], uid: bytes = OPERATOR_ID) -> Path:
    """Write a checkpoint of a DynamicKafkaSource that reads t-0 of each cluster."""
    held = {cluster: [KafkaSplit("t", 0, at)] for cluster, at in clusters.items()}
    elements = [encode_dynamic_reader_element(c, split) for c in held for split in held[c]]
    enumerators = {c: encode_enumerator(3, list(map(EnumeratorSplit, held[c]))) for c in held}
    known = {"t": {c: StreamCluster(["t"], f"{c}:9092") for c in held}}
    state = encode_dynamic_enumerator(2, known, 3, enumerators)
    operator = operator_with_elements({0: elements}, encode_coordinator(1, 2, state), uid)
    return write_checkpoint(directory, operator)


def _by_cluster() -> dict[str, int]:
    found = json.loads(migrate("inspect", "new", "--format", "json").stdout)
    return {one["cluster"]: one["next_offset"] for one in found["sources"][0]["positions"]}


@pytest.mark.parametrize("uid", [OPERATOR_ID, _OTHER], ids=["same job", "another job"])
def test_positions_of_different_cluster_are_refused(here: Path, uid: bytes) -> None:
    """Regression: Positions of a different job were applied to the savepoint's own cluster."""
    chk = _dynamic(here / "a/chk-7", {"west": 3})
    side = _dynamic(here / "b/chk-7", {"east": 5}, uid)
    told = _refused(_to_flink(chk, str(side)))
    assert (
        "the source in the savepoint reads cluster 'west', but the positions belong to 'east'"
        in told
    )
    assert told.count("refused: ") == 1


def test_positions_of_several_clusters_are_applied_per_cluster(here: Path) -> None:
    """Regression: Positions in several clusters were refused if they came from a different job."""
    chk = _dynamic(here / "a/chk-7", {"east": 3, "west": 4})
    side = _dynamic(here / "b/chk-7", {"east": 5, "west": 6}, _OTHER)
    assert _to_flink(chk, str(side)).code == 0
    assert _by_cluster() == {"east": 5, "west": 6}


def test_cluster_option_applies_to_savepoint_and_to_new_positions(here: Path) -> None:
    """Only the positions of the selected cluster are read from ``--from`` and written."""
    chk = _dynamic(here / "a/chk-7", {"east": 3, "west": 4})
    side = _dynamic(here / "b/chk-7", {"east": 5, "west": 6}, _OTHER)
    assert _to_flink(chk, str(side), "--cluster", "west").code == 0
    assert _by_cluster() == {"east": 3, "west": 6}


def test_cluster_option_applies_to_new_positions_if_cluster_of_savepoint_is_unknown(
    here: Path,
) -> None:
    """Regression: `migrate` reported that the cluster of the new positions does not exist."""
    chk = write_source(here / "a/chk-7", {0: splits("t", [3])})
    side = _dynamic(here / "b/chk-7", {"east": 5, "west": 6}, _OTHER)
    assert "[several-clusters]" in _refused(_to_flink(chk, str(side)))
    assert _to_flink(chk, str(side), "--cluster", "west").code == 0
    assert _positions() == {"t-0": 6}
    unknown = migrate(
        *("to-flink", chk, "--from", side, "--out", "more", "--cluster", "north"),
    )
    assert unknown.code == 2
    assert "no Kafka source reads cluster 'north'" in unknown.stderr


def _job(directory: Path, *sources: SourceState) -> Path:
    return write_checkpoint(directory, *map(source_operator, sources))


def _source(number: int, *held: KafkaSplit) -> SourceState:
    return SourceState({0: held}, operator_id=bytes([number]) * 16)


def test_source_option_selects_source_among_new_positions(here: Path) -> None:
    """Regression: `migrate` required --source, but then reported that no such source exists."""
    chk = write_source(here / "a/chk-7", {0: splits("t", [3])})
    side = _job(here / "b/chk-7", _source(1, *splits("t", [5])), _source(2, *splits("t", [6])))
    assert "choose one source with --source OPERATOR_ID" in _refused(_to_flink(chk, str(side)))
    assert _to_flink(chk, str(side), "--source", "02" * 16).code == 0
    assert _positions() == {"t-0": 6}
    unknown = migrate("to-flink", chk, "--from", side, "--out", "more", "--source", "03" * 16)
    assert unknown.code == 2
    assert "no Kafka source matches" in unknown.stderr


def test_sources_with_separate_partitions_of_topic_keep_their_partitions(here: Path) -> None:
    """Regression: Each source received all partitions, and every record was read twice."""
    a, b = KafkaSplit("t", 0, 3), KafkaSplit("t", 1, 4)
    chk = _job(here / "chk-7", _source(1, a), _source(2, b))
    result = _to_flink(chk, _side({"t": [5, 6]}), "--one-cluster")
    assert result.code == 0, result.stderr
    assert [_positions(source=n) for n in (0, 1)] == [{"t-0": 5}, {"t-1": 6}]
    assert f"t-1 stays with operator {'02' * 16}; operator {'01' * 16} reads" in result.stderr


def test_new_partition_requires_choice_of_source_if_sources_have_separate_partitions(
    here: Path,
) -> None:
    a, b = KafkaSplit("t", 0, 3), KafkaSplit("t", 1, 4)
    chk = _job(here / "chk-7", _source(1, a), _source(2, b))
    side = _side({"t": [5, 6, 7]})
    assert "[reader-unknown]" in _refused(_to_flink(chk, side))
    chosen = ("--source", "02" * 16, "--partitions", "t:2")
    assert _to_flink(chk, side, *chosen).code == 0
    assert [_positions(source=n) for n in (0, 1)] == [{"t-0": 3}, {"t-1": 4, "t-2": 7}]


@pytest.mark.parametrize("option", [(), ("--source", "01" * 16)], ids=["both", "one"])
def test_new_partition_requires_choice_of_source_if_partitions_of_sources_overlap(
    here: Path, option: Sequence[str]
) -> None:
    """Regression: Partition t-2 was moved for only one source.

    Flink discovered the partition for both sources, and read t-2 from the log start.
    """
    chk = _job(
        here / "chk-7", _source(1, *splits("t", [3, 4])), _source(2, *splits("t", [3, 4, 5]))
    )
    side = _side({"t": [6, 7, 900, 8]})
    told = _refused(_to_flink(chk, side, *option))
    assert "[readers-overlap]" in told
    assert f"cannot determine whether operator {'01' * 16} reads t-2, t-3" in told
    assert _to_flink(chk, side, "--source", "01" * 16, "--partitions", "t:2").code == 0
    assert _positions()["t-2"] == 900


def _apart(
    held: PositionSet,
    cluster: str | None,
    others: Mapping[str | None, Mapping[TopicPartition, int]],
) -> tuple[dict[str, int | None], list[str], list[str]]:
    """Return the new positions, warnings, and refusals if other sources may read t-1."""

    def source(name: str, positions: PositionSet, cluster: str | None) -> Source:
        found = listed_source(name, name, positions, starts_others=True)
        moved = tuple(one._replace(cluster=cluster) for one in found.positions)
        return replace(found, position_fields=moved)

    change = SourceChange("a", {ClusterPartition(cluster, "t", 1): 9}, (), ())
    beside = [
        source(f"b{n}", PositionSet("it", starts), of)
        for n, (of, starts) in enumerate(others.items())
    ]
    changed, told = remove_partitions_of_others(change, source("a", held, cluster), cluster, beside)
    wanted = {str(place): at for place, at in changed.new_offsets.items()}
    return wanted, list(map(str, told)), [str(one) for one in changed.refusals]


@pytest.mark.parametrize(("own", "of_other"), [(None, "east"), ("east", None)])
def test_partition_is_refused_if_cluster_of_one_of_two_sources_is_unknown(
    own: str | None, of_other: str | None
) -> None:
    """Regression: Partitions of the second source were omitted, but the clusters may differ."""
    held = PositionSet("it", {("t", 0): 3})
    _, told, (refusal,) = _apart(held, own, {of_other: {("t", 1): 4}})
    assert not told
    assert refusal == READER_CLUSTER_UNKNOWN(operator="a", partitions="t-1", others=["b0"])
    place = str(ClusterPartition(own, "t", 1))
    for same in ({("t", 0): 4}, {("u", 1): 4}):  # in any cluster, no conflict
        assert _apart(held, own, {of_other: same}) == ({place: 9}, [], [])


def test_same_topic_in_different_cluster_does_not_conflict() -> None:
    held = PositionSet("it", {("t", 0): 3})
    assert _apart(held, "west", {"east": {("t", 1): 4}}) == (
        {"t-1 of cluster 'west'": 9},
        [],
        [],
    )


def test_topic_from_pattern_is_added_even_if_also_read_by_another_source() -> None:
    """Regression: The topic was omitted, but Flink discovered it and read all of its records."""
    held = PositionSet("it", {("u", 0): 3})
    assert _apart(held, None, {None: {("t", 1): 4}}) == ({"t-1": 9}, [], [])


def test_partitions_of_second_source_are_removed_in_linear_time() -> None:
    """Regression: 10,000 partitions took 13 s, because each comparison built a set."""
    count = 2000
    compared = 0

    class Counted(UserDict[ClusterPartition, "int | None"]):
        def keys(self) -> KeysView[ClusterPartition]:
            nonlocal compared
            compared += 1
            return super().keys()

    places = [("t", n) for n in range(1, count)]
    rows = tuple(PlannedPartition(*one, Verdict.NEW_PARTITION, 0) for one in places)
    change = SourceChange(
        "a", Counted({ClusterPartition(None, *one): 0 for one in places}), rows, ()
    )
    one = listed_source("a", "a", PositionSet("it", {("t", 0): 3}), starts_others=True)
    other = listed_source("b", "b", PositionSet("it", dict.fromkeys(places, 4)), starts_others=True)
    changed, told = remove_partitions_of_others(change, one, None, [other])
    assert (changed.new_offsets, changed.partitions, len(told)) == ({}, (), count - 1)
    assert compared < 10


def test_new_partition_is_added_to_both_sources_with_equal_partitions(here: Path) -> None:
    chk = _job(here / "chk-7", _source(1, *splits("t", [3])), _source(2, *splits("t", [4])))
    assert _to_flink(chk, _side({"t": [5, 6]}), "--one-cluster").code == 0
    assert [_positions(source=n) for n in (0, 1)] == [{"t-0": 5, "t-1": 6}] * 2


def test_sources_of_same_topic_require_override_if_their_clusters_are_unknown(here: Path) -> None:
    """Regression: The positions of one cluster were written to the source of the other cluster."""
    chk = _job(here / "chk-7", _source(1, *splits("t", [3])), _source(2, *splits("t", [4])))
    told = _refused(_to_flink(chk, _side({"t": [5]})))
    assert (
        f"2 sources read topic t (operators {'01' * 16}, {'02' * 16}), and their state does not "
        "identify their Kafka cluster" in told
    )
    assert "choose one source with --source OPERATOR_ID" in told and "add --one-cluster" in told
    result = _to_flink(chk, _side({"t": [5]}), "--one-cluster")
    assert result.code == 0, result.stderr
    assert f"operator {'01' * 16}: t-0 advances from 3 to 5" in result.stderr
    assert f"operator {'02' * 16}: t-0 advances from 4 to 5" in result.stderr
    assert "read topic t of the same Kafka cluster" in result.stderr


def test_source_option_changes_only_selected_source_of_shared_topic(here: Path) -> None:
    chk = _job(here / "chk-7", _source(1, *splits("t", [3])), _source(2, *splits("t", [4])))
    assert _to_flink(chk, _side({"t": [5]}), "--source", "02" * 16).code == 0
    assert [_positions(source=n) for n in (0, 1)] == [{"t-0": 3}, {"t-0": 5}]


def test_sources_of_shared_topic_get_positions_of_same_operator_in_newer_checkpoint(
    here: Path,
) -> None:
    """Each source uses its own positions from the same job, whichever cluster the source reads."""
    chk = _job(here / "a/chk-7", _source(1, *splits("t", [3])), _source(2, *splits("t", [4])))
    later = _job(here / "b/chk-7", _source(1, *splits("t", [5])), _source(2, *splits("t", [6])))
    assert _to_flink(chk, str(later)).code == 0
    assert [_positions(source=n) for n in (0, 1)] == [{"t-0": 5}, {"t-0": 6}]


def test_reversed_topic_map_is_usage_error_with_explanation(here: Path) -> None:
    """Regression: The message ended with an empty list of topics, "they read: "."""
    chk = write_source(here / "chk-7", {0: splits("orders", [3])})
    result = _to_flink(chk, str(chk), "--topic-map", "orders=west.orders")
    assert (result.code, result.stdout) == (2, "")
    assert (
        "--topic-map orders=west.orders: no source in the savepoint reads west.orders (did you "
        "mean 'orders'?); the sources read: orders; a savepoint keeps its topic names, so set "
        "NEW to the topic in the savepoint that gets the positions of orders\n" in result.stderr
    )
    unknown = _to_flink(chk, _side({"west.orders": [5]}), "--topic-map", "orders=west.orders")
    assert unknown.code == 2
    assert "json:side.json has no topic orders" in unknown.stderr
    assert unknown.stderr.endswith("; it has: west.orders\n")
    other = _to_flink(chk, _side({"payments": [5]}), "--partitions", "payments:0")
    assert other.code == 2
    assert (
        "--partitions payments: no source reads this topic; the sources read: no topic\n"
    ) in other.stderr
    right = _to_flink(chk, _side({"west.orders": [5]}), "--topic-map", "west.orders=orders")
    assert right.code == 0, right.stderr
    assert _positions() == {"orders-0": 5}


@pytest.mark.parametrize(
    "second", [KafkaSplit("u", 0, 4), KafkaSplit("t", 1, 4)], ids=["topic", "partition"]
)
def test_source_without_partition_in_partitions_option_is_unchanged(
    here: Path, second: KafkaSplit
) -> None:
    """Regression: The move was refused, because no partition of the second source moved."""
    chk = _job(here / "chk-7", _source(1, KafkaSplit("t", 0, 3)), _source(2, second))
    result = _to_flink(chk, _side({"t": [5, 9], "u": [9]}), "--partitions", "t:0")
    assert result.code == 0, result.stderr
    kept = {f"{second.topic}-{second.partition}": 4}
    assert [_positions(source=n) for n in (0, 1)] == [{"t-0": 5}, kept]


def test_newer_checkpoint_causes_only_one_refusal(here: Path) -> None:
    """Regression: A second refusal claimed that the side has no position for t-0."""
    chk = write_source(here / "a/chk-7", {0: splits("t", [3])})
    write_source(here / "b/chk-9", {0: splits("t", [4])})
    write_source(here / "b/chk-11", {0: splits("t", [5])})
    told = _refused(_to_flink(chk, str(here / "b/chk-9")))
    assert "kept running" in told
    assert told.count("refused: ") == 1


def test_messages_of_to_flink_do_not_mention_spark_query(here: Path) -> None:
    """Regression: The advice was about the ``assign`` option of a query."""
    chk = write_source(here / "chk-7", {0: splits("t", [3, 4])})
    told = _to_flink(chk, _side({"t": [9, 9]}), "--partitions", "t:0").stderr
    assert "query" not in told


def test_output_directory_inside_file_is_refused(here: Path) -> None:
    """Regression: The message was the bare error of the operating system."""
    chk = write_source(here / "chk-7", {0: splits("t", [3])})
    Path("file").touch()
    for out in ("file/in", "file/in/more"):
        result = migrate("to-flink", chk, "--from", _side({"t": [4]}), "--out", out)
        assert (result.code, result.stdout) == (4, "")
        assert "[location-not-a-directory]" in result.stderr


def test_mismatch_in_written_enumerator_raises_internal_error(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: Flink would have discovered t-1 and read its records twice, without a warning."""
    chk = write_source(here / "chk-7", {0: splits("t", [3])})
    monkeypatch.setattr(
        "migrate.extensions.savepoints.source.changed_coordinator", lambda data, *_: data
    )
    with pytest.raises(AssertionError, match="the new savepoint's enumerator has unexpected"):
        to_flink(chk, from_side=_side({"t": [3, 5]}), out="new")
    assert not Path("new").exists()


# -- output locations ----------------------------------------------------------------------------


def test_output_directory_with_files_is_refused(here: Path) -> None:
    chk = write_source(here / "chk-7", {0: splits("t", [3])})
    Path("new").mkdir()
    assert _to_flink(chk, _side({"t": [4]})).code == 0  # an empty directory is accepted
    again = _to_flink(chk, _side({"t": [5]}))
    assert (again.code, again.stdout) == (4, "")
    assert "new is not empty; choose a new directory" in again.stderr
    assert _positions() == {"t-0": 4}


def test_output_inside_savepoint_is_refused(here: Path) -> None:
    chk = write_source(here / "chk-7", {0: splits("t", [3])})
    side = _side({"t": [4]})
    inside = migrate("to-flink", chk, "--from", side, "--out", chk / "new")
    assert inside.code == 4
    assert "is inside the original savepoint" in inside.stderr
    assert [file.name for file in chk.iterdir()] == ["_metadata"]


@pytest.mark.parametrize(
    ("out", "told"),
    [
        (
            "ftp://host/new",
            "--out ftp://host/new: not a writable location; use a URL such as s3://BUCKET",
        ),
        ("s3://key:secret@bucket/new", "--out s3://"),
        ("", "--out '': not a directory name"),
    ],
)
def test_invalid_output_location_is_usage_error(here: Path, out: str, told: str) -> None:
    chk = write_source(here / "chk-7", {0: splits("t", [3])})
    result = migrate("to-flink", chk, "--from", _side({"t": [4]}), "--out", out)
    assert (result.code, result.stdout) == (2, "")
    assert told in result.stderr
    assert "secret" not in result.stderr


@pytest.mark.parametrize("out", ["dbfs:/new", "{}/dbfs/new", "{}/Volumes/main/default/v/new"])
def test_mounted_object_store_is_refused_as_output(
    here: Path, monkeypatch: pytest.MonkeyPatch, out: str
) -> None:
    """The mount represents an object store. A rename there is a copy, file by file."""
    for name in ("dbfs", "Volumes"):
        (here / name).mkdir()
        monkeypatch.setattr(uris, name.upper(), here / name)
    out = out.format(here)
    chk = write_source(here / "chk-7", {0: splits("t", [3])})
    result = migrate("to-flink", chk, "--from", _side({"t": [4]}), "--out", out)
    assert (result.code, result.stdout) == (2, "")
    assert f"--out {out} is a mounted object store that cannot rename directories" in result.stderr


def test_truncated_state_file_leaves_no_output(here: Path) -> None:
    chk = write_savepoint_with_files(here / "chk-7", {"state": 1000})
    with (chk / "state").open("wb") as file:
        file.truncate(999)
    side = _side({"t": [3]})
    result = _to_flink(chk, side)
    assert (result.code, result.stdout) == (3, "")
    assert (
        "the file ends early; 1000 bytes were expected from byte 0, but only 999 exist"
        in result.stderr
    )
    assert {file.name for file in here.iterdir()} == {"chk-7", "side.json"}


@pytest.mark.slow  # starts a process
def test_killed_process_leaves_no_output_directory(here: Path) -> None:
    chk = write_savepoint_with_files(here / "chk-7", {"state": 8 << 30})
    command = [sys.executable, "-m", "migrate", "to-flink", str(chk)]
    options = ["--from", _side({"t": [3]}), "--out", "new"]
    process = subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not (stages := list(here.glob(".new.*/state"))):
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    (stage,) = stages
    assert 0 <= stage.stat().st_size < 8 << 30
    assert not Path("new").exists()
    assert not (stage.parent / "_metadata").exists()  # the remaining files are no savepoint


def test_to_flink_without_from_option_is_usage_error() -> None:
    result = migrate("to-flink", "chk", "--out", "o")
    assert (result.code, result.stdout) == (2, "")
    assert "Missing option '--from'" in result.stderr


def test_number_of_reprocessed_records_is_omitted_if_positions_are_stale(tmp_path: Path) -> None:
    """Regression: The message stated up to 8 reprocessed records, but there were more.

    The savepoint is from a real job, which had processed more records before its stop.
    """
    side, new = tmp_path / "side.json", tmp_path / "new"
    side.write_text('{"orders":{"0":4,"1":35,"2":0}}')
    move = ("to-flink", golden("1.20/legacy-stop"), "--from", f"json:{side}", "--out", new)
    assert migrate(*move).code == 4
    moved = migrate(*move, "--allow-ran-on")
    assert moved.code == 0, moved.stderr
    assert "[stale-positions]" in moved.stderr
    assert "orders-0 rewinds from 12 to 4; the job may have processed records" in moved.stderr
    assert "up to" not in moved.stderr
