"""Tables that somebody decides by: a narrow terminal may wrap them, and must not cut a number."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

import pytest

from decoder import read_checkpoint
from migrate.comparing.diff import diff
from migrate.comparing.verify import QueryStart, verify_query
from migrate.flink.extract import extract
from migrate.group.restoration import Restored
from migrate.planning.plan_file import read_plan
from migrate.positions import PositionSet
from migrate.report.diff import diff_table
from migrate.report.inspection_table import inspection_table
from migrate.report.plan import plan_table, restoration_table
from migrate.report.verification import verification_table
from migrate.snapshot import Committed, LogRange
from tests.support.checkpoints import splits, write_source
from tests.support.command import migrate
from tests.support.golden import golden

_TOPIC = "a-topic-with-a-rather-long-name." + "x" * 60
_OFFSET = 9_123_456_789_012


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
    return restoration_table([Restored(_TOPIC, 0, held, held, log, None)], out)


def _diff(out: TextIO, folder: Path) -> str:
    side = PositionSet("side", {(_TOPIC, 0): _OFFSET})
    return diff_table(diff(side, side, {}), out, every_partition=True)


def _verification(out: TextIO, folder: Path) -> str:
    side = PositionSet("side", {(_TOPIC, 0): _OFFSET})
    return verification_table(verify_query(side, QueryStart(side), None, new_at_earliest=True), out)


@pytest.mark.parametrize("table", [_plan, _restoration, _diff, _verification])
def test_a_narrow_terminal_cuts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: Callable[[TextIO, Path], str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    shown = table(_Terminal(), tmp_path)
    assert _TOPIC in shown
    assert str(_OFFSET) in shown
    assert "…" not in shown


def test_a_topic_of_a_rollback_file_moves_no_cursor() -> None:
    """A checkpoint's topics are Kafka's; a rollback file holds whatever somebody wrote there."""
    log, held = LogRange(0, 1), Committed(1)
    restored = [Restored("orders\x1b[2J", 0, held, held, log, None)]
    assert "\x1b" not in restoration_table(restored, io.StringIO())


def test_a_narrow_terminal_cuts_no_number_of_an_inspection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    chk = write_source(tmp_path / "chk-7", {0: splits(_TOPIC, [_OFFSET])})
    shown = inspection_table(extract(read_checkpoint(chk)), _Terminal())
    assert _TOPIC in shown
    assert str(_OFFSET) in shown
    assert "…" not in shown


@pytest.mark.parametrize("columns", [40, 60, 80, 100, 200])
def test_a_narrow_terminal_loses_nothing_of_an_operator(
    monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    """Seen: at 60 columns its name and its states were gone, and ids cut to ``02f203…``."""
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    found = read_checkpoint(golden("2.2/two-sources"))
    shown = re.sub(r"\x1b\[[0-9;]*m", "", inspection_table(extract(found), _Terminal()))
    operators = shown.partition("\noperators\n")[2].partition("\n\n")[0]
    assert max(map(len, operators.splitlines())) <= columns
    assert "…" not in operators
    letters = "".join(operators.split())
    for operator in found.operators:
        assert operator.operator_id[:8] in operators
        for name in (operator.name or "", *operator.state_names):
            folded = iter(letters)  # over lines, between which other columns stand
            assert all(letter in folded for letter in "".join(name.split()))
        if columns < 80:  # where each has lines of its own
            assert "".join((operator.name or "").split()) in letters
            assert "".join(", ".join(operator.state_names).split()) in letters


def test_no_color(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """https://no-color.org: bold and the like may stay."""
    color = re.compile(r"\x1b\[[0-9;]*3[0-7]")
    monkeypatch.setenv("TERM", "xterm-256color")
    left, right = (PositionSet("side", {("t", 0): offset}) for offset in (1, 2))
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert color.search(diff_table(diff(left, right, {}), _Terminal()))
    monkeypatch.setenv("NO_COLOR", "1")
    assert not color.search(diff_table(diff(left, right, {}), _Terminal()))
    assert "\x1b" not in diff_table(diff(left, right, {}), io.StringIO())
