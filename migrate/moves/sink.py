"""``--sink``: check whether the sink remembers earlier writers and would skip new records."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from decoder.urls import redact_url
from migrate.model.catalog import (
    LOCATION_AND_SINK_OVERLAP,
    SINK_AHEAD,
    SINK_DELTA_TXN_APP_ID,
    SINK_FILES_AHEAD,
    SINK_FILES_BEHIND,
    SINK_HUDI_DEFAULT_IDENTIFIER,
    SINK_HUDI_IDENTIFIER,
    SINK_IS_NO_OUTPUT,
    SINK_OF_OTHER_QUERY,
    SINK_UNREADABLE,
)
from migrate.model.errors import Refused, UsageError
from migrate.model.log import log, timed
from migrate.model.message import Message
from migrate.model.option_names import option
from migrate.model.positions import SPARK_PREFIX, prefix_advice
from migrate.model.warning import WarningText
from migrate.model.warning_catalog import (
    SINK_HIDES_FILES_OF_COPY,
    SINK_HIDES_FILES_OF_JOB,
    SINK_OF_UNKNOWN_KIND,
    SINK_PARTLY_READ,
    SINK_REMEMBERS_IDENTIFIERS,
    SINK_REMEMBERS_JOBS,
    SINK_REMEMBERS_TRANSACTIONS,
)
from migrate.moves.declare_options import check_combinations
from migrate.moves.options import SinkArguments
from migrate.sinks import DEFAULT_IDENTIFIER, SinkMemory, UnreadableSink, WriterKind, sink_memory
from migrate.storage.files import place_of
from migrate.storage.uris import is_uri, is_within
from migrate.targets.location import LocalDirectory, Location, RemoteDirectory, location

if TYPE_CHECKING:
    from migrate.storage.uris import AnyPath

# The checkpoint ID with which a Flink job commits at the end of its input:
# IcebergWriteAggregator.finish @ Iceberg 1.10.0.
_END_OF_INPUT = 2**63 - 1


def named_location(name: str, path: AnyPath) -> LocalDirectory | RemoteDirectory:
    """Return the directory that the option ``name`` specifies.

    Raises:
        UsageError: as in ``location``, or the name starts with ``spark:``.
    """
    directory = os.fspath(path)
    if advice := prefix_advice(directory, SPARK_PREFIX):
        raise UsageError(f"{option(name, redact_url(directory))}: {advice}")
    try:
        return location(directory)
    except UsageError as error:
        raise UsageError(f"{option(name)} {error}") from error


def check_apart(location: Location, sink: AnyPath | None) -> None:
    """Check that neither the location nor the sink contains the other.

    A location such as ``SINK/_NAME`` is allowed, because Delta stores checkpoint locations there.

    Raises:
        Refused: both are the same directory; or the location contains the sink; or the sink
            contains the location, and no part of the path between them starts with ``_``.
        UsageError: as in ``location``.
    """
    if sink is None:
        return
    place = place_of(location.to_read[0])
    output = place_of(named_location("sink", sink).to_read[0]).rstrip("/")
    below = place.removeprefix(output)
    if is_within(output, place) or (is_within(place, output) and "/_" not in below):
        raise Refused(LOCATION_AND_SINK_OVERLAP(directory=location.name, sink=sink))


def check_sink_of_a_query(sink: AnyPath | None, writer: str | None) -> tuple[str, ...]:
    """Check that a sink will not skip batches of a new Spark query, which starts with batch 0.

    ``writer`` is the name under which the query writes: Hudi's checkpoint identifier, or Delta's
    ``txnAppId``.

    Raises:
        Refused: the sink would skip batches, or it cannot be read.
        UsageError: as in ``location``, or ``writer`` is set without ``sink``.
    """
    check_combinations(SinkArguments, {"sink": sink, "sink_writer": writer})
    if sink is None:
        return ()
    name, memory, warnings = _read_memory(sink)
    if refusals := list(_refusals(name, memory, writer)):
        raise Refused(refusals)
    for kind, what in (
        (WriterKind.QUERY, "queries by ID"),
        (WriterKind.COMMIT_USER, "commit users"),
        (WriterKind.FLINK_JOB, "Flink jobs by ID"),
    ):
        if writers := memory.last_numbers(kind):
            log.info(
                f"the sink remembers {what} ({len(writers)}); a new query is not among "
                "them, so the sink skips none of its batches"
            )
    if writer is None:
        warnings += _other_name_warnings(name, memory)
    return _warn(warnings)


def note_unchecked_sink(advice: str) -> None:
    """Log that a new query's sink was not checked, with advice to check it."""
    log.info(
        "note: the query's sink was not checked; if an earlier query wrote to the sink, the sink "
        f"may skip the first batches of this query; {advice}"
    )


def check_sink_of_a_copy(sink: AnyPath | None, query: str | None, batch: int) -> None:
    """Check that a sink will not skip batches of a copied query, which keeps the query's ID.

    If a file sink's log lacks a batch before the newest batch, Spark cannot read the sink. The
    query fails when it compacts such a log (CompactibleFileStreamLog @ Spark 4.0.0).

    ``query`` is the query's ID, and ``batch`` the newest batch in the copy.

    Raises:
        Refused: the sink cannot be read; batches after ``batch`` were written to the sink by this
            query or by a writer that might be this query; or a file sink's log ends before
            ``batch``.
        UsageError: as in ``location``.
    """
    if sink is None:
        log.info(
            f"note: if the query has written batches after batch {batch} to a sink that stores "
            "batch numbers, the sink will skip the copy's batches that have the same numbers; "
            f"to check a sink, pass {option('sink', 'DIR')}"
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
        refusal = SINK_FILES_AHEAD if ahead[0].kind is WriterKind.FILES else SINK_AHEAD
        raise Refused(refusal(sink=name, last=ahead[0].last, next=batch + 1))
    last_file_batch = memory.last_numbers(WriterKind.FILES).get("")
    if last_file_batch is not None and last_file_batch < batch:
        raise Refused(SINK_FILES_BEHIND(sink=name, last=last_file_batch, next=batch + 1))
    from migrate.sinks.spark_files import FORMAT  # imported here; few moves have a sink

    if last_file_batch is None and not set(memory.formats) - {FORMAT}:
        warnings.append(WarningText(SINK_HIDES_FILES_OF_COPY(sink=name, batch=batch)))
    _warn(warnings)


def check_sink_of_a_job(sink: AnyPath | None) -> tuple[str, ...]:
    """Return warnings if a sink may drop or hide the output of a job that starts without state.

    Raises:
        Refused: the sink cannot be read.
        UsageError: as in ``location``.
    """
    if sink is None:
        return ()
    name, memory, warnings = _read_memory(sink)
    if jobs := memory.last_numbers(WriterKind.FLINK_JOB):
        warnings.append(WarningText(SINK_REMEMBERS_JOBS(sink=name, writers=_listed(jobs))))
    if memory.last_numbers(WriterKind.FILES):
        warnings.append(WarningText(SINK_HIDES_FILES_OF_JOB(sink=name)))
    return _warn(warnings)


def _read_memory(sink: AnyPath) -> tuple[str, SinkMemory, list[WarningText]]:
    """Return the sink's name, the writers that it remembers, and any read warnings."""
    directory = named_location("sink", sink)
    name = directory.name
    if "/../" in name and not is_uri(name):  # a relative path in a spec
        name = os.path.realpath(name)
    from migrate.targets.seed import describe_other_use  # imported here; few moves have a sink

    if (other_use := describe_other_use(*directory.to_read)) is not None:
        raise Refused(SINK_IS_NO_OUTPUT(sink=name, is_a=other_use))
    try:
        with timed(f"reading {name}"):
            memory = sink_memory(*directory.to_read)
    except UnreadableSink as error:
        raise Refused(SINK_UNREADABLE(sink=name, error=str(error))) from error
    warnings = [WarningText(SINK_PARTLY_READ(sink=name, reason=why)) for why in memory.unread]
    if memory.empty:
        log.info(f"{name}: the sink is empty, so it will not skip any of the query's batches")
    elif not memory.formats:
        warnings.append(WarningText(SINK_OF_UNKNOWN_KIND(sink=name)))
    for format in memory.formats:
        log.info(f"{name}: {format}")
    return name, memory, warnings


def _warn(warnings: Iterable[WarningText]) -> tuple[WarningText, ...]:
    for warning in warnings:
        log.warning(warning)
    return tuple(warnings)


def _refusals(name: str, memory: SinkMemory, writer: str | None) -> Iterator[Message]:
    """Yield a refusal for each sink that would skip the first batches of a new query.

    A file sink skips the first batches of every new query. Other sinks skip these batches only if
    the query writes under a name that the sink remembers.
    """
    last = memory.last_numbers(WriterKind.FILES).get("")
    if last is not None:
        yield SINK_OF_OTHER_QUERY(sink=name, last=last)
    identifier = DEFAULT_IDENTIFIER if writer is None else writer
    last = memory.last_numbers(WriterKind.HUDI).get(identifier)
    if last is not None:
        refusal = SINK_HUDI_DEFAULT_IDENTIFIER if writer is None else SINK_HUDI_IDENTIFIER
        yield refusal(sink=name, last=last, identifier=identifier)
    last = memory.last_numbers(WriterKind.TXN_APP).get(writer) if writer is not None else None
    if last is not None:
        yield SINK_DELTA_TXN_APP_ID(sink=name, last=last, identifier=writer)


def _other_name_warnings(name: str, memory: SinkMemory) -> Iterator[WarningText]:
    """Yield warnings about remembered writer names, because the new query may use one of them."""
    for message, kind in (
        (SINK_REMEMBERS_IDENTIFIERS, WriterKind.HUDI),
        (SINK_REMEMBERS_TRANSACTIONS, WriterKind.TXN_APP),
    ):
        if writers := memory.last_numbers(kind):
            yield WarningText(message(sink=name, writers=_listed(writers)))


def _listed(writers: Mapping[str, int]) -> list[str]:
    """Return each writer with its last number, such as ``'app' up to 7``."""
    return [
        f"{writer!r} up to {last}{' (permanently)' if last >= _END_OF_INPUT else ''}"
        for writer, last in writers.items()
    ]
