"""Draw the chart of the lag over time for a cut-over's page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from migrate.extensions.cutover.report import CutOverRecord, LagReport

# The size of the drawing. The page stretches the drawing to the page width, but does not make the
# lines thicker.
WIDTH, HEIGHT = 600, 120


@dataclass(frozen=True, slots=True)
class LagChart:
    """A line through the lags, in units of the drawing.

    Attributes:
        points: the points of the line, in the format of the SVG ``polyline`` element.
        first_batch: the x-coordinate of the first batch, or None if it is outside the drawing.
        first, last, highest: the lags at both ends of the line and at its highest point.
        seconds: the time from the first lag to the last one.
    """

    points: str
    first_batch: float | None
    first: LagReport
    last: LagReport
    highest: LagReport
    seconds: float


def lag_chart(record: CutOverRecord) -> LagChart | None:
    """Return a record's chart, or None if the record has no lags at two different times."""
    lags = [*_lag_of_plan(record), *record.lags]
    times = [datetime.fromisoformat(sample.at).timestamp() for sample in lags]
    if not times or times[0] == times[-1]:
        return None
    began, seconds = times[0], times[-1] - times[0]
    highest = max(lags, key=lambda sample: sample.lag)

    def x(at: float) -> float:
        return round(WIDTH * (at - began) / seconds, 1)

    points = " ".join(
        f"{x(at)},{round(HEIGHT * (1 - sample.lag / max(highest.lag, 1)), 1)}"
        for at, sample in zip(times, lags, strict=True)
    )
    first_batch = None
    if record.downtime is not None:
        first_batch = x(datetime.fromisoformat(record.downtime.ended_at).timestamp())
        first_batch = first_batch if 0 <= first_batch <= WIDTH else None
    return LagChart(points, first_batch, lags[0], lags[-1], highest, seconds)


def _lag_of_plan(record: CutOverRecord) -> Sequence[LagReport]:
    """Return a list with the lag at the time of the plan, or [] if a log end offset is unknown."""
    lag, moves = 0, [row for row in record.partitions if row.planned is not None]
    for row in moves:
        if row.planned is None or row.log_end is None:
            return []
        lag += max(row.log_end - row.planned, 0)
    return [LagReport(at=record.plan.made_at, lag=lag)] if record.plan and moves else []
