"""The page of a cut-over, and the prediction of its downtime."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from migrate.extensions.cutover.downtime import downtime, predict, result_lines, with_lag
from migrate.extensions.cutover.lag_chart import lag_chart
from migrate.extensions.cutover.page import cut_over_page
from migrate.extensions.cutover.report import (
    KIND,
    CutOverRecord,
    DowntimePart,
    DowntimeReport,
    FlinkReport,
    LagReport,
    QuestionReport,
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


def test_whole_downtime_is_sum_of_its_parts() -> None:
    """Regression: The 3 seconds between the ends of `stop` and `clean` belonged to no step."""
    record = _record("done", [])
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
    assert "26.2 s</b><small>at most</small>" in page
    assert "2026-01-02 03:04:05 UTC" in page and "<td>clean</td>" in page
    assert "<em>Earlier attempts</em>" not in page and "<em>pause</em>" not in page
    assert '<tfoot><tr><td>total</td><td class="number">26.2 s</td></tr></tfoot>' in page


def _run(number: int, began: str, ended: str | None, *question: str) -> RunReport:
    """Return a run with the seconds of its start, its end, and its confirmation question."""
    (run,) = _record("begun", [("execute", None)]).runs
    began, *others = (
        f"2026-01-02T03:04:{second}+00:00" for second in (began, *question, ended) if second
    )
    asked, answered = others[:2] if question else ("", "")
    return run.model_copy(
        update={
            "number": number,
            "began_at": began,
            "ended_at": others[-1] if ended else None,
            "question": QuestionReport(asked_at=asked, answered_at=answered) if question else None,
        }
    )


def test_pauses_and_failed_attempts_are_separate_parts_of_downtime() -> None:
    """Regression: A user's pause between two runs counted as part of the ``verify`` step."""
    steps = [
        _step("stop", "07.000"),
        _step("plan", "08.000"),
        _step("verify", "34.000").model_copy(update={"run": 4}),
        _step("first-batch", "45.000").model_copy(update={"run": 4}),
    ]
    runs = [
        _run(1, "00.000", "10.000", "01.000", "04.000"),  # stop, plan, and 2 s of a failed step
        _run(2, "15.000", None),  # killed at an unknown time
        _run(3, "25.000", "28.000"),  # 3 s of a failed step
        _run(4, "33.000", "50.000", "36.000", "40.000"),
    ]
    flink = {"stop_asked_at": "2026-01-02T03:04:05.000+00:00", "job_name": "sales"}
    begun = _record("begun", [])
    record = begun.model_copy(
        update={"steps": steps, "runs": runs, "flink": begun.flink.model_copy(update=flink)}
    )
    found = downtime(record)
    assert found is not None
    assert [(part.step, part.seconds) for part in found.parts] == [
        ("stop", 2.0),
        ("plan", 1.0),
        ("earlier attempts", 5.0),
        ("pause", 20.0),
        ("verify", 1.0),
        ("pause", 4.0),
        ("first-batch", 7.0),
    ]
    assert found.seconds == sum(part.seconds for part in found.parts) == 40.0
    record = record.model_copy(update={"downtime": found})
    page = cut_over_page(record)
    assert "40.0 s</b><small>at most, with 24.0 s of pauses</small>" in page
    assert "<em>Earlier attempts</em> is" in page and "In a <em>pause</em>, no" in page
    summary = (
        "downtime: at most 40.0 s (stop 2.0 s, plan 1.0 s, verify 1.0 s, first-batch 7.0 s, "
        "earlier attempts 5.0 s, pause 24.0 s)"
    )
    assert list(result_lines(record)) == [summary]
    # The prediction for a later cut-over omits the pauses of this cut-over.
    prediction = predict("sales", LastDurations(), {"a": record}, None, "x")
    assert (prediction.stop, prediction.rest) == (2.0, 9.0)


def test_downtime_is_unknown_before_the_first_batch_and_without_a_stop() -> None:
    record = _record("begun", [])
    first = record.model_copy(update={"steps": [_step("first-batch", "31.250")]})
    flink = record.flink.model_copy(update={"stop_asked_at": "2026-01-02T03:04:05.000+00:00"})
    failed = [_step("stop", "07.500"), _step("first-batch", "31.250", "failed")]
    stopped = record.model_copy(update={"flink": flink, "steps": failed})
    for unknown in (record, first, stopped):
        assert downtime(unknown) is None
        assert "<small>unknown</small>" in cut_over_page(unknown)


def test_first_and_last_lag_are_shown_on_page_and_terminal() -> None:
    before = VerificationReport(
        when="before", verified=True, partitions=1, unknown=0, lost=0, repeated=0, at=_AT, lag=120
    )
    checks = [before, before.model_copy(update={"when": "after", "lag": 0})]
    record = _record("done", []).model_copy(update={"verifications": checks})
    before_start, at_check = "before the start", "at the last check"
    for number, after, lag in ((2, "0", "0 records"), (1, "?", "unknown")):
        record = record.model_copy(update={"verifications": checks[:number]})
        page = cut_over_page(record)
        assert f"lag<b>120</b><small>{before_start}</small>" in page
        assert f"lag<b>{after}</b><small>{at_check}</small>" in page
        assert list(result_lines(record)) == [
            "done: orders has moved to spark:q",
            "downtime: unknown, because this cut-over has not stopped the job",
            f"lag: 120 records before the target's reader started, {lag} at the last check",
        ]
    assert list(result_lines(record.model_copy(update={"state": "begun"}))) == []


def _past(job: str, day: int, *seconds: float) -> CutOverRecord:
    """Return the record of a finished cut-over with the seconds of its stop and first batch."""
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
                "steps: unknown, because no earlier cut-over shows them)",
                "unknown (rate: unknown, x)",
            ),
        ),
        (
            LastDurations(checkpoint=0.02),
            {"begun": _record("begun", [])},
            4.7,
            (
                "unknown (stop: under 0.1 s, the duration of the job's last checkpoint; later "
                "steps: unknown, "
                "because no earlier cut-over shows them)",
                "unknown (rate: 4.7 records/s, x)",
            ),
        ),
        (
            LastDurations(savepoint=2.0, checkpoint=0.02),
            {"a": _past("payments", 2, 1.5, 8.5), "b": _past("payments", 3, 2.5, 30)},
            10,
            (
                "32.0 s (stop: 2.0 s, the duration of the job's last savepoint; later steps: "
                "30.0 s, as in b)",
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
def test_prediction_of_downtime_explains_source_of_each_number(
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


def test_lag_chart_is_scaled_to_total_time_and_highest_lag() -> None:
    chart = lag_chart(_with_lags(("00.000", 0), ("15.000", 100), ("20.000", 25)))
    assert chart is not None
    assert chart.points == "0.0,120.0 450.0,0.0 600.0,90.0"
    assert (chart.first.lag, chart.highest.lag, chart.last.lag) == (0, 100, 25)
    assert chart.first_batch is None


def test_cut_over_page_has_chart_only_if_lags_were_measured_at_different_times() -> None:
    for record in (_with_lags(), _with_lags(("01.000", 5)), _with_lags(*[("01.000", 5)] * 2)):
        assert lag_chart(record) is None
        assert "<svg" not in cut_over_page(record)
    page = cut_over_page(_with_lags(("01.000", 0), ("02.000", 0)))
    assert 'points="0.0,120.0 600.0,120.0"' in page


def test_long_list_of_lags_is_thinned_out_and_keeps_first_and_last_lag() -> None:
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
def test_heading_of_cut_over_page_shows_status_and_problem_of_last_run(
    state: State, runs: list[tuple[str, str | None]], css: str, text: str
) -> None:
    page = cut_over_page(_record(state, runs))
    (heading,) = re.findall(r'<p class="state">(.*)</p>', page)
    assert heading == f'<b class="{css}">{text}</b>'
