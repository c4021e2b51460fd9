"""``--sink``: check whether the sink remembers earlier writers and would skip new records."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from decoder.urls import redact_url
from migrate.model.errors import Refused, UsageError
from migrate.model.finding import Code
from migrate.model.log import log, timed
from migrate.model.warning import WarningCode, WarningText, warning_text
from migrate.model.wording import join_some
from migrate.sinks import DEFAULT_IDENTIFIER, SinkMemory, UnreadableSink, WriterKind, sink_memory
from migrate.targets.location import LocalDirectory, RemoteDirectory, location

if TYPE_CHECKING:
    from migrate.storage.uris import AnyPath

# The maximum number of writers that a message names; a table may remember hundreds.
_NAMED = 20
# The checkpoint id with which a Flink job commits at the end of its input:
# IcebergWriteAggregator.finish @ Iceberg 1.10.0.
_END_OF_INPUT = 2**63 - 1


def named_location(option: str, path: AnyPath) -> LocalDirectory | RemoteDirectory:
    """Return the directory that an option names.

    Raises:
        UsageError: as for ``location``.
    """
    name = os.fspath(path)
    if name.startswith("spark:"):
        raise UsageError(f"{option} {redact_url(name)}: give the directory without spark:")
    try:
        return location(name)
    except UsageError as error:
        raise UsageError(f"{option} {error}") from error


def check_sink_of_a_query(sink: AnyPath | None, writer: str | None) -> tuple[str, ...]:
    """Check that a sink skips no batches of a new Spark query, which begins with batch 0.

    Args:
        sink: the sink's directory.
        writer: the name under which the query writes: Hudi's checkpoint identifier, or Delta's
            ``txnAppId``; None if the query sets none.

    Returns:
        Warnings about the sink.

    Raises:
        Refused: the sink would skip batches, or cannot be read.
        UsageError: as for ``location``, or ``writer`` is set without ``sink``.
    """
    if sink is None:
        if writer is not None:
            raise UsageError("--sink-writer goes with --sink")
        return ()
    name, memory = _read_memory(sink)
    refusals = [*_file_sink_refusals(name, memory), *_known_name_refusals(name, memory, writer)]
    if refusals:
        raise Refused(refusals)
    _report_formats(name, memory)
    _report_new_names(memory)
    warnings = (
        *_unknown_format_warnings(name, memory),
        *_known_name_warnings(name, memory, writer),
    )
    return _warn(warnings)


def check_sink_of_a_copy(sink: AnyPath | None, query: str | None, batch: int) -> None:
    """Check that a sink skips no batches of a copied query, which keeps the query's id.

    Args:
        sink: the sink's directory.
        query: the query's id.
        batch: the newest batch in the copy.

    Raises:
        Refused: the sink remembers batches after ``batch`` of a writer that is or may be this
            query, or cannot be read.
        UsageError: as for ``location``.
    """
    if sink is None:
        log.info(
            "note: a sink that remembers batches skips those that the query has written to it "
            f"after batch {batch}; --sink DIR looks"
        )
        return
    name, memory = _read_memory(sink)
    ahead = [
        writer
        for writer in memory.remembered
        if writer.last > batch
        and writer.kind not in (WriterKind.FLINK_JOB, WriterKind.COMMIT_USER)
        and (writer.kind is not WriterKind.QUERY or writer.name == query)
    ]
    if ahead:
        raise Refused(
            [
                f"{name} remembers batch {ahead[0].last}, and the query would go on with batch "
                f"{batch + 1}: it would skip what that one writes; name a new directory"
            ]
        )
    _warn(tuple(_unknown_format_warnings(name, memory)))


def check_sink_of_a_job(sink: AnyPath | None) -> tuple[str, ...]:
    """Return warnings if a sink may drop or hide what a Flink job without state writes.

    Raises:
        Refused: the sink cannot be read.
        UsageError: as for ``location``.
    """
    if sink is None:
        return ()
    name, memory = _read_memory(sink)
    _report_formats(name, memory)
    return _warn(
        (
            *_unknown_format_warnings(name, memory),
            *_flink_job_warnings(name, memory),
            *_file_sink_warnings(name, memory),
        )
    )


def _read_memory(sink: AnyPath) -> tuple[str, SinkMemory]:
    """Return the sink's name, and what the sink remembers."""
    directory = named_location("--sink", sink)
    try:
        with timed(f"reading {directory.name}"):
            return directory.name, sink_memory(*directory.to_read)
    except UnreadableSink as error:
        raise Refused([f"--sink {directory.name}: {error}"]) from error


def _warn(warnings: tuple[WarningText, ...]) -> tuple[WarningText, ...]:
    for warning in warnings:
        log.warning(warning)
    return warnings


def _report_formats(name: str, memory: SinkMemory) -> None:
    if memory.empty:
        log.info(f"{name}: nothing is there yet, so the sink remembers no batch")
    for format in memory.formats:
        log.info(f"{name}: {format}")


def _report_new_names(memory: SinkMemory) -> None:
    """Log the remembered writers whose names a new query never has."""
    for kind, what in (
        (WriterKind.QUERY, "queries by their ids"),
        (WriterKind.COMMIT_USER, "commit users"),
        (WriterKind.FLINK_JOB, "Flink jobs by their ids"),
    ):
        if writers := memory.last_numbers(kind):
            log.info(
                f"it remembers {what} ({len(writers)}): a new query is none of them, and has "
                "nothing skipped on their account"
            )


def _unknown_format_warnings(name: str, memory: SinkMemory) -> Iterator[WarningText]:
    if not memory.formats and not memory.empty:
        yield warning_text(
            WarningCode.SINK_UNKNOWN,
            f"{name} is a sink of an unknown kind: it may skip what is written under numbers that "
            "it remembers",
        )
    for why in memory.unread:
        yield warning_text(WarningCode.SINK_UNKNOWN, f"{name} was not read completely: {why}")


def _file_sink_refusals(name: str, memory: SinkMemory) -> Iterator[str]:
    for last in memory.last_numbers(WriterKind.FILES).values():
        yield (
            f"{name} is the file sink of another query, and remembers its batches up to {last} "
            f"(_spark_metadata): a new query's batches 0 to {last} would be skipped without a "
            "word, and their records lost; name a new directory for the sink, and read both"
        )


def _known_name_refusals(name: str, memory: SinkMemory, writer: str | None) -> Iterator[str]:
    """Yield refusals if the sink remembers the name under which the query writes."""
    identifiers, apps = (
        memory.last_numbers(WriterKind.HUDI),
        memory.last_numbers(WriterKind.TXN_APP),
    )
    identifier = DEFAULT_IDENTIFIER if writer is None else writer
    if identifier in identifiers:
        last = identifiers[identifier]
        scope = " of every query that sets none" if writer is None else ""
        yield (
            f"{name} is a Hudi table, and remembers batch {last} of the checkpoint identifier "
            f"{identifier!r}{scope}: batches 0 to {last} of a new query would be skipped without "
            "a word, and their records lost; set "
            "hoodie.datasource.write.streaming.checkpoint.identifier to a new name, and give "
            "that name here too (--sink-writer)"
        )
    if writer in apps:
        yield (
            f"{name} is a Delta table, and remembers version {apps[writer]} of txnAppId "
            f"{writer!r}: versions 0 to {apps[writer]} of a new query would be skipped without a "
            "word, and their records lost; take a new txnAppId"
        )


def _known_name_warnings(
    name: str, memory: SinkMemory, writer: str | None
) -> Iterator[WarningText]:
    """Yield warnings about the remembered names, if the query's name is not known."""
    if writer is not None:
        return
    for what, setting, kind in (
        ("checkpoint identifier", "a query that sets", WriterKind.HUDI),
        ("txnAppId", "a foreachBatch that writes under", WriterKind.TXN_APP),
    ):
        if writers := memory.last_numbers(kind):
            yield warning_text(
                WarningCode.SINK_WRITER,
                f"{name} remembers batches of {what} {_listed(writers)}: it skips the batches of "
                f"{setting} such a name, up to that number",
            )


def _flink_job_warnings(name: str, memory: SinkMemory) -> Iterator[WarningText]:
    if jobs := memory.last_numbers(WriterKind.FLINK_JOB):
        yield warning_text(
            Code.SINK_MEMORY,
            f"{name} remembers checkpoints of Flink's {_listed(jobs)}: it may drop the records of "
            "a job of such an id that starts without its state",
        )


def _listed(writers: Mapping[str, int]) -> str:
    """Return the first ``_NAMED`` writers with their last numbers, as text."""
    named = [
        f"{writer!r} up to {last}{' (for good)' if last >= _END_OF_INPUT else ''}"
        for writer, last in writers.items()
    ]
    return join_some(named, _NAMED)


def _file_sink_warnings(name: str, memory: SinkMemory) -> Iterator[WarningText]:
    if memory.last_numbers(WriterKind.FILES):
        yield warning_text(
            WarningCode.SINK_HIDES_FILES,
            f"{name} is the file sink of a Spark query (_spark_metadata): Spark does not read the "
            "files that Flink adds there",
        )
