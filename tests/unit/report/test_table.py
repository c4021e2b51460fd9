"""Check that tables fit a terminal of 80 columns without truncation."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

import pytest

from decoder import read_checkpoint
from migrate.inputs.flink.extract import extract
from migrate.inputs.spark_query import QueryStart
from migrate.model.cluster_snapshot import Committed, LogRange
from migrate.model.positions import Marker, PositionSet
from migrate.planning import PlannedPartition, Verdict
from migrate.planning.diff import diff
from migrate.planning.plan_file import read_plan
from migrate.planning.verify import (
    StartOutcome,
    Verification,
    VerifiedPartition,
    verify_query,
)
from migrate.report.diff import diff_table
from migrate.report.inspection_table import inspection_table
from migrate.report.plan import plan_table, restoration_table
from migrate.report.screen import Screen
from migrate.report.table import Column, Line, table_lines
from migrate.report.verification import verification_table
from migrate.targets.group.rollback_decision import Doubt, RestoredOffset
from tests.support.checkpoints import splits, write_source
from tests.support.command import migrate
from tests.support.diff_example import example
from tests.support.golden import golden

_TOPIC = "a-topic-with-a-rather-long-name." + "x" * 60
_OFFSET = 9_123_456_789_012


def _bare(shown: str) -> str:
    """Return the text without style codes."""
    return re.sub(r"\x1b\[[0-9;]*m", "", shown)


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _plan(out: TextIO, folder: Path) -> str:
    chk = write_source(folder / "chk-7", {0: splits(_TOPIC, [_OFFSET])})
    saved = migrate("to-spark", chk, "--plan-out", folder / "plan.json")
    assert saved.code == 0, saved.stderr
    return plan_table(read_plan(folder / "plan.json").partitions, out)


def _restoration(out: TextIO, folder: Path) -> str:
    log = LogRange(_OFFSET, _OFFSET)
    held = Committed(_OFFSET)
    return restoration_table([RestoredOffset(_TOPIC, 0, held, held, log, None)], out)


def _diff(out: TextIO, folder: Path) -> str:
    side = PositionSet("side", {(_TOPIC, 0): _OFFSET})
    return diff_table(diff(side, side, {}), out, every_partition=True)


def _verification(out: TextIO, folder: Path) -> str:
    side = PositionSet("side", {(_TOPIC, 0): _OFFSET})
    return verification_table(verify_query(side, QueryStart(side), None, new_at_earliest=True), out)


# -- tables on a terminal of 80 columns ----------------------------------------------------------


def _ordinary_plan(out: TextIO) -> str:
    found: list[tuple[Verdict, int | Marker]]
    found = [(Verdict.OK, 7_123_456), (Verdict.MARKER_RESOLVED, Marker.EARLIEST)]
    moved = [
        PlannedPartition(
            "orders",
            partition,
            verdict,
            7_123_456,
            position=position,
            operator_id="00" * 16,
            subtask=1,
            log_start=5_000_000,
            log_end=7_200_000,
            current=7_000_000 + partition,
        )
        for partition, (verdict, position) in enumerate(found)
    ]
    lost = PlannedPartition("payments", 11, Verdict.EXPIRED, None, position=41, lost=None)
    return plan_table([*moved, lost], out)


def _ordinary_restoration(out: TextIO) -> str:
    log = LogRange(5_000_000, 7_200_000)
    held = Committed(4_999_999)
    restored = [RestoredOffset("orders", 0, None, held, log, Doubt.EXPIRED)]
    return restoration_table(
        [*restored, RestoredOffset("payments", 1, held, None, None, None)], out
    )


def _ordinary_diff(out: TextIO) -> str:
    return diff_table(example(), out)


def _ordinary_topics(out: TextIO) -> str:
    left, right = (
        PositionSet("side", {("orders", n): 7_123_456 + by for n in range(300)}) for by in (0, 90)
    )
    return diff_table(diff(left, right, {}), out)


def _ordinary_verification(out: TextIO) -> str:
    found = [
        VerifiedPartition("orders", 0, 7_123_456, 7_123_456, StartOutcome.OK),
        VerifiedPartition(
            "payments", 11, Marker.EARLIEST, 7_123_500, StartOutcome.RECREATED, 1_234_567
        ),
    ]
    return verification_table(Verification("group:orders-next", tuple(found)), out)


@pytest.mark.parametrize(
    "table",
    [
        _ordinary_plan,
        _ordinary_restoration,
        _ordinary_diff,
        _ordinary_topics,
        _ordinary_verification,
    ],
)
def test_tables_with_ordinary_names_fit_80_columns(
    monkeypatch: pytest.MonkeyPatch, table: Callable[[TextIO], str]
) -> None:
    """Regression: A dry run with 13 columns needed about 130 characters."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    lines = _bare(table(_Terminal())).splitlines()
    sentences = ("left ", "right ", "not shown", "shown by", "─")
    rows = [line for line in lines if not line.startswith(sentences) and "partitions:" not in line]
    assert max(map(len, rows)) <= 80
    whole = set(table(io.StringIO()).replace("-", "- ").split())
    assert {cell for row in rows for cell in row.replace("-", "- ").split()} <= whole


_Pair = tuple[str, int]
_PAIRS: list[_Pair] = [("orders", 1), ("orders", 2), ("payments", 3)]


def _drawn(*columns: Column[_Pair], width: int | None = None, wide: bool = False) -> list[str]:
    screen = Screen(width, styled=False, colored=False)
    return [line.rstrip("\n") for line in table_lines(columns, _PAIRS, screen, wide=wide)]


_TOPICS: Column[_Pair] = Column("TOPIC", lambda pair: pair[0], own_line=Line.ABOVE)
_NUMBERS: Column[_Pair] = Column("LOG-END-OFFSET", lambda pair: pair[1], total=True)


def test_empty_column_of_table_is_omitted() -> None:
    empty: Column[_Pair] = Column("NOTE", lambda _: "")
    assert _drawn(_TOPICS, empty, _NUMBERS) == [
        "TOPIC     LOG-END-OFFSET",
        "orders                 1",
        "orders                 2",
        "payments               3",
        "total                  6",
    ]


def test_table_wraps_headings_first_on_narrow_terminal() -> None:
    assert _drawn(_TOPICS, _NUMBERS, width=18)[:3] == [
        "          LOG-END-",
        "TOPIC       OFFSET",
        "orders           1",
    ]


def test_table_still_too_wide_for_terminal_omits_columns_and_lists_their_names() -> None:
    also: Column[_Pair] = Column("DIFFERENCE", lambda pair: f"+{pair[1]}", drop_order=1)
    assert _drawn(_TOPICS, also, _NUMBERS, width=18)[2:] == [
        "orders           1",
        "orders           2",
        "payments         3",
        "total            6",
        "not shown: DIFFERENCE; --wide shows every column",
    ]
    wide = _drawn(_TOPICS, also, _NUMBERS, width=18, wide=True)
    assert wide[1] == "orders    +1                       1"
    assert not any("not shown" in line for line in wide)


def test_table_on_narrow_terminal_moves_long_cells_to_separate_lines() -> None:
    places: Column[_Pair] = Column("PARTITION", lambda pair: pair[1])
    said: Column[_Pair] = Column(
        "WHY NOT", lambda pair: "it is far too late" if pair[1] > 2 else "", own_line=Line.BELOW
    )
    assert _drawn(_TOPICS, places, _NUMBERS, said, width=22) == [
        "             LOG-END-",
        "  PARTITION    OFFSET",
        "orders",
        "          1         1",
        "          2         2",
        "payments",
        "          3         3",
        "      why not: it is",
        "      far too late",
        "      total         6",
    ]


@pytest.mark.parametrize("table", [_plan, _restoration, _diff, _verification])
def test_table_on_narrow_terminal_truncates_no_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: Callable[[TextIO, Path], str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    shown = table(_Terminal(), tmp_path)
    assert _TOPIC in shown
    assert str(_OFFSET) in shown
    assert "…" not in shown


def test_control_characters_of_rollback_file_are_escaped_in_table() -> None:
    """The topics of a checkpoint are valid for Kafka, but a rollback file can contain any text."""
    log, held = LogRange(0, 1), Committed(1)
    restored = [RestoredOffset("orders\x1b[2J", 0, held, held, log, None)]
    assert "\x1b" not in restoration_table(restored, io.StringIO())


def test_inspect_on_narrow_terminal_does_not_truncate_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    chk = write_source(tmp_path / "chk-7", {0: splits(_TOPIC, [_OFFSET])})
    shown = inspection_table(extract(read_checkpoint(chk)), _Terminal())
    assert _TOPIC in shown
    assert str(_OFFSET) in shown
    assert "…" not in shown


@pytest.mark.parametrize("columns", [40, 60, 80, 100, 200])
def test_inspect_on_narrow_terminal_truncates_no_field_of_operator(
    monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    """Regression: At 60 columns, names and states were missing, and IDs were cut to ``02f203…``."""
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    found = read_checkpoint(golden("2.2/two-sources"))
    shown = _bare(inspection_table(extract(found), _Terminal()))
    operators = shown.partition("\noperators\n")[2].partition("\n\n")[0]
    assert max(map(len, operators.splitlines())) <= columns
    assert "…" not in operators
    letters = "".join(operators.split())
    for operator in found.operators:
        assert operator.operator_id[:8] in operators
        for name in (operator.name or "", *operator.state_names):
            folded = iter(letters)  # wrapped over lines that also contain other columns
            assert all(letter in folded for letter in "".join(name.split()))
        if columns < 80:  # each field has its own lines
            assert "".join((operator.name or "").split()) in letters
            assert "".join(", ".join(operator.state_names).split()) in letters


def test_no_color_variable_disables_colors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """According to https://no-color.org, bold text is still allowed."""
    color = re.compile(r"\x1b\[[0-9;]*3[0-7]")
    monkeypatch.setenv("TERM", "xterm-256color")
    left, right = (PositionSet("side", {("t", 0): offset}) for offset in (1, 2))
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert color.search(diff_table(diff(left, right, {}), _Terminal()))
    monkeypatch.setenv("NO_COLOR", "1")
    assert not color.search(diff_table(diff(left, right, {}), _Terminal()))
    assert "\x1b" not in diff_table(diff(left, right, {}), io.StringIO())
