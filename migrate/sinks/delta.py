"""Delta: it skips what comes under an application id and a version that its log has a ``txn`` of.

``_delta_log`` has a commit ``<version>.json`` with an action a line, and checkpoints, each of which
stands for all commits up to its version: ``<version>.checkpoint.parquet``, in parts
``.checkpoint.<part>.<parts>.parquet``, or under a UUID, in Parquet or JSON. The action
``{"txn": {"appId", "version"}}``:

- of a streaming query has the query's id, and the batch. Its commit says so in ``commitInfo``:
  ``operation`` STREAMING UPDATE, ``operationParameters`` with ``queryId``. A checkpoint has no
  ``commitInfo``: there a query's id cannot be told from another UUID.
- of ``foreachBatch`` with ``txnAppId`` and ``txnVersion`` has these.
- of Delta's sink for Flink has ``<job id>-<subtask>``, and the checkpoint's id.

Source: the Delta protocol, ``txn``, ``checkpoint``; DeltaSink, DeltaCommand.hasBeenExecuted @
io.delta:delta-spark 4.0.0; io.delta.flink.sink.DeltaCommitter @ delta bb1057f.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from migrate.sinks.directory import MOST_FILES, Directory, UnreadableSink, number, parse, table
from migrate.sinks.remembered import Found, Remembered, WriterKind

LOG = "_delta_log"

_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(
    r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10})\.parquet|\.parquet|\.[0-9a-fA-F-]{36}\.(?:parquet|json))"
)
_FLINK = re.compile(r"([0-9a-f]{32})-(\d{1,9})")
# In bytes, and rows: a checkpoint lists every file of the table.
_LARGEST_CHECKPOINT = 512 << 20
_MOST_ROWS = 50_000_000


@dataclass(slots=True)
class _Log:
    """What has been read so far: the last version of each application, and ids of queries."""

    versions: dict[str, int] = field(default_factory=dict)
    queries: set[str] = field(default_factory=set)
    unread: list[str] = field(default_factory=list)


def look(directory: Directory) -> Found:
    names = directory.names(LOG)
    log = _Log()
    newest, checkpoint = _newest_checkpoint(names)
    for name in checkpoint:
        content = directory.read(f"{LOG}/{name}", _LARGEST_CHECKPOINT)
        if name.endswith(".json"):
            _take(log, content, name)
        else:
            _take_parquet(log, content, name)
    commits = [(int(match[1]), name) for name in names if (match := _COMMIT.fullmatch(name))]
    since = [name for version, name in commits if version > newest]
    for name in since[-MOST_FILES:]:
        _take(log, directory.read(f"{LOG}/{name}"), name)
    if len(since) > MOST_FILES:
        log.unread.append(f"the oldest {len(since) - MOST_FILES} commits of {LOG}")
    if directory.names(f"{LOG}/_staged_commits"):
        log.unread.append("_staged_commits, of which a catalog knows which ones count")
    _find_queries(directory, log, [name for version, name in commits if version <= newest])
    return Found("a Delta table", tuple(_remembered(log)), tuple(log.unread))


def _newest_checkpoint(names: Iterable[str]) -> tuple[int, list[str]]:
    """The newest that is complete: its version, or -1, and its files."""
    found: dict[tuple[int, str], list[str]] = {}
    for name in names:
        if match := _CHECKPOINT.fullmatch(name):
            parts = match[3] or ""
            found.setdefault((int(match[1]), parts), []).append(name)
    whole = {
        version: files
        for (version, parts), files in found.items()
        if not parts or len(files) == int(parts)
    }
    newest = max(whole, default=-1)
    return newest, whole.get(newest, [])


def _take(log: _Log, content: bytes, name: str) -> None:
    """The actions of a file with one a line, in its order."""
    what = f"{LOG}/{name}: not a commit of Delta's"
    for line in content.splitlines():
        if not line.strip():
            continue
        action = table(parse(line, what), what)
        if (txn := action.get("txn")) is not None:
            app = table(txn, what).get("appId")
            if not isinstance(app, str):
                raise UnreadableSink(f"{what}: a txn without an appId")
            log.versions[app] = number(txn.get("version"), what)
        if isinstance(info := action.get("commitInfo"), dict):
            parameters = info.get("operationParameters")
            query = parameters.get("queryId") if isinstance(parameters, dict) else None
            if isinstance(query, str):
                log.queries.add(query)


def _take_parquet(log: _Log, content: bytes, name: str) -> None:
    """The same of a checkpoint in Parquet; told as unread where pyarrow is not installed."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        log.unread.append(f"pyarrow, which reads {name}, is not installed: pip install pyarrow")
        return
    what = f"{LOG}/{name}: not a checkpoint of Delta's"
    try:
        file = pyarrow.parquet.ParquetFile(io.BytesIO(content))
        if file.metadata.num_rows > _MOST_ROWS:
            log.unread.append(f"{name}, of more than {_MOST_ROWS} actions")
            return
        for batch in file.iter_batches(columns=["txn"]):
            rows = batch.column(0).drop_null().to_pylist() if batch.num_columns else []
            # Some writers leave the fields of a txn empty, where others leave out the txn.
            for row in rows:
                if row["appId"] is not None:
                    log.versions[row["appId"]] = number(row["version"], what)
    # Damage comes as an OSError too, of bytes that are here already.
    except (pyarrow.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
        raise UnreadableSink(f"{what}: {error}") from error


def _find_queries(directory: Directory, log: _Log, older: list[str]) -> None:
    """Which applications of a checkpoint are queries, by the commits that Delta has kept."""
    found = _Log(dict(log.versions), log.queries)
    for name in reversed(older[-MOST_FILES:]):
        if log.versions.keys() <= found.queries | _named(log):
            return
        try:
            _take(found, directory.read(f"{LOG}/{name}"), name)
        except (UnreadableSink, OSError):  # what does not count any more need not be readable
            continue


def _named(log: _Log) -> set[str]:
    """Ids that are no query's, by their form."""
    return {app for app in log.versions if len(app) != 36}


def _remembered(log: _Log) -> Iterator[Remembered]:
    for app, version in sorted(log.versions.items()):
        if job := _FLINK.fullmatch(app):
            name = f"job {job[1]}, subtask {job[2]}"
            yield Remembered(WriterKind.FLINK_JOB, name, version)
        elif app in log.queries:
            yield Remembered(WriterKind.QUERY, app, version)
        else:
            yield Remembered(WriterKind.TXN_APP, app, version)
