"""Complete checkpoints of jobs with Kafka sources: metadata, state files, expected content."""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from hypothesis import strategies as st

from tests.support.encoder import (
    ASSIGNED,
    COMMITTED,
    EARLIEST,
    LATEST,
    LEGACY_EARLIEST,
    LEGACY_GROUP,
    LEGACY_LATEST,
    LEGACY_NOT_SET,
    LEGACY_STATE,
    MIGRATED,
    NO_STOPPING_OFFSET,
    READER_STATE,
    UNASSIGNED,
    BroadcastState,
    ByteStreamHandle,
    DistributionMode,
    EnumeratorSplit,
    FileHandle,
    FileMergingOperatorHandle,
    KafkaSplit,
    ListState,
    Metadata,
    Operator,
    OperatorHandle,
    PartitionableHandle,
    RelativeFileHandle,
    SegmentHandle,
    StateOffsets,
    Subtask,
    encode_coordinator,
    encode_enumerator,
    encode_hybrid_enumerator,
    encode_hybrid_split,
    encode_legacy_element,
    encode_metadata,
    encode_operator_state_stream,
    encode_reader_element,
    encode_split,
)
from tests.support.strategies.dialect import EVERYTHING, Dialect
from tests.support.strategies.metadata import operator_ids, operator_names, operator_tuples
from tests.support.strategies.primitives import (
    HIGHEST_INT,
    HIGHEST_LONG,
    MAX_PARALLELISM,
    blobs,
    names,
    texts,
    tuples_of,
)

CHECKPOINT = "chk-7"

topics = st.text(string.ascii_letters + string.digits + "._-", min_size=1, max_size=249).filter(
    lambda name: name not in (".", "..")
)
_positions = st.integers(0, HIGHEST_LONG)
_stopping_offsets = st.sampled_from((NO_STOPPING_OFFSET, LATEST, COMMITTED)) | _positions
_hybrid_indexes = st.none() | st.integers(0, 3)
_legacy_offsets = st.integers(-1, HIGHEST_LONG - 1) | st.sampled_from(
    (LEGACY_NOT_SET, LEGACY_EARLIEST, LEGACY_LATEST, LEGACY_GROUP)
)
_source_ids = st.lists(operator_ids, min_size=1, max_size=2, unique=True)


@dataclass(frozen=True, slots=True)
class ExpectedKafkaSource:
    """The content of a KafkaSource, with its readers' splits by subtask and its enumerator's state.

    `enumerator_splits` also have the values that `enumerator_version` does not store.
    `hybrid_index` is the source's index in a HybridSource, or None.
    """

    operator_id: bytes
    reader_splits: tuple[tuple[int, KafkaSplit], ...]
    enumerator_version: int
    enumerator_splits: tuple[EnumeratorSplit, ...]
    initial_discovery_finished: bool
    hybrid_index: int | None


@dataclass(frozen=True, slots=True)
class ExpectedLegacySource:
    """The content of a FlinkKafkaConsumer: (subtask, topic, partition, stored offset) tuples."""

    operator_id: bytes
    listed: tuple[tuple[int, str, int, int], ...]


@dataclass(frozen=True, slots=True)
class KafkaCheckpoint:
    """A checkpoint, and the expected content of each of its Kafka sources.

    `files` are the state files, by path under the job's directory.
    """

    version: int
    metadata: Metadata
    files: dict[str, bytes]
    sources: tuple[ExpectedKafkaSource, ...]
    legacy: tuple[ExpectedLegacySource, ...] = ()

    def store(self, job_directory: Path, properties: bytes = b"") -> Path:
        """Write the metadata and the state files, and return the checkpoint's directory."""
        checkpoint = job_directory / CHECKPOINT
        checkpoint.mkdir(parents=True)
        encoded = encode_metadata(self.metadata, self.version, properties)
        (checkpoint / "_metadata").write_bytes(encoded)
        for path, data in self.files.items():
            file = job_directory / path
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(data)
        return checkpoint


@dataclass(slots=True)
class _Files:
    """The state files of a checkpoint, by path under the job's directory."""

    job_uri: str
    contents: dict[str, bytes] = field(default_factory=dict)

    def add(self, path: str, data: bytes) -> str:
        """Add a file, and return its URI."""
        self.contents[path] = data
        return f"{self.job_uri}/{path}"


@st.composite
def kafka_checkpoints(
    draw: st.DrawFn, version: int, job_uri: str, dialect: Dialect = EVERYTHING
) -> KafkaCheckpoint:
    """Draw a checkpoint of a job with Kafka sources and other operators.

    Version 2 is older than KafkaSource. Its only Kafka sources are FlinkKafkaConsumers, if the
    dialect has other sources.

    The states are inline, in files or in segments of files, compressed or not. Files outside the
    checkpoint's directory have absolute URIs under `job_uri`.
    """
    files = _Files(job_uri)
    source_ids = draw(_source_ids)
    legacy_ids = source_ids[1:] if dialect.other_sources and draw(st.booleans()) else []
    if version == 2:
        legacy_ids = source_ids if dialect.other_sources else []
    drawn = [
        _kafka_source(draw, source_id, version, dialect, files)
        for source_id in source_ids
        if version > 2 and source_id not in legacy_ids
    ]
    legacy = [_legacy_consumer(draw, each, version, dialect, files) for each in legacy_ids]
    others = draw(operator_tuples(version, dialect, 2))
    every_operator = draw(
        st.permutations(
            [
                *(operator for operator, _ in drawn),
                *(operator for operator, _ in legacy),
                *(other for other in others if other.operator_id not in source_ids),
            ]
        )
    )
    return KafkaCheckpoint(
        version,
        Metadata(draw(_positions), tuple(every_operator)),
        files.contents,
        tuple(facts for _, facts in drawn),
        tuple(facts for _, facts in legacy),
    )


@cache
def kafka_splits(dialect: Dialect = EVERYTHING) -> st.SearchStrategy[list[KafkaSplit]]:
    """Draw splits of a few topics, each topic-partition once."""
    few_topics = st.lists(topics, min_size=1, max_size=3)
    return few_topics.flatmap(
        lambda some: st.lists(
            st.builds(
                KafkaSplit,
                st.sampled_from(some),
                st.integers(0, 9) | st.integers(0, HIGHEST_INT),
                _starting_offsets(dialect),
                _stopping_offsets,
            ),
            max_size=8,
            unique_by=lambda split: (split.topic, split.partition),
        )
    )


@cache
def _starting_offsets(dialect: Dialect) -> st.SearchStrategy[int]:
    markers = (EARLIEST, LATEST, COMMITTED, *((MIGRATED,) if dialect.migrated_splits else ()))
    return st.sampled_from(markers) | _positions


def _kafka_source(
    draw: st.DrawFn, operator_id: bytes, version: int, dialect: Dialect, files: _Files
) -> tuple[Operator, ExpectedKafkaSource]:
    parallelism = draw(st.integers(1, 4))
    splits = draw(kafka_splits(dialect))
    # The subtask of each split; None for a split that is finished or unassigned.
    readers = [draw(st.none() | st.integers(0, parallelism - 1)) for _ in splits]
    hybrid_index = draw(_hybrid_indexes) if dialect.other_sources else None
    by_subtask = {
        subtask: [split for split, reader in zip(splits, readers, strict=True) if reader == subtask]
        for subtask in range(parallelism)
    }
    subtasks = tuple(
        _state_subtask(draw, subtask, _reader_state(assigned, hybrid_index), dialect, files)
        for subtask, assigned in by_subtask.items()
    )
    facts = ExpectedKafkaSource(
        operator_id,
        reader_splits=tuple(
            (subtask, split) for subtask, assigned in by_subtask.items() for split in assigned
        ),
        enumerator_version=draw(st.sampled_from(dialect.enumerator_versions)),
        enumerator_splits=tuple(
            _enumerator_split(draw, split, reader, dialect)
            for split, reader in zip(splits, readers, strict=True)
        ),
        initial_discovery_finished=draw(st.booleans()),
        hybrid_index=hybrid_index,
    )
    optional_names = operator_names(version)
    operator = Operator(
        operator_id,
        parallelism,
        max_parallelism=draw(st.integers(parallelism, MAX_PARALLELISM)),
        name=draw(optional_names),
        uid=draw(optional_names),
        coordinator=ByteStreamHandle(draw(texts), _coordinator(draw, facts)),
        subtasks=subtasks,
    )
    return operator, facts


def _enumerator_split(
    draw: st.DrawFn, split: KafkaSplit, reader: int | None, dialect: Dialect
) -> EnumeratorSplit:
    if reader is None:
        return EnumeratorSplit(split, draw(st.sampled_from((ASSIGNED, UNASSIGNED))))
    # The enumerator stores the initial offset of a split, not the position of its reader.
    initial = replace(split, starting_offset=draw(_starting_offsets(dialect)))
    return EnumeratorSplit(initial, ASSIGNED, reader)


def _coordinator(draw: st.DrawFn, facts: ExpectedKafkaSource) -> bytes:
    version = draw(st.sampled_from((0, 1)))
    enumerator = encode_enumerator(
        facts.enumerator_version, facts.enumerator_splits, facts.initial_discovery_finished
    )
    tracker = draw(blobs) if version == 0 else b""
    enumerator_version = facts.enumerator_version
    if facts.hybrid_index is not None:
        enumerator = encode_hybrid_enumerator(facts.hybrid_index, enumerator_version, enumerator)
        enumerator_version = 0
    return encode_coordinator(version, enumerator_version, enumerator, tracker)


def _legacy_consumer(
    draw: st.DrawFn, operator_id: bytes, version: int, dialect: Dialect, files: _Files
) -> tuple[Operator, ExpectedLegacySource]:
    parallelism = draw(st.integers(1, 4))
    listed = [
        (draw(st.integers(0, parallelism - 1)), split.topic, split.partition, draw(_legacy_offsets))
        for split in draw(kafka_splits(dialect))
    ]
    class_id = draw(st.integers(2, 2**28))
    subtasks = []
    for index in range(parallelism):
        elements = tuple(
            encode_legacy_element(topic, partition, offset, class_id)
            for subtask, topic, partition, offset in listed
            if subtask == index
        )
        state = ListState(LEGACY_STATE, DistributionMode.UNION, elements, sized=False)
        subtasks.append(_state_subtask(draw, index, state, dialect, files, version > 2))
    optional_names = operator_names(version)
    operator = Operator(
        operator_id,
        parallelism,
        max_parallelism=draw(st.integers(parallelism, MAX_PARALLELISM)),
        name=draw(optional_names),
        uid=draw(optional_names),
        subtasks=tuple(subtasks),
    )
    return operator, ExpectedLegacySource(operator_id, tuple(listed))


def _state_subtask(
    draw: st.DrawFn,
    index: int,
    state: ListState,
    dialect: Dialect,
    files: _Files,
    may_finish: bool = True,
) -> Subtask:
    """Draw a subtask with this state and possibly other states; an empty state may be omitted."""
    if not state.elements and draw(st.booleans()):
        return Subtask(index, finished=may_finish and draw(st.booleans()))
    proxy_version = draw(st.sampled_from(dialect.proxy_versions))
    stream, offsets = encode_operator_state_stream(
        proxy_version,
        proxy_version >= 6 and draw(st.booleans()),
        draw(st.permutations([state, *draw(_other_list_states)])),
        draw(_broadcast_states) if proxy_version >= 3 else (),
    )
    # Flink keeps the states of a handle in a hash map, so any order is possible.
    states = tuple(draw(st.permutations(offsets)))
    return Subtask(index, managed_operator=_operator_handle(draw, states, stream, dialect, files))


def _reader_state(splits: Sequence[KafkaSplit], hybrid_index: int | None) -> ListState:
    encoded = [
        encode_split(split.topic, split.partition, split.starting_offset, split.stopping_offset)
        for split in splits
    ]
    if hybrid_index is not None:
        encoded = [
            encode_hybrid_split(hybrid_index, f"{split.topic}-{split.partition}", inner)
            for split, inner in zip(splits, encoded, strict=True)
        ]
    elements = tuple(map(encode_reader_element, encoded))
    return ListState(READER_STATE, DistributionMode.SPLIT_DISTRIBUTE, elements)


_other_list_states = tuples_of(
    st.builds(
        ListState,
        texts.map("list {}".format),
        st.sampled_from((DistributionMode.SPLIT_DISTRIBUTE, DistributionMode.UNION)),
        tuples_of(blobs),
    ),
    unique_by=lambda state: state.name,
)
_broadcast_states = tuples_of(
    st.builds(BroadcastState, texts.map("broadcast {}".format), tuples_of(st.tuples(blobs, blobs))),
    max_size=1,
)


def _operator_handle(
    draw: st.DrawFn,
    states: tuple[StateOffsets, ...],
    stream: bytes,
    dialect: Dialect,
    files: _Files,
) -> OperatorHandle:
    places = ["inline", "relative", "absolute"]
    if dialect.newest_handle >= 17:
        places.append("segment")
    name = f"state-{len(files.contents)}"
    match draw(st.sampled_from(places)):
        case "inline":
            return PartitionableHandle(states, ByteStreamHandle(draw(texts), stream))
        case "relative":
            files.add(f"{CHECKPOINT}/{name}", stream)
            return PartitionableHandle(states, RelativeFileHandle(name, len(stream)))
        case "absolute":
            uri = files.add(f"shared/{name}", stream)
            return PartitionableHandle(states, FileHandle(uri, len(stream)))
        case _:
            before, after = draw(blobs), draw(blobs)
            uri = files.add(f"taskowned/{name}", before + stream + after)
            segment = SegmentHandle(uri, len(before), len(stream), 0, draw(names))
            return FileMergingOperatorHandle(
                states, f"{files.job_uri}/taskowned", f"{files.job_uri}/shared", False, segment
            )
