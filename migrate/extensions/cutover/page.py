"""Render the record of a cut-over as an HTML page without scripts (``pages/cut_over.html``)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone

from migrate.extensions.cutover.downtime import (
    EARLIER,
    PAUSE,
    lag_before_and_after,
    seconds_by_part,
)
from migrate.extensions.cutover.lag_chart import HEIGHT, WIDTH, lag_chart
from migrate.extensions.cutover.report import CutOverRecord, VerificationReport
from migrate.model.wording import counted
from migrate.report.page import render_page

_STATES = {"begun": "not finished", "done": "done", "went back": "rolled back"}


def cut_over_page(record: CutOverRecord) -> str:
    checks = {check.when: check for check in record.verifications}
    checked = checks.get("after") or checks.get("before")
    lost, repeated, note = _totals(checked)
    job = record.flink.job_name or record.name
    by_part = seconds_by_part(record.downtime) if record.downtime is not None else {}
    return render_page(
        "cut_over",
        "migrate.extensions.cutover",
        title=f"Cut-over of {job}",
        job=job,
        record=record,
        plan=record.plan,
        state=_state(record),
        css=_css(record),
        checked=checked,
        lost=lost,
        repeated=repeated,
        note=note,
        lags=list(
            zip(
                ("before the start", "at the last check"), lag_before_and_after(record), strict=True
            )
        ),
        paused=by_part.get(PAUSE),
        tried=by_part.get(EARLIER),
        chart=lag_chart(record),
        chart_size=(WIDTH, HEIGHT),
        facts=list(_facts(record)),
        time=_time,
    )


def _state(record: CutOverRecord) -> str:
    """Return the state of the cut-over, and how the last run ended if this adds information."""
    if not record.runs:
        return "not started"
    state, last = _STATES[record.state], record.runs[-1]
    if last.end is None:
        return f"{state}; run {last.number} ({last.asked}) is still running, or was killed"
    if last.end != "done":
        return f"{state}; run {last.number} ({last.asked}): {last.end}"
    return f"{state}: done {last.asked}" if record.state == "begun" else state


def _css(record: CutOverRecord) -> str:
    """Return the state's CSS class: ``bad`` after a failed run, ``good`` for a clean cut-over."""
    last = record.runs[-1] if record.runs else None
    failed = last is not None and last.end not in (None, "done")
    is_clean = record.state == "done" and record.lost == record.repeated == 0
    # A refused rollback changes nothing, so a completed cut-over is still complete.
    if is_clean and (not failed or (last is not None and last.asked == "back")):
        return "good"
    return "bad" if failed else ""


def _totals(checked: VerificationReport | None) -> tuple[int | str, int | str, str]:
    """Return the numbers of lost and repeated records, with a note about them.

    If the outcome of some partitions is unknown, each number is only a minimum, and a ``?`` is
    returned instead of 0.
    """
    if checked is None:
        return "?", "?", "not verified yet"
    if checked.unknown:
        note = f"{counted(checked.unknown, 'partition')} unknown"
        return checked.lost or "?", checked.repeated or "?", note
    note = "" if checked.when == "after" else "before the start"
    return checked.lost, checked.repeated, note


def _facts(record: CutOverRecord) -> Iterator[tuple[str, str | None]]:
    flink, plan = record.flink, record.plan
    yield "Flink", f"{flink.version or ''} at {flink.host}" if flink.host else None
    yield "job", f"{flink.job_name} ({flink.job_id})" if flink.job_id else None
    yield "savepoint", flink.savepoint
    yield "sha256 of its _metadata", flink.savepoint_sha256
    yield "brokers", record.brokers
    yield "Kafka cluster", plan.cluster_id if plan else None
    yield "target", record.target
    yield "sink", record.sink
    if plan is not None:
        streams = (f"{number}: {', '.join(topics)}" for number, topics in plan.streams.items())
        yield "plan made", _time(plan.made_at)
        yield "sha256 of the plan", plan.sha256
        yield "streams of the query", "; ".join(streams)
    yield "batches of the priming", f"0 to {record.primed}" if record.primed is not None else None
    yield "sha256 of the spec", record.spec_sha256
    yield "query started", _time(record.start.at) if record.start else None


def _time(text: str) -> str:
    """Return a time from the record in UTC, rounded down to the second."""
    time = datetime.fromisoformat(text).astimezone(timezone.utc)
    return f"{time.replace(tzinfo=None).isoformat(' ', 'seconds')} UTC"
