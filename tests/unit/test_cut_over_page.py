"""The line of a cut-over's page that says how far the cut-over is."""

from __future__ import annotations

import re

import pytest

from migrate.report.cut_over import KIND, CutOverRecord, FlinkReport, RunReport, State
from migrate.report.cut_over_page import cut_over_page

_AT = "2026-01-02T03:04:05.678+00:00"


def _record(state: State, runs: list[tuple[str, str | None]]) -> CutOverRecord:
    unknown: dict[str, None] = dict.fromkeys(
        ("host", "version", "job_id", "job_name", "savepoints", "savepoint", "savepoint_sha256")
    )
    return CutOverRecord(
        kind=KIND,
        version=2,
        id="0" * 16,
        name="orders",
        state=state,
        spec_sha256="0" * 64,
        brokers="h:1",
        target="spark:q",
        sink=None,
        moved_with=None,
        written=None,
        query_id=None,
        flink=FlinkReport(**unknown, finished=False, ended_ms=None),
        plan=None,
        primed=None,
        start=None,
        verifications=[],
        partitions=[],
        steps=[],
        runs=[
            RunReport(
                number=number,
                asked=asked,
                user="u",
                host="h",
                migrate="0",
                python="3",
                began_at=_AT,
                ended_at=_AT if end is not None else None,
                end=end,
            )
            for number, (asked, end) in enumerate(runs, 1)
        ],
    )


@pytest.mark.parametrize(
    ("state", "runs", "css", "text"),
    [
        ("begun", [], "", "not begun"),
        (
            "begun",
            [("execute", None)],
            "",
            "not finished; run 1 (execute) has not ended, or was killed",
        ),
        ("begun", [("execute", None), ("until plan", "done")], "", "not finished: done until plan"),
        (
            "begun",
            [("execute", "refused at stop")],
            "bad",
            "not finished; run 1 (execute): refused at stop",
        ),
        ("done", [("execute", "failed at start: x"), ("execute", "done")], "good", "done"),
        ("done", [("until verify-again", "done")], "good", "done"),
        (
            "done",
            [("execute", "done"), ("back", "refused at back")],
            "good",
            "done; run 2 (back): refused at back",
        ),
        (
            "done",
            [("execute", "done"), ("execute", "refused at verify-again")],
            "bad",
            "done; run 2 (execute): refused at verify-again",
        ),
        ("went back", [("execute", "refused at stop"), ("back", "done")], "", "rolled back"),
    ],
)
def test_the_heading_is_one_true_line(
    state: State, runs: list[tuple[str, str | None]], css: str, text: str
) -> None:
    page = cut_over_page(_record(state, runs))
    (heading,) = re.findall(r'<p class="state">(.*)</p>', page)
    assert heading == f'<b class="{css}">{text}</b>'
