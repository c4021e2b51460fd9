"""Write hostile checkpoints that try to cost their reader too much time or memory.

``write_attack`` writes such a checkpoint into an empty ``chk-1`` directory. The command ``python -m
tests.support.hostile POINTER`` reads a checkpoint, and prints the outcome, the time and the growth
of memory. Without a pointer, the command prints a table of all attacks.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from struct import pack

import cramjam

from decoder import DecodeError, read_checkpoint
from migrate.inputs.flink.extract import extract

ROOT = Path(__file__).parents[2]
MB = 1 << 20
LARGEST_COUNT = (1 << 31) - 1
LARGEST_OFFSET = (1 << 63) - 1

_READER_STATE = "SourceReaderState"
_NO_STATE = pack(">i", 0)
_NULL_HANDLE = b"\0"
_NOT_STOPPING = -(1 << 63)

# -- building blocks -----------------------------------------------------------------------------


def utf(text: str | bytes) -> bytes:
    data = text if isinstance(text, bytes) else text.encode()
    return pack(">H", len(data)) + data


def metadata(operators: Sequence[bytes], version: int = 3, trailing: bytes = b"") -> bytes:
    """Encode a ``_metadata`` of these operators."""
    header = pack(">iiqii", 0x4960672D, version, 1, 0, len(operators))
    return header + b"".join(operators) + trailing


def operator(
    subtasks: Sequence[bytes],
    coordinator: bytes = _NULL_HANDLE,
    number: int = 1,
    count: int | None = None,
    max_parallelism: int = 1 << 15,
) -> bytes:
    """Encode an operator; ``count`` replaces the real number of its subtasks."""
    ids = pack(">qqii", 0, number, max(1, len(subtasks)), max_parallelism)
    number = len(subtasks) if count is None else count
    return ids + coordinator + pack(">i", number) + b"".join(subtasks)


def subtask(
    index: int = 0, managed: bytes = _NO_STATE, keyed: bytes = _NULL_HANDLE, channels: bytes = b""
) -> bytes:
    keyed_states = keyed + _NULL_HANDLE
    return pack(">i", index) + managed + _NO_STATE + keyed_states + (channels or pack(">ii", 0, 0))


def inline(data: bytes) -> bytes:
    return b"\x01" + utf("state") + pack(">i", len(data)) + data


def in_file(path: str, size: int) -> bytes:
    return b"\x06" + utf(path) + pack(">q", size)


def reader_state(byte_offsets: Sequence[int], handle: bytes) -> bytes:
    """Encode managed operator state with one list, SourceReaderState."""
    head = pack(">ibi", 1, 4, 1) + utf(_READER_STATE) + b"\0" + pack(">i", len(byte_offsets))
    return head + pack(f">{len(byte_offsets)}q", *byte_offsets) + handle


def split(partition: int, offset: int = 5, topic: str = "t") -> bytes:
    data = utf(topic) + pack(">iqq", partition, offset, _NOT_STOPPING)
    return pack(">ii", 0, len(data)) + data


def state_stream(elements: Iterable[bytes], compressed: bool = False) -> tuple[bytes, list[int]]:
    """Encode an operator-state stream; return it with the offsets of its elements or chunks."""
    stream = bytearray(pack(">ib", 6, compressed))
    byte_offsets = []
    for element in elements:
        byte_offsets.append(len(stream))
        stream += element if compressed else pack(">i", len(element)) + element
    return bytes(stream), byte_offsets


def chunk(data: bytes) -> bytes:
    """Encode one chunk of a stream in Snappy's framing format."""
    return bytes(cramjam.snappy.compress(data))[10:]


def coordinator(version: int, enumerator: bytes) -> bytes:
    return inline(pack(">iii", 1, version, len(enumerator)) + enumerator)


def source(
    elements: Iterable[bytes], compressed: bool = False, coordinator: bytes = _NULL_HANDLE
) -> bytes:
    """Encode the ``_metadata`` of a source with one reader and these elements."""
    stream, byte_offsets = state_stream(elements, compressed)
    reader = subtask(managed=reader_state(byte_offsets, inline(stream)))
    return metadata([operator([reader], coordinator)])


def java_object(annotation: bytes) -> bytes:
    """Encode a Java object stream of one object, with the custom data ``annotation``."""
    return b"\xac\xed\0\x05\x73" + java_class("A", 3) + annotation + b"\x78"


def java_class(
    name: str, flags: int = 2, fields: Sequence[bytes] = (), parent: bytes = b""
) -> bytes:
    described = utf(name) + pack(">qBH", 1, flags, len(fields)) + b"".join(fields)
    return b"\x72" + described + b"\x78" + (parent or b"\x70")


# -- attacks -------------------------------------------------------------------------------------


def finished_subtasks() -> bytes:
    """Encode many finished subtasks, of four bytes each."""
    finished = [pack(">i", -index - 1) for index in range(1 << 15)]
    return metadata([operator(finished, number=number) for number in range(MB // (4 << 15))])


def empty_subtasks() -> bytes:
    return metadata([operator([subtask(index) for index in range(1 << 15)])])


def operators() -> bytes:
    return metadata([operator([], number=number) for number in range(MB // 29)])


def named_states() -> bytes:
    count = MB // 10
    states = b"".join(
        utf(bytes((number & 0x7F, number >> 7 & 0x7F, number >> 14))) + b"\0" + pack(">i", 0)
        for number in range(count)
    )
    return metadata([operator([subtask(managed=pack(">ibi", 1, 4, count) + states + b"\x10")])])


def offsets_outside_the_stream() -> bytes:
    return metadata([operator([subtask(managed=reader_state([1 << 60] * (MB // 8), inline(b"")))])])


def offsets_all_at_one_place() -> bytes:
    stream, (place,) = state_stream([split(1)])
    return metadata(
        [operator([subtask(managed=reader_state([place] * (MB // 8), inline(stream)))])]
    )


def null_handles_of_a_changelog() -> bytes:
    """Encode many null handles, of one byte each."""
    handles = pack(">i", MB) + _NULL_HANDLE * MB + pack(">iq", 0, 0) + utf("id")
    return metadata([operator([subtask(keyed=b"\x08" + pack(">iiq", 0, 1, 0) + handles)])])


def null_files_of_an_incremental_snapshot() -> bytes:
    count = MB // 3
    files = pack(">i", count) + (utf("") + _NULL_HANDLE) * count + pack(">i", 0)
    head = b"\x05" + pack(">q", 1) + utf("backend") + pack(">ii", 0, 1) + _NULL_HANDLE
    return metadata([operator([subtask(keyed=head + files)])])


def channel_states() -> bytes:
    count = MB // 29
    channels = pack(">i", count) + (pack(">iiiiq", 0, 0, 0, 0, 0) + _NULL_HANDLE) * count
    return metadata([operator([subtask(channels=channels + pack(">i", 0))])])


def java_objects() -> bytes:
    objects = b"\x73" + java_class("B") + (b"\x73\x71" + pack(">i", 0x7E0002)) * (MB // 6)
    return metadata([], 4, java_object(objects))


def java_objects_of_a_class_with_many_fields() -> bytes:
    fields = [
        b"L" + utf(bytes((n & 0x7F, n >> 7 & 0x7F, n >> 14))) + b"\x70"
        for n in range((1 << 15) - 1)
    ]
    nulls = b"\x70" * len(fields)
    first = b"\x73" + java_class("B", fields=fields) + nulls
    more = (b"\x73\x71" + pack(">i", 0x7E0002) + nulls) * 25
    return metadata([], 4, java_object(first + more))


def java_objects_of_a_class_with_many_ancestors() -> bytes:
    described = java_class("A0")
    for number in range(12):
        described = java_class(f"A{number}", parent=described)
    objects = b"\x73" + described + (b"\x73\x71" + pack(">i", 0x7E0002)) * (MB // 6)
    return metadata([], 4, java_object(objects))


def splits() -> bytes:
    return source(split(partition) for partition in range(MB // 42))


def one_split_many_times() -> bytes:
    return source(split(0, offset) for offset in range(MB // 42))


def enumerator_of_many_partitions() -> bytes:
    """Encode partitions of seven bytes each, the minimum of all versions."""
    count = MB // 7
    known = b"".join(utf("t") + pack(">i", partition) for partition in range(count))
    return source([split(1)], coordinator=coordinator(1, pack(">i", count) + known))


def dynamic_enumerator_of_many_clusters() -> bytes:
    count = MB // 22
    clusters = b"".join(
        utf(f"{number:05}") + pack(">ii", 11, 1) + utf("t") + pack(">i", number)
        for number in range(count)
    )
    body = pack(">iii", 0, 1, count) + clusters
    return source([], coordinator=coordinator(1, body))


def nested_hybrid_enumerators() -> bytes:
    nested = b""
    for _ in range(5000):
        nested = pack(">iii", 0, 0, len(nested)) + nested
    return source([], coordinator=coordinator(0, nested))


def snappy_bomb() -> bytes:
    """Encode one element of 256 MiB in 12 MiB of chunks."""
    size = 256 * MB
    zeros = chunk(bytes(1 << 16))
    return source([chunk(pack(">i", size)) + zeros * (size >> 16)], compressed=True)


def snappy_bomb_of_many_elements() -> bytes:
    element = chunk(pack(">i", 65532) + bytes(65532))
    return source([element] * (MB // len(element)), compressed=True)


def snappy_chunk_with_a_wrong_size() -> bytes:
    body = bytes(4) + b"\xff\xff\xff\xff\x0f\0a"
    return source([b"\0" + len(body).to_bytes(3, "little") + body], compressed=True)


def snappy_chunks_of_one_byte() -> bytes:
    smallest = chunk(b"\0")
    count = MB // len(smallest)
    return source([chunk(pack(">i", count)) + smallest * count], compressed=True)


def snappy_padding() -> bytes:
    return source([b"\xfe\0\0\0" * (MB // 4)], compressed=True)


def one_file_of_many_readers(directory: Path, path: Callable[[int], str] = lambda _: "f") -> None:
    """Write 1000 handles of one 4 MiB file; the file has a split at its start and at its end."""
    stream, (first, _, last) = state_stream([split(0), bytes(4 * MB), split(1)])
    (directory / "f").write_bytes(stream)
    readers = [
        subtask(index, managed=reader_state([first, last], in_file(path(index), len(stream))))
        for index in range(1000)
    ]
    (directory / "_metadata").write_bytes(metadata([operator(readers)]))


def one_file_under_many_names(directory: Path) -> None:
    """Write handles of many missing paths; for each, the reader opens the file ``f``."""
    one_file_of_many_readers(directory, lambda index: f"d{index}/f")


def sparse_zeros(directory: Path) -> None:
    """Write a sparse ``_metadata`` of 1 GB."""
    _sparse(directory, 10**9, b"")


def sparse_metadata_beyond_the_limit(directory: Path) -> None:
    """Write a ``_metadata`` with the start of a checkpoint, followed by 2 GB of zeros."""
    _sparse(directory, 2 * 10**9, metadata([]))


def sparse_state(directory: Path) -> None:
    """Write a reader's state into a sparse file of 1 TiB."""
    stream, (first,) = state_stream([split(0)])
    size = 1 << 40
    with (directory / "f").open("wb") as file:
        file.write(stream)
        file.truncate(size)
    reader = subtask(managed=reader_state([first, size - 100], in_file("f", size)))
    (directory / "_metadata").write_bytes(metadata([operator([reader])]))


def sparse_state_of_unknown_size(directory: Path) -> None:
    """Write ``sparse_state`` with a handle of unknown size."""
    sparse_state(directory)
    reader = subtask(managed=reader_state([5], in_file("f", -1)))
    (directory / "_metadata").write_bytes(metadata([operator([reader])]))


def _sparse(directory: Path, size: int, head: bytes) -> None:
    with (directory / "_metadata").open("wb") as file:
        file.write(head)
        file.truncate(size)


def _name(attack: Callable[..., object]) -> str:
    return attack.__name__.replace("_", " ")


# Functions that return a `_metadata`. The functions in FILE_ATTACKS write it themselves, most of
# them with other files.
METADATA_ATTACKS: dict[str, Callable[[], bytes]] = {
    _name(attack): attack
    for attack in (
        finished_subtasks,
        empty_subtasks,
        operators,
        named_states,
        offsets_outside_the_stream,
        offsets_all_at_one_place,
        null_handles_of_a_changelog,
        null_files_of_an_incremental_snapshot,
        channel_states,
        java_objects,
        java_objects_of_a_class_with_many_fields,
        java_objects_of_a_class_with_many_ancestors,
        splits,
        one_split_many_times,
        enumerator_of_many_partitions,
        dynamic_enumerator_of_many_clusters,
        nested_hybrid_enumerators,
        snappy_bomb,
        snappy_bomb_of_many_elements,
        snappy_chunk_with_a_wrong_size,
        snappy_chunks_of_one_byte,
        snappy_padding,
    )
}
FILE_ATTACKS: dict[str, Callable[[Path], None]] = {
    _name(attack): attack
    for attack in (
        one_file_of_many_readers,
        one_file_under_many_names,
        sparse_zeros,
        sparse_metadata_beyond_the_limit,
        sparse_state,
        sparse_state_of_unknown_size,
    )
}


def write_attack(name: str, directory: Path) -> None:
    if name in METADATA_ATTACKS:
        (directory / "_metadata").write_bytes(METADATA_ATTACKS[name]())
    else:
        FILE_ATTACKS[name](directory)


# -- measuring -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Measured:
    """The outcome of reading a checkpoint in a separate process.

    Attributes:
        refused: the text of the error, or None if the checkpoint was decoded.
        seconds: the CPU time.
        peak_bytes: the growth of the process's memory at its peak, including file contents.
        read_bytes: the number of bytes that the process has read.
    """

    refused: str | None
    seconds: float
    peak_bytes: int
    read_bytes: int


def measure(pointer: Path) -> Measured:
    """Read a checkpoint and extract its positions, in a separate process."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.hostile", str(pointer)],
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return Measured(**json.loads(done.stdout))


def _main(pointer: str) -> None:
    Path("/proc/self/clear_refs").write_text("5")  # reset VmHWM
    # Not `ru_maxrss`, because a process inherits it from its parent.
    peak_before, read_before = _proc_number("status", "VmHWM"), _proc_number("io", "rchar")
    started = time.process_time()
    refused = None
    try:
        extract(read_checkpoint(pointer))
    except DecodeError as error:
        refused = str(error)
    measured = Measured(
        refused,
        time.process_time() - started,
        (_proc_number("status", "VmHWM") - peak_before) * 1024,
        _proc_number("io", "rchar") - read_before,
    )
    print(json.dumps(asdict(measured)))


def _proc_number(file: str, name: str) -> int:
    lines = Path("/proc/self", file).read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(f"{name}:")))


def _table() -> None:
    """Print the table in tests/fuzz/measured.md, with the cost of every attack."""
    print("| attack | input | memory | processor | |\n|---|--:|--:|--:|---|")
    for name in (*METADATA_ATTACKS, *FILE_ATTACKS):
        with tempfile.TemporaryDirectory() as work:
            directory = Path(work, "chk-1")
            directory.mkdir()
            write_attack(name, directory)
            size = sum(file.stat().st_size for file in directory.iterdir())
            measured = measure(directory)
        verdict = "decoded" if measured.refused is None else "refused"
        memory, seconds = measured.peak_bytes / MB, measured.seconds
        print(
            f"| {name} | {size / MB:,.1f} MiB | {memory:,.1f} MiB | {seconds:.1f} s | {verdict} |"
        )


if __name__ == "__main__":
    _main(sys.argv[1]) if len(sys.argv) > 1 else _table()
