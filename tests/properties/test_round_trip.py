"""Decode the encoder's checkpoints and compare every fact.

The encoder is a second reading of Flink's sources that shares no code with the decoder. In
tests/integration/test_encoder.py, Flink's own classes read its bytes.
"""

from __future__ import annotations

import tempfile
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import TypeVar, cast

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from decoder import (
    Checkpoint,
    HybridSource,
    KafkaSource,
    LegacyConsumer,
    UnknownSource,
    read_checkpoint,
)
from decoder.kafka.enumerator import EnumeratorState
from tests.support.checkpoints import trailing_properties
from tests.support.encoder import NO_STOPPING_OFFSET, FileHandle, Metadata, RelativeFileHandle
from tests.support.strategies import (
    ExpectedKafkaSource,
    ExpectedLegacySource,
    KafkaCheckpoint,
    kafka_checkpoints,
)

VERSIONS = (2, 3, 4, 5, 6)

# The job's original directory. The checkpoint is read from a different directory.
JOB_URI = "s3://bucket/flink/0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize("examples", [5, pytest.param(150, marks=pytest.mark.slow)])
@pytest.mark.parametrize("version", VERSIONS)
def test_decoded_checkpoints_match_encoded_checkpoints(version: int, examples: int) -> None:
    @settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],  # shrinking a whole checkpoint takes many minutes
    )
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        drawn: KafkaCheckpoint = data.draw(kafka_checkpoints(version, JOB_URI))
        with tempfile.TemporaryDirectory() as directory:
            pointer = drawn.store(Path(directory) / "job", trailing_properties(version))
            checkpoint = read_checkpoint(pointer)
        _check_operators(checkpoint, _without_unknown_sizes(drawn.metadata), version)
        for facts in drawn.sources:
            _check_source(checkpoint, facts)
        for legacy in drawn.legacy:
            _check_legacy(checkpoint, legacy)

    holds()


_T = TypeVar("_T")


def _without_unknown_sizes(encoded: _T) -> _T:
    """Return the same model, but with size 0 for every file of unknown size (-1).

    Flink adds the -1 to the size of the state.
    """
    if isinstance(encoded, tuple):
        return cast(_T, tuple(map(_without_unknown_sizes, encoded)))
    if isinstance(encoded, FileHandle | RelativeFileHandle):
        return cast(_T, replace(encoded, size=max(0, encoded.size)))
    if is_dataclass(encoded) and not isinstance(encoded, type):
        values = {f.name: _without_unknown_sizes(getattr(encoded, f.name)) for f in fields(encoded)}
        return cast(_T, replace(encoded, **values))
    return encoded


def _check_operators(checkpoint: Checkpoint, metadata: Metadata, version: int) -> None:
    assert checkpoint.metadata_version == version
    assert checkpoint.checkpoint_id == metadata.checkpoint_id
    assert [operator.operator_id for operator in checkpoint.operators] == [
        operator.operator_id.hex() for operator in metadata.operators
    ]
    for operator, encoded in zip(checkpoint.operators, metadata.operators, strict=True):
        assert (operator.parallelism, operator.max_parallelism, operator.finished) == (
            encoded.parallelism,
            encoded.max_parallelism,
            encoded.finished,
        )
        assert [(s.index, s.finished) for s in operator.subtasks] == [
            (s.index, s.finished) for s in encoded.subtasks
        ]
        assert operator.keyed_state_bytes == sum(
            handle.state_size
            for subtask in encoded.subtasks
            for handle in (subtask.managed_keyed, subtask.raw_keyed)
            if handle is not None
        )
        assert operator.operator_state_bytes == sum(
            handle.state_size
            for subtask in encoded.subtasks
            for handle in (subtask.managed_operator, subtask.raw_operator)
            if handle is not None
        )
        assert operator.in_flight_bytes == sum(
            channel.state_size
            for subtask in encoded.subtasks
            for channel in (*subtask.input_channels, *subtask.result_subpartitions)
        )


def _check_source(checkpoint: Checkpoint, facts: ExpectedKafkaSource) -> None:
    source = checkpoint.sources.get(facts.operator_id.hex())
    if isinstance(source, HybridSource):
        assert (source.source_index, source.other_splits) == (facts.hybrid_index, 0)
        source = source.current
    else:
        assert facts.hybrid_index is None or source is None or isinstance(source, UnknownSource)
    if not facts.reader_splits and not facts.enumerator_splits:
        # The empty state does not show the kind of the source.
        assert source is None or isinstance(source, UnknownSource)
        return
    assert isinstance(source, KafkaSource)
    assert sorted(
        (held.subtask, held.split.topic, held.split.partition, held.split.starting_offset)
        for held in source.reader_splits
    ) == sorted(
        (subtask, split.topic, split.partition, split.starting_offset)
        for subtask, split in facts.reader_splits
    )
    assert {held.split.stopping_offset for held in source.reader_splits} == {
        None if split.stopping_offset == NO_STOPPING_OFFSET else split.stopping_offset
        for _, split in facts.reader_splits
    }
    assert source.enumerator is not None
    _check_enumerator(source.enumerator, facts)


def _check_enumerator(enumerator: EnumeratorState, facts: ExpectedKafkaSource) -> None:
    assert enumerator.version == facts.enumerator_version
    assert sorted(
        (entry.topic, entry.partition, entry.status.value) for entry in enumerator.entries
    ) == sorted(
        (
            entry.split.topic,
            entry.split.partition,
            entry.status if facts.enumerator_version >= 2 else 0,
        )
        for entry in facts.enumerator_splits
    )
    if facts.enumerator_version in (0, 3):
        assert sorted(
            (entry.split.topic, entry.split.partition, entry.split.starting_offset)
            for entry in enumerator.entries
            if entry.split is not None
        ) == sorted(
            (entry.split.topic, entry.split.partition, entry.split.starting_offset)
            for entry in facts.enumerator_splits
        )
    if facts.enumerator_version >= 2:
        assert enumerator.initial_discovery_finished is facts.initial_discovery_finished


def _check_legacy(checkpoint: Checkpoint, facts: ExpectedLegacySource) -> None:
    source = checkpoint.sources.get(facts.operator_id.hex())
    if not facts.listed:
        assert source is None or isinstance(source, UnknownSource)
        return
    assert isinstance(source, LegacyConsumer)
    assert sorted(
        (held.subtask, held.topic, held.partition, held.stored_offset) for held in source.offsets
    ) == sorted(facts.listed)
