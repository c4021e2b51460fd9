"""The downtime of a cut-over, from the times of its steps; no I/O here."""

from __future__ import annotations

from datetime import datetime

from migrate.extensions.cutover.report import CutOverRecord, DowntimePart, DowntimeReport

LAST_STEP = "first-batch"


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
