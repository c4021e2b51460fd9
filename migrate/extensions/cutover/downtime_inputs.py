"""Collect the data for predicting a cut-over's downtime."""

from __future__ import annotations

import time

from migrate.extensions.cutover.context import CutOverContext
from migrate.extensions.cutover.downtime import DowntimePrediction, predict
from migrate.extensions.cutover.facts import JobToStop
from migrate.extensions.cutover.record import saved_records
from migrate.inputs.ask_broker import ask_logs
from migrate.inputs.flink.rest_api import LastDurations
from migrate.model.errors import ServiceError
from migrate.moves.options import kafka
from migrate.planning import Plan

# The length of the period, up to now, over which the rate of new records is measured.
_RATE_SECONDS = 60


def predict_downtime(context: CutOverContext, job: JobToStop) -> DowntimePrediction:
    """Predict the downtime of a cut-over.

    A value is unknown if neither Flink, nor the broker, nor an earlier cut-over provides it.
    """
    try:
        durations = context.flink.last_durations(job.flink_job.job_id)
    except ServiceError:
        durations = LastDurations()
    rate, rate_basis = None, "the log does not show it"
    if context.previewed_plan is not None:
        rate = _rate(context, context.previewed_plan)
    if rate is not None:
        rate_basis = f"by the records' times in the last {_RATE_SECONDS} s"
    earlier = {str(path): record for path, record in saved_records(context.record.folder)}
    return predict(job.flink_job.name, durations, earlier, rate, rate_basis)


def _rate(context: CutOverContext, plan: Plan) -> float | None:
    """Return the number of records per second in the partitions to move, or None if unknown."""
    at = int(1000 * (time.time() - _RATE_SECONDS))
    try:
        logs = ask_logs(kafka(context.file.target_kafka_arguments()).config(), plan.topics, at)
    except ServiceError:
        return None
    records = 0
    for topic, partition in plan.next_offsets:
        log = logs.get(topic, {}).get(partition)
        if log is None or log.first_at is None:
            return None
        records += log.end - log.first_at
    return records / _RATE_SECONDS
