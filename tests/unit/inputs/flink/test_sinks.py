"""Read the uncommitted transactions and files in the state of sinks (SEMANTICS A 10).

The encoder writes the bytes. State of real jobs is in tests/golden.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from decoder import DecodeError, ErrorKind, PendingTransaction, read_checkpoint
from decoder.kafka.sink import (
    KafkaWriterState,
    PendingFile,
    read_committer_state,
    read_writer_state,
)
from migrate.inputs.flink.extract import extract
from migrate.model.finding import Code, Finding, Severity
from tests.support.checkpoints import operator_with_states, write_checkpoint
from tests.support.encoder import (
    COMMITTED_REQUEST,
    COMMITTER_STATE,
    FAILED,
    RETRY,
    WRITER_STATE,
    Committable,
    DistributionMode,
    FileCommittable,
    Operator,
    PartitionableHandle,
    RelativeFileHandle,
    StateOffsets,
    Subtask,
    encode_committer_element,
    encode_file_writer_element,
    encode_writer_element,
)

_FLINKS = ("1.14", "1.15", "1.20", "2.2")
# Files of a FileSink: files to publish, old files to delete, and a failed commit request.
_FILES = {
    5: {
        0: [FileCommittable("a", b"file", compacted="/a/b"), FileCommittable("b", None, b"old")],
        1: [FileCommittable("c", b"file", b"old"), FileCommittable("d", b"f", state=FAILED)],
    }
}
_TWO = {5: {0: [Committable("pay-0-5", 77, 3)], 1: [Committable("pay-1-5", state=RETRY)]}}


def _findings(tmp_path: Path, states: Mapping[str, Sequence[bytes]]) -> dict[str, Finding]:
    path = write_checkpoint(tmp_path / "chk-7", operator_with_states(states))
    found = extract(read_checkpoint(path)).findings
    return {finding.code: finding for finding in found if finding.operator_id is not None}


# -- bytes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("flink", _FLINKS)
def test_pending_transactions_are_read(flink: str) -> None:
    assert read_committer_state(encode_committer_element(flink, _TWO), "c") == (
        PendingTransaction("pay-0-5", 77, 3),
        PendingTransaction("pay-1-5", 4000, 0),
    )
    assert read_committer_state(encode_committer_element(flink, {}), "c") == ()


def test_pending_files_are_read() -> None:
    for flink in _FLINKS[1:]:
        assert read_committer_state(encode_committer_element(flink, _FILES), "c") == (
            PendingFile("a"),
            PendingFile("c"),
        )
    # Flink 1.14 stores no bucket names, no compacted files, and no states of commit requests.
    assert read_committer_state(encode_committer_element("1.14", _FILES), "c") == (
        *(PendingFile(""),) * 3,
    )


@pytest.mark.parametrize("flink", _FLINKS[1:])
def test_sink_commit_request_is_not_pending_if_committed_or_failed(flink: str) -> None:
    done = [Committable("a-0-1", state=COMMITTED_REQUEST), Committable("a-0-2", state=FAILED)]
    element = encode_committer_element(flink, {5: {0: [*done, Committable("a-0-3")]}})
    assert read_committer_state(element, "c") == (PendingTransaction("a-0-3", 4000, 0),)


@pytest.mark.parametrize(
    ("version", "under_way"), [(1, {}), (2, {}), (2, {"pay-0-5": 5, "pay-0-6": 6})]
)
def test_kafka_sink_writer_state_is_read(version: int, under_way: dict[str, int]) -> None:
    element = encode_writer_element("pay", version, under_way)
    assert read_writer_state(element, "w") == KafkaWriterState("pay", tuple(under_way))


@pytest.mark.parametrize(
    ("read", "element"),
    [
        *((read_committer_state, encode_committer_element(flink, _TWO)) for flink in _FLINKS),
        *((read_committer_state, encode_committer_element(flink, _FILES)) for flink in _FLINKS),
        (read_writer_state, encode_writer_element("p", 2, {"x": 1})),
        (read_writer_state, encode_file_writer_element("a", "s3://b/a", b"resume")),
    ],
)
def test_truncated_or_extended_sink_state_is_refused(
    read: Callable[[bytes, str], object], element: bytes
) -> None:
    for damaged in (*(element[:size] for size in range(len(element))), element + b"\0"):
        with pytest.raises(DecodeError):
            read(damaged, "c")


@pytest.mark.parametrize(("ownership", "known"), [(-1, False), (0, True), (1, True), (2, False)])
def test_unknown_transaction_ownership_of_kafka_sink_is_refused(
    ownership: int, known: bool
) -> None:
    """The values are the ordinals of TransactionOwnership in connector 4.0.1-2.0."""
    element = encode_writer_element("p", 2, {})
    assert element[-8:-4] == bytes(4)  # the encoder writes the first ordinal, and then a count
    changed = element[:-8] + ownership.to_bytes(4, "big", signed=True) + element[-4:]
    if known:
        assert read_writer_state(changed, "w") == KafkaWriterState("p", ())
        return
    with pytest.raises(DecodeError, match=f"unknown ownership: {ownership}"):
        read_writer_state(changed, "w")


def test_prefix_of_transactional_id_can_contain_dashes() -> None:
    assert PendingTransaction("my-sink-eu-1-12", 1, 0).prefix == "my-sink-eu"


# -- findings ------------------------------------------------------------------------------------


def test_pending_transactions_are_reported_with_count_and_prefix(tmp_path: Path) -> None:
    states = {COMMITTER_STATE: [encode_committer_element("2.2", _TWO)]}
    finding = _findings(tmp_path, states)["pending-transactions"]
    assert finding.severity is Severity.WARNING
    assert "2 transactions" in finding.message
    assert "prefix 'pay'" in finding.message


def test_committer_without_pending_transactions_is_reported_as_note(tmp_path: Path) -> None:
    states = {COMMITTER_STATE: [encode_committer_element("2.2", {})]}
    findings = _findings(tmp_path, states)
    assert findings.keys() == {"sink-state"}
    assert findings["sink-state"].severity is Severity.NOTE


def test_sink_writer_without_transactions_is_reported_as_note(tmp_path: Path) -> None:
    """Up to connector 3.4, sinks with at-least-once delivery have such a writer."""
    findings = _findings(tmp_path, {WRITER_STATE: [encode_writer_element("kafka-sink", 1, {})]})
    assert findings.keys() == {"sink-state"}
    assert "'kafka-sink'" in findings["sink-state"].message


@pytest.mark.parametrize("name", [WRITER_STATE, COMMITTER_STATE])
def test_unknown_sink_triggers_warning_about_possible_pending_transactions(
    tmp_path: Path, name: str
) -> None:
    states = {name: [b"\0\0\0\2\0\0\0\3abc"]}
    finding = _findings(tmp_path, states)["pending-transactions"]
    assert finding.severity is Severity.WARNING
    assert "a sink's state cannot be read" in finding.message


@pytest.mark.parametrize("name", ["next-transactional-id-hint", "next-transactional-id-hint-v2"])
def test_flink_kafka_producer_is_recognized_by_its_state(tmp_path: Path, name: str) -> None:
    finding = _findings(tmp_path, {name: [], "state": [b"java"]})["pending-transactions"]
    assert finding.severity is Severity.WARNING
    assert "FlinkKafkaProducer" in finding.message


def test_damaged_sink_state_does_not_block_move(tmp_path: Path) -> None:
    """No position depends on this state."""
    states = {COMMITTER_STATE: [encode_committer_element("2.2", _TWO)[:-1]]}
    findings = _findings(tmp_path, states)
    assert "neither a KafkaSink's nor a FileSink's" in findings["pending-transactions"].message


def test_missing_file_of_sink_state_does_not_block_move(tmp_path: Path) -> None:
    states = (StateOffsets(COMMITTER_STATE, DistributionMode.SPLIT_DISTRIBUTE, (5,)),)
    handle = PartitionableHandle(states, RelativeFileHandle("gone", 100))
    operator = Operator(bytes(16), 1, 1, subtasks=(Subtask(0, managed_operator=handle),))
    path = write_checkpoint(tmp_path / "chk-7", operator)
    (finding,) = [
        f for f in extract(read_checkpoint(path)).findings if f.code == "pending-transactions"
    ]
    assert "is missing" in finding.message


def test_unfinished_files_of_streaming_file_sink_are_reported(tmp_path: Path) -> None:
    """``tests/integration/test_examples.py`` uses the state of a real job."""
    findings = _findings(tmp_path, {"bucket-states": [b"x"], "max-part-counter": [b"y"]})
    assert findings.keys() == {"files-in-progress"}
    assert findings["files-in-progress"].severity is Severity.WARNING
    assert ".inprogress" in findings["files-in-progress"].message


@pytest.mark.parametrize(
    ("states", "may_be"),
    [
        ({COMMITTER_STATE: [encode_committer_element("2.2", _TWO)]}, False),  # of a KafkaSink
        ({COMMITTER_STATE: [b"\0\0\0\2\0\0\0\3abc"]}, False),
        ({WRITER_STATE: [b"\0\0\0\2\0\0\0\3abc"]}, True),
        ({"next-transactional-id-hint": []}, False),
    ],
)
def test_finding_reports_that_unknown_writer_may_be_file_sink(
    tmp_path: Path, states: Mapping[str, Sequence[bytes]], may_be: bool
) -> None:
    finding = _findings(tmp_path, states)["pending-transactions"]
    assert (
        "; if the sink is a file sink, it may also have an unfinished file" in finding.message
    ) == may_be


def test_pending_files_of_sink_are_counted(tmp_path: Path) -> None:
    states = {COMMITTER_STATE: [encode_committer_element("2.2", _FILES)]}
    findings = _findings(tmp_path, states)
    assert findings.keys() == {"pending-transactions"}
    assert findings["pending-transactions"].message.startswith(
        "a FileSink has 2 finished files to commit; "
    )


def test_sink_state_that_mixes_transactions_and_files_is_unreadable(tmp_path: Path) -> None:
    elements = [encode_committer_element("2.2", _TWO), encode_committer_element("2.2", _FILES)]
    findings = _findings(tmp_path, {COMMITTER_STATE: elements})
    assert "a sink's state cannot be read" in findings["pending-transactions"].message


def test_note_appears_if_sink_may_remember_checkpoint_ids(tmp_path: Path) -> None:
    """A sink that remembers checkpoint IDs may skip the checkpoints of a new job.

    The committer of a FileSink does not remember them, but an unknown committer may.
    """
    unknown = operator_with_states({COMMITTER_STATE: [b"\0\0\0\2\0\0\0\3abc"]})
    committer = operator_with_states({COMMITTER_STATE: [encode_committer_element("2.2", _FILES)]})
    element = encode_file_writer_element("a", "s3://b/a", b"resume")
    writer = operator_with_states({WRITER_STATE: [element]}, operator_id=bytes(16))
    for operators, told in (([unknown], 1), ([unknown, writer], 1), ([committer, writer], 0)):
        path = write_checkpoint(tmp_path / f"{len(operators)}-{told}/chk-7", *operators)
        found = extract(read_checkpoint(path)).findings
        codes = [finding.code for finding in found]
        assert codes.count(Code.SINK_MEMORY) == told


@pytest.mark.parametrize(
    ("at", "known", "unknown", "what"),
    [
        (12, (1,), 2, "checkpoints"),
        (36, (2,), 3, "subtasks"),
        (52, (0,), 1, "requests"),
        (64, (1,), 2, "committable"),
        (64, (1,), 0, "committable"),
        (12, (1,), -1, "checkpoints"),
    ],
)
def test_error_for_unsupported_version_names_part_of_committer_state(
    at: int, known: tuple[int, ...], unknown: int, what: str
) -> None:
    """Each part of a committer's state has its own version. Flink 2.2 writes these versions."""
    element = encode_committer_element("2.2", {5: {0: [Committable("pay-0-5", 77, 3)]}})
    assert int.from_bytes(element[at : at + 4], "big", signed=True) in known
    other = element[:at] + unknown.to_bytes(4, "big", signed=True) + element[at + 4 :]
    with pytest.raises(DecodeError) as refused:
        read_committer_state(other, "c")
    error = refused.value
    assert error.problem.startswith(f"{what} version {unknown} is not supported (supported: ")
    assert (error.field, error.byte_offset, error.kind) == (
        f"{what} version",
        at,
        ErrorKind.UNSUPPORTED,
    )


@pytest.mark.parametrize(("version", "fine"), [(1, True), (0, False), (2, False)])
def test_unsupported_version_of_flink_1_14_committables_is_refused(
    version: int, fine: bool
) -> None:
    element = encode_committer_element("1.14", {5: {0: [Committable("pay-0-5", 77, 3)]}})
    other = element[:12] + version.to_bytes(4, "big") + element[16:]
    if fine:
        assert read_committer_state(other, "c") == (PendingTransaction("pay-0-5", 77, 3),)
    else:
        with pytest.raises(DecodeError, match=f"committables version {version} is not"):
            read_committer_state(other, "c")
