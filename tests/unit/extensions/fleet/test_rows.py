"""The rows of each view, compared with Flink's own classes, and error rows."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from decoder import ErrorKind
from migrate.extensions.fleet.candidates import Failure, read_each
from migrate.extensions.fleet.discovery import discover
from migrate.extensions.fleet.options import CheckpointOptions, Mode, parse_options, selected_rows
from migrate.extensions.fleet.rows import Selection
from migrate.extensions.fleet.view_columns import TIMESTAMP, VIEWS, CheckpointView
from migrate.model.column_types import BIGINT, BOOLEAN, INT, STRING, ArrayOf, ColumnType
from migrate.model.errors import InputError
from migrate.storage.files import Files
from tests.support.checkpoints import (
    SourceState,
    in_flight_operator,
    source_operator,
    splits,
    write_checkpoint,
    write_source,
)
from tests.support.encoder import ByteStreamHandle, ChannelHandle, FileHandle, Operator, Subtask
from tests.support.golden import GOLDEN, WRITTEN_BY_FLINK, ExpectedPosition, positions_of
from tests.support.state_files import write_with_handle

# One release is sufficient here, because test_data_source.py tests all releases.
RELEASE = "2.2"
ENTRIES = [entry for entry in WRITTEN_BY_FLINK if entry["name"].startswith(f"{RELEASE}/")]
TOLD_ALIKE = (
    "name",
    "uid",
    "parallelism",
    "max_parallelism",
    "finished",
    "operator_state_bytes",
    "keyed_state_bytes",
    "in_flight_bytes",
)
TYPES: dict[ColumnType, tuple[type, ...]] = {
    STRING: (str,),
    INT: (int,),
    BIGINT: (int,),
    BOOLEAN: (bool,),
    TIMESTAMP: (int,),
    ArrayOf(STRING): (tuple,),
    ArrayOf(INT): (tuple,),
}


def rows(
    view: CheckpointView,
    *roots: str | Path,
    mode: Mode = Mode.PERMISSIVE,
    selection: Selection | None = None,
    files: Files | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a view as dictionaries by column name."""
    files = files or Files()
    options = CheckpointOptions(view=view, mode=mode, selection=selection or Selection())
    columns = VIEWS[view]
    for row in selected_rows(discover(map(str, roots), files), files, options):
        assert len(row) == len(columns)
        for column, value in zip(columns, row, strict=True):
            assert value is None or type(value) in TYPES[column.type], (column, value)
        yield dict(zip((column.name for column in columns), row, strict=True))


@pytest.fixture(scope="module")
def read() -> dict[CheckpointView, list[dict[str, Any]]]:
    return {view: list(rows(view, GOLDEN / RELEASE)) for view in CheckpointView}


def of(read: list[dict[str, Any]], entry: dict[str, Any]) -> list[dict[str, Any]]:
    return [row for row in read if row["pointer"] == str(GOLDEN / entry["path"])]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: str(entry["name"]))
def test_rows_of_every_view_match_values_that_flink_reads(
    read: dict[CheckpointView, list[dict[str, Any]]], entry: dict[str, Any]
) -> None:
    expected = entry["expected"]
    held = [
        ExpectedPosition(*(row[name] for name in ExpectedPosition._fields))
        for row in of(read[CheckpointView.POSITIONS], entry)
    ]
    assert sorted(held, key=repr) == sorted(positions_of(entry), key=repr)

    operators = of(read[CheckpointView.OPERATORS], entry)
    by_id = {operator["operator_id"]: operator for operator in expected["operators"]}
    assert len(operators) == len(by_id)
    for row in operators:
        operator = by_id[row["operator_id"]]
        assert [row[name] for name in TOLD_ALIKE] == [operator[name] for name in TOLD_ALIKE]
        assert list(row["state_names"]) == operator["state_names"]
        assert list(row["finished_subtasks"]) == operator["finished_subtasks"]
    kafka = {row["operator_id"] for row in operators if row["source_kind"] is not None}
    assert {operator_id for operator_id, *_ in positions_of(entry)} <= kafka

    (checkpoint,) = of(read[CheckpointView.CHECKPOINTS], entry)
    assert checkpoint["checkpoint_id"] == expected["checkpoint_id"]
    assert checkpoint["metadata_version"] == expected["metadata_version"]
    savepoint = expected["checkpoint_type"]["savepoint"]
    assert checkpoint["checkpoint_kind"] == ("savepoint" if savepoint else "checkpoint")
    assert (checkpoint["job_directory"] is None) == savepoint
    assert checkpoint["operators"] == len(operators)
    assert checkpoint["positions"] == len(held)
    assert checkpoint["sources"] == len(kafka)
    assert list(checkpoint["topics"]) == sorted({one.topic for one in held})
    metadata = GOLDEN / entry["path"] / "_metadata"
    assert checkpoint["metadata_bytes"] == metadata.stat().st_size
    assert checkpoint["written_at"] == metadata.stat().st_mtime_ns // 1_000_000
    assert checkpoint["error"] is checkpoint["error_kind"] is None


# The obstacles of each scenario. All other scenarios can be moved.
OBSTACLES = {
    "async-io": {"in-flight-records"},
    "dynamic": {"several-clusters"},
    "hybrid-files": {"hybrid-source-elsewhere", "no-positions"},
    "kafka-sink": {"pending-transactions"},
    "native-savepoint": {"pending-transactions"},
    "retained": {"pending-transactions"},
    "savepoint": {"pending-transactions"},
    "starting-offsets": {"committed-marker", "sources-disagree"},
    "two-sources": {"sources-disagree"},
    "unaligned": {"in-flight-records"},
}


def test_checkpoints_view_lists_obstacles_for_each_checkpoint(
    read: dict[CheckpointView, list[dict[str, Any]]],
) -> None:
    for entry in ENTRIES:
        (row,) = of(read[CheckpointView.CHECKPOINTS], entry)
        expected = OBSTACLES.get(entry["name"].partition("/")[2], set())
        assert set(row["obstacles"]) == expected, entry["name"]
        assert row["movable"] is (not expected)
        assert (row["why_not"] is None) is row["movable"]


def test_findings_view_contains_path_of_each_checkpoint(
    read: dict[CheckpointView, list[dict[str, Any]]],
) -> None:
    in_flight = [row for row in read[CheckpointView.FINDINGS] if row["code"] == "in-flight-records"]
    held = {Path(row["pointer"]).relative_to(GOLDEN).parts[1] for row in in_flight}
    assert held == {"unaligned", "async-io"}
    assert {row["severity"] for row in in_flight} == {"blocker"}
    assert {row["pointer"] for row in read[CheckpointView.FINDINGS]} == {
        str(GOLDEN / entry["path"]) for entry in ENTRIES
    }


@pytest.fixture
def damaged(tmp_path: Path) -> dict[str, str]:
    """Return the kind of the error for the path of each unreadable checkpoint."""
    job = tmp_path / ("c" * 32)
    metadata = (write_source(job / "chk-1", {0: splits("t", [1])}) / "_metadata").read_bytes()
    shutil.rmtree(job / "chk-1")
    kinds = {}
    for number, (data, kind) in enumerate(
        [
            (b"", "truncated"),
            (metadata[:-7], "truncated"),
            (b"PAR1" + metadata[4:], "corrupt"),
            (metadata[:7] + b"\x63" + metadata[8:], "unsupported"),
            (metadata + b"x", "corrupt"),
            (None, "not found"),
        ],
        start=2,
    ):
        directory = job / f"chk-{number}"
        directory.mkdir(parents=True)
        if data is not None:
            (directory / "_metadata").write_bytes(data)
        kinds[str(directory)] = kind
    return kinds


@pytest.mark.parametrize("view", CheckpointView)
def test_unreadable_checkpoint_has_row_with_error_in_every_view(
    damaged: dict[str, str], tmp_path: Path, view: CheckpointView
) -> None:
    whole = write_source(tmp_path / "whole", {0: splits("t", [1])})
    told = list(rows(view, tmp_path))
    assert {row["pointer"]: row["error_kind"] for row in told} == {**damaged, str(whole): None}
    for row in told:
        if row["pointer"] == str(whole):
            assert row["error"] is None
            continue
        assert row["pointer"] in row["error"]
        assert row["job_id"] == "c" * 32
        assert row["checkpoint_id"] == int(row["pointer"].rpartition("-")[2])
        known = {"pointer", "job_id", "checkpoint_id", "job_directory", "metadata_bytes"}
        assert {name for name, value in row.items() if value is not None} <= known | {
            "error",
            "error_kind",
        }

    dropped = rows(view, tmp_path, mode=Mode.DROPMALFORMED)
    assert {row["pointer"] for row in dropped} == {str(whole)}
    with pytest.raises(InputError, match=r"chk-2/_metadata.*\(truncated\)"):
        list(rows(view, tmp_path, mode=Mode.FAILFAST))


def test_topic_filter_keeps_rows_of_unreadable_checkpoints(
    damaged: dict[str, str], tmp_path: Path
) -> None:
    write_source(tmp_path / "whole", {0: splits("t", [1])})
    selection = Selection(frozenset({"another"}))
    told = rows(CheckpointView.POSITIONS, tmp_path, selection=selection)
    assert {row["pointer"] for row in told} == set(damaged)


def test_topic_filter_selects_rows_of_every_view(tmp_path: Path) -> None:
    """Positions and operators are filtered.

    For a matching checkpoint, its entire row and all its findings are returned.
    """
    both = source_operator(SourceState({0: [*splits("orders", [1, 2]), *splits("payments", [3])]}))
    other = source_operator(SourceState({0: splits("clicks", [4])}, operator_id=bytes(16)))
    write_checkpoint(tmp_path / "chk-7", both, other, in_flight_operator(8))
    orders = parse_options({"topic": "orders"}).selection

    positions = list(rows(CheckpointView.POSITIONS, tmp_path, selection=orders))
    assert [(row["topic"], row["partition"]) for row in positions] == [("orders", 0), ("orders", 1)]
    (operator_id,) = {row["operator_id"] for row in positions}
    (operator,) = rows(CheckpointView.OPERATORS, tmp_path, selection=orders)
    assert operator["operator_id"] == operator_id
    # The findings are not filtered: in-flight records of a different operator also block the move.
    assert list(rows(CheckpointView.FINDINGS, tmp_path, selection=orders)) == list(
        rows(CheckpointView.FINDINGS, tmp_path)
    )
    (checkpoint,) = rows(CheckpointView.CHECKPOINTS, tmp_path, selection=orders)
    assert checkpoint["topics"] == ("clicks", "orders", "payments")  # not filtered

    several = parse_options({"topic": "clicks,payments"}).selection
    assert {
        row["topic"] for row in rows(CheckpointView.POSITIONS, tmp_path, selection=several)
    } == {
        "clicks",
        "payments",
    }
    nothing = parse_options({"topic": "nothing"}).selection
    for view in CheckpointView:
        assert list(rows(view, tmp_path, selection=nothing)) == []


def test_uid_filter_matches_metadata_without_uids() -> None:
    """Flink up to 1.20 stores only the hash of a UID.

    The golden checkpoints of Flink 2.2 contain both.
    """
    uids = {
        row["uid"]: row["operator_id"]
        for row in rows(CheckpointView.OPERATORS, GOLDEN / RELEASE / "two-sources")
        if row["source_kind"] is not None
    }
    assert len(uids) == 2
    for uid, operator_id in uids.items():
        selection = parse_options({"uid": uid}).selection
        for release in ("1.20", RELEASE):
            operators = rows(
                CheckpointView.OPERATORS, GOLDEN / release / "two-sources", selection=selection
            )
            assert [row["operator_id"] for row in operators] == [operator_id]


def test_sum_of_in_flight_bytes_is_limited_to_largest_bigint(tmp_path: Path) -> None:
    channels = tuple(
        ChannelHandle(0, (0, n), (0,), (1 << 63) - 1, ByteStreamHandle("channel", b"x"))
        for n in range(2)
    )
    operator = Operator(bytes(16), 1, 128, subtasks=(Subtask(0, input_channels=channels),))
    write_checkpoint(tmp_path / "chk-7", operator)
    for view in (CheckpointView.OPERATORS, CheckpointView.CHECKPOINTS):
        (row,) = rows(view, tmp_path)
        assert row["in_flight_bytes"] == (1 << 63) - 1


@pytest.mark.parametrize(
    ("allowed", "error"), [("false", ErrorKind.EXTERNAL.value), ("true", None)]
)
def test_scan_reads_external_state_only_if_allowed(
    tmp_path: Path, allowed: str, error: str | None
) -> None:
    outside = (tmp_path / "outside" / "state").as_uri()
    write_with_handle(lambda size: FileHandle(outside, size), tmp_path / "job" / "chk-7")
    candidates = discover([str(tmp_path / "job")], Files())
    options = parse_options({"allowExternalFiles": allowed})
    external = options.allow_external_files
    ((_, outcome),) = read_each(candidates, Files(), allow_external_files=external)
    assert (outcome.kind if isinstance(outcome, Failure) else None) == error


def test_checkpoint_with_implausible_number_has_row_with_error(tmp_path: Path) -> None:
    (tmp_path / ("chk-" + "9" * 40)).mkdir()
    (row,) = rows(CheckpointView.POSITIONS, tmp_path)
    assert (row["checkpoint_id"], row["error_kind"]) == (None, "not found")


class Buggy(Files):
    """Files that raise an unexpected error for one checkpoint."""

    def read_range(self, path: str, start: int, size: int) -> bytes:
        if "/chk-2/" in path:
            raise ZeroDivisionError("by zero")
        return super().read_range(path, start, size)


def test_internal_error_for_one_checkpoint_does_not_affect_others(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        write_source(tmp_path / f"chk-{number}", {0: splits("t", [1])})
    told = list(rows(CheckpointView.POSITIONS, tmp_path, files=Buggy()))
    assert [row["error_kind"] for row in told] == [None, "internal error", None]
    assert "chk-2: ZeroDivisionError: by zero" in told[1]["error"]
