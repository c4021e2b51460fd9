"""``--sink``: would the query's sink skip what the query writes?"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.api.telling import log
from migrate.errors import Refused
from migrate.targets.spark_locations import Location
from migrate.targets.spark_sink import DeltaTable, FileSink, UnreadableSink, look_at_sink


def check_sink(sink: Location) -> tuple[str, ...]:
    """Would this sink skip batches of a new query, whose ids begin at 0?

    Returns:
        Warnings: what a query must not do there.

    Raises:
        Refused: it would, or its log cannot be read.
    """
    try:
        found = look_at_sink(sink)
    except UnreadableSink as error:
        raise Refused([f"--sink {sink.name}: {error}"]) from error
    match found:
        case None:
            log.info(f"{sink.name}: no query has written there as a stream")
            return ()
        case FileSink(last_batch):
            raise Refused(
                [
                    f"{sink.name} is the sink of another query, up to batch {last_batch} "
                    f"(_spark_metadata): a new query's batches 0 to {last_batch} would be skipped "
                    "without a word, and their records lost; name a new directory for the sink, "
                    "and read both"
                ]
            )
        case DeltaTable():
            log.info(
                f"{sink.name}: a Delta table with batches of {len(found.last_batches)} writers; a "
                "new query has an id of its own, so that its sink skips none of its batches"
            )
            warnings = tuple(_about_delta(sink.name, found))
            for warning in warnings:
                log.warning(warning)
            return warnings


def _about_delta(name: str, table: DeltaTable) -> Iterator[str]:
    for writer, last_batch in table.named_writers.items():
        yield (
            f"{name} has batches of txnAppId {writer!r} up to {last_batch}: a "
            f"foreachBatch that writes under that name has its batches 0 to {last_batch} skipped "
            "without a word; take another name"
        )
    if table.files_up_to is not None:
        yield (
            f"{name} is the sink of a query that wrote files too (_spark_metadata): "
            f"another one that writes files there has its batches 0 to {table.files_up_to} skipped "
            "without a word"
        )
    if table.unread:
        yield f"{name}: not all of its log was looked at: {table.unread}"
