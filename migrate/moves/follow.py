"""``follow``: keep a consumer group at the positions of a Spark query."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from decoder.urls import redact_url
from migrate.inputs.ask_broker import broker_needed
from migrate.inputs.spark_log import query_id, why_no_start
from migrate.inputs.spark_log_entries import EmptyEntry, list_directory
from migrate.inputs.spark_query import output_warning
from migrate.model.errors import InputError, ServiceError, UsageError
from migrate.model.finding import Code
from migrate.model.log import log
from migrate.model.option_names import option
from migrate.model.positions import SPARK_PREFIX
from migrate.model.warning import warn
from migrate.model.warning_catalog import BATCHES_DELETED, POLL_FAILED
from migrate.model.wording import counted, parse_duration, with_known_prefix
from migrate.moves.options import KafkaArguments, check_group_name, kafka
from migrate.storage.files import Files
from migrate.storage.new_file import replace_file
from migrate.storage.uris import AnyPath, local_path, path_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from migrate.targets.group.follower import Followed


def follow(
    query: str,
    *,
    group: str,
    every: str = "10s",
    once: bool = False,
    metrics_file: AnyPath | None = None,
    allow_moved_on: bool = False,
    **arguments: Unpack[KafkaArguments],
) -> Followed:
    """Repeatedly commit a Spark query's positions for a consumer group, until interrupted.

    The group gets the positions after the newest batch in the query's commit log. Without
    ``allow_moved_on``, its positions never decrease. If a broker or an object store does not
    answer, the next round queries it again; with ``once``, this is an error.

    Args:
        query: ``spark:DIR``, the query's checkpoint location.
        group: the consumer group, which must be empty; only one ``follow`` may run for a group.
        every: the interval between rounds, for example ``10s``.
        once: True to run one round and return.
        metrics_file: a file in the Prometheus text format, rewritten after each successful round.
        allow_moved_on: True to rewind the group in the first successful round, if it is ahead of
            the query.
        arguments: see ``KafkaArguments``.

    Returns:
        The outcome of the round; without ``once``, this function does not return.

    Raises:
        Refused: as in ``GroupFollower.commit_progress``; nothing was committed in this round.
        UsageError: an argument is missing or malformed.
        InputError: the directory is not a checkpoint location, is damaged, or lacks ``metadata``.
        BrokerError: with ``once``, the broker did not answer, or it did not accept every offset.
        OSError: the metrics file cannot be written; or, with ``once``, an object store did not
            answer.
    """
    from migrate.targets.group.follower import GroupFollower

    brokers = kafka(arguments, KafkaArguments)
    if not query.startswith(SPARK_PREFIX) or query == SPARK_PREFIX:
        similar = with_known_prefix(query, {"spark"})
        way_out = (
            f"did you mean {redact_url(similar)}?"
            if similar
            else "specify its checkpoint location as spark:DIR"
        )
        raise UsageError(f"follow requires a Spark query; {way_out}")
    check_group_name(group)
    if not brokers.is_given:
        raise broker_needed("follow")
    try:
        pause = parse_duration(every)
    except ValueError as error:
        raise UsageError(f"{option('every')} {error}") from error
    metrics = local_path(os.fspath(metrics_file)) if metrics_file is not None else None
    files = Files()
    with suppress(OSError):  # the next round queries the object store again
        location = path_of(query.removeprefix(SPARK_PREFIX), files)
        # Before the query's first start, the directory is missing, is empty, or has only Spark's
        # temporary files. The names of these files start with a dot.
        names = [name for name in list_directory(files, location) or () if name[0] != "."]
        if query_id(location, files) is None and names and "commits" not in names:
            raise InputError(why_no_start(location, files))
    follower = GroupFollower(brokers.config(), group, query.removeprefix(SPARK_PREFIX))
    before: int | None = None
    while True:
        problem = None
        try:
            followed = follower.commit_progress(allow_moved_on=allow_moved_on)
            output = None
            if followed.batch is not None and before is None:
                output = output_warning(follower.directory, files)
            if followed.batch is None and before is not None:
                # The query no longer has batches. Either it restarts from scratch and soon has
                # batch 0, or its directory's mount is missing. Warn, because of the second case.
                problem = BATCHES_DELETED(batch=before, query=query, seconds=f"{pause:g}")
        except (ServiceError, EmptyEntry, OSError) as error:
            if once:
                raise
            problem = POLL_FAILED(problem=str(error), seconds=f"{pause:g}")
        if problem is not None:
            warn(problem, repeated=True)
        else:
            if once or followed.batch is None or followed.batch != before:
                _log_round(followed, group, may_have_output_beyond=output is not None)
            if once and output is not None:
                warn(output)
            before, allow_moved_on = followed.batch, False
            if metrics is not None:
                _write_metrics(metrics, followed, group)
            if once:
                return followed
        time.sleep(pause)


def _log_round(followed: Followed, group: str, *, may_have_output_beyond: bool) -> None:
    if followed.batch is None:
        log.info("the query has not committed a batch, so the group gets no offsets yet")
        return
    change = f"{counted(followed.written, 'offset')} committed" if followed.written else "no change"
    beyond = ""
    if may_have_output_beyond:
        beyond = f"; the query may have output beyond these offsets [{Code.OUTPUT_BEYOND}]"
    log.info(
        f"group {group} is at the end of batch {followed.batch}: {change}, lag "
        f"{sum(followed.lag.values())}{beyond}"
    )


def _write_metrics(file: Path, followed: Followed, group: str) -> None:
    """Write the metrics for the Prometheus node exporter; replace the file atomically."""
    of = f'group="{_label(group)}"'
    lines = [
        "# HELP migrate_follow_look_seconds Time of the last poll of the query, in seconds "
        "since the epoch.",
        "# TYPE migrate_follow_look_seconds gauge",
        f"migrate_follow_look_seconds{{{of}}} {time.time():.3f}",
    ]
    if followed.batch is not None:
        lines += [
            "# HELP migrate_follow_batch Newest batch that the query has committed.",
            "# TYPE migrate_follow_batch gauge",
            f"migrate_follow_batch{{{of}}} {followed.batch}",
        ]
    for name, meaning, values in (
        ("next_offset", "Next offset that is committed for the group.", followed.next_offsets),
        ("lag", "Offsets from the next offset to the log end offset.", followed.lag),
    ):
        lines.append(f"# HELP migrate_follow_{name} {meaning}")
        lines.append(f"# TYPE migrate_follow_{name} gauge")
        lines += [
            f'migrate_follow_{name}{{{of},topic="{_label(topic)}",partition="{partition}"}} {value}'
            for (topic, partition), value in sorted(values.items())
        ]
    replace_file(file, "\n".join(lines) + "\n")


def _label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
