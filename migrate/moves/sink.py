"""``--sink``: check whether the sink remembers earlier writers and would skip new records."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from decoder.urls import redact_url
from migrate.model.errors import Refused, UsageError
from migrate.model.finding import Code
from migrate.model.log import log, timed
from migrate.model.warning import WarningCode, WarningText, warning_text
from migrate.model.wording import join_some
from migrate.sinks import DEFAULT_IDENTIFIER, SinkMemory, UnreadableSink, WriterKind, sink_memory
from migrate.sinks.spark_files import FORMAT as FILE_SINK
from migrate.storage.files import place_of
from migrate.storage.uris import is_within
from migrate.targets.location import LocalDirectory, Location, RemoteDirectory, location

if TYPE_CHECKING:
    from migrate.storage.uris import AnyPath

# The maximum number of writers that a message names; a table may remember hundreds.
_MAX_NAMED = 20
# The checkpoint id with which a Flink job commits at the end of its input:
# IcebergWriteAggregator.finish @ Iceberg 1.10.0.
_END_OF_INPUT = 2**63 - 1


def named_location(option: str, path: AnyPath) -> LocalDirectory | RemoteDirectory:
    """Return the directory that an option names.

    Raises:
        UsageError: as for ``location``, or the name starts with ``spark:``.
    """
    name = os.fspath(path)
    if name.startswith("spark:"):
        raise UsageError(f"{option} {redact_url(name)}: give the directory without spark:")
    try:
        return location(name)
    except UsageError as error:
        raise UsageError(f"{option} {error}") from error


def check_apart(location: Location, sink: AnyPath | None) -> None:
    """Check that neither a location nor a sink is in the other.

    A location such as ``SINK/_NAME`` is allowed, because Delta keeps locations there.

    Raises:
        Refused: the two are one folder, or the sink is in the location; or the location is in the
            sink, and no part of the path between them starts with ``_``.
        UsageError: as for ``location``.
    """
    if sink is None:
        return
    place = place_of(location.to_read[0])
    output = place_of(named_location("--sink", sink).to_read[0]).rstrip("/")
    below = place.removeprefix(output)
    if is_within(output, place) or (is_within(place, output) and "/_" not in below):
        raise Refused(
            f"{location.name} and the sink {sink} are one folder, or one is in the other; name "
            "two folders"
        )


def check_sink_of_a_query(sink: AnyPath | None, writer: str | None) -> tuple[str, ...]:
    """Check that a sink skips no batches of a new Spark query. The query starts with batch 0.

    ``writer`` is the name under which the query writes: Hudi's checkpoint identifier, or Delta's
    ``txnAppId``.

    Raises:
        Refused: the sink would skip batches, or cannot be read.
        UsageError: as for ``location``, or ``writer`` is set without ``sink``.
    """
    if sink is None:
        if writer is not None:
            raise UsageError("--sink-writer goes with --sink")
        return ()
    name, memory, warnings = _read_memory(sink)
    if refusals := list(_refusals(name, memory, writer)):
        raise Refused(refusals)
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
    if writer is None:
        warnings += _other_name_warnings(name, memory)
    return _warn(warnings)


def check_sink_of_a_copy(sink: AnyPath | None, query: str | None, batch: int) -> None:
    """Check that a sink skips no batches of a copied query. The copy keeps the query's id.

    If the log of a file sink lacks a batch before the newest, Spark does not read the sink. The
    query fails when it compacts such a log (CompactibleFileStreamLog @ Spark 4.0.0).

    ``query`` is the query's id, and ``batch`` the newest batch in the copy.

    Raises:
        Refused: the sink cannot be read; a writer that is or might be this query has written
            batches after ``batch`` to the sink; or the log of a file sink ends before ``batch``.
        UsageError: as for ``location``.
    """
    if sink is None:
        log.info(
            "note: a sink that remembers batches skips those that the query has written to it "
            f"after batch {batch}; --sink DIR looks"
        )
        return
    name, memory, warnings = _read_memory(sink)
    ahead = [
        writer
        for writer in memory.remembered
        if writer.last > batch
        and writer.kind not in (WriterKind.FLINK_JOB, WriterKind.COMMIT_USER)
        and (writer.kind is not WriterKind.QUERY or writer.name == query)
    ]
    if ahead:
        way_out = (
            "copy the location of the query that wrote it"
            if ahead[0].kind is WriterKind.FILES
            else "name a new directory"
        )
        raise Refused(
            f"{name} remembers batch {ahead[0].last}, and the query would go on with batch "
            f"{batch + 1}: it would skip what that one writes; {way_out}"
        )
    last_file_batch = memory.last_numbers(WriterKind.FILES).get("")
    if last_file_batch is not None and last_file_batch < batch:
        raise Refused(
            f"{name} is a file sink with batches up to {last_file_batch}, and the query would go "
            f"on with batch {batch + 1}: Spark reads no file sink without the batches between; "
            "name the query's own sink"
        )
    if last_file_batch is None and not set(memory.formats) - {FILE_SINK}:
        text = (
            f"{name} has no batch of the query: if the query writes files (without foreachBatch), "
            f"Spark will not read this directory, as batches 0 to {batch} are missing, and the "
            "query will fail when it compacts _spark_metadata; name its own sink, or copy "
            "_spark_metadata from there before the start"
        )
        warnings.append(warning_text(WarningCode.SINK_HIDES_FILES, text))
    _warn(warnings)


def check_sink_of_a_job(sink: AnyPath | None) -> tuple[str, ...]:
    """Return warnings if a sink may drop or hide the output of a Flink job without its old state.

    Raises:
        Refused: the sink cannot be read.
        UsageError: as for ``location``.
    """
    if sink is None:
        return ()
    name, memory, warnings = _read_memory(sink)
    if jobs := memory.last_numbers(WriterKind.FLINK_JOB):
        text = (
            f"{name} remembers checkpoints of Flink's {_listed(jobs)}: it may drop the records of "
            "a job of such an id that starts without its state"
        )
        warnings.append(warning_text(Code.SINK_MEMORY, text))
    if memory.last_numbers(WriterKind.FILES):
        text = (
            f"{name} is the file sink of a Spark query (_spark_metadata): Spark does not read the "
            "files that Flink adds there"
        )
        warnings.append(warning_text(WarningCode.SINK_HIDES_FILES, text))
    return _warn(warnings)


def _read_memory(sink: AnyPath) -> tuple[str, SinkMemory, list[WarningText]]:
    """Return the sink's name, its memory of writers, and warnings about unreadable parts."""
    directory = named_location("--sink", sink)
    name = directory.name
    try:
        with timed(f"reading {name}"):
            memory = sink_memory(*directory.to_read)
    except UnreadableSink as error:
        raise Refused(f"--sink {name}: {error}") from error
    unread = [f"{name} was not read completely: {why}" for why in memory.unread]
    if memory.empty:
        log.info(f"{name}: nothing is there yet, so the sink remembers no batch")
    elif not memory.formats:
        unread.append(
            f"{name} is a sink of an unknown kind: it may skip what is written under numbers that "
            "it remembers"
        )
    for format in memory.formats:
        log.info(f"{name}: {format}")
    return name, memory, [warning_text(WarningCode.SINK_UNKNOWN, text) for text in unread]


def _warn(warnings: Iterable[WarningText]) -> tuple[WarningText, ...]:
    for warning in warnings:
        log.warning(warning)
    return tuple(warnings)


def _refusals(name: str, memory: SinkMemory, writer: str | None) -> Iterator[str]:
    """Yield refusals of a sink that would skip the first batches of a new query.

    A file sink skips them for every new query, the other sinks only for a query that writes under
    a name in their memory.
    """
    scope = " of every query that sets none" if writer is None else ""
    identifier = DEFAULT_IDENTIFIER if writer is None else writer
    for kind, key, what, under, way_out in (
        (
            WriterKind.FILES,
            "",
            "is the file sink of another query, and remembers its batches up to",
            "(_spark_metadata)",
            "name a new directory for the sink, and read both",
        ),
        (
            WriterKind.HUDI,
            identifier,
            "is a Hudi table, and remembers batch",
            f"of the checkpoint identifier {identifier!r}{scope}",
            "set hoodie.datasource.write.streaming.checkpoint.identifier to a new name, and give "
            "that name here too (--sink-writer)",
        ),
        (
            WriterKind.TXN_APP,
            writer,
            "is a Delta table, and remembers version",
            f"of txnAppId {writer!r}",
            "take a new txnAppId",
        ),
    ):
        last = memory.last_numbers(kind).get(key) if key is not None else None
        if last is not None:
            yield (
                f"{name} {what} {last} {under}: a new query's batches 0 to {last} would be skipped "
                f"without a word, and their records lost; {way_out}"
            )


def _other_name_warnings(name: str, memory: SinkMemory) -> Iterator[WarningText]:
    """Yield warnings about the names that the sink remembers, for a query of unknown name."""
    for what, setting, kind in (
        ("checkpoint identifier", "a query that sets", WriterKind.HUDI),
        ("txnAppId", "a foreachBatch that writes under", WriterKind.TXN_APP),
    ):
        if writers := memory.last_numbers(kind):
            text = (
                f"{name} remembers batches of {what} {_listed(writers)}: it skips the batches of "
                f"{setting} such a name, up to that number"
            )
            yield warning_text(WarningCode.SINK_WRITER, text)


def _listed(writers: Mapping[str, int]) -> str:
    """Return the first ``_MAX_NAMED`` writers with their last numbers, as text."""
    named = [
        f"{writer!r} up to {last}{' (for good)' if last >= _END_OF_INPUT else ''}"
        for writer, last in writers.items()
    ]
    return join_some(named, _MAX_NAMED)
