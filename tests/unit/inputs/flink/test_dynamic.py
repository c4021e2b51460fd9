"""DynamicKafkaSource: recognized unambiguously, merged per cluster, and moved cluster by cluster.

The encoder supplies the bytes. A test in this file compares them with the bytes of real jobs, which
are in tests/golden.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decoder import (
    BeamKafkaIO,
    Checkpoint,
    DecodeError,
    DynamicKafkaSource,
    ErrorKind,
    HybridSource,
    KafkaSource,
    UnknownSource,
    read_checkpoint,
)
from decoder.kafka.dynamic import DynamicSplit
from decoder.kafka.enumerator import EnumeratorState
from decoder.kafka.reader_state import read_reader_element
from decoder.kafka.source import recognise_source
from decoder.kafka.split import NOT_SET, Split
from migrate.extensions.savepoints.kafka_state import reader_element
from migrate.inputs.flink.choose_source import Choice, choose
from migrate.inputs.flink.extract import Extraction, extract
from migrate.inputs.flink.source import SourceKind
from migrate.model.cluster_snapshot import ClusterSnapshot, LogRange
from migrate.model.errors import NoSuchName
from migrate.model.finding import Severity
from migrate.model.policies import MergeSources, Policies
from migrate.model.positions import Marker, PositionState
from migrate.planning import make_plan
from tests.support.checkpoints import (
    SourceState,
    operator_with_elements,
    source_operator,
    splits,
    write_checkpoint,
)
from tests.support.command import migrate
from tests.support.coordinator import read_coordinator_state, read_dynamic_coordinator_state
from tests.support.encoder import (
    ASSIGNED,
    EARLIEST,
    UNASSIGNED,
    EnumeratorSplit,
    KafkaSplit,
    Operator,
    StreamCluster,
    encode_coordinator,
    encode_dynamic_enumerator,
    encode_dynamic_reader_element,
    encode_dynamic_split,
    encode_enumerator,
    encode_reader_element,
    encode_split,
)
from tests.support.golden import ENTRIES, GOLDEN, golden

_OTHER = bytes(range(16, 32))


@dataclass(frozen=True, slots=True)
class _Cluster:
    """The state of a DynamicKafkaSource for one cluster, with the readers by subtask."""

    readers: Mapping[int, Sequence[KafkaSplit]]
    entries: Sequence[EnumeratorSplit] = ()
    discovery_finished: bool = True


@dataclass(frozen=True, slots=True)
class _Dynamic:
    clusters: Mapping[str, _Cluster]
    version: int = 2
    cluster_version: int = 3
    # The topics of the only stream, by cluster.
    topics: Mapping[str, Sequence[str]] = field(default_factory=dict)
    servers: str | None = None  # of each cluster; None: the broker has the cluster's name

    def coordinator(self) -> bytes:
        stream = {
            cluster: StreamCluster(topics, self.servers or f"{cluster}:9092", b"\xac\xed\0\5p")
            for cluster, topics in self.topics.items()
        }
        enumerators = {
            cluster: encode_enumerator(self.cluster_version, held.entries, held.discovery_finished)
            for cluster, held in self.clusters.items()
        }
        state = encode_dynamic_enumerator(
            self.version, {"stream": stream}, self.cluster_version, enumerators
        )
        return encode_coordinator(1, self.version, state)

    def operator(self, operator_id: bytes = _OTHER) -> Operator:
        elements: dict[int, list[bytes]] = {}
        for cluster, held in self.clusters.items():
            for subtask, of_subtask in held.readers.items():
                elements.setdefault(subtask, []).extend(
                    encode_dynamic_reader_element(cluster, split) for split in of_subtask
                )
        return operator_with_elements(elements, self.coordinator(), operator_id)


def _extract(tmp_path: Path, *operators: Operator) -> Extraction:
    return extract(read_checkpoint(write_checkpoint(tmp_path / "chk-7", *operators)))


def _held(topic: str, *starts: int) -> _Cluster:
    return _Cluster({0: splits(topic, starts)})


# -- bytes ---------------------------------------------------------------------------------------


def _golden_source(name: str) -> tuple[Checkpoint, str, DynamicKafkaSource]:
    (entry,) = [entry for entry in ENTRIES if entry["name"] == name]
    (operator_id,) = entry["dynamic_sources"]
    checkpoint = read_checkpoint(golden(name))
    source = checkpoint.sources[operator_id]
    assert isinstance(source, DynamicKafkaSource)
    return checkpoint, operator_id, source


@pytest.mark.parametrize("name", ["1.20/dynamic", "2.2/dynamic"])
def test_encoder_reproduces_bytes_of_real_dynamic_source(name: str) -> None:
    """The reader splits and the enumerator state are compared.

    The state of Flink 2.2 also contains a serialized initializer.
    """
    checkpoint, operator_id, source = _golden_source(name)
    metadata = (golden(name) / "_metadata").read_bytes()
    for cluster, state in source.clusters.items():
        for held in state.reader_splits:
            assert encode_dynamic_reader_element(cluster, _encodable(held.split)) in metadata
    assert source.enumerator is not None
    enumerators = {c: _encoded(state) for c, state in source.enumerator.clusters.items()}
    (cluster_version,) = {state.version for state in source.enumerator.clusters.values()}
    without_streams = encode_dynamic_enumerator(
        source.enumerator.version, {}, cluster_version, enumerators
    )[4:]
    (operator,) = [o for o in checkpoint.operators if o.operator_id == operator_id]
    assert operator.coordinator_state is not None
    stored = operator.coordinator_state.data
    assert stored.endswith(without_streams)
    streams = {
        stream: {
            cluster: StreamCluster(
                sorted(metadata.topics),
                metadata.bootstrap_servers,
                _initializer(stored) if (name, cluster) == ("2.2/dynamic", "east") else None,
            )
            for cluster, metadata in clusters.items()
        }
        for stream, clusters in source.enumerator.streams.items()
    }
    whole = encode_dynamic_enumerator(
        source.enumerator.version, streams, cluster_version, enumerators
    )
    assert encode_coordinator(1, source.enumerator.version, whole) == stored


def _encodable(split: Split) -> KafkaSplit:
    stop = NOT_SET if split.stopping_offset is None else split.stopping_offset
    return KafkaSplit(split.topic, split.partition, split.starting_offset, stop)


def _encoded(state: EnumeratorState) -> bytes:
    entries = [
        EnumeratorSplit(
            _encodable(entry.split) if entry.split else KafkaSplit(entry.topic, entry.partition, 0),
            entry.status.value,
        )
        for entry in state.entries
    ]
    assert state.initial_discovery_finished is not None
    return encode_enumerator(state.version, entries, state.initial_discovery_finished)


def _initializer(coordinator_state: bytes) -> bytes:
    """The first serialized Java object in the state, which the decoder skips."""
    start = coordinator_state.index(b"\xac\xed\0\5")
    size = int.from_bytes(coordinator_state[start - 4 : start], "big")
    return coordinator_state[start : start + size]


_SPLIT = encode_dynamic_split("east", KafkaSplit("orders", 1, 7))


@pytest.mark.parametrize(
    ("split", "version"),
    [
        (_SPLIT + b"\0", 1),
        (_SPLIT[:-1], 1),
        (_SPLIT, 0),
        (_SPLIT, 2),
        (encode_dynamic_split("", KafkaSplit("orders", 1, 7)), 1),
        (encode_dynamic_split("east", KafkaSplit("or ders", 1, 7)), 1),
        (encode_dynamic_split("east", KafkaSplit("orders", -1, 7)), 1),
        (encode_dynamic_split("east", KafkaSplit("orders", 1, -4)), 1),
        (_SPLIT.replace(b"east\0\0\0\0", b"east\0\0\0\1"), 1),
        (encode_split("orders", 1, 7), 1),
    ],
)
def test_malformed_dynamic_split_is_refused(split: bytes, version: int) -> None:
    with pytest.raises(DecodeError):
        read_reader_element(encode_reader_element(split, version), "s")


def test_unsupported_version_of_dynamic_split_or_enumerator_is_refused() -> None:
    with pytest.raises(DecodeError, match="split version 3 is not supported") as split:
        read_reader_element(encode_reader_element(_SPLIT, 3), "s")
    state = encode_dynamic_enumerator(2, {}, 3, {})
    with pytest.raises(
        DecodeError, match="DynamicKafkaSource's enumerator version 4"
    ) as enumerator:
        read_dynamic_coordinator_state(encode_coordinator(1, 4, state), "c")
    assert {split.value.kind, enumerator.value.kind} == {ErrorKind.UNSUPPORTED}


_ENUMERATOR = encode_enumerator(3, [EnumeratorSplit(KafkaSplit("orders", 0, 1))])


@pytest.mark.parametrize(
    "state",
    [
        encode_dynamic_enumerator(2, {"s": {"": StreamCluster(["t"], "b")}}, 3, {}),
        encode_dynamic_enumerator(2, {"s": {"a": StreamCluster(["no topic"], "b")}}, 3, {}),
        encode_dynamic_enumerator(2, {"s": {"a": StreamCluster(["t", "t"], "b")}}, 3, {}),
        encode_dynamic_enumerator(2, {}, 3, {"": _ENUMERATOR}),
        encode_dynamic_enumerator(2, {}, 3, {"a": _ENUMERATOR + b"\0"}),
        encode_dynamic_enumerator(2, {}, 3, {"a": _ENUMERATOR[:-1]}),
        encode_dynamic_enumerator(2, {}, 2, {"a": _ENUMERATOR}),
        encode_dynamic_enumerator(2, {}, 4, {"a": _ENUMERATOR}),
        encode_dynamic_enumerator(2, {}, 3, {"a": _ENUMERATOR}) + b"\0",
        # The same cluster twice: "b" becomes "a", which has the same length.
        encode_dynamic_enumerator(2, {}, 3, {"a": _ENUMERATOR, "b": _ENUMERATOR}).replace(
            b"\0\1b", b"\0\1a"
        ),
        # Written as version 1, which has no initializers, but read as version 2.
        encode_dynamic_enumerator(1, {"s": {"a": StreamCluster(["t"], "b")}}, 3, {}),
    ],
)
def test_malformed_dynamic_enumerator_is_refused(state: bytes) -> None:
    with pytest.raises(DecodeError):
        read_dynamic_coordinator_state(encode_coordinator(1, 2, state), "c")


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("cluster_version", [0, 1, 2, 3])
def test_every_version_of_dynamic_enumerator_is_read(version: int, cluster_version: int) -> None:
    entry = EnumeratorSplit(KafkaSplit("orders", 4, EARLIEST))
    dynamic = _Dynamic(
        {"a": _Cluster({}, [entry]), "b": _Cluster({})},
        version,
        cluster_version,
        {"a": ["orders"], "b": ["x", "y"]},
    )
    state = read_dynamic_coordinator_state(dynamic.coordinator(), "c")
    assert [(e.topic, e.partition) for e in state.clusters["a"].entries] == [("orders", 4)]
    assert state.clusters["b"].entries == ()
    assert state.streams["stream"]["b"].topics == {"x", "y"}
    assert state.streams["stream"]["a"].bootstrap_servers == "a:9092"


@pytest.mark.parametrize(
    ("retained_until", "stored"),
    [(None, b"\0"), (1_800_000_000_000, b"\1\0\0\1\xa3\x18\x51\x80\0")],
)
def test_retention_time_is_read_from_dynamic_split_of_version_2(
    retained_until: int | None, stored: bytes
) -> None:
    split = KafkaSplit("orders", 1, 7)
    element = encode_dynamic_reader_element("east", split, 2, retained_until)
    found = read_reader_element(element, "s")
    assert isinstance(found, DynamicSplit)
    assert (found.cluster, found.split.starting_offset) == ("east", 7)
    assert found.retained_until == retained_until
    for damaged in (element[:-1], element[:-30], element + b"\0"):
        with pytest.raises(DecodeError):
            read_reader_element(damaged, "s")


def test_positions_of_retained_cluster_are_extracted_and_reported(tmp_path: Path) -> None:
    """The metadata service has removed a retained cluster, but the source still stores its splits.

    Split version 2 and enumerator version 3 were added after connector 5.0 (FLINK-39837).
    """
    gone = encode_enumerator(3, [EnumeratorSplit(s) for s in splits("old", [EARLIEST, EARLIEST])])
    active = encode_enumerator(3, [EnumeratorSplit(KafkaSplit("orders", 0, EARLIEST))])
    state = encode_dynamic_enumerator(
        3,
        {"stream": {"east": StreamCluster(["orders"], "east:9092")}},
        3,
        {"east": active},
        {"west": (1_800_000_000_000, gone)},
    )
    elements = [
        encode_dynamic_reader_element("east", KafkaSplit("orders", 0, 40), 2),
        encode_dynamic_reader_element("west", KafkaSplit("old", 0, 50), 2, 1_800_000_000_000),
    ]
    operator = operator_with_elements({0: elements}, encode_coordinator(1, 3, state))
    extraction = _extract(tmp_path, operator)
    (source,) = extraction.sources
    assert [(p.cluster, p.topic, p.partition, p.next_offset) for p in source.positions] == [
        ("east", "orders", 0, 40),
        ("west", "old", 0, 50),
        ("west", "old", 1, None),
    ]
    (finding,) = [f for f in extraction.findings if f.code == "retained-clusters"]
    assert finding.message.facts["clusters"] == ["west"]
    chosen = choose(extraction, Choice(cluster="east"))
    assert [p.next_offset for p in chosen[0].positions] == [40]


def test_cluster_is_reported_as_retained_if_only_a_reader_split_shows_retention(
    tmp_path: Path,
) -> None:
    """The retention time is in the split, and the enumerator state lacks the cluster."""
    element = encode_dynamic_reader_element("west", KafkaSplit("old", 0, 50), 2, 1_800_000_000_000)
    state = encode_dynamic_enumerator(3, {}, 3, {})
    operator = operator_with_elements({0: [element]}, encode_coordinator(1, 3, state))
    (finding,) = [f for f in _extract(tmp_path, operator).findings if f.code == "retained-clusters"]
    assert finding.message.facts["clusters"] == ["west"]


def test_damaged_retained_clusters_are_refused() -> None:
    state = encode_dynamic_enumerator(3, {}, 3, {}, {"a": (1, _ENUMERATOR), "b": (1, _ENUMERATOR)})
    assert read_dynamic_coordinator_state(encode_coordinator(1, 3, state), "c").retained.keys() == {
        "a",
        "b",
    }
    for damaged in (state[:-1], state + b"\0", state.replace(b"\0\1b", b"\0\1a")):
        with pytest.raises(DecodeError):
            read_dynamic_coordinator_state(encode_coordinator(1, 3, damaged), "c")


# -- recognition of the source kind --------------------------------------------------------------


def test_enumerator_of_real_job_is_never_read_as_different_source_kind() -> None:
    kinds = set()
    for entry in ENTRIES:
        checkpoint = read_checkpoint(GOLDEN / entry["path"])
        coordinators = {o.operator_id: o.coordinator_state for o in checkpoint.operators}
        for operator_id, source in checkpoint.sources.items():
            state = coordinators[operator_id]
            if isinstance(source, UnknownSource) or state is None:
                continue
            if not isinstance(source, KafkaSource):
                with pytest.raises(DecodeError):
                    read_coordinator_state(state.data, "c")
            if not isinstance(source, DynamicKafkaSource):
                with pytest.raises(DecodeError):
                    read_dynamic_coordinator_state(state.data, "c")
            # The kind is also recognized without splits, except for Beam: its empty map could be
            # any Java map.
            told = type(recognise_source([], state.data))
            assert told is (UnknownSource if isinstance(source, BeamKafkaIO) else type(source))
            kinds.add(type(source))
    assert kinds == {KafkaSource, DynamicKafkaSource, HybridSource, BeamKafkaIO}


_names = st.text("aZ09._-", min_size=1, max_size=6).filter(lambda name: name not in (".", ".."))
_entries = st.lists(
    st.builds(
        EnumeratorSplit,
        st.builds(KafkaSplit, _names, st.integers(0, 9), st.integers(-3, 99)),
        st.sampled_from((ASSIGNED, UNASSIGNED)),
    ),
    max_size=4,
    unique_by=lambda entry: (entry.split.topic, entry.split.partition),
)


@given(st.integers(1, 3), _entries, st.booleans())
def test_kafka_source_enumerator_is_never_recognized_as_dynamic(
    version: int, entries: list[EnumeratorSplit], finished: bool
) -> None:
    state = encode_coordinator(1, version, encode_enumerator(version, entries, finished))
    with pytest.raises(DecodeError):
        read_dynamic_coordinator_state(state, "c")
    assert not isinstance(recognise_source([], state), DynamicKafkaSource)


@given(
    st.integers(1, 2),
    st.dictionaries(
        _names,
        st.dictionaries(
            _names,
            st.builds(StreamCluster, st.lists(_names, max_size=3, unique=True), _names),
            max_size=3,
        ),
        max_size=3,
    ),
    st.integers(1, 3),
    st.dictionaries(_names, _entries, max_size=3),
)
def test_dynamic_enumerator_is_never_read_as_kafka_source(
    version: int,
    streams: dict[str, dict[str, StreamCluster]],
    cluster_version: int,
    clusters: dict[str, list[EnumeratorSplit]],
) -> None:
    enumerators = {c: encode_enumerator(cluster_version, e) for c, e in clusters.items()}
    body = encode_dynamic_enumerator(version, streams, cluster_version, enumerators)
    state = encode_coordinator(1, version, body)
    with pytest.raises(DecodeError):
        read_coordinator_state(state, "c")
    assert read_dynamic_coordinator_state(state, "c").clusters.keys() == clusters.keys()
    assert isinstance(recognise_source([], state), DynamicKafkaSource) == any(clusters.values())


@pytest.mark.parametrize(
    "damage", ["two kinds of splits", "split", "coordinator", "plain coordinator", "plain split"]
)
def test_mixed_or_damaged_state_of_dynamic_source_blocks_move(tmp_path: Path, damage: str) -> None:
    """Only part of the state belongs to a DynamicKafkaSource, or only part of it can be read."""
    good = encode_dynamic_reader_element("east", KafkaSplit("orders", 0, 5))
    entry = EnumeratorSplit(KafkaSplit("orders", 0, 5))
    state = _Dynamic({"east": _Cluster({}, [entry])}).coordinator()
    elements, coordinator = {
        "two kinds of splits": ([good, encode_reader_element(encode_split("orders", 1, 5))], None),
        "split": ([encode_reader_element(_SPLIT, 2)], state),
        "coordinator": ([good], state + b"\0"),
        "plain split": ([encode_reader_element(encode_split("orders", 1, 5))], state),
        "plain coordinator": ([good], encode_coordinator(1, 1, encode_enumerator(1, [entry]))),
    }[damage]
    extraction = _extract(tmp_path, operator_with_elements({0: elements}, coordinator))
    assert extraction.sources == ()
    (finding,) = [f for f in extraction.findings if f.code == "damaged-source"]
    assert finding.severity is Severity.BLOCKER


# -- positions -----------------------------------------------------------------------------------


def test_reader_and_enumerator_of_dynamic_source_are_merged_per_cluster(tmp_path: Path) -> None:
    """Partition t-0 exists on four clusters.

    On one it is in a reader, on one it is finished, on one it is unassigned, and on one it is at a
    marker.
    """
    dynamic = _Dynamic(
        {
            "held": _Cluster(
                {0: [KafkaSplit("t", 0, 40)]},
                [EnumeratorSplit(KafkaSplit("t", 0, EARLIEST, 90), ASSIGNED)],
            ),
            "finished": _Cluster({}, [EnumeratorSplit(KafkaSplit("t", 0, EARLIEST, 90), ASSIGNED)]),
            "unassigned": _Cluster({}, [EnumeratorSplit(KafkaSplit("t", 0, 7), UNASSIGNED)]),
            "marker": _Cluster({1: [KafkaSplit("t", 0, EARLIEST)]}),
        }
    )
    (source,) = _extract(tmp_path, dynamic.operator()).sources
    assert source.kind is SourceKind.DYNAMIC_KAFKA_SOURCE
    assert [(p.cluster, p.state, p.start, p.subtask) for p in source.positions] == [
        ("finished", PositionState.FINISHED, 90, None),
        ("held", PositionState.NEXT, 40, 0),
        ("marker", PositionState.EARLIEST, Marker.EARLIEST, 1),
        ("unassigned", PositionState.UNASSIGNED, 7, None),
    ]


def test_partition_in_two_readers_of_same_cluster_is_unresolved(tmp_path: Path) -> None:
    dynamic = _Dynamic(
        {
            "a": _Cluster({0: [KafkaSplit("t", 0, 10)], 1: [KafkaSplit("t", 0, 12)]}),
            "b": _Cluster({0: [KafkaSplit("t", 0, 11)]}),
        }
    )
    extraction = _extract(tmp_path, dynamic.operator())
    assert [p.state for p in extraction.sources[0].positions] == [
        PositionState.UNRESOLVED,
        PositionState.NEXT,
    ]
    (finding,) = [f for f in extraction.findings if f.code == "unresolved-positions"]
    assert "t-0 on cluster 'a'" in finding.message


def test_split_has_position_even_if_enumerator_lacks_its_cluster(tmp_path: Path) -> None:
    """The metadata service may have removed the cluster after the job had read its records."""
    held = encode_dynamic_reader_element("gone", KafkaSplit("t", 0, 5))
    coordinator = _Dynamic({"there": _Cluster({})}, topics={"there": ["t"]}).coordinator()
    operator = operator_with_elements({0: [held]}, coordinator)
    (source,) = _extract(tmp_path, operator).sources
    assert [(p.cluster, p.next_offset) for p in source.positions] == [("gone", 5)]
    assert source.of_cluster("gone").initial_discovery_finished is None


def test_undiscovered_topics_of_dynamic_source_are_reported(tmp_path: Path) -> None:
    dynamic = _Dynamic(
        {"a": _held("t", 1), "b": _Cluster({}, discovery_finished=False)},
        topics={"a": ["t"], "b": ["t", "u"]},
    )
    extraction = _extract(tmp_path, dynamic.operator())
    (finding,) = [f for f in extraction.findings if f.code == "undiscovered-topics"]
    assert finding.severity is Severity.WARNING
    assert finding.message.startswith("2 topics in the source's streams have no partitions")
    assert "t on cluster 'b'" in finding.message


# -- --cluster -----------------------------------------------------------------------------------


def _two_clusters(tmp_path: Path) -> Extraction:
    dynamic = _Dynamic(
        {"east": _held("t", 1, 2), "west": _Cluster({0: splits("t", [7])}, (), False)}
    )
    return _extract(tmp_path, dynamic.operator())


def test_move_of_dynamic_source_requires_choice_of_one_cluster(tmp_path: Path) -> None:
    extraction = _two_clusters(tmp_path)
    for policies in (Policies(), Policies(merge_sources=MergeSources.MIN)):
        plan = make_plan(extraction, extraction.sources, None, policies)
        (refusal,) = plan.refusals
        assert "'east', 'west'" in refusal.what
        assert 'cluster="ID"' in refusal.way_out
        assert plan.next_offsets == {}
    for cluster, expected in (
        ("east", {("t", 0): 1, ("t", 1): 2}),
        ("west", {("t", 0): 7}),
    ):
        chosen = choose(extraction, Choice(cluster=cluster))
        plan = make_plan(extraction, chosen, None)
        assert not plan.refusals
        assert plan.next_offsets == expected


def test_new_partition_of_dynamic_source_requires_finished_discovery_on_its_cluster(
    tmp_path: Path,
) -> None:
    """If the first discovery had finished, the job reads a new partition from its start.

    Otherwise, the starting policy decides, but the state does not contain the policy.
    """
    extraction = _two_clusters(tmp_path)
    snapshot = ClusterSnapshot({"t": {n: LogRange(0, 50) for n in range(3)}})
    east = make_plan(extraction, choose(extraction, Choice(cluster="east")), snapshot)
    assert east.next_offsets == {("t", 0): 1, ("t", 1): 2, ("t", 2): 0}
    west = make_plan(extraction, choose(extraction, Choice(cluster="west")), snapshot)
    (refusal,) = west.refusals
    assert refusal.what.startswith("t-1, t-2: unresolved")
    assert "starting policy" in west.refusals[0].what


def test_move_of_dynamic_source_with_single_cluster_requires_no_choice(tmp_path: Path) -> None:
    extraction = _extract(tmp_path, _Dynamic({"east": _held("t", 1, 2)}).operator())
    plan = make_plan(extraction, extraction.sources, None)
    assert not plan.refusals
    assert plan.next_offsets == {("t", 0): 1, ("t", 1): 2}


def test_unknown_cluster_error_lists_available_clusters(tmp_path: Path) -> None:
    extraction = _two_clusters(tmp_path)
    with pytest.raises(NoSuchName, match="'north'; the sources read the clusters 'east', 'west'"):
        choose(extraction, Choice(cluster="north"))


def test_kafka_source_and_dynamic_source_cannot_be_moved_together(tmp_path: Path) -> None:
    extraction = _extract(
        tmp_path,
        _Dynamic({"east": _held("t", 1)}).operator(),
        source_operator(SourceState({0: splits("u", [3])})),
    )
    for chosen in (list(extraction.sources), choose(extraction, Choice(cluster="east"))):
        (refusal,) = make_plan(extraction, chosen, None).refusals
        assert "one at a time with source" in refusal.way_out
        assert "'east'" in refusal.what
    dynamic = choose(extraction, Choice(source="topic:t", cluster="east"))
    assert make_plan(extraction, dynamic, None, ignore_other_sources=True).next_offsets == {
        ("t", 0): 1
    }
    plain = choose(extraction, Choice(source="topic:u"))
    assert make_plan(extraction, plain, None, ignore_other_sources=True).next_offsets == {
        ("u", 0): 3
    }
    with pytest.raises(NoSuchName, match="only a DynamicKafkaSource has cluster names"):
        choose(extraction, Choice(source="topic:u", cluster="east"))


def test_same_partition_with_different_positions_on_two_clusters_is_no_conflict(
    tmp_path: Path,
) -> None:
    extraction = _extract(
        tmp_path,
        _Dynamic({"east": _held("t", 1), "west": _held("t", 2)}).operator(),
        _Dynamic({"east": _held("t", 1)}).operator(bytes(16)),
    )
    (refusal,) = make_plan(extraction, extraction.sources, None).refusals
    assert refusal.code == "several-clusters" and 'cluster="ID"' in refusal.way_out
    east = choose(extraction, Choice(cluster="east"))
    assert make_plan(extraction, east, None).next_offsets == {("t", 0): 1}


def test_cluster_option_selects_sources_that_read_the_cluster(tmp_path: Path) -> None:
    extraction = _extract(
        tmp_path,
        _Dynamic({"east": _held("t", 1), "west": _held("t", 2)}).operator(),
        _Dynamic({"west": _held("u", 3)}).operator(bytes(16)),
    )
    east = choose(extraction, Choice(cluster="east"))
    assert [source.operator_id for source in east] == [_OTHER.hex()]
    assert make_plan(extraction, east, None).next_offsets == {("t", 0): 1}
    west = choose(extraction, Choice(cluster="west"))
    assert make_plan(extraction, west, None).next_offsets == {("t", 0): 2, ("u", 0): 3}


# -- the commands --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["1.20/dynamic", "2.2/dynamic"])
def test_to_spark_moves_chosen_cluster_of_real_dynamic_source(name: str) -> None:
    refused = migrate("to-spark", golden(name))
    assert (refused.code, refused.stdout) == (4, "")
    assert "2 Kafka clusters ('east', 'west')" in refused.stderr
    assert "[several-clusters]" in refused.stderr
    unknown = migrate("to-spark", golden(name), "--cluster", "north")
    assert (unknown.code, unknown.stdout) == (2, "")
    assert "the sources read the clusters 'east', 'west'" in unknown.stderr
    west = migrate("to-spark", golden(name), "--cluster", "west")
    assert west.code == 0, west.stderr
    _, _, source = _golden_source(name)
    written = {
        (topic, int(partition)): next_offset
        for topic, partitions in json.loads(west.stdout).items()
        for partition, next_offset in partitions.items()
    }
    assert written == {
        (held.split.topic, held.split.partition): held.split.starting_offset
        for held in source.clusters["west"].reader_splits
    }
    assert len(written) == 3


def test_inspect_json_contains_cluster_of_each_position() -> None:
    report = json.loads(migrate("inspect", golden("2.2/dynamic"), "--format", "json").stdout)
    (source,) = report["sources"]
    assert source["kind"] == "DynamicKafkaSource"
    places = [(p["cluster"], p["topic"], p["partition"]) for p in source["positions"]]
    assert places == sorted(places)
    assert {cluster for cluster, _, _ in places} == {"east", "west"}


@pytest.mark.parametrize(
    ("asked", "other"),
    [
        (None, False),
        ("east:9092", False),
        (" EAST , b:1", False),  # without a port, clients use 9092
        ("PLAINTEXT://b:1,SSL://east:9092", False),
        ("east:9093", True),
        ("west:9092,b:1", True),
    ],
)
def test_querying_brokers_of_different_cluster_triggers_warning(
    tmp_path: Path, asked: str | None, other: bool
) -> None:
    topics = {"east": ["t"], "west": ["t"]}
    dynamic = _Dynamic({"east": _held("t", 5), "west": _held("t", 7)}, topics=topics)
    extraction = _extract(tmp_path, dynamic.operator())
    chosen = choose(extraction, Choice(cluster="east"))
    snapshot = None if asked is None else ClusterSnapshot({"t": {0: LogRange(0, 9)}})
    plan = make_plan(extraction, chosen, snapshot, bootstrap_servers=asked)
    assert plan.next_offsets == {("t", 0): 5}
    warned = [warning for warning in plan.warnings if "'east'" in warning]
    assert len(warned) == other
    for warning in warned:
        assert warning.startswith(
            f"the job reads cluster 'east' at east:9092, but {asked} was queried; "
        )
        assert warning.endswith(" [other-brokers]")


@pytest.mark.parametrize(
    ("servers", "shown"),
    [
        ("c:1,a:1,b:1", "at a:1, b:1, c:1, but"),
        ("d:1,c:1,a:1,b:1", "at a:1, b:1, c:1 and 1 more, but"),
        ("b:1,,a:1, ", "at a:1, b:1, but"),
    ],
)
def test_broker_warning_lists_at_most_three_addresses(
    tmp_path: Path, servers: str, shown: str
) -> None:
    dynamic = _Dynamic({"east": _held("t", 5)}, topics={"east": ["t"]}, servers=servers)
    extraction = _extract(tmp_path, dynamic.operator())
    snapshot = ClusterSnapshot({"t": {0: LogRange(0, 9)}})
    plan = make_plan(extraction, extraction.sources, snapshot, bootstrap_servers="x:1")
    (warning,) = [warning for warning in plan.warnings if "'east'" in warning]
    assert shown in warning


def test_broker_warning_is_omitted_if_state_contains_no_brokers_of_cluster(tmp_path: Path) -> None:
    extraction = _extract(tmp_path, _Dynamic({"east": _held("t", 5)}).operator())
    snapshot = ClusterSnapshot({"t": {0: LogRange(0, 9)}})
    plan = make_plan(extraction, extraction.sources, snapshot, bootstrap_servers="b:1")
    assert not any("'east'" in warning for warning in plan.warnings)


def test_broker_warning_for_dynamic_source_is_kept_if_job_also_has_plain_kafka_source(
    tmp_path: Path,
) -> None:
    dynamic = _Dynamic({"east": _held("t", 5)}, topics={"east": ["t"]})
    beside = source_operator(SourceState({0: splits("other", [1])}))
    extraction = _extract(tmp_path, dynamic.operator(), beside)
    snapshot = ClusterSnapshot({"t": {0: LogRange(0, 9)}, "other": {0: LogRange(0, 9)}})
    plan = make_plan(extraction, extraction.sources, snapshot, bootstrap_servers="b:1")
    assert len([warning for warning in plan.warnings if "at east:9092" in warning]) == 1


@pytest.mark.parametrize("version", [1, 2])
def test_reader_element_for_dynamic_source_is_written_in_requested_split_version(
    version: int,
) -> None:
    written = reader_element("orders", 3, 5, cluster="eu", cluster_version=version)
    assert written == encode_dynamic_reader_element("eu", KafkaSplit("orders", 3, 5), version)
