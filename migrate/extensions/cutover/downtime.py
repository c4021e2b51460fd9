"""Compute the predicted and the measured downtime of a cut-over, without I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from migrate.extensions.cutover.report import CutOverRecord, DowntimePart, DowntimeReport, LagReport
from migrate.inputs.flink.rest_api import LastDurations
from migrate.model.wording import counted

STOP_STEP, LAST_STEP = "stop", "first-batch"
# The names of two parts of the downtime: the time spent on earlier attempts at a step, and the time
# when no run was active or a run was waiting for the user's answer.
EARLIER, PAUSE = "earlier attempts", "pause"
# The maximum number of lag samples in a record. The chart on the record's page needs no more.
_MOST_LAGS = 240


def downtime(record: CutOverRecord) -> DowntimeReport | None:
    """Return the downtime; None before the first batch, or if the cut-over stopped no job."""
    ends = sorted(
        (datetime.fromisoformat(step.ended_at), step.name, step.run)
        for step in record.steps
        if step.state == "done"
    )
    last = next((end for end, name, _ in ends if name == LAST_STEP), None)
    if record.flink.stop_asked_at is None or last is None:
        return None
    began = datetime.fromisoformat(record.flink.stop_asked_at)
    starts = {run.number: datetime.fromisoformat(run.began_at) for run in record.runs}
    pauses = list(_pauses(record))
    parts, before = list[DowntimePart](), began
    for end, name, run in ends:
        if not began < end <= last:
            continue
        # The run that completed the step may have started after earlier attempts and pauses.
        resumed = min(max(starts.get(run, before), before), end)
        paused = _overlap(pauses, before, end)
        tried = resumed - before - _overlap(pauses, before, resumed)
        for part, duration in ((EARLIER, tried), (PAUSE, paused)):
            if duration:
                parts.append(_part(part, duration))
        parts.append(_part(name, end - before - tried - paused))
        before = end
    return DowntimeReport(
        began_at=began.isoformat(timespec="milliseconds"),
        ended_at=last.isoformat(timespec="milliseconds"),
        seconds=round(max((last - began).total_seconds(), 0), 3),
        parts=parts,
    )


def _part(name: str, duration: timedelta) -> DowntimePart:
    return DowntimePart(step=name, seconds=round(duration.total_seconds(), 3))


def _pauses(record: CutOverRecord) -> Iterator[tuple[datetime, datetime]]:
    """Yield the periods between runs, and the periods in which a run waited for an answer.

    The periods do not overlap.
    """
    for run, later in pairwise(record.runs):
        ends = [run.ended_at] if run.ended_at is not None else [run.began_at]
        if run.ended_at is None:  # the run was killed
            ends += [step.ended_at for step in record.steps if step.run == run.number]
        yield max(map(datetime.fromisoformat, ends)), datetime.fromisoformat(later.began_at)
    for run in record.runs:
        if run.question is not None:
            yield (
                datetime.fromisoformat(run.question.asked_at),
                datetime.fromisoformat(run.question.answered_at),
            )


def _overlap(
    times: Sequence[tuple[datetime, datetime]], since: datetime, until: datetime
) -> timedelta:
    """Return how much of the total time of these periods is between ``since`` and ``until``."""
    durations = (min(until, end) - max(since, start) for start, end in times)
    return sum((duration for duration in durations if duration > timedelta()), start=timedelta())


def seconds_by_part(report: DowntimeReport) -> Mapping[str, float]:
    """Return the seconds per step, followed by the totals for earlier attempts and for pauses."""
    others = dict.fromkeys((EARLIER, PAUSE), 0.0)
    steps = {part.step: part.seconds for part in report.parts if part.step not in others}
    for part in report.parts:
        if part.step in others:
            others[part.step] += part.seconds
    return steps | {name: seconds for name, seconds in others.items() if seconds}


def lag_before_and_after(record: CutOverRecord) -> tuple[int | None, int | None]:
    """Return the lag before the target's reader started, and the lag at the last check.

    An unknown lag is None.
    """
    checks = {check.when: check.lag for check in record.verifications}
    return checks.get("before"), checks.get("after")


def result_lines(record: CutOverRecord) -> Iterator[str]:
    """Yield one line each for the end, the downtime, and the lag of a cut-over, if recorded."""
    is_done = record.state == "done"
    if is_done:
        yield f"done: {record.flink.job_name or record.name} has moved to {record.target}"
    if record.downtime is not None:
        by_part = seconds_by_part(record.downtime)
        parts = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in by_part.items())
        yield f"downtime: at most {record.downtime.seconds:.1f} s ({parts})"
    elif is_done:
        yield "downtime: unknown, because this cut-over has not stopped the job"
    before, after = lag_before_and_after(record)
    if is_done and (before, after) != (None, None):
        yield (
            f"lag: {_records(before)} before the target's reader started, {_records(after)} at the "
            "last check"
        )


def _records(lag: int | None) -> str:
    return "unknown" if lag is None else counted(lag, "record")


@dataclass(frozen=True, slots=True)
class DowntimePrediction:
    """The predicted downtime of a cut-over that has not stopped its job yet.

    Attributes:
        stop: the duration of the stop in seconds, or None if unknown.
        stop_basis: the source of ``stop``, or the reason that it is unknown.
        rest: the seconds from the end of the stop to the first batch, or None if unknown.
        rest_basis: the source of ``rest``, or the reason that it is unknown.
        rate: the number of records per second that the source receives, or None if unknown.
        rate_basis: the source of ``rate``, or the reason that it is unknown.
    """

    stop: float | None
    stop_basis: str
    rest: float | None
    rest_basis: str
    rate: float | None
    rate_basis: str

    @property
    def seconds(self) -> float | None:
        """Return the downtime in seconds, or None if any part of it is unknown."""
        return None if self.stop is None or self.rest is None else self.stop + self.rest

    @property
    def lag(self) -> int | None:
        """Return the number of records that will wait for the first batch, or None if unknown."""
        seconds = self.seconds
        return None if seconds is None or self.rate is None else round(seconds * self.rate)

    def lines(self) -> tuple[str, str]:
        """Return a line with the downtime, and a line with the lag at the first batch.

        Each line includes the source of its values.
        """
        total = "unknown" if self.seconds is None else f"{self.seconds:.1f} s"
        return (
            f"predicted downtime: {total} (stop: {_seconds(self.stop, self.stop_basis)}; later "
            f"steps: {_seconds(self.rest, self.rest_basis)})",
            f"predicted lag at the first batch: {_records(self.lag)} (rate: "
            f"{'unknown' if self.rate is None else f'{self.rate:.1f} records/s'}, "
            f"{self.rate_basis})",
        )


def predict(
    job_name: str,
    durations: LastDurations,
    earlier: Mapping[str, CutOverRecord],
    rate: float | None,
    rate_basis: str,
) -> DowntimePrediction:
    """Predict the downtime of a cut-over.

    Args:
        job_name: the name of the job to stop.
        durations: the durations of the job's newest savepoint and checkpoint.
        earlier: the records of cut-overs, keyed by file path. The newest record of this job that
            contains a downtime is used. If no such record exists, the newest record of a different
            job is used for the steps after the stop, but not for the stop itself.
        rate: the number of records per second that the source receives, or None if unknown.
        rate_basis: the source of ``rate``, or the reason that it is unknown.
    """
    known = [
        (record.flink.job_name == job_name, record.downtime.ended_at, path, record.downtime)
        for path, record in earlier.items()
        if record.downtime is not None
    ]
    stop, rest = durations.savepoint, None
    stop_basis, rest_basis = (
        "the duration of the job's last savepoint",
        "because no earlier cut-over shows them",
    )
    if stop is None:
        stop, stop_basis = durations.checkpoint, "the duration of the job's last checkpoint"
    if stop is None:
        stop_basis = "Flink has no savepoint or checkpoint of the job"
    if known:
        is_same_job, _, path, past = max(known, key=lambda item: item[:3])
        by_part = seconds_by_part(past)
        part = by_part.get(STOP_STEP)
        rest = sum(
            seconds for name, seconds in by_part.items() if name not in (STOP_STEP, EARLIER, PAUSE)
        )
        rest_basis = f"as in {path}"
        if is_same_job and part is not None:
            stop, stop_basis = part, f"as in {path}"
    return DowntimePrediction(stop, stop_basis, rest, rest_basis, rate, rate_basis)


def _seconds(seconds: float | None, basis: str) -> str:
    if seconds is None:
        return f"unknown, {basis}"
    return f"{f'{seconds:.1f}' if seconds >= 0.1 else 'under 0.1'} s, {basis}"


def with_lag(record: CutOverRecord, *samples: LagReport) -> list[LagReport]:
    """Return the record's lags and the new samples; drop samples if there are too many."""
    lags = [*record.lags, *samples]
    while len(lags) > _MOST_LAGS:
        lags = [*lags[:-1:2], lags[-1]]
    return lags
