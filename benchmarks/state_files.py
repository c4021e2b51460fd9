"""Write savepoints with much keyed state, and store them in the cache.

The tests' encoder writes them; the integration tests check that Flink restores its bytes. If the
encoder does not support a shape, the savepoint repeats the entries of a golden savepoint.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from struct import unpack_from
from typing import Any, Literal

from decoder.keyed_state import Part, read_keyed_states
from decoder.keyed_state.parts import KeyGroupsSource
from migrate.extensions.keyed_state.select import choose_state
from tests.support.checkpoints import write_checkpoint
from tests.support.encoder import (
    ByteStreamHandle,
    FileHandle,
    IncrementalHandle,
    KeyGroupsHandle,
    Operator,
    Subtask,
)
from tests.support.encoder import keyed_values as of
from tests.support.encoder.keyed_state import (
    Entry,
    KeyedState,
    Kind,
    encode_canonical,
    encode_head,
    encode_heap,
    key_group_of,
)
from tests.support.jars import cache_dir
from tests.support.keyed_bytes import canonical_group

OPERATOR = "0123456789abcdef0123456789abcdef"
_MAX_PARALLELISM = 128
_GOLDEN = Path(__file__).parents[1] / "tests" / "golden" / "state"
_FLAG = 0x80
_POJO = of.Pojo(
    "bench.Customer",
    (
        *(("id", of.LONG), ("name", of.STRING), ("age", of.INT), ("balance", of.DOUBLE)),
        *(("active", of.BOOLEAN), ("since", of.LONG), ("city", of.STRING), ("score", of.FLOAT)),
        *(("orders", of.SHORT), ("last", of.LONG)),
    ),
)
_Form = Literal["canonical", "heap", "rocksdb"]
_Pair = tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Shape:
    """A savepoint with one state.

    Attributes:
        name: the name of its folder in the cache.
        title: the name on the page.
        write: a function that writes the savepoint to a directory.
        processor: the kind of state that the State Processor API reads; None if reading it requires
            classes of the job.
        state: the name of the state.
    """

    name: str
    title: str
    write: Callable[[Path], None]
    processor: Literal["value", "map"] | None = None
    state: str = "state"

    @property
    def directory(self) -> Path:
        return cache_dir() / "bench" / f"state-{self.name}" / "savepoint"

    def size(self) -> int:
        """Return the total size of the files in bytes."""
        return sum(file.stat().st_size for file in self.directory.iterdir())


def create_missing(shape: Shape) -> None:
    """Write the savepoint, unless it is in the cache."""
    done = shape.directory.parent / "done"
    if not done.exists():
        shutil.rmtree(shape.directory.parent, ignore_errors=True)
        shape.write(shape.directory)
        done.touch()


def encoded_state(
    form: _Form,
    kind: Kind,
    value: of.Serializer,
    count: int,
    make_value: Callable[[int], Any],
    source: Operator | None = None,
    checkpoint_id: int = 7,
) -> Callable[[Path], None]:
    """Return a function that writes a savepoint of ``count`` text keys, and perhaps a source."""

    def write(directory: Path) -> None:
        groups: dict[int, list[Entry]] = {}
        for number in range(count):
            key = f"customer-{number:07}"
            group = key_group_of(key, _MAX_PARALLELISM)
            groups.setdefault(group, []).append(Entry(group, key, None, make_value(number)))
        state = KeyedState("state", kind, of.VOID_NAMESPACE, value, ())
        head = encode_head(of.STRING, [state])
        parts = []
        for group in range(_MAX_PARALLELISM):
            states = [replace(state, entries=tuple(groups.get(group, ())))]
            key_groups = range(group, group + 1)
            if form == "heap":
                data, _ = encode_heap(of.STRING, states, key_groups)
            else:
                data, _ = encode_canonical(of.STRING, states, key_groups, _MAX_PARALLELISM)
            parts.append(data[len(head) :])
        if form == "rocksdb":
            pairs = (pair for part in parts for pair in read_pairs(part, 0))
            _write_rocksdb(directory, head, pairs)
        else:
            others = (source,) if source is not None else ()
            heap = form == "heap"
            _write(directory, head, parts, heap=heap, others=others, checkpoint_id=checkpoint_id)

    return write


def read_pairs(group: bytes, state: int) -> list[_Pair]:
    """Return the (key, value) pairs of a state in a canonical key group.

    The flag in the first byte of a key is removed.

    Args:
        group: the bytes of the key group.
        state: the index of the state.
    """
    pairs = []
    position = 2
    number = int.from_bytes(group[:2], "big") if group else 0xFFFF
    while number != 0xFFFF:
        (size,) = unpack_from(">i", group, position)
        key = group[position + 4 : position + 4 + size]
        position += 4 + size
        (size,) = unpack_from(">i", group, position)
        value = group[position + 4 : position + 4 + size]
        position += 4 + size
        is_last_of_state = key[0] & _FLAG
        if number == state:
            pairs.append((bytes((key[0] & ~_FLAG,)) + key[1:], value))
        if is_last_of_state:
            number = int.from_bytes(group[position : position + 2], "big")
            position += 2
    return pairs


def _repeated_state(golden: str, operator: str, name: str, times: int) -> Callable[[Path], None]:
    """Return a function that writes the entries of one subtask in a golden savepoint repeatedly."""

    def write(directory: Path) -> None:
        (pointer,) = (_GOLDEN / golden).glob("*/_metadata")
        state = choose_state(read_keyed_states(pointer.parent), operator, name)
        part = state.parts[0]
        groups = []
        for group in range(state.max_parallelism):
            data = b"".join(part.frames(group)) if group in part.key_groups else b""
            entries = [(part.number, *pair) for pair in read_pairs(data, part.number)]
            groups.append(canonical_group(*entries * times) if entries else b"")
        _write(directory, _head(part), groups, parallelism=state.max_parallelism)

    return write


def _head(part: Part) -> bytes:
    assert isinstance(part.state_source, KeyGroupsSource)
    stream = part.state_source.stream
    return stream.stream.read(0, min(offset for offset in stream.handle.byte_offsets if offset))


def _write(
    directory: Path,
    head: bytes,
    groups: Iterable[bytes],
    *,
    heap: bool = False,
    parallelism: int = _MAX_PARALLELISM,
    others: Sequence[Operator] = (),
    checkpoint_id: int = 7,
) -> None:
    file = directory.parent / "state"
    file.parent.mkdir(parents=True, exist_ok=True)
    offsets = []
    with file.open("wb") as out:
        out.write(head)
        for group in groups:
            offsets.append(out.tell() if group else 0)
            out.write(group)
    size = file.stat().st_size
    handle = KeyGroupsHandle(
        *(0, tuple(offsets), FileHandle(f"file:{directory}/state", size)),
        *("handle" if heap else None, not heap),
    )
    subtask = Subtask(0, managed_keyed=handle)
    keyed = Operator(bytes.fromhex(OPERATOR), 1, parallelism, subtasks=(subtask,))
    write_checkpoint(directory, keyed, *others, checkpoint_id=checkpoint_id)
    file.rename(directory / "state")


def _write_rocksdb(directory: Path, head: bytes, pairs: Iterator[_Pair]) -> None:
    from tests.support.rocksdb_files import write_rocksdb

    files = write_rocksdb(directory.parent / "database", "state", pairs)
    private = tuple(
        (file.name, FileHandle(f"file:/flink/savepoint/{file.name}", file.stat().st_size))
        for file in files
    )
    handle = IncrementalHandle(
        *(1, "backend", 0, _MAX_PARALLELISM, None, ByteStreamHandle("head", head), (), private),
        None,
    )
    subtask = Subtask(0, managed_keyed=handle)
    operator = Operator(bytes.fromhex(OPERATOR), 1, _MAX_PARALLELISM, subtasks=(subtask,))
    write_checkpoint(directory, operator)
    for file in files:
        file.rename(directory / file.name)


def _write_large(directory: Path) -> None:
    """Write the entries of the first shape repeatedly, until they have 2 GB."""
    create_missing(SHAPES[0])
    (state,) = read_keyed_states(SHAPES[0].directory).states
    (part,) = state.parts
    times = -(-_LARGE_BYTES // SHAPES[0].size())

    def groups() -> Iterator[bytes]:
        for group in part.key_groups:
            (data,) = part.frames(group)
            entries = [(0, *pair) for pair in read_pairs(data, 0)]
            last = canonical_group(*entries)
            # The entries, without the flag in the last one and without the end of the group.
            body = canonical_group(*entries, entries[0])[2 : len(last) - 2]
            yield last[:2] + body * (times - 1) + last[2:]

    _write(directory, _head(part), groups())


_LARGE_BYTES = 2_000_000_000
_KEYS = 400_000


def _customer(number: int) -> dict[str, Any]:
    return {
        **{"id": number, "name": f"customer {number}", "age": number % 90, "balance": number / 7},
        **{"active": number % 2 == 0, "since": number, "city": "Augsburg", "score": 0.5},
        **{"orders": number % 100, "last": None if number % 3 else number},
    }


SHAPES = (
    Shape(
        "value",
        "`ValueState<Long>`, canonical",
        encoded_state("canonical", "VALUE", of.LONG, _KEYS, lambda number: number),
        "value",
    ),
    Shape(
        "value-heap",
        "`ValueState<Long>`, heap's own",
        encoded_state("heap", "VALUE", of.LONG, _KEYS, lambda number: number),
        "value",
    ),
    Shape(
        "map",
        "`MapState<String, Long>`, canonical",
        encoded_state(
            *("canonical", "MAP", of.MapOf(of.STRING, of.LONG), _KEYS // 5),
            lambda number: {f"item-{n}": number for n in range(5)},
        ),
        "map",
    ),
    Shape(
        "pojo",
        "a POJO of ten fields, canonical",
        encoded_state("canonical", "VALUE", _POJO, _KEYS // 4, _customer),
    ),
    Shape(
        "sql",
        "SQL `GROUP BY`, canonical",
        _repeated_state("2.2/sql-groups/canonical", "GroupAggregate[9]", "accState", 50_000),
        state="accState",
    ),
    Shape(
        "timers",
        "timers, canonical",
        _repeated_state("2.2/kinds/canonical", "kinds", "_timer_state/event_user-timers", 15_000),
        state="_timer_state/event_user-timers",
    ),
    Shape(
        "rocksdb",
        "`ValueState<Long>`, RocksDB's files",
        encoded_state("rocksdb", "VALUE", of.LONG, _KEYS, lambda number: number),
    ),
)
LARGE = Shape("large", "`ValueState<Long>`, canonical", _write_large)
