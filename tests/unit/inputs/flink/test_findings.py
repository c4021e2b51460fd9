"""Findings about a checkpoint: their codes, severities, and messages, without a checkpoint file."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from decoder import (
    DynamicKafkaSource,
    HybridSource,
    KafkaSource,
    LegacyConsumer,
    Operator,
    PendingTransaction,
    SinkState,
    UnknownSource,
)
from decoder.checkpoint import Checkpoint
from decoder.kafka.dynamic import DynamicEnumeratorState, StreamCluster
from decoder.kafka.enumerator import EnumeratorState
from decoder.kafka.operator import Sink
from decoder.kafka.sink import FileBucket, FileSinkState, KafkaWriterState, PendingFile, UnknownSink
from decoder.metadata.model import (
    CheckpointKind,
    CheckpointType,
    DistributionMode,
    InlineState,
    NamedState,
    OperatorStateHandle,
    StopKind,
    Subtask,
)
from migrate.inputs.flink.findings.checkpoint import findings_of_checkpoint
from migrate.inputs.flink.findings.operator import findings_of_operator, state_bytes
from migrate.inputs.flink.findings.source import findings_of_source
from migrate.inputs.flink.source import KafkaState, Source, SourceKind
from migrate.model.finding import Code, Severity
from migrate.model.positions import Marker, Position, PositionState

_ID = "a" * 32
_BLOCKER, _WARNING, _NOTE = Severity.BLOCKER, Severity.WARNING, Severity.NOTE
_Told = tuple[Code, Severity, str]


def _agree(found: Sequence[_Told], expected: Sequence[_Told]) -> None:
    """Assert the codes, the severities, and the expected part of each message."""
    assert [told[:2] for told in found] == [told[:2] for told in expected]
    for (*_, message), (*_, words) in zip(found, expected, strict=True):
        assert words in message


def _operator(
    names: Sequence[str] = (),
    elements: int = 1,
    *,
    raw: bool = False,
    keyed: int = 0,
    in_flight: int = 0,
    subtasks: int = 1,
    name: str | None = None,
    finished: bool = False,
) -> Operator:
    """An operator with these list states, which have ten bytes in each subtask."""
    states = tuple(
        NamedState(one, DistributionMode.SPLIT_DISTRIBUTE, tuple(range(elements))) for one in names
    )
    handle = OperatorStateHandle(states, InlineState("n", bytes(10))) if names else None
    return Operator(
        _ID,
        name,
        None,
        subtasks,
        128,
        finished,
        None,
        tuple(
            Subtask(n, False, None if raw else handle, handle if raw else None, keyed, 0, in_flight)
            for n in range(subtasks)
        ),
    )


def _about(
    operator: Operator,
    state: KafkaState | UnknownSource | None = None,
    sink: Sink | None = None,
    stopped: bool = False,
) -> list[_Told]:
    found = findings_of_operator(operator, state, sink, stopped)
    return [(finding.code, finding.severity, finding.message) for finding in found]


# -- operators ------------------------------------------------------------------------------------


def _left_behind(held: str) -> _Told:
    return Code.STATE_NOT_MOVED, _WARNING, f"the operator has {held} that will not be migrated"


@pytest.mark.parametrize(
    ("operator", "told"),
    [
        (_operator(), []),
        (_operator(["buffer"]), [_left_behind("10 bytes of operator state")]),
        (_operator(["buffer"], raw=True), [_left_behind("10 bytes of operator state")]),
        (_operator(["buffer"], elements=0), []),
        (_operator(["end_of_input_state"]), []),
        (
            _operator(["end_of_input_state", "buffer"]),
            [_left_behind("10 bytes of operator state")],
        ),
        (_operator(keyed=7, subtasks=2), [_left_behind("14 bytes of keyed state")]),
        (
            _operator(["buffer"], keyed=7),
            [_left_behind("7 bytes of keyed state and 10 bytes of operator state")],
        ),
        (_operator(["SourceReaderState"]), []),
        (
            _operator(in_flight=3, subtasks=2),
            [
                (
                    Code.IN_FLIGHT_RECORDS,
                    _BLOCKER,
                    "the operator's channels contain 6 bytes of records that are not yet processed",
                )
            ],
        ),
        *(
            (
                _operator(["_async_wait_operator_state_"], elements, raw=raw, keyed=7),
                [
                    (
                        Code.IN_FLIGHT_RECORDS,
                        _BLOCKER,
                        f"the operator's queue contains up to {records} waiting for responses "
                        "(async I/O)",
                    )
                ],
            )
            for elements, records, raw in ((1, "1 record", False), (2, "2 records", True))
        ),
    ],
)
def test_findings_report_operator_state_and_in_flight_records(
    operator: Operator, told: list[_Told]
) -> None:
    _agree(_about(operator), told)


def test_state_size_is_sum_of_keyed_and_operator_state_of_all_subtasks() -> None:
    assert state_bytes(_operator(["buffer"], keyed=7, subtasks=2)) == 34
    assert state_bytes(_operator(["end_of_input_state"], keyed=7)) == 7
    assert state_bytes(_operator()) == 0


@pytest.mark.parametrize(
    ("names", "partly", "told"),
    [
        (
            ["SourceReaderState"],
            True,
            (
                Code.DAMAGED_SOURCE,
                _BLOCKER,
                "the source is damaged, or its kind is unsupported",
            ),
        ),
        (
            ["SourceReaderState"],
            False,
            (
                Code.ANOTHER_SOURCE_KIND,
                _WARNING,
                "so the source is not moved (why)",
            ),
        ),
        (
            ["topic-partition-offset-states"],
            False,
            (
                Code.LEGACY_CONSUMER,
                _BLOCKER,
                "contains no readable position (why)",
            ),
        ),
    ],
)
def test_finding_about_unreadable_source_depends_on_kind_of_source(
    names: list[str], partly: bool, told: _Told
) -> None:
    _agree(_about(_operator(names), UnknownSource("why", partly)), [told])


# -- sinks ----------------------------------------------------------------------------------------

_HIDDEN = "records in unfinished files (.inprogress) stay hidden"
_ROWS = f"a file sink may have an unfinished file; {_HIDDEN}"
_ALSO_ROWS = f"if the sink is a file sink, it may also have an unfinished file, and {_HIDDEN}"
_LOST = (
    "if the job is still running, a stop-with-savepoint commits this output; otherwise, the "
    "output is lost unless the job is restored from this checkpoint"
)
_AFTER_A_STOP = "the savepoint does not show whether the stop committed this output"
_IF_FINISHED = "if `flink list -a` shows the job as FINISHED, the stop committed that output"
_WRITER = ["writer_raw_states"]


def _pending(text: str, after_a_stop: str | None = None, files: bool = False) -> _Told:
    after = f"; {_ALSO_ROWS}" if files else ""
    return Code.PENDING_TRANSACTIONS, _WARNING, f"{text}; {after_a_stop or _LOST}{after}"


@pytest.mark.parametrize("stopped", [False, True])
@pytest.mark.parametrize(
    ("names", "sink", "text", "after_a_stop"),
    [
        (
            ["streaming_committer_raw_states"],
            SinkState((), (PendingTransaction("pay-0-5", 1, 2),)),
            "a KafkaSink has 1 transaction to commit (transactional ID prefix 'pay')",
            _AFTER_A_STOP,
        ),
        (
            ["streaming_committer_raw_states"],
            SinkState(
                (),
                tuple(PendingTransaction(one, 1, 2) for one in ("b-0-1", "a-0-1", "a-1-2")),
            ),
            "a KafkaSink has 3 transactions to commit (transactional ID prefix 'a', 'b')",
            _AFTER_A_STOP,
        ),
        *(
            (
                ["streaming_committer_raw_states"],
                FileSinkState((), (PendingFile("b"),) * count),
                f"a FileSink has {files} to commit",
                _IF_FINISHED,
            )
            for count, files in ((1, "1 finished file"), (2, "2 finished files"))
        ),
        *(
            (
                names,
                UnknownSink("why"),
                "a sink's state cannot be read (why), so the sink may have output to commit",
                _AFTER_A_STOP,
            )
            for names in (["streaming_committer_raw_states"], _WRITER)
        ),
        *(
            (
                [name],
                None,
                "a FlinkKafkaProducer may have transactions to commit, which migrate does not read",
                _IF_FINISHED,
            )
            for name in ("next-transactional-id-hint", "next-transactional-id-hint-v2")
        ),
    ],
)
def test_pending_sink_output_is_reported(
    names: list[str], sink: Sink | None, text: str, after_a_stop: str, stopped: bool
) -> None:
    # A writer of an unknown sink may also buffer records and have unfinished files.
    files = names == _WRITER
    more = [_left_behind("10 bytes of operator state")] if files else []
    told = [_pending(text, after_a_stop if stopped else None, files), *more]
    _agree(_about(_operator(names), None, sink, stopped), told)
    pending, *_ = findings_of_operator(_operator(names), None, sink, stopped)
    assert pending.void_after_stop
    assert pending.void_if_finished == (after_a_stop == _IF_FINISHED)


@pytest.mark.parametrize(
    ("sink", "told"),
    [
        (
            SinkState((), ()),
            "the operator is a sink committer without transactions to commit",
        ),
        (
            SinkState((KafkaWriterState("b", ()), KafkaWriterState("a", ())), ()),
            "the operator is a KafkaSink writer (transactional ID prefix 'a', 'b')",
        ),
        (
            SinkState((KafkaWriterState("a", ("a-0-1",)), KafkaWriterState("a", ("a-1-1",))), ()),
            "the operator is a KafkaSink writer (transactional ID prefix 'a'), with 2 transactions "
            "in progress",
        ),
    ],
)
def test_sink_without_pending_output_is_reported_as_note(sink: Sink, told: str) -> None:
    _agree(_about(_operator(_WRITER), None, sink), [(Code.SINK_STATE, _NOTE, told)])


@pytest.mark.parametrize(
    ("open_", "code", "severity", "told"),
    [
        ([], Code.SINK_STATE, _NOTE, "the operator is a FileSink writer with no open file"),
        (
            ["b", "a"],
            Code.FILES_IN_PROGRESS,
            _WARNING,
            f"a FileSink has 2 unfinished files (the first is in 'b'); {_HIDDEN}",
        ),
        (
            ["b"],
            Code.FILES_IN_PROGRESS,
            _WARNING,
            f"a FileSink has 1 unfinished file (the first is in 'b'); {_HIDDEN}",
        ),
    ],
)
def test_unfinished_files_of_file_sink_trigger_warning(
    open_: list[str], code: Code, severity: Severity, told: str
) -> None:
    buckets = (FileBucket("closed", False), *(FileBucket(path, True) for path in open_))
    _agree(
        _about(_operator(_WRITER, keyed=7), None, FileSinkState(buckets)), [(code, severity, told)]
    )


def test_unfinished_files_of_legacy_file_sink_trigger_warning() -> None:
    _agree(
        _about(_operator(["bucket-states"], keyed=7)), [(Code.FILES_IN_PROGRESS, _WARNING, _ROWS)]
    )


# -- sources --------------------------------------------------------------------------------------


def _checkpoint(
    stop: StopKind = StopKind.NONE,
    version: int = 4,
    kind: CheckpointKind = CheckpointKind.CHECKPOINT,
    operators: tuple[Operator, ...] = (),
    sinks: dict[str, Sink] | None = None,
    sources: dict[str, KafkaState | UnknownSource] | None = None,
    number: int = 7,
    newer: tuple[int, ...] = (),
    earlier: tuple[int, ...] = (),
    contradicting: tuple[int, ...] = (),
) -> Checkpoint:
    return Checkpoint(
        f"/job/chk-{number}",
        number,
        version,
        CheckpointType(kind, stop),
        operators,
        dict(sources or {}),
        dict(sinks or {}),
        newer,
        0,
        earlier,
        contradicting,
    )


def _source(*positions: Position, finished: bool | None = True) -> Source:
    kind = SourceKind.KAFKA_SOURCE
    return Source(_ID, None, None, kind, 1, 128, {None: finished}, positions)


def _at(
    start: int | Marker | None, partition: int = 0, cluster: str | None = None, topic: str = "t"
) -> Position:
    state = PositionState.NEXT if isinstance(start, int) else PositionState(start or "unresolved")
    return Position(topic, partition, state, start, cluster=cluster, reason="why")


_ENUMERATOR = EnumeratorState(3, (), True)
_KAFKA = KafkaSource((), _ENUMERATOR)


def _of(
    source: Source, state: KafkaState = _KAFKA, checkpoint: Checkpoint | None = None
) -> list[_Told]:
    found = findings_of_source(source, state, checkpoint or _checkpoint())
    return [(finding.code, finding.severity, finding.message) for finding in found]


def test_unresolved_and_marker_positions_are_counted() -> None:
    source = _source(
        _at(5),
        _at(None, 1),
        _at(None, 2),
        _at(Marker.LATEST, 3),
        _at(Marker.COMMITTED, 4),
        _at(Marker.COMMITTED, 5),
        _at(Marker.EARLIEST, 6),
    )
    _agree(
        _of(source),
        [
            (
                Code.UNRESOLVED_POSITIONS,
                _BLOCKER,
                "the state lacks 2 of 7 positions; the first is t-1 (why)",
            ),
            (
                Code.LATEST_MARKER,
                _WARNING,
                "1 partition is still at the 'latest' marker",
            ),
            (
                Code.COMMITTED_MARKER,
                _WARNING,
                "2 partitions are still at the 'committed' marker",
            ),
        ],
    )
    (told,) = _of(_source(_at(None, 1, "east")))
    assert told[2].endswith("the first is t-1 on cluster 'east' (why)")
    _agree(_of(_source(_at(5))), [])


def test_missing_enumerator_or_unfinished_discovery_is_reported() -> None:
    _agree(
        _of(_source(), KafkaSource((), None)),
        [
            (
                Code.NO_ENUMERATOR,
                _WARNING,
                "the checkpoint contains no enumerator state; if the source is bounded, ",
            )
        ],
    )
    for finished in (False, None):
        _agree(
            _of(_source(finished=finished)),
            [
                (
                    Code.INITIAL_DISCOVERY,
                    _NOTE,
                    "the state does not show that the first discovery of partitions had finished",
                )
            ],
        )


_STALE = "the FlinkKafkaConsumer's positions are from the previous checkpoint"


@pytest.mark.parametrize(
    ("stop", "version", "told"),
    [
        (StopKind.NONE, 4, []),
        (StopKind.TERMINATE, 2, []),
        (StopKind.TERMINATE, 4, [(Code.STALE_POSITIONS, _BLOCKER, _STALE)]),
        (StopKind.SUSPEND, 5, [(Code.STALE_POSITIONS, _BLOCKER, _STALE)]),
        (
            StopKind.UNKNOWN,
            3,
            [
                (
                    Code.STALE_POSITIONS,
                    _WARNING,
                    "if this savepoint was taken when Flink 1.15 stopped the job, or when Flink "
                    "1.14 drained it, " + _STALE,
                )
            ],
        ),
    ],
)
def test_stale_positions_of_stopped_legacy_consumer_block_move(
    stop: StopKind, version: int, told: list[_Told]
) -> None:
    _agree(_of(_source(), LegacyConsumer(()), _checkpoint(stop, version)), told)


@pytest.mark.parametrize(
    ("current", "others", "told"),
    [
        (
            _KAFKA,
            0,
            [
                (
                    Code.HYBRID_SOURCE,
                    _NOTE,
                    "this HybridSource is reading a Kafka source (source 2 in its list); "
                    "the state does not contain the later sources",
                )
            ],
        ),
        (
            UnknownSource("why", False),
            2,
            [
                (
                    Code.HYBRID_SOURCE_ELSEWHERE,
                    _BLOCKER,
                    "this HybridSource is reading a non-Kafka source (source 2 in its list), so "
                    "either it has not reached Kafka yet, or it never reads Kafka; unread data of "
                    "source 2 is not moved",
                ),
                (
                    Code.HYBRID_SOURCE_ELSEWHERE,
                    _BLOCKER,
                    "the readers of this HybridSource still have 2 splits from its other "
                    "sources; unread data in these splits is not moved",
                ),
            ],
        ),
        (
            UnknownSource("why", True),
            0,
            [
                (
                    Code.HYBRID_SOURCE_ELSEWHERE,
                    _BLOCKER,
                    "this HybridSource is reading source 2 in its list; some of the operator's "
                    "state belongs to a Kafka source, and some cannot be decoded (why)",
                )
            ],
        ),
    ],
)
def test_finding_about_hybrid_source_describes_its_current_source(
    current: KafkaSource | UnknownSource, others: int, told: list[_Told]
) -> None:
    _agree(_of(_source(), HybridSource(1, current, others)), told)


def test_dynamic_source_reports_undiscovered_topics_and_retained_clusters() -> None:
    streams = {
        "s": {
            "east": StreamCluster(frozenset({"t", "u"}), "e:1"),
            "west": StreamCluster(frozenset({"t"}), "w:1"),
        }
    }
    state = DynamicKafkaSource({}, frozenset({"west"}), DynamicEnumeratorState(3, streams, {}, {}))
    source = _source(_at(5, cluster="east"))
    _agree(
        _of(source, state),
        [
            (
                Code.UNDISCOVERED_TOPICS,
                _WARNING,
                "2 topics in the source's streams have no partitions in the state (the first is "
                "u on ",
            ),
            (
                Code.RETAINED_CLUSTERS,
                _NOTE,
                "the job's metadata service has removed 1 cluster ('west'); if the service ",
            ),
        ],
    )
    two = state._replace(retained=frozenset({"b", "a"}))
    assert "removed 2 clusters ('a', 'b');" in _of(source, two)[1][2]
    none = state._replace(enumerator=None, retained=frozenset())
    assert [code for code, _, _ in _of(source, none)] == [Code.NO_ENUMERATOR]


# -- the checkpoint -------------------------------------------------------------------------------


def _findings(**fields: object) -> list[_Told]:
    found = findings_of_checkpoint(_checkpoint(**fields))  # type: ignore[arg-type]
    return [
        (finding.code, finding.severity, finding.message)
        for finding in found
        if finding.code not in (Code.WRITTEN_BY, Code.NOT_A_STOP)
    ]


def test_newer_checkpoint_of_running_job_blocks_move() -> None:
    assert _findings(newer=(8, 9))[0] == (
        Code.RAN_ON,
        _BLOCKER,
        "the newer complete checkpoint chk-9 is in the same directory as this checkpoint, so the "
        "job kept running after this checkpoint, and its later output would be duplicated",
    )
    assert (
        "chk-3 in the same directory was written after this chk-7" in _findings(newer=(9, 3))[0][2]
    )


def test_checkpoint_times_that_contradict_numbers_trigger_warning() -> None:
    lower = _findings(contradicting=(5, 6, 9))
    assert [code for code, _, _ in lower] == [Code.NUMBERING_BEGAN_ANEW]
    assert lower[0][2].startswith(
        "chk-6 in the same directory was written after this chk-7, although the number of chk-6 "
        "is lower; "
    )
    ((_, severity, higher),) = _findings(contradicting=(8, 9))
    assert severity is _WARNING
    assert higher.startswith(
        "chk-9 in the same directory was written before this chk-7, although the number of chk-9 "
        "is higher; "
    )


def test_finished_operators_are_listed_in_warning() -> None:
    operators = (
        _operator(finished=True, name="reader"),
        _operator(),
        _operator(finished=True),
    )
    _agree(
        _findings(operators=operators),
        [
            (
                Code.FINISHED_OPERATORS,
                _WARNING,
                f"2 operators had finished and stored no state (reader, {_ID})",
            )
        ],
    )


@pytest.mark.parametrize(
    ("version", "sources", "told"),
    [
        (2, {}, "Flink 1.3 to 1.10 (metadata version 2)"),
        (6, {}, "Flink 2.1 and later (metadata version 6)"),
        (
            6,
            {"a": KafkaSource((), None), "b": DynamicKafkaSource({}, frozenset(), None)},
            "Flink 2.1 and later (metadata version 6)",
        ),
        (
            4,
            {"a": _KAFKA, "b": KafkaSource((), None)},
            "Flink 1.16 to 1.20 (metadata version 4), and by a Kafka connector 5.0 or later "
            "(enumerator version 3)",
        ),
        (
            4,
            {"a": HybridSource(0, _KAFKA._replace(enumerator=EnumeratorState(2, (), True)), 0)},
            "Flink 1.16 to 1.20 (metadata version 4), and by a Kafka connector 3.1 to 4.0 "
            "(enumerator version 2)",
        ),
        (
            3,
            {"a": LegacyConsumer(()), "b": UnknownSource("why", False)},
            "Flink 1.11 to 1.15 (metadata version 3), and by a Kafka connector up to 3.4 "
            "(FlinkKafkaConsumer)",
        ),
        (
            4,
            {"a": DynamicKafkaSource({}, frozenset(), DynamicEnumeratorState(2, {}, {}, {}))},
            "Flink 1.16 to 1.20 (metadata version 4), and by a Kafka connector 5.0 (enumerator "
            "version 2)",
        ),
    ],
)
def test_note_lists_flink_and_connector_releases_that_may_have_written_checkpoint(
    version: int, sources: dict[str, KafkaState | UnknownSource], told: str
) -> None:
    found = findings_of_checkpoint(_checkpoint(version=version, sources=sources))
    (finding,) = [one for one in found if one.code is Code.WRITTEN_BY]
    assert finding.severity is _NOTE
    assert finding.message == f"written by {told}; the state does not record the exact release"
