"""Report records in operator state when a job stops (SEMANTICS A 7, 9, 17).

The encoder writes the bytes. State of real jobs is in tests/golden.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from decoder import read_checkpoint
from migrate.inputs.flink.extract import extract
from migrate.model.finding import Finding, Severity
from tests.support.checkpoints import (
    OPERATOR_ID,
    SourceState,
    operator_with_elements,
    operator_with_states,
    source_operator,
    splits,
    write_checkpoint,
)
from tests.support.command import migrate
from tests.support.encoder import (
    COMMITTER_STATE,
    NO_STOPPING_OFFSET,
    WRITER_STATE,
    Committable,
    Operator,
    encode_committer_element,
    encode_file_writer_element,
    encode_reader_element,
    encode_split,
)
from tests.support.golden import golden

_SOURCE = source_operator(SourceState({0: splits("orders", [50])}))
_OTHER = bytes(reversed(OPERATOR_ID))
_STOP = "suspend savepoint CANONICAL"
_QUEUE = "_async_wait_operator_state_"


def _write(tmp_path: Path, *operators: Operator, kind: str = _STOP) -> Path:
    return write_checkpoint(tmp_path / "chk-7", _SOURCE, *operators, version=6, kind=kind)


def _operator(**states: list[bytes]) -> Operator:
    return operator_with_states(states, operator_id=_OTHER)


def _of_the_other(path: Path) -> dict[str, Finding]:
    found = extract(read_checkpoint(path)).findings
    return {finding.code: finding for finding in found if finding.operator_id == _OTHER.hex()}


# -- async I/O -----------------------------------------------------------------------------------


def test_records_in_async_queue_are_in_flight_even_after_stop(tmp_path: Path) -> None:
    path = _write(tmp_path, _operator(**{_QUEUE: [b"record"] * 30}))
    refused = migrate("to-spark", path)
    assert (refused.code, refused.stdout) == (4, "")
    assert "30 records" in refused.stderr
    assert "--drain" in refused.stderr
    assert "--allow-in-flight" in refused.stderr
    allowed = migrate("to-spark", path, "--allow-in-flight")
    assert allowed.code == 0
    assert "30 records" in allowed.stderr


def test_empty_async_queue_yields_no_finding(tmp_path: Path) -> None:
    assert not _of_the_other(_write(tmp_path, _operator(**{_QUEUE: []})))


# -- files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [_STOP, "checkpoint RETAIN_ON_CANCELLATION"])
def test_open_file_of_file_sink_is_reported_with_path(tmp_path: Path, kind: str) -> None:
    elements = [
        encode_file_writer_element("a", "s3://lake/orders/a", b"resume"),
        encode_file_writer_element("b", "s3://lake/orders/b", None),
    ]
    path = _write(tmp_path, _operator(**{WRITER_STATE: elements}), kind=kind)
    found = _of_the_other(path)
    assert found.keys() == {"files-in-progress"}
    assert found["files-in-progress"].severity is Severity.WARNING
    assert "1 unfinished file" in found["files-in-progress"].message
    assert "s3://lake/orders/a" in found["files-in-progress"].message
    assert ".inprogress" in migrate("to-spark", path).stderr


def test_file_sink_without_open_file_is_reported_as_note(tmp_path: Path) -> None:
    element = encode_file_writer_element("a", "s3://lake/orders/a", None)
    path = _write(tmp_path, _operator(**{WRITER_STATE: [element]}))
    assert {code: found.severity for code, found in _of_the_other(path).items()} == {
        "sink-state": Severity.NOTE
    }
    assert "(operator " not in migrate("to-spark", path).stderr


@pytest.mark.parametrize("damage", ["cut", "cut in the path", "left over", "magic", "version"])
def test_damaged_file_sink_state_is_treated_as_unknown_sink(tmp_path: Path, damage: str) -> None:
    """Delta Lake writers use the same magic number, so the sink might not be a FileSink."""
    element = encode_file_writer_element("a", "s3://lake/orders/a", b"resume")
    version, body = element[:4], element[8:]
    version, body = {
        "cut": (version, body[:-1]),
        "cut in the path": (version, body[:-30]),
        "left over": (version, body + b"\0"),
        "magic": (version, b"\x1e\x76\x4b\x78" + body[4:]),
        "version": (b"\0\0\0\4", body),
    }[damage]
    damaged = version + len(body).to_bytes(4, "big") + body
    found = _of_the_other(_write(tmp_path, _operator(**{WRITER_STATE: [damaged]})))
    assert found.keys() == {"pending-transactions", "state-not-moved"}


# -- other state ---------------------------------------------------------------------------------


def test_size_of_unmoved_state_is_reported_in_single_line() -> None:
    """Flink's own classes read 2530 bytes for each of the two operators."""
    told = migrate("to-spark", golden("2.2/two-sources"), "--source", "orders-eu").stderr
    lines = [line for line in told.splitlines() if "is not migrated" in line]
    assert len(lines) == 1
    assert lines[0].startswith("warning: 2 operators have 5060 bytes of state")


def test_empty_operator_state_yields_no_finding(tmp_path: Path) -> None:
    path = _write(tmp_path, _operator(buffer=[], end_of_input_state=[b"\0"]))
    assert not _of_the_other(path)
    assert "does not move" not in migrate("to-spark", path).stderr


def test_nonempty_list_state_is_reported_as_unmoved_state(tmp_path: Path) -> None:
    path = _write(tmp_path, _operator(buffer=[b"record"]))
    assert _of_the_other(path)["state-not-moved"].severity is Severity.WARNING
    assert "1 operator has" in migrate("to-spark", path).stderr


# -- a source that the user chose ----------------------------------------------------------------


@pytest.mark.parametrize("choice", [["--source", "orders"], ["--spark-source", "0=orders"]])
def test_source_choice_keeps_warnings_about_sinks(tmp_path: Path, choice: list[str]) -> None:
    pending = {5: {0: [Committable("pay-0-5", 77, 3)]}}
    path = _write(
        tmp_path,
        _operator(**{COMMITTER_STATE: [encode_committer_element("2.2", pending)]}),
        kind="checkpoint RETAIN_ON_CANCELLATION",
    )
    choice = [part.replace("orders", "topic:orders") for part in choice]
    told = migrate("to-spark", path, *choice)
    assert told.code == 0
    assert "1 transaction to commit" in told.stderr


def test_source_choice_hides_findings_of_other_sources(tmp_path: Path) -> None:
    """Of the other sources, one has no enumerator, and one is not a KafkaSource."""
    split = encode_reader_element(encode_split("payments", 0, 5, NO_STOPPING_OFFSET))
    other = operator_with_elements({0: [split]}, None, _OTHER)
    foreign = operator_with_elements({0: [b"\0\0\0\1\0\0\0\1x"]}, None, bytes(16))
    path = _write(tmp_path, other, foreign)
    unnamed = migrate("to-spark", path).stderr
    chosen = migrate("to-spark", path, "--source", "topic:orders")
    assert chosen.code == 0
    for told in ("no enumerator state", "does not belong to a KafkaSource"):
        assert told in unnamed
        assert told not in chosen.stderr
