"""``migrate copy-query``: copy a query with its state and with different positions."""

from __future__ import annotations

from dataclasses import replace

from decoder.urls import redact_urls
from migrate.extensions.stateful_query.catalog import COPY_INSIDE_QUERY, QUERY_COPIED
from migrate.extensions.stateful_query.copied_query import check_can_be_copied, write_copy
from migrate.inputs.flink.choose_source import restrict_to_topics
from migrate.inputs.flink.source import topics_of
from migrate.inputs.plan_input import ListedPositions
from migrate.inputs.spark_log import committed_positions, query_id
from migrate.inputs.spark_query import query_directory, query_positions
from migrate.model.errors import Refused, UsageError
from migrate.model.finding import Code
from migrate.model.log import log, timed
from migrate.model.option_names import option
from migrate.model.positions import SAVEPOINT, SPARK, SPARK_PREFIX
from migrate.model.warning import WarningText
from migrate.model.wording import counted, with_known_prefix
from migrate.moves.load_inputs import ChosenInput, read_input
from migrate.moves.options import Request
from migrate.moves.pipeline import make_move
from migrate.moves.plan import check_origin
from migrate.moves.sink import check_apart, check_sink_of_a_copy, named_location
from migrate.planning.position_changes import position_warnings
from migrate.planning.source_changes import left_out_refusal, source_change
from migrate.storage.files import Files, is_same_place
from migrate.storage.uris import AnyPath, is_within
from migrate.targets.location import LocalDirectory
from migrate.targets.seed import check_free
from migrate.targets.source_options import IsolationLevel, SourceStart, spark_streams
from migrate.targets.spark_start import SparkStart


def copy_query(
    chk: AnyPath | None,
    request: Request,
    old: str,
    checkpoint_dir: AnyPath | None,
    sink: AnyPath | None,
    isolation_level: IsolationLevel | None,
) -> SparkStart:
    """Write a copy of a query's checkpoint location that resumes from the positions of ``chk``.

    ``old`` is ``spark:DIR``, the query whose state is kept.

    Raises:
        MigrateError, DecodeError, OSError: as in ``to_spark``.
    """
    if request.to_kafka.is_given:
        raise UsageError(
            "a copied query reads the same cluster as the original; omit "
            f"{option('to_kafka_config')} and {option('to_bootstrap_servers')}"
        )
    target = named_location("checkpoint_dir", checkpoint_dir) if checkpoint_dir else None
    if not isinstance(target, LocalDirectory) or target.mounted:
        raise UsageError(
            f"a copy of a query requires a new local directory; pass "
            f"{option('checkpoint_dir', 'DIR')}"
        )
    if not old.startswith(SPARK_PREFIX):
        way_out = with_known_prefix(old, {"spark"}) or "spark:DIR"
        raise UsageError(redact_urls(f"{old}: as the query to copy, pass {way_out}"))
    files = Files()
    directory = query_directory(old, files)
    check_apart(target, sink)
    if is_within(str(target.path), directory):
        raise Refused(COPY_INSIDE_QUERY(copy=target.name))
    check_free(target)
    batch = check_can_be_copied(directory, files)
    check_sink_of_a_copy(sink, query_id(directory, files), batch)
    kept = query_positions(old)
    (query,) = kept.sources
    # If a partition has no new position, the copy keeps the partition's old position, as a
    # rewritten savepoint does. The request is therefore made as if for a savepoint.
    request = replace(request, target=SAVEPOINT)
    positions, chosen = read_input(chk, request, query.topics)
    if isinstance(positions, ListedPositions) and is_same_place(
        positions.origin.pointer, kept.origin.pointer
    ):
        # The positions are from the copied query itself, and the copy keeps the query's state.
        # The finding that this state does not move is therefore wrong.
        findings = (finding for finding in positions.findings if finding.code != Code.QUERY_STATE)
        positions = replace(positions, findings=tuple(findings))
    moving = list(restrict_to_topics(chosen, query.topics, request.policies))
    missing = topics_of(chosen) - topics_of(moving)
    left_out = left_out_refusal(str(chk), missing, "no source of the query")
    if not moving:
        raise Refused(left_out)
    move = make_move(request, ChosenInput(positions, moving), into=kept, ignore_other_sources=True)
    (plan,) = move.plans
    change = source_change(query, None, plan, str(chk), request.policies)
    warnings = move.report(
        more_warnings=(*position_warnings([change]), WarningText(QUERY_COPIED()))
    )
    refusals = [*plan.refusals, *change.refusals]
    if missing and request.source is None and request.policies.partitions is None:
        refusals.append(left_out)
    if refusals:
        raise Refused(refusals)
    check_origin(positions.origin, replace(request, target=SPARK), [plan], writes=True)
    changed = {(key.topic, key.partition): at for key, at in change.new_offsets.items()}
    with timed(f"copying {directory}"):
        write_copy(directory, batch, changed, target.path, files)
    log.info(
        f"wrote {target.name}: the offsets of {counted(len(changed), 'partition')} changed after "
        f"batch {batch}, and the watermark is unchanged; run the same query with this location as "
        "checkpointLocation"
    )
    start = committed_positions(old, target.path).next_offsets
    sources = [SourceStart(0, start)]
    streams = spark_streams(sources, request.kafka.broker, isolation_level, seeded=True)
    return SparkStart(streams, target.for_spark, warnings, positions.origin)
