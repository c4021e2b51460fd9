"""Metadata with handles of every kind, without their files."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from hypothesis import strategies as st

from tests.support.encoder import (
    ByteStreamHandle,
    ChangelogBytesHandle,
    ChangelogFilesHandle,
    ChangelogHandle,
    ChannelHandle,
    DistributionMode,
    EmptySegmentHandle,
    FileHandle,
    FileMergingOperatorHandle,
    IncrementalHandle,
    KeyedHandle,
    KeyGroupsHandle,
    MasterState,
    MergedChannelHandle,
    Metadata,
    Operator,
    OperatorHandle,
    PartitionableHandle,
    RelativeFileHandle,
    SegmentHandle,
    StateOffsets,
    StreamHandle,
    StreamKeyGroupsHandle,
    Subtask,
)
from tests.support.strategies.dialect import EVERYTHING, Dialect
from tests.support.strategies.primitives import (
    HIGHEST_INT,
    HIGHEST_LONG,
    MAX_PARALLELISM,
    blobs,
    ints,
    longs,
    names,
    offset_lists,
    relative_paths,
    sizes,
    texts,
    tuples_of,
    uris,
)

# A handle covers a few key groups.
_key_group_starts = st.integers(0, MAX_PARALLELISM - 8)
_key_group_counts = st.integers(1, 8)
_key_group_offsets = st.lists(longs, min_size=1, max_size=4).map(tuple)
_one_in_six = st.integers(0, 5).map(lambda number: number == 5)

# ---- handles -----------------------------------------------------------------------------------


@cache
def stream_handles(dialect: Dialect = EVERYTHING) -> st.SearchStrategy[StreamHandle]:
    """Draw stream handles of every kind in the dialect."""
    plain: st.SearchStrategy[StreamHandle] = (
        st.builds(ByteStreamHandle, texts, blobs)
        | st.builds(FileHandle, uris, st.just(-1) | sizes)
        | st.builds(RelativeFileHandle, relative_paths, sizes)
    )
    if dialect.newest_handle >= 16:
        plain |= segment_handles()
    return plain | st.builds(StreamKeyGroupsHandle, _key_group_starts, _key_group_offsets, plain)


def segment_handles() -> st.SearchStrategy[SegmentHandle | EmptySegmentHandle]:
    """Draw segments of merged files, including the empty segment."""
    segments = st.builds(SegmentHandle, uris, sizes, sizes, st.sampled_from((0, 1)), names)
    return segments | st.just(EmptySegmentHandle())


@cache
def operator_handles(dialect: Dialect = EVERYTHING) -> st.SearchStrategy[OperatorHandle]:
    """Draw operator-state handles with states of any name."""
    states = tuples_of(
        st.builds(StateOffsets, texts, st.sampled_from(DistributionMode), offset_lists),
        unique_by=lambda state: state.name,
    )
    plain = st.builds(PartitionableHandle, states, stream_handles(dialect))
    if dialect.newest_handle < 17:
        return plain
    return plain | st.builds(
        FileMergingOperatorHandle, states, uris, uris, st.booleans(), segment_handles()
    )


@cache
def keyed_handles(dialect: Dialect = EVERYTHING) -> st.SearchStrategy[KeyedHandle]:
    """Draw keyed-state handles of every kind in the dialect, old and new."""
    plain = _key_groups_handles(dialect) | _incremental_handles(dialect)
    changes = _changelog_bytes_handles() | _changelog_files_handles(dialect)
    checkpoint_ids = st.none() if dialect.newest_handle < 14 else st.none() | longs
    changelogs = st.builds(
        ChangelogHandle,
        _key_group_starts,
        _key_group_counts,
        sizes,
        tuples_of(plain),
        tuples_of(changes),
        longs,
        checkpoint_ids,
        texts,
    )
    return plain | changes | changelogs


@cache
def _key_groups_handles(dialect: Dialect) -> st.SearchStrategy[KeyGroupsHandle]:
    parts = (_key_group_starts, _key_group_offsets, stream_handles(dialect))
    return st.builds(KeyGroupsHandle, *parts, st.none() | texts) | st.builds(
        KeyGroupsHandle, *parts, st.none(), st.just(True)
    )


@cache
@st.composite
def _incremental_handles(draw: st.DrawFn, dialect: Dialect) -> IncrementalHandle:
    files = tuples_of(st.tuples(texts, stream_handles(dialect)), unique_by=lambda file: file[0])
    old = draw(st.booleans())
    return IncrementalHandle(
        checkpoint_id=draw(longs),
        # Before FLINK-6964 this id was not a UUID.
        backend_id=draw(texts if old else st.uuids().map(str)),
        first_key_group=draw(_key_group_starts),
        key_groups=draw(_key_group_counts),
        checkpointed_size=None if old else draw(sizes),
        meta=draw(stream_handles(dialect)),
        shared=draw(files),
        private=draw(files),
        handle_id=None if old else draw(texts),
    )


def _changelog_bytes_handles() -> st.SearchStrategy[ChangelogBytesHandle]:
    return st.builds(
        ChangelogBytesHandle,
        _key_group_starts,
        _key_group_counts,
        st.integers(0, HIGHEST_LONG),
        st.integers(0, HIGHEST_LONG),
        tuples_of(st.tuples(st.integers(-1, MAX_PARALLELISM), blobs)),
        texts,
    )


@cache
def _changelog_files_handles(dialect: Dialect) -> st.SearchStrategy[ChangelogFilesHandle]:
    return st.builds(
        ChangelogFilesHandle,
        _key_group_starts,
        _key_group_counts,
        tuples_of(st.tuples(longs, stream_handles(dialect))),
        sizes,
        sizes,
        texts,
        st.none() if dialect.newest_handle < 13 else st.none() | texts,
    )


@cache
def channel_handles(
    version: int, dialect: Dialect = EVERYTHING
) -> st.SearchStrategy[ChannelHandle | MergedChannelHandle]:
    """Draw handles of in-flight records, in the forms of a metadata version."""
    indexes = st.integers(0, HIGHEST_INT)
    channels = st.tuples(indexes, indexes)
    delegates = stream_handles(dialect)
    plain = st.builds(ChannelHandle, indexes, channels, offset_lists, sizes, delegates)
    if version < 6:
        return plain
    return plain | st.builds(MergedChannelHandle, indexes, sizes, delegates, blobs)


# ---- operators and metadata --------------------------------------------------------------------


@cache
def subtasks(version: int, dialect: Dialect = EVERYTHING) -> st.SearchStrategy[Subtask]:
    """Draw subtasks with any state; the operator sets their indexes."""
    operator_states = st.none() | operator_handles(dialect)
    keyed_states = st.none() | keyed_handles(dialect)
    channels = tuples_of(channel_handles(version, dialect)) if version > 2 else st.just(())
    running = st.builds(
        Subtask,
        index=st.just(0),
        managed_operator=operator_states,
        raw_operator=operator_states,
        managed_keyed=keyed_states,
        raw_keyed=keyed_states,
        input_channels=channels,
        result_subpartitions=channels,
    )
    if version == 2:
        return running
    return st.builds(
        lambda subtask, finished: Subtask(0, finished=True) if finished else subtask,
        running,
        _one_in_six,
    )


@cache
@st.composite
def operators(draw: st.DrawFn, version: int, dialect: Dialect = EVERYTHING) -> Operator:
    """Draw an operator that is not a Kafka source."""
    operator = Operator(
        operator_id=draw(operator_ids),
        parallelism=1,
        max_parallelism=MAX_PARALLELISM,
        name=draw(operator_names(version)),
        uid=draw(operator_names(version)),
    )
    if version > 2 and draw(_one_in_six):
        return replace(operator, finished=True)
    indexes = sorted(draw(_subtask_indexes))
    states = subtasks(version, dialect)
    highest = indexes[-1] if indexes else 0
    parallelism = draw(st.integers(highest + 1, MAX_PARALLELISM))
    return replace(
        operator,
        parallelism=parallelism,
        max_parallelism=draw(st.integers(parallelism, MAX_PARALLELISM)),
        coordinator=None if version == 2 else draw(_coordinators),
        subtasks=tuple(replace(draw(states), index=index) for index in indexes),
    )


operator_ids = st.binary(min_size=16, max_size=16)
_subtask_indexes = st.sets(st.integers(0, MAX_PARALLELISM - 1), max_size=3)
_coordinators = st.none() | st.builds(ByteStreamHandle, texts, blobs)


@cache
def operator_names(version: int) -> st.SearchStrategy[str | None]:
    """Draw names or uids: None or not empty, and always None before version 5."""
    return st.none() if version < 5 else st.none() | names


@cache
def operator_tuples(
    version: int, dialect: Dialect = EVERYTHING, max_size: int = 3
) -> st.SearchStrategy[tuple[Operator, ...]]:
    """Draw a few operators with different ids."""
    return tuples_of(
        operators(version, dialect), max_size, unique_by=lambda operator: operator.operator_id
    )


@cache
def metadatas(version: int, dialect: Dialect = EVERYTHING) -> st.SearchStrategy[Metadata]:
    """Draw the metadata of a checkpoint, with any handles."""
    return st.builds(
        Metadata,
        st.integers(0, HIGHEST_LONG),
        operator_tuples(version, dialect),
        tuples_of(st.builds(MasterState, ints, texts, blobs)),
    )
