"""Check the exact messages about obstacles to an entire move."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from decoder import PendingTransaction
from migrate.inputs.flink.source import Source, SourceKind
from migrate.model.cluster_snapshot import ClusterSnapshot, GroupView
from migrate.model.finding import Code, Finding
from migrate.model.finding_catalog import STATE_OF_OPERATORS_NOT_MOVED
from migrate.model.message import finding
from migrate.model.policies import MergeSources, Policies
from migrate.model.positions import Marker, Origin, Position, PositionState
from migrate.planning import obstacles
from migrate.planning.shared_topics import (
    one_cluster_warnings,
    shared_topic_refusals,
    shared_topics,
)

_A, _B, _C = "a" * 32, "b" * 32, "c" * 32


def _at(
    start: int | Marker | None,
    partition: int = 0,
    topic: str = "t",
    cluster: str | None = None,
    state: PositionState = PositionState.NEXT,
) -> Position:
    return Position(topic, partition, state, start, cluster=cluster)


def _source(operator_id: str, *positions: Position, **brokers: str) -> Source:
    named = {cluster: frozenset({servers}) for cluster, servers in brokers.items()}
    kind = SourceKind.KAFKA_SOURCE
    return Source(operator_id, None, None, kind, 1, 128, {None: True}, positions, named)


def _texts(refusals: object) -> list[str]:
    return [str(refusal) for refusal in refusals]  # type: ignore[attr-defined]


def _finding(code: Code, operator_id: str | None = None) -> Finding:
    return Finding(finding(code, "so")(), operator_id)


# -- findings -------------------------------------------------------------------------------------


def _extraction(findings: Sequence[Finding], state_bytes: dict[str, int]) -> _Found:
    sources = (_source(_A, _at(1)), _source(_B, _at(2, topic="u")))
    origin = Origin("checkpoint", "/chk-7", 7)
    return _Found(origin, sources, findings, state_bytes)


class _Found:
    """The input of a plan."""

    def __init__(
        self,
        origin: Origin,
        sources: Sequence[Source],
        findings: Sequence[Finding],
        state_bytes: dict[str, int],
    ) -> None:
        self.origin, self.sources = origin, tuple(sources)
        self.findings, self.state_bytes = tuple(findings), state_bytes
        self.pending: dict[str, tuple[PendingTransaction, ...]] = {}


_FINDINGS = [
    _finding(Code.RAN_ON, _B),
    _finding(Code.SINK_STATE, operator_id=_C),
    _finding(Code.NO_ENUMERATOR, operator_id=_A),
    _finding(Code.NO_ENUMERATOR, operator_id=_B),
    _finding(Code.DAMAGED_SOURCE, _C),
    _finding(Code.LATEST_MARKER, operator_id=_A),
]


@pytest.mark.parametrize(("named", "kept"), [(False, [0, 1, 2, 3, 4]), (True, [0, 1, 2])])
def test_findings_of_unselected_sources_are_omitted(named: bool, kept: list[int]) -> None:
    found = _extraction(_FINDINGS, {})
    told = obstacles.relevant_findings(found, found.sources[:1], named)
    assert told == [_FINDINGS[n] for n in kept]
    both = obstacles.relevant_findings(found, found.sources, True)
    assert both == [_FINDINGS[n] for n in (0, 1, 2, 3)]


@pytest.mark.parametrize(
    ("held", "facts"),
    [
        ({_A: 5, _C: 9}, {"count": 2, "bytes": 14}),
        ({_A: 5}, {"count": 1, "bytes": 5}),
        ({_C: 0}, {"count": 1, "bytes": 0}),
        ({"d" * 32: 9}, None),
    ],
)
def test_state_that_is_not_moved_is_reported_in_single_finding(
    held: dict[str, int], facts: dict[str, int] | None
) -> None:
    findings = [_finding(Code.STATE_NOT_MOVED, operator_id=one) for one in (_A, _C)]
    found = _extraction(findings, held)
    expected = [Finding(STATE_OF_OPERATORS_NOT_MOVED(**facts))] if facts is not None else []
    assert obstacles.relevant_findings(found, found.sources, False) == expected


def test_blocking_findings_are_refused_unless_allowed() -> None:
    findings = [
        _finding(Code.RAN_ON),
        _finding(Code.IN_FLIGHT_RECORDS, _A),
        _finding(Code.DAMAGED_SOURCE, _B),
        _finding(Code.SINK_STATE),
    ]
    told = [
        "so; stop the job with a savepoint, and move from that savepoint; if the job has ended, "
        "move from its newest checkpoint; or add allow_ran_on=True to accept the duplicates",
        f"operator {_A}: so; or add allow_in_flight=True to accept the loss",
        f"operator {_B}: so; to move without this source, select the other sources with source",
    ]
    assert _texts(obstacles.blocker_refusals(findings, Policies())) == told
    allowed = Policies(allow_ran_on=True, allow_in_flight=True)
    assert _texts(obstacles.blocker_refusals(findings, allowed)) == told[2:]


# -- clusters -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("clusters", "told"),
    [
        ([None, None], []),
        (["east", "east"], []),
        (
            ["west", "east"],
            [
                "the positions belong to 2 Kafka clusters ('east', 'west'), but a target reads "
                'only one; choose the cluster with cluster="ID"'
            ],
        ),
        (
            [None, "east"],
            [
                "the state of some sources does not identify their Kafka cluster (operators "
                f"{_A}); their cluster may differ from the other sources' cluster 'east'; move "
                "these sources one at a time with source"
            ],
        ),
    ],
)
def test_several_clusters_require_cluster_option(
    clusters: list[str | None], told: list[str]
) -> None:
    sources = [
        _source(one, _at(1, cluster=cluster))
        for one, cluster in zip((_A, _B), clusters, strict=True)
    ]
    assert _texts(obstacles.several_cluster_refusals(sources)) == told


def test_two_named_clusters_and_unnamed_cluster_are_refused() -> None:
    sources = [
        _source(_A, _at(1)),
        _source(_B, _at(1, cluster="east"), _at(1, 1, cluster="west")),
        _source(_C, _at(1)),
    ]
    several, unnamed = _texts(obstacles.several_cluster_refusals(sources))
    assert several.startswith("the positions belong to 2 Kafka clusters ('east', 'west'), ")
    assert (
        f"(operators {_A}, {_C}); their cluster may differ from the other sources' cluster "
        "'east' or 'west'" in unnamed
    )


@pytest.mark.parametrize(
    ("known", "asked", "shown"),
    [
        ("k:9092", None, None),
        ("k:9092", "k:9092", None),
        ("k", "K:9092", None),
        ("SSL://k:9092", "k", None),
        ("a:1,b:2", "x:9,b:2", None),
        ("a:1, ,b:2", "c:3", "a:1, b:2"),
        ("c:1,a:1,b:1", "x:9", "a:1, b:1, c:1"),
        ("c:1,a:1,b:1,d:1", "x:9", "a:1, b:1, c:1 and 1 more"),
        ("[::1]:1", "[::1]:2", "[::1]:1"),
        ("", "x:9", None),
    ],
)
def test_brokers_unknown_to_job_trigger_warning(
    known: str, asked: str | None, shown: str | None
) -> None:
    source = _source(_A, _at(1, cluster="east"), east=known, west="x:9")
    told = list(obstacles.other_brokers_warnings([source], asked))
    assert told == (
        [
            f"the job reads cluster 'east' at {shown}, but {asked} was queried; in a different "
            "cluster, the offsets refer to different records [other-brokers]"
        ]
        if shown
        else []
    )


def test_brokers_are_compared_only_for_single_named_cluster() -> None:
    two = _source(_A, _at(1, cluster="east"), _at(1, cluster="west"), east="a:1", west="b:1")
    assert list(obstacles.other_brokers_warnings([two], "x:9")) == []
    assert list(obstacles.other_brokers_warnings([_source(_A, _at(1), east="a:1")], "x:9")) == []


# -- sources of one topic -------------------------------------------------------------------------

_CHOOSE = 'choose one source with source="OPERATOR_ID"'
_LOWER = 'merge_sources="min"'


def _refused(sources: Sequence[Source], policies: Policies) -> list[str]:
    return _texts(shared_topic_refusals(shared_topics(sources), policies))


_ONE = Policies(one_cluster=True)
_MIN = Policies(merge_sources=MergeSources.MIN)


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        ([_at(1)], [_at(1)], None),
        ([_at(1)], [_at(1, topic="u")], None),
        ([_at(1)], [_at(2)], "1 of its partitions (operators {}, {}; t-0: 1 and 2)"),
        (
            [_at(1), _at(5, 1), _at(3, 2)],
            [_at(1), _at(Marker.LATEST, 1)],
            "2 of its partitions (operators {}, {}; t-1: 5 and latest)",
        ),
        ([_at(1)], [_at(None)], "1 of its partitions (operators {}, {}; t-0: 1 and none)"),
        (
            [_at(1)],
            [_at(1, state=PositionState.FINISHED)],
            "1 of its partitions (operators {}, {}; t-0: 1 and 1)",
        ),
    ],
)
def test_sources_of_topic_must_agree_on_positions_of_all_partitions(
    one: list[Position], other: list[Position], told: str | None
) -> None:
    sources = [_source(_A, *one), _source(_B, *other), _source(_C, _at(9, topic="alone"))]
    expected = (
        [
            f"2 sources of topic t have different positions in {told.format(_A, _B)}; {_CHOOSE}; "
            "or, if all sources read the same Kafka cluster, add one_cluster=True and "
            f"{_LOWER} to use the lower offsets"
        ]
        if told
        else []
    )
    disagreements = [one for one in _refused(sources, Policies()) if "different positions" in one]
    assert disagreements == expected


def test_sources_that_name_the_same_cluster_may_be_merged() -> None:
    sources = [_source(_A, _at(1, cluster="east")), _source(_B, _at(2, cluster="east"))]
    (told,) = _refused(sources, Policies())
    assert told.endswith(f"; {_CHOOSE}, or add {_LOWER} to use the lower offsets")
    assert _refused(sources, _MIN) == []
    # A source that reads the same partition in two clusters does not conflict with itself.
    alone = _source(_A, _at(1, cluster="east"), _at(2, cluster="west"))
    assert _refused([alone], Policies()) == []


def test_agreeing_sources_with_unnamed_clusters_require_option_one_cluster() -> None:
    sources = [
        _source(_A, _at(1), _at(2, topic="u")),
        _source(_B, _at(1)),
        _source(_C, _at(9, topic="alone")),
    ]
    assert _refused(sources, Policies()) == _refused(sources, _MIN)
    assert _refused(sources, Policies()) == [
        f"2 sources read topic t (operators {_A}, {_B}), and their state does not identify their "
        "Kafka cluster; if the clusters differ, these are different topics with the same name; "
        f"{_CHOOSE}, or add one_cluster=True if all sources read the same Kafka cluster"
    ]
    assert _refused(sources, _ONE) == []
    assert list(one_cluster_warnings(shared_topics(sources), _ONE)) == [
        f"one_cluster=True: migrate assumes that operators {_A}, {_B} read topic t of the same "
        "Kafka cluster, because their state does not identify the cluster [one-cluster]"
    ]
    assert list(one_cluster_warnings(shared_topics(sources), Policies())) == []


@pytest.mark.parametrize(
    ("topic_map", "told"),
    [
        ({}, False),
        ({"t": "v"}, False),
        ({"t": "u"}, True),
        ({"t": "u", "u": "v"}, False),
        ({"x": "u"}, False),
    ],
)
def test_renaming_topic_to_name_of_another_moved_topic_is_refused(
    topic_map: dict[str, str], told: bool
) -> None:
    assert _texts(obstacles.name_collision_refusals({"t", "u"}, topic_map)) == (
        [
            "topic_map={'t': 'u'} renames topic t, but the checkpoint already has a topic u; "
            "rename topic u too, or omit it with partitions"
        ]
        if told
        else []
    )


def test_single_source_group_is_refused_if_two_sources_are_at_committed_marker() -> None:
    sources = [
        _source(_A, _at(1), _at(Marker.COMMITTED, 1)),
        _source(_B, _at(Marker.COMMITTED), _at(2, 1)),
        _source(_C, _at(Marker.LATEST)),
    ]
    group = GroupView("g", True, "Empty", "classic")
    named, unnamed = ClusterSnapshot({}, source_group=group), ClusterSnapshot({})
    assert _texts(obstacles.shared_group_refusals(sources, named)) == [
        f"2 sources are still at the 'committed' marker (operators {_A}, {_B}), but "
        "source_group specifies the group of one source; move these sources one at a time with "
        "source"
    ]
    for some, snapshot in ((sources[1:], named), (sources, unnamed), (sources, None)):
        assert _texts(obstacles.shared_group_refusals(some, snapshot)) == []
