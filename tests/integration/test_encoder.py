"""Read the checkpoints of `tests.support.encoder` with Flink's own classes.

Batches of generated checkpoints go through one JVM per release. Every field of every handle, every
size, and the restored splits and enumerators must match the model.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass
from hashlib import md5
from itertools import cycle, islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

import cramjam
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.golden.synthetic.generate import report
from tests.support import encoder
from tests.support.encoder import (
    ASSIGNED,
    MIGRATED,
    NO_STOPPING_OFFSET,
    BroadcastState,
    ByteStreamHandle,
    ChangelogFilesHandle,
    ChangelogHandle,
    DataOutput,
    DistributionMode,
    EnumeratorSplit,
    IncrementalHandle,
    KafkaSplit,
    KeyedHandle,
    KeyGroupsHandle,
    ListState,
    MasterState,
    Metadata,
    Operator,
    OperatorHandle,
    PartitionableHandle,
    StateOffsets,
    StreamHandle,
    Subtask,
    encode_metadata,
    encode_operator_state_stream,
)
from tests.support.flink import RELEASES
from tests.support.round_trip import (
    Parsed,
    checkpoint_properties,
    load_metadata,
    restore_sources,
    write_all_handles,
)
from tests.support.strategies import (
    FLINK_1_15,
    FLINK_1_20,
    FLINK_2_2,
    Dialect,
    ExpectedKafkaSource,
    kafka_checkpoints,
    metadatas,
)
from tests.support.strategies.primitives import blobs, texts, tuples_of

pytestmark = pytest.mark.integration

DIALECTS = {"1.15": FLINK_1_15, "1.20": FLINK_1_20, "2.2": FLINK_2_2}
SYNTHETIC = Path(__file__).parents[1] / "golden" / "synthetic"
EXAMPLES = 200

_Example = TypeVar("_Example")


def examples(
    strategy: Callable[[int], st.SearchStrategy[_Example]], count: int = EXAMPLES
) -> list[_Example]:
    """Generate the same examples in every run.

    ``strategy`` receives the number of each example.
    """
    found: list[_Example] = []

    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def collect(data: st.DataObject) -> None:
        found.append(data.draw(strategy(len(found))))

    collect()
    return found


class _Anything:
    """Equals every value. Stands for values that Flink generates."""

    def __eq__(self, other: object) -> bool:
        return True

    def __repr__(self) -> str:
        return "anything"


ANYTHING = _Anything()


# ---- metadata ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flink", "version"),
    [
        ("1.15", 2),
        ("1.15", 3),
        ("1.20", 4),
        ("2.2", 2),
        ("2.2", 3),
        ("2.2", 4),
        ("2.2", 5),
        ("2.2", 6),
    ],
)
def test_flink_reads_every_encoded_handle(flink: str, version: int) -> None:
    dialect = DIALECTS[flink]
    models = examples(lambda _: metadatas(version, dialect))
    properties = _properties(version, len(models))
    encoded = [
        encode_metadata(model, version, kind.serialized)
        for model, kind in zip(models, properties, strict=True)
    ]
    told = load_metadata(flink, encoded)
    for found, model, kind in zip(told, models, properties, strict=True):
        assert found == _metadata(model, kind.flink_says, flink)
    written = {code for model in models for code in _type_codes(model)}
    assert written == set(range(1, dialect.newest_handle + 1))


class _Properties(NamedTuple):
    """The serialized CheckpointProperties of a kind of checkpoint, and Flink's name of the kind."""

    serialized: bytes
    flink_says: str | None


def _properties(version: int, count: int) -> list[_Properties]:
    """Return properties for a number of checkpoints, alternating between all kinds."""
    if version < 4:
        return [_Properties(b"", None)] * count
    releases: list[dict[str, Any]] = json.loads((SYNTHETIC / "properties.json").read_text())
    kinds = [
        _Properties(bytes.fromhex(kind["hex"]), kind["flink_says"])
        for release in releases
        if version in release["metadata_versions"]
        for kind in release["kinds"].values()
    ]
    return list(islice(cycle(kinds), count))


def _type_codes(value: object) -> Iterator[int]:
    """Yield the type codes of all handles in a part of the model."""
    if isinstance(value, StreamHandle | OperatorHandle | KeyedHandle):
        out = DataOutput()
        value.write(out)
        yield out.to_bytes()[0]
    if isinstance(value, tuple):
        parts = value
    elif is_dataclass(value):
        parts = tuple(getattr(value, field.name) for field in fields(value))
    else:
        parts = ()
    for part in parts:
        yield from _type_codes(part)


def _metadata(model: Metadata, properties: str | None, flink: str) -> Parsed:
    return {
        "checkpoint_id": model.checkpoint_id,
        "master_states": [_told(state, flink) for state in model.master_states],
        "operators": [_operator(operator, flink) for operator in model.operators],
        "properties": properties,
        "unread_bytes": 0,
    }


def _operator(operator: Operator, flink: str) -> Parsed:
    told: Parsed = _told(operator, flink)
    sizes = [
        size
        for subtask in operator.subtasks
        for size in (subtask.operator_state_size, subtask.keyed_state_size, subtask.in_flight_size)
    ]
    coordinator = operator.coordinator.state_size if operator.coordinator else 0
    return {**told, "state_size": coordinator + sum(sizes)}


def _told(value: Any, flink: str) -> Any:
    """Convert a value of the model to the output format of RoundTripMetadata."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, tuple):
        if value and all(isinstance(item, StateOffsets) for item in value):
            return {item.name: _told(item, flink) for item in value}
        return [_told(item, flink) for item in value]
    if not is_dataclass(value):
        return value
    told = {field.name: _told(getattr(value, field.name), flink) for field in fields(value)}
    match value:
        case Metadata() | MasterState() | Operator() | StateOffsets():
            return told
        case Subtask():
            sizes = ("operator_state_size", "keyed_state_size", "in_flight_size")
            return told | {size: getattr(value, size) for size in sizes}
        case _:
            told |= {"kind": type(value).__name__} | _filled_in(value, flink)
            if told.get("states") == []:
                told["states"] = {}
            return told


def _filled_in(handle: object, flink: str) -> Parsed:
    """Return Flink's values for the fields that older forms of a handle lack."""
    match handle:
        case KeyGroupsHandle(handle_id=None, savepoint=False):
            return {"handle_id": ANYTHING}
        case IncrementalHandle():
            filled: Parsed = {
                "shared": {path: _told(file, flink) for path, file in handle.shared},
                "private": {path: _told(file, flink) for path, file in handle.private},
            }
            if handle.handle_id is None:
                filled |= {
                    "backend_id": _name_uuid(handle.backend_id),
                    "checkpointed_size": handle.state_size,
                    "handle_id": ANYTHING,
                }
            return filled
        case ChangelogHandle(checkpoint_id=None) if flink != "1.15":
            return {"checkpoint_id": handle.materialization_id}
        case ChangelogFilesHandle(storage_id=None) if flink != "1.15":
            return {"storage_id": "filesystem"}
        case _:
            return {}


def _name_uuid(name: str) -> str:
    """Compute Java's ``UUID.nameUUIDFromBytes``."""
    return str(UUID(bytes=md5(name.encode()).digest(), version=3))


# ---- metadata that Flink wrote -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("flink", "version"),
    [("1.15", 2), ("1.15", 3), ("1.20", 3), ("1.20", 4), ("2.2", 5), ("2.2", 6)],
)
def test_encoder_output_is_identical_to_flinks_output(
    flink: str, version: int, tmp_path: Path
) -> None:
    told = write_all_handles(flink, version, tmp_path)
    written = (tmp_path / "_metadata").read_bytes()
    properties = b""
    if version >= 4:
        (properties,) = (
            kind.serialized
            for kind in _properties(version, 3)
            if kind.flink_says == told["properties"]
        )
    assert encode_metadata(_rebuilt_metadata(told), version, properties) == written
    path = f"{flink}-v{version}-all-handles/_metadata"
    assert (SYNTHETIC / path).read_bytes() == written
    manifest = json.loads((SYNTHETIC / "manifest.json").read_text())
    (entry,) = (entry for entry in manifest["checkpoints"] if entry["path"] == path)
    assert entry["expected"] == report(told)


@pytest.mark.parametrize("flink", ["1.20", "2.2"])
def test_checkpoint_properties_in_repository_match_output_of_flinks_serializer(flink: str) -> None:
    releases = json.loads((SYNTHETIC / "properties.json").read_text())
    (committed,) = (entry for entry in releases if entry["flink"] == RELEASES[flink][0])
    assert checkpoint_properties(flink) == committed["kinds"]


def _rebuilt_metadata(told: Parsed) -> Metadata:
    """Build the model from the output of RoundTripMetadata."""
    return Metadata(
        told["checkpoint_id"],
        operators=tuple(map(_rebuilt_operator, told["operators"])),
        master_states=tuple(
            MasterState(state["version"], state["name"], bytes.fromhex(state["data"]))
            for state in told["master_states"]
        ),
    )


def _rebuilt_operator(told: Parsed) -> Operator:
    known = {field.name: told[field.name] for field in fields(Operator)}
    return Operator(
        **known
        | {
            "operator_id": bytes.fromhex(told["operator_id"]),
            "coordinator": _rebuilt(told["coordinator"]),
            "subtasks": tuple(
                Subtask(**{field.name: _rebuilt(subtask[field.name]) for field in fields(Subtask)})
                for subtask in told["subtasks"]
            ),
        }
    )


def _rebuilt(told: Any) -> Any:
    """Build a value, a handle, or several handles."""
    if isinstance(told, list):
        return tuple(map(_rebuilt, told))
    if not isinstance(told, dict):
        return told
    handle = {name: _rebuilt_field(name, value) for name, value in told.items()}
    return getattr(encoder, handle.pop("kind"))(**handle)


def _rebuilt_field(name: str, told: Any) -> Any:
    match name:
        case "data" | "serialized_channel_offsets":
            return bytes.fromhex(told)
        case "states":
            return tuple(
                StateOffsets(name, DistributionMode(state["mode"]), tuple(state["offsets"]))
                for name, state in told.items()
            )
        case "shared" | "private":
            return tuple((path, _rebuilt(file)) for path, file in told.items())
        case "changes":
            return tuple((key_group, bytes.fromhex(change)) for key_group, change in told)
        case _:
            return _rebuilt(told)


# ---- operator-state streams --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flink", "proxy_version", "compressed"),
    [
        ("1.15", 1, False),
        ("1.15", 2, False),
        ("1.15", 3, False),
        ("1.15", 4, False),
        ("1.15", 5, False),
        ("1.20", 6, False),
        ("1.20", 6, True),
        ("2.2", 5, False),
        ("2.2", 6, False),
        ("2.2", 6, True),
    ],
)
def test_flink_restores_every_element_of_operator_state(
    flink: str, proxy_version: int, compressed: bool, tmp_path: Path
) -> None:
    broadcasts = _broadcast_states if proxy_version >= 3 else st.just(())
    states = examples(lambda _: st.tuples(_list_states, broadcasts), count=50)
    # Both elements are larger than Snappy's blocks. Snappy can compress only the first element.
    states.append(((_large(bytes(range(256)) * 800), _large(_noise(200_000))), ()))
    checkpoints = []
    for number, (lists, broadcast) in enumerate(states):
        stream, offsets = encode_operator_state_stream(proxy_version, compressed, lists, broadcast)
        checkpoints.append(_store(tmp_path / str(number), stream, offsets))
        if compressed:
            # Flink does not verify the checksums of the chunks, but cramjam does.
            cramjam.snappy.decompress(stream[stream.index(b"\xff\x06\x00\x00sNaPpY") :])
    told = restore_sources(flink, ((checkpoint, [bytes(16)]) for checkpoint in checkpoints))
    for found, (lists, broadcast) in zip(told, states, strict=True):
        restored = found["00" * 16]["subtasks"]["0"]
        assert restored["list_states"] == {
            state.name: [element.hex() for element in state.elements] for state in lists
        }
        assert {
            name: sorted(entries) for name, entries in restored["broadcast_states"].items()
        } == {
            state.name: sorted([key.hex(), value.hex()] for key, value in state.entries)
            for state in broadcast
        }


_list_states = tuples_of(
    st.builds(
        ListState,
        texts,
        st.sampled_from((DistributionMode.SPLIT_DISTRIBUTE, DistributionMode.UNION)),
        tuples_of(blobs, 4),
    ),
    3,
    unique_by=lambda state: state.name,
).filter(bool)
_broadcast_states = tuples_of(
    st.builds(
        BroadcastState,
        texts.map("broadcast {}".format),
        # Byte arrays are never equal as keys of a Java map, so equal keys remain two entries.
        tuples_of(st.tuples(blobs, blobs), 3),
    ),
    unique_by=lambda state: state.name,
)


def _large(element: bytes) -> ListState:
    return ListState(f"large {element[:2].hex()}", DistributionMode.UNION, (b"", element, b"x"))


def _noise(size: int) -> bytes:
    blocks = (md5(number.to_bytes(4, "big")).digest() for number in range(size // 16))
    return b"".join(blocks)


def _store(directory: Path, stream: bytes, offsets: tuple[StateOffsets, ...]) -> Path:
    handle = PartitionableHandle(offsets, ByteStreamHandle("inline", stream))
    subtask = Subtask(0, managed_operator=handle)
    metadata = Metadata(1, (Operator(bytes(16), 1, 1, subtasks=(subtask,)),))
    directory.mkdir()
    (directory / "_metadata").write_bytes(encode_metadata(metadata, 3))
    return directory


# ---- Kafka sources -----------------------------------------------------------------------------


@pytest.mark.parametrize(("flink", "version"), [("1.15", 3), ("1.20", 4), ("2.2", 6)])
def test_connector_restores_splits_and_enumerator(flink: str, version: int, tmp_path: Path) -> None:
    dialect = DIALECTS[flink]
    models = examples(
        lambda number: kafka_checkpoints(version, f"file:{tmp_path}/{number}", dialect), count=100
    )
    properties = _properties(version, len(models))
    checkpoints = [
        (
            model.store(tmp_path / str(number), kind.serialized),
            [source.operator_id for source in model.sources],
        )
        for number, (model, kind) in enumerate(zip(models, properties, strict=True))
    ]
    told = restore_sources(flink, checkpoints)
    for found, model in zip(told, models, strict=True):
        for source in model.sources:
            of_source = found[source.operator_id.hex()]
            assert _reader_splits(of_source) == list(source.reader_splits)
            assert _enumerator(of_source, dialect) == _meant_enumerator(source, dialect)
    assert {place for model in models for place in _places(model.metadata)} >= _all_places(dialect)


def _reader_splits(told: Parsed) -> list[tuple[int, KafkaSplit]]:
    return [
        (int(subtask), KafkaSplit(*split))
        for subtask, restored in told["subtasks"].items()
        for split in restored["splits"]
    ]


def _enumerator(told: Parsed, dialect: Dialect) -> tuple[set[tuple[Any, ...]], bool | None]:
    enumerator = told["enumerator"]
    splits = {(*entry["split"], entry["status"]) for entry in enumerator["splits"]}
    assert len(splits) == len(enumerator["splits"])
    return splits, enumerator["initial_discovery_finished"]


def _meant_enumerator(
    source: ExpectedKafkaSource, dialect: Dialect
) -> tuple[set[tuple[Any, ...]], bool | None]:
    splits = {
        _meant_split(entry, source.enumerator_version, dialect)
        for entry in source.enumerator_splits
    }
    if max(dialect.enumerator_versions) < 2:
        return splits, None
    # If the state lacks this field, Flink assumes that the discovery has finished.
    return splits, source.initial_discovery_finished if source.enumerator_version >= 2 else True


def _meant_split(entry: EnumeratorSplit, version: int, dialect: Dialect) -> tuple[Any, ...]:
    split = entry.split
    status = entry.status if version >= 2 else ASSIGNED
    match max(dialect.enumerator_versions):
        case 1:
            return split.topic, split.partition, None
        case 2:
            return split.topic, split.partition, status
        case _ if version in (1, 2):
            return split.topic, split.partition, MIGRATED, NO_STOPPING_OFFSET, status
        case _:
            return (
                split.topic,
                split.partition,
                split.starting_offset,
                split.stopping_offset,
                status,
            )


def _places(metadata: Metadata) -> Iterable[str]:
    for operator in metadata.operators:
        for subtask in operator.subtasks:
            if subtask.managed_operator:
                yield type(subtask.managed_operator.delegate).__name__


def _all_places(dialect: Dialect) -> set[str]:
    places = {"ByteStreamHandle", "RelativeFileHandle", "FileHandle"}
    return places | {"SegmentHandle"} if dialect.newest_handle >= 17 else places
