"""The page of a cut-over, and the prediction of its downtime."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from migrate.extensions.cutover.downtime import downtime, predict, with_lag
from migrate.extensions.cutover.lag_chart import lag_chart
from migrate.extensions.cutover.page import cut_over_page
from migrate.extensions.cutover.report import (
    KIND,
    CutOverRecord,
    DowntimePart,
    DowntimeReport,
    FlinkReport,
    LagReport,
    RunReport,
    State,
    StepReport,
    StepState,
    VerificationReport,
)
from migrate.inputs.flink.rest_api import LastDurations

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
        assert "<small>unknown</small>" in cut_over_page(unknown)


def test_lag_at_the_start_and_after_it() -> None:
    before = VerificationReport(
        when="before", verified=True, partitions=1, unknown=0, lost=0, repeated=0, at=_AT, lag=120
    )
    checks = [before, before.model_copy(update={"when": "after", "lag": 0})]
    record = _record("done", []).model_copy(update={"verifications": checks})
    assert "120 &#8594; 0</b>" in cut_over_page(record)
    record = record.model_copy(update={"verifications": checks[:1]})
    assert "120 &#8594; ?</b>" in cut_over_page(record)


def _past(job: str, day: int, *seconds: float) -> CutOverRecord:
    """A record of a cut-over of a job, with these seconds of its stop and its first batch."""
    parts = [
        DowntimePart(step=step, seconds=took)
        for step, took in zip(("stop", "first-batch"), seconds, strict=True)
    ]
    began, ended = (f"2026-01-0{day}T03:0{minute}:00+00:00" for minute in (1, 2))
    record = _record("done", [])
    return record.model_copy(
        update={
            "flink": record.flink.model_copy(update={"job_name": job}),
            "downtime": DowntimeReport(
                began_at=began, ended_at=ended, seconds=sum(seconds), parts=parts
            ),
        }
    )


@pytest.mark.parametrize(
    ("durations", "earlier", "rate", "expected"),
    [
        (
            LastDurations(),
            {},
            None,
            (
                "unknown (stop: unknown, Flink has no savepoint or checkpoint of the job; later "
                "steps: unknown, no record shows them)",
                "unknown (rate: unknown, x)",
            ),
        ),
        (
            LastDurations(checkpoint=0.02),
            {"begun": _record("begun", [])},
            4.7,
            (
                "unknown (stop: under 0.1 s, as the job's last checkpoint; later steps: unknown, "
                "no record shows them)",
                "unknown (rate: 4.7 records/s, x)",
            ),
        ),
        (
            LastDurations(savepoint=2.0, checkpoint=0.02),
            {"a": _past("payments", 2, 1.5, 8.5), "b": _past("payments", 3, 2.5, 30)},
            10,
            (
                "32.0 s (stop: 2.0 s, as the job's last savepoint; later steps: 30.0 s, as in b)",
                "320 records (rate: 10.0 records/s, x)",
            ),
        ),
        (
            LastDurations(savepoint=2.0),
            {"a": _past("orders", 2, 1.5, 8.5), "b": _past("payments", 3, 2.5, 30)},
            0,
            (
                "10.0 s (stop: 1.5 s, as in a; later steps: 8.5 s, as in a)",
                "0 records (rate: 0.0 records/s, x)",
            ),
        ),
    ],
    ids=["nothing known", "checkpoint", "savepoint and different job", "same job"],
)
def test_predicted_downtime_states_its_basis(
    durations: LastDurations,
    earlier: Mapping[str, CutOverRecord],
    rate: float | None,
    expected: tuple[str, str],
) -> None:
    lines = predict("orders", durations, earlier, rate, "x").lines()
    first, second = expected
    assert lines == (
        f"predicted downtime: {first}",
        f"predicted lag at the first batch: {second}",
    )


def _with_lags(*lags: tuple[str, int]) -> CutOverRecord:
    samples = [LagReport(at=f"2026-01-02T03:04:{second}+00:00", lag=lag) for second, lag in lags]
    return _record("done", []).model_copy(update={"lags": samples})


def test_chart_shows_lags_in_proportion_to_time_and_highest_lag() -> None:
    chart = lag_chart(_with_lags(("00.000", 0), ("15.000", 100), ("20.000", 25)))
    assert chart is not None
    assert chart.points == "0.0,120.0 450.0,0.0 600.0,90.0"
    assert (chart.first.lag, chart.highest.lag, chart.last.lag) == (0, 100, 25)
    assert chart.first_batch is None


def test_page_has_no_chart_without_two_lags_at_different_times() -> None:
    for record in (_with_lags(), _with_lags(("01.000", 5)), _with_lags(*[("01.000", 5)] * 2)):
        assert lag_chart(record) is None
        assert "<svg" not in cut_over_page(record)
    page = cut_over_page(_with_lags(("01.000", 0), ("02.000", 0)))
    assert 'points="0.0,120.0 600.0,120.0"' in page


def test_many_lags_are_thinned_out_and_end_with_the_last_one() -> None:
    record = _with_lags()
    for number in range(2000):
        sample = LagReport(at=_AT, lag=number)
        record = record.model_copy(update={"lags": with_lag(record, sample)})
        assert record.lags[0].lag == 0 and record.lags[-1] == sample
    assert 100 < len(record.lags) <= 240


@pytest.mark.parametrize(
    ("state", "runs", "css", "text"),
    [
        ("begun", [], "", "not started"),
        (
            "begun",
            [("execute", None)],
            "",
            "not finished; run 1 (execute) is still running, or was killed",
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
