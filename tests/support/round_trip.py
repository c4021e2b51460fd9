"""Read and write checkpoint bytes with Flink's own classes, without a cluster.

The Java programs are `java/RoundTrip*.java` and `java/AllHandles.java`. `flink` is a version such
as "2.2". Results are parsed JSON, with the names of `tests.support.encoder`.
"""

from __future__ import annotations

import json
import struct
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tests.support.jars import classpath
from tests.support.jdk import compile_java, run_java

Parsed = dict[str, Any]

_JAVA = Path(__file__).parent / "java"
_SOURCES = (*_JAVA.glob("RoundTrip*.java"), _JAVA / "AllHandles.java")


def load_metadata(flink: str, encoded: Iterable[bytes]) -> list[Parsed]:
    """Read `_metadata` files with Flink; return their content with the fields of every handle."""
    with tempfile.TemporaryDirectory() as directory:
        records = Path(directory, "records")
        records.write_bytes(
            b"".join(struct.pack(">i", len(element)) + element for element in encoded)
        )
        # The directory must exist, because relative handles are resolved against it.
        pointer = Path(directory, "chk-1")
        pointer.mkdir()
        (pointer / "_metadata").touch()
        return _run(flink, "RoundTripMetadata", str(records), str(pointer))


def restore_sources(
    flink: str, checkpoints: Iterable[tuple[Path, Sequence[bytes]]]
) -> list[Parsed]:
    """Restore the sources with these operator ids from each checkpoint directory, with Flink.

    Returns:
        for each checkpoint, its sources by hexadecimal operator id. A source has the elements of
        operator state and the splits of each subtask, and the state of the enumerator.
    """
    with tempfile.NamedTemporaryFile("w", encoding="utf-8") as requests:
        for checkpoint, operator_ids in checkpoints:
            ids = "\t".join(operator_id.hex() for operator_id in operator_ids)
            requests.write(f"{checkpoint}\t{ids}\n")
        requests.flush()
        return _run(flink, "RoundTripSources", requests.name)


def read_sink_states(flink: str, elements: Iterable[tuple[str, bytes]]) -> list[Any]:
    """Decode elements of a KafkaSink's "writer" or "committer" list states with Flink.

    A decoded writer element has a prefix and the open transactions. A decoded committer element has
    requests. An element of the kind "files" comes from the committers of a FileSink.
    """
    with tempfile.NamedTemporaryFile("w", encoding="ascii") as requests:
        requests.writelines(f"{kind} {element.hex()}\n" for kind, element in elements)
        requests.flush()
        return _run(flink, "org.apache.flink.connector.kafka.sink.RoundTripSinks", requests.name)


def write_all_handles(flink: str, metadata_version: int, directory: Path) -> Parsed:
    """Let Flink write a `_metadata` file with every kind of handle, and return its content."""
    (output,) = _run(flink, "AllHandles", "metadata", str(metadata_version), str(directory))
    return output


def checkpoint_properties(flink: str) -> dict[str, Parsed]:
    """Return CheckpointProperties as text and Java-serialized in hex, by kind of snapshot."""
    (output,) = _run(flink, "AllHandles", "properties")
    return output


def _run(flink: str, main: str, *arguments: str) -> list[Parsed]:
    jars = classpath(f"flink-{flink}")
    classes = compile_java(_SOURCES, jars)
    output = run_java(main, [classes, *jars], arguments, heap="384m")
    return [json.loads(line) for line in output.splitlines()]
