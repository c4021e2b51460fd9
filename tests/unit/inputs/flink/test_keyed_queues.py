"""Report records that wait in keyed state for the response to an asynchronous lookup."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from migrate.inputs.flink.extract import read
from migrate.model.finding import Code, Finding, Severity
from tests.support.command import migrate
from tests.support.keyed_checkpoint import OPERATOR, write_totals

_DELTA_JOIN = Path(__file__).parents[2] / "field" / "14-delta-join" / "savepoint"


def _waiting(chk: Path) -> list[Finding]:
    return [
        finding for finding in read(str(chk)).findings if finding.code is Code.IN_FLIGHT_RECORDS
    ]


def test_records_that_wait_in_delta_join_are_reported_as_in_flight() -> None:
    """The savepoint is from Flink's own tests. Its README describes the job."""
    (finding,) = _waiting(_DELTA_JOIN)
    assert finding.severity is Severity.BLOCKER
    assert finding.operator_name == "DeltaJoin[87]"
    assert "waiting for responses (an async join); a move loses them" in finding.message
    told = json.loads(migrate("inspect", _DELTA_JOIN, "--format", "json").stdout)["findings"]
    own = [one["code"] for one in told if one["operator_id"] == finding.operator_id]
    assert own == ["in-flight-records"]


@pytest.mark.parametrize(
    "name", ["_keyed_async_wait_operator_state_", "_delta_join_operator_async_wait_state_"]
)
@pytest.mark.parametrize("count", [0, 3])
def test_async_queue_blocks_move_if_not_empty(tmp_path: Path, name: str, count: int) -> None:
    chk = write_totals(tmp_path / "chk-7", count, name, version=6)
    found = _waiting(chk)
    if count:
        assert found[0].operator_id == OPERATOR
        assert found[0].message.startswith(
            "the operator's keyed state contains 3 records waiting for"
        )
    assert len(found) == bool(count)


def test_keyed_state_with_different_name_is_not_an_async_queue(tmp_path: Path) -> None:
    assert _waiting(write_totals(tmp_path / "chk-7", 3, version=6)) == []


def test_finding_reports_that_unreadable_async_queue_may_contain_records(tmp_path: Path) -> None:
    chk = write_totals(tmp_path / "chk-7", 3, "_keyed_async_wait_operator_state_", version=6)
    (chk / "totals").unlink()
    (finding,) = _waiting(shutil.copytree(chk, tmp_path / "copy" / "chk-7"))
    assert "may contain records waiting for responses" in finding.message
