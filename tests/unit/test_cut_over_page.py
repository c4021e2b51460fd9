"""The status line of a cut-over's page."""

from __future__ import annotations

import re

import pytest

from migrate.extensions.cutover.downtime import downtime
from migrate.extensions.cutover.page import cut_over_page
from migrate.extensions.cutover.report import (
    KIND,
    CutOverRecord,
    FlinkReport,
    RunReport,
    State,
    StepReport,
    StepState,
    VerificationReport,
)

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


def _step(name: str, second: str, state: StepState = "done") -> StepReport:
    at = f"2026-01-02T03:04:{second}+00:00"
    return StepReport(name=name, state=state, told="x", ended_at=at, seconds=0.1, run=1)


def test_parts_account_for_the_whole_downtime() -> None:
    """Regression: 3 seconds between the ends of `stop` and `clean` were in no step."""
    record = _record("done", [("execute", "done")])
    steps = [
        _step("check", "01.000"),
        _step("stop", "07.500"),
        _step("clean", "10.750"),
        _step("plan", "11.000"),
        _step("first-batch", "31.250"),
        _step("verify-again", "40.000"),
    ]
    flink = record.flink.model_copy(update={"stop_asked_at": "2026-01-02T03:04:05.000+00:00"})
    record = record.model_copy(update={"steps": steps, "flink": flink})
    found = downtime(record)
    assert found is not None
    assert [(part.step, part.seconds) for part in found.parts] == [
        ("stop", 2.5),
        ("clean", 3.25),
        ("plan", 0.25),
        ("first-batch", 20.25),
    ]
    assert found.seconds == sum(part.seconds for part in found.parts) == 26.25
    page = cut_over_page(record.model_copy(update={"downtime": found}))
    assert "26.3 s</b><small>at most" in page or "26.2 s</b><small>at most" in page
    assert "2026-01-02 03:04:05 UTC" in page and "<td>clean</td>" in page


def test_downtime_is_unknown_before_the_first_batch_and_without_a_stop() -> None:
    record = _record("begun", [])
    first = record.model_copy(update={"steps": [_step("first-batch", "31.250")]})
    flink = record.flink.model_copy(update={"stop_asked_at": "2026-01-02T03:04:05.000+00:00"})
    failed = [_step("stop", "07.500"), _step("first-batch", "31.250", "failed")]
    stopped = record.model_copy(update={"flink": flink, "steps": failed})
    for unknown in (record, first, stopped):
        assert downtime(unknown) is None
        assert "<small>not known</small>" in cut_over_page(unknown)


def test_lag_at_the_start_and_after_it() -> None:
    before = VerificationReport(
        when="before", verified=True, partitions=1, unknown=0, lost=0, repeated=0, at=_AT, lag=120
    )
    checks = [before, before.model_copy(update={"when": "after", "lag": 0})]
    record = _record("done", []).model_copy(update={"verifications": checks})
    assert "120 &#8594; 0</b>" in cut_over_page(record)
    record = record.model_copy(update={"verifications": checks[:1]})
    assert "120 &#8594; ?</b>" in cut_over_page(record)


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
def test_page_heading_states_status_and_unfinished_run(
    state: State, runs: list[tuple[str, str | None]], css: str, text: str
) -> None:
    page = cut_over_page(_record(state, runs))
    (heading,) = re.findall(r'<p class="state">(.*)</p>', page)
    assert heading == f'<b class="{css}">{text}</b>'
