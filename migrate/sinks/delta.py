"""A Delta sink skips batches up to the last ``txn`` version in the log for the same application ID.

``_delta_log`` contains commits and checkpoints. A commit, ``<version>.json``, contains one action
per line. A checkpoint replaces all commits up to its version. It is one file
``<version>.checkpoint.parquet``, or several files ``<version>.checkpoint.<part>.<parts>.parquet``,
or a file ``<version>.checkpoint.<UUID>`` in Parquet or JSON. The action
``{"txn": {"appId", "version"}}`` contains:

- the query's ID and the batch, for a streaming query. The commit also has ``commitInfo`` with the
  ``operation`` STREAMING UPDATE, and with ``queryId`` in ``operationParameters``. A checkpoint has
  no ``commitInfo``, so it does not show which application IDs are queries.
- the ``txnAppId`` and ``txnVersion`` options, for ``foreachBatch``.
- ``<job id>-<subtask>`` and the checkpoint ID, for the Delta sink in Flink.

Source: the Delta protocol, ``txn``, ``checkpoint``; DeltaSink, DeltaCommand.hasBeenExecuted @
io.delta:delta-spark 4.0.0; io.delta.flink.sink.DeltaCommitter @ delta bb1057f.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from migrate.model.wording import install_command
from migrate.sinks.directory import (
    MOST_FILES,
    Directory,
    UnreadableSink,
    check_type,
    parse_object,
    to_integer,
)
from migrate.sinks.remembered import Remembered, SinkMemory, WriterKind

LOG = "_delta_log"

_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(
    r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10})\.parquet|\.parquet|\.[0-9a-fA-F-]{36}\.(?:parquet|json))"
)
_FLINK = re.compile(r"([0-9a-f]{32})-(\d{1,9})")
# The maximum size of a checkpoint file, in bytes and in rows. A checkpoint lists every file in the
# table.
_LARGEST_CHECKPOINT_FILE = 512 << 20
_MOST_ROWS = 50_000_000


@dataclass(slots=True)
class _Log:
    """The log content read so far: each application's last version, query IDs, and unread parts."""

    versions: dict[str, int] = field(default_factory=dict)
    queries: set[str] = field(default_factory=set)
    unread: list[str] = field(default_factory=list)


def read_log(directory: Directory) -> SinkMemory:
    names = directory.names(LOG)
    log = _Log()
    newest, checkpoint = _newest_checkpoint(names)
    for name in checkpoint:
        content = directory.read(f"{LOG}/{name}", _LARGEST_CHECKPOINT_FILE)
        if name.endswith(".json"):
            _add_actions(log, content, name)
        else:
            _add_parquet(log, content, name)
    commits = [(int(match[1]), name) for name in names if (match := _COMMIT.fullmatch(name))]
    since = [name for version, name in commits if version > newest]
    for name in since[-MOST_FILES:]:
        _add_actions(log, directory.read(f"{LOG}/{name}"), name)
    if len(since) > MOST_FILES:
        log.unread.append(f"the oldest {len(since) - MOST_FILES} commits of {LOG}")
    if directory.names(f"{LOG}/_staged_commits"):
        log.unread.append("_staged_commits, because only a catalog shows which of them are valid")
    _find_queries(directory, log, [name for version, name in commits if version <= newest])
    return SinkMemory(("a Delta table",), tuple(_remembered(log)), tuple(log.unread))


def _newest_checkpoint(names: Iterable[str]) -> tuple[int, list[str]]:
    """Return the newest complete checkpoint's version and files; version -1 if there is none."""
    files_of: dict[tuple[int, str], list[str]] = {}
    for name in names:
        if match := _CHECKPOINT.fullmatch(name):
            parts = match[3] or ""
            files_of.setdefault((int(match[1]), parts), []).append(name)
    complete = {
        version: files
        for (version, parts), files in files_of.items()
        if not parts or len(files) == int(parts)
    }
    newest = max(complete, default=-1)
    return newest, complete.get(newest, [])


def _add_actions(log: _Log, content: bytes, name: str) -> None:
    """Add the versions and query IDs from a file that has one action per line."""
    what = f"{LOG}/{name} is not a Delta commit"
    for line in content.splitlines():
        if not line.strip():
            continue
        action = parse_object(line, what)
        if (txn := action.get("txn")) is not None:
            app = check_type(check_type(txn, dict, what).get("appId"), str, what)
            log.versions[app] = to_integer(txn.get("version"), what)
        if isinstance(info := action.get("commitInfo"), dict):
            parameters = info.get("operationParameters")
            query = parameters.get("queryId") if isinstance(parameters, dict) else None
            if isinstance(query, str):
                log.queries.add(query)


def _add_parquet(log: _Log, content: bytes, name: str) -> None:
    """Add the ``txn`` actions in a Parquet file, or record why the file was not read."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        log.unread.append(f"{name}, because pyarrow is not installed: {install_command('parquet')}")
        return
    what = f"{LOG}/{name} is not a Delta checkpoint"
    try:
        file = pyarrow.parquet.ParquetFile(io.BytesIO(content))
        if file.metadata.num_rows > _MOST_ROWS:
            log.unread.append(f"{name}, because it has more than {_MOST_ROWS} actions")
            return
        for batch in file.iter_batches(columns=["txn"]):
            rows = batch.column(0).drop_null().to_pylist() if batch.num_columns else []
            # In rows for other actions, txn is null or, with some writers, has null fields.
            for row in rows:
                if row["appId"] is not None:
                    log.versions[row["appId"]] = to_integer(row["version"], what)
    # For damaged bytes, pyarrow may also raise OSError.
    except (pyarrow.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
        raise UnreadableSink(f"{what}: {error}") from error


def _find_queries(directory: Directory, log: _Log, older: list[str]) -> None:
    """Find query IDs in the commits that the checkpoint replaces, and add the IDs to the log."""
    commits = _Log(dict(log.versions), log.queries)
    not_queries = {app for app in log.versions if len(app) != 36}  # a query's ID is a UUID
    for name in reversed(older[-MOST_FILES:]):
        if log.versions.keys() <= commits.queries | not_queries:
            return
        try:
            _add_actions(commits, directory.read(f"{LOG}/{name}"), name)
        except (UnreadableSink, OSError):  # not an error, as the checkpoint replaces these commits
            continue


def _remembered(log: _Log) -> Iterator[Remembered]:
    for app, version in sorted(log.versions.items()):
        if job := _FLINK.fullmatch(app):
            name = f"job {job[1]}, subtask {job[2]}"
            yield Remembered(WriterKind.FLINK_JOB, name, version)
        elif app in log.queries:
            yield Remembered(WriterKind.QUERY, app, version)
        else:
            yield Remembered(WriterKind.TXN_APP, app, version)
