"""A checkpoint location in which a file source stood in Kafka's place: its logs, as Kafka's.

Spark has run one batch over rows of files. What it logged of that batch becomes what it would have
logged had those rows come from Kafka: ``offsets/0`` has a line for each source, which gets the
positions that batch 0 ended at; ``sources/<source>/0`` becomes Kafka's seed; ``commits/0`` holds
the watermark that batch 1 begins with. The state stays as it is.

The watermark goes into ``offsets/0`` as well: what is late in batch 1 is judged by the watermark of
the batch before it, which stands there.

Source: OffsetSeq, OffsetSeqLog, OffsetSeqMetadata, CommitLog, CommitMetadata, FileStreamSourceLog,
MicroBatchExecution.populateStartOffsets, IncrementalExecution (inputWatermarkForLateEvents of
prevOffsetSeqMetadata) @ Spark 4.0.0.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from migrate.inputs.offsets_json import NextOffsets, NotOffsets, parse_json, starting_offsets
from migrate.model.errors import InputError, Refused
from migrate.targets.seed import seed_of

# The versions of the logs that are rewritten here. Spark 4.2 can be told to write offsets v2, whose
# lines begin with the source; and Spark 4.0 commits v2, with the ids of state files.
_OFFSETS = ("v1", "v2")
_COMMITS = ("v1", "v2", "v3")
_BATCH = re.compile(r"[0-9]+")

# What a query takes from its checkpoint location, not from its session, once a batch is logged.
_PINNED = {
    "spark.sql.shuffle.partitions",
    "spark.sql.streaming.stateStore.providerClass",
    "spark.sql.streaming.stateStore.compression.codec",
    "spark.sql.streaming.stateStore.rocksdb.formatVersion",
    "spark.sql.streaming.multipleWatermarkPolicy",
}


def source_of_rows(checkpoint: Path, source: str) -> str | None:
    """The directory whose files a source (``sources_of``) has read; None where it has read none.

    Raises:
        InputError: it is not a file source's.
    """
    log = checkpoint / "sources" / source / "0"
    if not log.is_file():
        return None
    version, _, rest = log.read_text(encoding="utf-8").partition("\n")
    try:
        paths = [json.loads(line)["path"] for line in rest.splitlines()]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{log}: not the log of a file source ({version[:20]!r})") from error
    folders = {path.rpartition("/")[0].rpartition("/")[2] for path in paths}
    if version != "v1" or len(folders) != 1:
        raise InputError(f"{log}: not the log of one file source of version v1")
    return str(folders.pop())


def sources_of(checkpoint: Path) -> list[str]:
    """What the logs call each of the query's sources, in their order: its number, or (Spark 4.2)
    its name.

    Raises:
        InputError: its logs are of a version not known here.
    """
    version, _, *lines = _offsets(checkpoint, 0)
    if version == "v1":
        return [str(number) for number in range(len(lines))]
    return [line.partition(":")[0] for line in lines]


def set_watermark(checkpoint: Path, batch: int, watermark_ms: int) -> None:
    """Have a batch end with a watermark, by which the next one judges what is late.

    Raises:
        InputError: its logs are of a version not known here.
        OSError: it cannot be read or written.
    """
    version, metadata, *sources = _offsets(checkpoint, batch)
    told = {**_object(metadata), "batchWatermarkMs": watermark_ms}
    _write(checkpoint / "offsets" / str(batch), "\n".join([version, _compact(told), *sources]))
    version, metadata = _entry(checkpoint / "commits" / str(batch), _COMMITS)
    told = {**_object(metadata), "nextBatchWatermarkMs": watermark_ms}
    _write(checkpoint / "commits" / str(batch), f"{version}\n{_compact(told)}")


def put_kafka(
    checkpoint: Path,
    positions: Sequence[NextOffsets],
    watermark_ms: int | None,
    batches: int = 1,
) -> dict[str, str]:
    """Put Kafka in the place of every source, in a checkpoint location that nobody uses yet.

    Returns:
        The settings that the location keeps, whatever a later session says.

    Args:
        checkpoint: with its first batches and nothing else, committed.
        positions: of each source, in the order of ``sources_of``.
        watermark_ms: where event time stands, in epoch milliseconds; None of a query without one.
        batches: how many there are.

    Raises:
        Refused: it holds another number of batches.
        InputError: its logs are of a version not known here.
        OSError: it cannot be read or written.
    """
    _check_batches(checkpoint, batches)
    sources = sources_of(checkpoint)
    if len(sources) != len(positions):
        raise Refused(
            f"the query reads {len(sources)} sources, and there are positions of {len(positions)}"
        )
    lines = list(map(starting_offsets, positions))
    for batch in range(batches):
        version, metadata, *_ = _offsets(checkpoint, batch)
        _entry(checkpoint / "commits" / str(batch), _COMMITS)  # before anything is written
        told = [_line(version, *one) for one in zip(sources, lines, strict=True)]
        _write(checkpoint / "offsets" / str(batch), "\n".join([version, metadata, *told]))
        set_watermark(checkpoint, batch, watermark_ms or 0)
    for source, starts in zip(sources, positions, strict=True):
        folder = checkpoint / "sources" / source
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        _write(folder / "0", seed_of(starts).decode())
    conf = _object(metadata).get("conf", {})
    return {name: conf[name] for name in sorted(_PINNED & conf.keys())}


def commit_version(checkpoint: Path, batch: int) -> str:
    """Of which version a batch's entry of the commit log is.

    Raises:
        InputError: one not known here.
    """
    return _entry(checkpoint / "commits" / str(batch), _COMMITS)[0]


def copy_to_read(checkpoint: Path, batch: int, copy: Path, has_read: Path) -> None:
    """Copy a checkpoint location as it was after a batch, for another query over its state: of one
    source, of files, of which it has read one.

    Raises:
        InputError: its logs are of a version not known here.
        OSError: it cannot be read or written.
    """
    _copy_changing(checkpoint / "state", copy / "state")
    for folder in ("offsets", "commits", "sources/0"):
        (copy / folder).mkdir(parents=True)
    for number in range(batch + 1):
        version, metadata, *_ = _offsets(checkpoint, number)
        lines = (version, metadata, _line(version, "0", _compact({"logOffset": 0})))
        _write(copy / "offsets" / str(number), "\n".join(lines))
        commit = "\n".join(_entry(checkpoint / "commits" / str(number), _COMMITS))
        _write(copy / "commits" / str(number), commit)
    millis = has_read.stat().st_mtime_ns // 1_000_000  # too old, and Spark would forget that it has
    read = _compact({"path": has_read.absolute().as_uri(), "timestamp": millis, "batchId": 0})
    _write(copy / "sources" / "0" / "0", f"v1\n{read}")
    shutil.copyfile(checkpoint / "metadata", copy / "metadata")


def _copy_changing(folder: Path, copy: Path) -> None:
    """Copy what a running query writes to. It renames its temporary files, and deletes old ones; a
    state that lacks a file of its batch is not read by Spark."""

    def copied(source: str, target: str) -> None:
        with suppress(FileNotFoundError):
            shutil.copy2(source, target)

    shutil.copytree(
        folder, copy, ignore=shutil.ignore_patterns(".*.tmp", ".*.tmp.crc"), copy_function=copied
    )


def _check_batches(checkpoint: Path, batches: int) -> None:
    for log in ("offsets", "commits"):
        folder = checkpoint / log
        names = sorted(file.name for file in folder.iterdir()) if folder.is_dir() else []
        found = [name for name in names if _BATCH.fullmatch(name)]
        if found != [str(batch) for batch in range(batches)]:
            raise Refused(
                f"over the rows Spark ran other batches than {batches - 1} ({log}: "
                f"{', '.join(found) or 'none'}): nothing can take their place"
            )


def _offsets(checkpoint: Path, batch: int) -> list[str]:
    """The lines of an entry of the offset log: version, metadata, a line for each source."""
    version, rest = _entry(checkpoint / "offsets" / str(batch), _OFFSETS)
    return [version, *rest.split("\n")]


def _line(version: str, source: str, offset: str) -> str:
    """What an entry of the offset log says of a source."""
    return offset if version == "v1" else f"{source}:{offset}"


def _entry(path: Path, known: Sequence[str]) -> tuple[str, str]:
    version, _, rest = path.read_text(encoding="utf-8").partition("\n")
    if version.strip() not in known:
        raise InputError(
            f"{path.parent.name}/{path.name}: log version {version.strip()[:20]!r} is not "
            f"rewritten here; known: {', '.join(known)}"
        )
    return version.strip(), rest.rstrip("\n")


def _object(text: str) -> dict[str, Any]:
    try:
        found = parse_json(text)
    except NotOffsets as error:
        raise InputError(f"an entry of a log: {error}") from error
    if not isinstance(found, dict):
        raise InputError("an entry of a log is no JSON object")
    return found


def _compact(value: Mapping[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"))


def _write(path: Path, content: str) -> None:
    """Hadoop's checksum beside a file that is not Hadoop's any more would be stale."""
    path.write_bytes(content.encode())
    (path.parent / f".{path.name}.crc").unlink(missing_ok=True)
