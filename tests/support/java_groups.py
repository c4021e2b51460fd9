"""Read and commit offsets of consumer groups with Kafka's own Java client.

This client is the judge of the offsets that ``migrate`` reads and commits, because it shares no
code with librdkafka.
"""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from tests.support.jars import classpath
from tests.support.jdk import compile_java, java_command
from tests.support.kafka import JARS

# The offset, the leader epoch or None, and the metadata as bytes of UTF-8.
JavaOffset = tuple[int, int | None, bytes]
_SOURCE = Path(__file__).parent / "java/GroupOffsets.java"


class JavaGroups:
    """A running Java client; a context manager."""

    def __init__(self, bootstrap_servers: str) -> None:
        jars = classpath(JARS)
        command = java_command(
            "GroupOffsets", [compile_java([_SOURCE], jars), *jars], [bootstrap_servers], "128m"
        )
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def __enter__(self) -> JavaGroups:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=30)
        self._process.stdout.close()

    def committed(self, group: str) -> dict[tuple[str, int], JavaOffset]:
        """Return the committed offsets of a group."""
        return {
            (topic, int(partition)): (
                int(offset),
                None if epoch == "-" else int(epoch),
                base64.b64decode(metadata),
            )
            for topic, partition, offset, epoch, metadata in self._send(["read", group])
        }

    def commit(self, group: str, offsets: Mapping[tuple[str, int], JavaOffset]) -> None:
        """Commit offsets for an empty group."""
        fields = ["commit", group]
        for (topic, partition), (offset, epoch, metadata) in offsets.items():
            fields += [
                topic,
                str(partition),
                str(offset),
                "-" if epoch is None else str(epoch),
                base64.b64encode(metadata).decode(),
            ]
        self._send(fields)

    def _send(self, fields: list[str]) -> list[list[str]]:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write("\t".join(fields) + "\n")
        self._process.stdin.flush()
        answer = []
        while (line := self._process.stdout.readline().rstrip("\n")) != "end":
            assert line and not line.startswith("error "), line or "the Java client has ended"
            answer.append(line.split("\t"))
        return answer
