"""The predicted and measured downtime of a cut-over, and its lags; no I/O here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from migrate.extensions.cutover.report import CutOverRecord, DowntimePart, DowntimeReport, LagReport
from migrate.inputs.flink.rest_api import LastDurations
from migrate.model.wording import counted

STOP_STEP, LAST_STEP = "stop", "first-batch"
# The maximum number of lags in a record; the chart on its page needs no more.
_MOST_LAGS = 240


def downtime(record: CutOverRecord) -> DowntimeReport | None:
    """Return the downtime; None before the first batch, or if the record has stopped no job."""
    ends = sorted(
        (datetime.fromisoformat(step.ended_at), step.name)
        for step in record.steps
        if step.state == "done"
    )
    last = next((end for end, name in ends if name == LAST_STEP), None)
    if record.flink.stop_asked_at is None or last is None:
        return None
    began = datetime.fromisoformat(record.flink.stop_asked_at)
    parts, before = list[DowntimePart](), began
    for end, name in ends:
        if began < end <= last:
            parts.append(DowntimePart(step=name, seconds=round((end - before).total_seconds(), 3)))
            before = end
    return DowntimeReport(
        began_at=began.isoformat(timespec="milliseconds"),
        ended_at=last.isoformat(timespec="milliseconds"),
        seconds=round(max((last - began).total_seconds(), 0), 3),
        parts=parts,
    )


@dataclass(frozen=True, slots=True)
class DowntimePrediction:
    """The predicted downtime of a cut-over that has not stopped its job yet.

    Attributes:
        stop: the duration of the stop in seconds, or None if unknown.
        stop_basis: the source of ``stop``, or why it is unknown.
        rest: the seconds from the end of the stop to the first batch, or None if unknown.
        rest_basis: the source of ``rest``, or why it is unknown.
        rate: the number of records per second that the source receives, or None if unknown.
        rate_basis: the source of ``rate``, or why it is unknown.
    """

    stop: float | None
    stop_basis: str
    rest: float | None
    rest_basis: str
    rate: float | None
    rate_basis: str

    @property
    def seconds(self) -> float | None:
        """Return the downtime in seconds, or None if a part of it is unknown."""
        return None if self.stop is None or self.rest is None else self.stop + self.rest

    @property
    def lag(self) -> int | None:
        """Return the number of records that will wait for the first batch, or None if unknown."""
        seconds = self.seconds
        return None if seconds is None or self.rate is None else round(seconds * self.rate)

    def lines(self) -> tuple[str, str]:
        """Return the downtime, the lag at the first batch, and what each is based on."""
        total = "unknown" if self.seconds is None else f"{self.seconds:.1f} s"
        lag = "unknown" if self.lag is None else counted(self.lag, "record")
        return (
            f"predicted downtime: {total} (stop: {_seconds(self.stop, self.stop_basis)}; later "
            f"steps: {_seconds(self.rest, self.rest_basis)})",
            f"predicted lag at the first batch: {lag} (rate: "
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
        earlier: records of cut-overs, by the paths of their files. The newest record with a
            downtime counts; a record of this job is preferred, and only such a record shows the
            duration of the stop.
        rate: the number of records per second that the source receives, or None if unknown.
        rate_basis: the source of ``rate``, or why it is unknown.
    """
    known = [
        (record.flink.job_name == job_name, record.downtime.ended_at, path, record.downtime)
        for path, record in earlier.items()
        if record.downtime is not None
    ]
    stop, rest = durations.savepoint, None
    stop_basis, rest_basis = "as the job's last savepoint", "no record shows them"
    if stop is None:
        stop, stop_basis = durations.checkpoint, "as the job's last checkpoint"
    if stop is None:
        stop_basis = "Flink has no savepoint or checkpoint of the job"
    if known:
        is_same_job, _, path, past = max(known, key=lambda item: item[:3])
        part = next((part.seconds for part in past.parts if part.step == STOP_STEP), None)
        rest, rest_basis = past.seconds - (part or 0), f"as in {path}"
        if is_same_job and part is not None:
            stop, stop_basis = part, f"as in {path}"
    return DowntimePrediction(stop, stop_basis, rest, rest_basis, rate, rate_basis)


def _seconds(seconds: float | None, basis: str) -> str:
    if seconds is None:
        return f"unknown, {basis}"
    return f"{f'{seconds:.1f}' if seconds >= 0.1 else 'under 0.1'} s, {basis}"


def with_lag(record: CutOverRecord, *samples: LagReport) -> list[LagReport]:
    """Return the record's lags with more samples, thinned out if there are many."""
    lags = [*record.lags, *samples]
    while len(lags) > _MOST_LAGS:
        lags = [*lags[:-1:2], lags[-1]]
    return lags
