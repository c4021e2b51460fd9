"""Collect the seeds: every payload inside the golden checkpoints, and the seeds from ``encoded``.

Each payload is converted to the input layout of its target. ``python -m tests.fuzz.corpus`` prints
the number of seeds for each target, and the hash of all seeds.
"""

from __future__ import annotations

import json
import struct
from functools import cache
from hashlib import sha256
from pathlib import Path

import cramjam

from decoder import DecodeError, ErrorKind, Operator
from decoder.kafka.beam import BEAM_SPLIT, WRAPPER_STATE
from decoder.kafka.legacy import LEGACY_CONSUMER_STATE
from decoder.kafka.reader_state import SOURCE_READER_STATE
from decoder.kafka.sink import COMMITTER_STATE, WRITER_STATE
from decoder.metadata.parse import parse_metadata
from decoder.operator_state.fetch import SubtaskState, state_elements
from decoder.state_files import StateFiles
from decoder.storage import LocalFiles
from tests.fuzz.encoded import encoded_seeds
from tests.fuzz.keyed import keyed_seeds
from tests.fuzz.targets import TARGETS

_GOLDEN = Path(__file__).parents[1] / "golden"

_COORDINATOR_HEADER = struct.Struct(">iii")
_ELEMENT_HEADER = struct.Struct(">ii")

# The target that reads the elements of a list state, by the state's name.
_STATES = {
    SOURCE_READER_STATE: "reader-element",
    LEGACY_CONSUMER_STATE: "legacy-element",
    WRAPPER_STATE: "beam-wrapped",
    WRITER_STATE: "writer-state",
    COMMITTER_STATE: "committer-state",
}

# The limits of a u16 offset and of a u8 length in a target's input.
_LONGEST_STREAM = 0xFFFF
_LONGEST_CHUNK = 0xFF - 4

_Seeds = dict[str, set[bytes]]


@cache
def seeds() -> dict[str, list[bytes]]:
    """Return the sorted seeds of each target, without those that exceed its ``max_bytes``."""
    found: _Seeds = {name: set() for name in TARGETS}
    for path in sorted(_GOLDEN.rglob("_metadata")):
        _take_checkpoint(found, path)
    for made in json.loads((_GOLDEN / "synthetic/properties.json").read_text()):
        found["properties"].update(bytes.fromhex(kind["hex"]) for kind in made["kinds"].values())
    for name, encoded in (*encoded_seeds().items(), *keyed_seeds(_GOLDEN).items()):
        found[name].update(encoded)
    return {
        name: sorted(seed for seed in found[name] if len(seed) <= target.max_bytes)
        for name, target in TARGETS.items()
    }


def corpus_hash(corpus: dict[str, list[bytes]]) -> str:
    """Return the SHA-256 hash of all target names and of the hashes of their seeds, sorted."""
    digest = sha256()
    for name in sorted(corpus):
        for seed in sorted(corpus[name]):
            digest.update(f"{name} {sha256(seed).hexdigest()}\n".encode())
    return digest.hexdigest()


def _take_checkpoint(found: _Seeds, path: Path) -> None:
    data = path.read_bytes()
    found["metadata"].add(data)
    found["checkpoint"].add(data)
    try:
        metadata = parse_metadata(data, str(path))
    except DecodeError as error:
        if error.kind is ErrorKind.UNSUPPORTED:
            return  # this metadata version is not supported
        raise
    for operator in metadata.operators:
        found["utf"].update((text or "").encode() for text in (operator.name, operator.uid))
        _take_operator(found, operator, StateFiles(str(path.parent), LocalFiles()))


def _take_operator(found: _Seeds, operator: Operator, files: StateFiles) -> None:
    readers: list[bytes] = []
    for subtask in operator.subtasks:
        handle = subtask.managed_operator_state
        for state in handle.states if handle is not None else ():
            if handle is None or state.name not in _STATES or not state.byte_offsets:
                continue
            elements = _take_state(found, SubtaskState(subtask.index, handle, state), files)
            if state.name == SOURCE_READER_STATE:
                readers += elements
            else:
                found[_STATES[state.name]].update(elements)
    for element in readers:
        version, _ = _ELEMENT_HEADER.unpack_from(element)
        split = element[_ELEMENT_HEADER.size :]
        found["reader-element"].add(bytes([version]) + split)
        found["split"].add(split)
        if BEAM_SPLIT in split:
            found["beam-split"].add(split)
    coordinator = operator.coordinator_state.data if operator.coordinator_state else b""
    if len(coordinator) >= _COORDINATOR_HEADER.size:
        _, version, size = _COORDINATOR_HEADER.unpack_from(coordinator)
        enumerator = coordinator[_COORDINATOR_HEADER.size :][:size]
        if 0 <= version <= 0xFF:
            for kind in ("enumerator", "dynamic-enumerator", "hybrid-enumerator"):
                found[kind].add(bytes([version]) + enumerator)
    if readers or coordinator:
        held = b"".join(len(element).to_bytes(2, "big") + element for element in readers)
        found["recognise"].add(bytes([len(readers)]) + held + coordinator)


def _take_state(found: _Seeds, held: SubtaskState, files: StateFiles) -> list[bytes]:
    """Return the elements of a list state; also add seeds made from its stream and elements."""
    place = f"{files.directory} {held.state.name}"
    stream = files.read(held.handle.stream, place)
    offsets = held.state.byte_offsets
    if len(stream) <= _LONGEST_STREAM:
        framed = struct.pack(f">B{len(offsets)}H", len(offsets), *offsets) + stream
        for kind in ("operator-state", "unsized-state", "state-file"):
            found[kind].add(framed)
    found["snappy"].add(stream[offsets[0] :])
    sized = held.state.name not in (LEGACY_CONSUMER_STATE, WRAPPER_STATE)
    elements = [element for _, element in state_elements([held], files, place, sized=sized)]
    for element in elements:
        if len(element) <= _LONGEST_CHUNK:
            chunk = len(element).to_bytes(4, "big") + element
            found["compressed-state"].add(bytes([2, len(chunk)]) + chunk)
            found["snappy"].add(bytes(cramjam.snappy.compress(chunk))[10:])
    return elements


def main() -> None:
    corpus = seeds()
    for name, of_target in corpus.items():
        print(f"{name:20} {len(of_target):5} seeds {sum(map(len, of_target)):8} bytes")
    print(f"sha256 {corpus_hash(corpus)}")


if __name__ == "__main__":
    main()
