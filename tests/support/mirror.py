"""Run a real MirrorMaker 2 that copies topics between two brokers, as one local process."""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.jars import classpath
from tests.support.jdk import java_command, tail
from tests.support.kafka import Broker
from tests.support.records import Content, TopicPartition, read_logs
from tests.support.service import Service

_JARS = "connect-mirror-4.1.1"
_MAIN = "org.apache.kafka.connect.mirror.MirrorMaker"
_IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
_COPY_SECONDS = 90
_STOP_SECONDS = 30

# The interval at which a worker commits source offsets. It is longer than a test, so a killed
# mirror has not committed any offsets.
_FLUSH_MS = "600000"

# For one node and a quick start.
_SETTINGS = {
    # A heartbeat flow would need a second worker, from the target to the source.
    "emit.heartbeats.enabled": "false",
    "emit.checkpoints.enabled": "false",
    "replication.factor": "1",
    "offset-syncs.topic.replication.factor": "1",
    "checkpoints.topic.replication.factor": "1",
    "config.storage.replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "offset.storage.partitions": "1",
    "status.storage.replication.factor": "1",
    "status.storage.partitions": "1",
    "refresh.topics.interval.seconds": "1",
    # The topics of the target keep the settings from the test.
    "sync.topic.configs.enabled": "false",
    "sync.topic.acls.enabled": "false",
    # Without this setting, every worker searches every jar for connectors.
    "plugin.discovery": "service_load",
}


class MirrorError(RuntimeError):
    """MirrorMaker 2 ended, or did not copy everything in time."""


@dataclass(frozen=True, slots=True)
class Flow:
    """One replication flow of MirrorMaker 2.

    Attributes:
        topics: the names of the topics.
        source: the source cluster's alias; DefaultReplicationPolicy puts it before each topic.
        target: the target cluster's alias. Flows of one mirror need different target aliases,
            because a worker's group and the topic of offset syncs are named after it.
        identity: True to keep the names of topics, by IdentityReplicationPolicy.
        settings: settings of the flow's connectors, such as ``offset.lag.max`` or
            ``consumer.isolation.level``.
    """

    topics: tuple[str, ...]
    source: str = "west"
    target: str = "east"
    identity: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)

    def copy_of(self, topic: str) -> str:
        """Return the name of a topic on the target cluster."""
        return topic if self.identity else f"{self.source}.{topic}"

    @property
    def isolation(self) -> str:
        """Return the isolation level of the mirror's consumer, by default Kafka's default."""
        return self.settings.get("consumer.isolation.level", "read_uncommitted")

    def properties(self, source: Broker, target: Broker, group: str) -> dict[str, str]:
        """Return the properties of the two clusters and of the flow between them."""
        flow = f"{self.source}->{self.target}"
        connectors = {
            "enabled": "true",
            "topics": ",".join(self.topics),
            **({"replication.policy.class": _IDENTITY} if self.identity else {}),
            **self.settings,
        }
        worker = {
            "bootstrap.servers": target.bootstrap_servers,
            "group.id": f"{flow}-{group}",
            "offset.flush.interval.ms": _FLUSH_MS,
            "plugin.discovery": _SETTINGS["plugin.discovery"],
        }
        return {
            f"{self.source}.bootstrap.servers": source.bootstrap_servers,
            **{f"{self.target}.{name}": value for name, value in worker.items()},
            **{f"{flow}.{name}": value for name, value in connectors.items()},
        }


class Mirror(Service):
    """A process of MirrorMaker 2; a context manager.

    A mirror that ends by ``stop`` has committed its source offsets. After ``kill``, the next mirror
    makes second copies of the records that were copied since the last commit.

    Args:
        source: the broker that is read.
        target: the broker that is written.
        flows: the flows of topics to copy; the topics must exist.
    """

    def __init__(self, source: Broker, target: Broker, flows: Iterable[Flow]) -> None:
        self._source, self._target, self._flows = source, target, tuple(flows)
        self._group = uuid.uuid4().hex[:8]
        self._home = Path(tempfile.mkdtemp(prefix="mirror-"))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process. It has no address for requests, so use ``await_copied`` to wait."""
        aliases = [alias for flow in self._flows for alias in (flow.source, flow.target)]
        properties = {"clusters": ",".join(dict.fromkeys(aliases)), **_SETTINGS}
        for flow in self._flows:
            properties |= flow.properties(self._source, self._target, self._group)
        file = self._home / "mm2.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        command = java_command(_MAIN, classpath(_JARS), [str(file)])
        with (self._home / "log").open("wb") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )

    def await_copied(self) -> None:
        """Wait until each partition in the target ends with a copy of the source's last record.

        After ``kill``, first append a record to each topic. Copies are in order, so the copy of
        this record follows all second copies.
        """
        missing = self._last_records(self._source)
        deadline = time.monotonic() + _COPY_SECONDS
        while missing:
            if self._process is None or self._process.poll() is not None:
                raise MirrorError(f"MirrorMaker 2 does not run\n{tail(self.log())}")
            if time.monotonic() > deadline:
                raise MirrorError(f"not copied in time: {missing}\n{tail(self.log())}")
            time.sleep(0.1)
            missing = dict(missing.items() - self._last_records(self._target).items())

    def _last_records(self, broker: Broker) -> dict[TopicPartition, Content]:
        """Return the last record of each partition, by the topic's name on the target cluster."""
        is_source = broker is self._source
        last: dict[TopicPartition, Content] = {}
        for flow in self._flows:
            copies = {topic if is_source else flow.copy_of(topic): topic for topic in flow.topics}
            existing = [name for name in copies if broker.partitions(name)]
            logs = read_logs(broker, existing, flow.isolation if is_source else "read_uncommitted")
            for (name, partition), log in logs.items():
                if log:
                    last[flow.copy_of(copies[name]), partition] = log[max(log)]
        return last

    def pause(self) -> None:
        """Suspend the process with SIGSTOP, so that the mirror lags.

        After more than 10 s, its worker is no longer in its group, and has to rejoin it.
        """
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Continue the suspended process."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """Stop the process; the mirror commits its source offsets."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
        self._process = None

    def kill(self) -> None:
        """Kill the process; its copies since the last commit will be made a second time."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        # In the old group, the next worker would wait until the killed one has expired. After
        # ``stop``, the group stays. A new group would restart the connectors, and their restart
        # commits source offsets.
        self._group = uuid.uuid4().hex[:8]

    def close(self) -> None:
        self.kill()
        shutil.rmtree(self._home, ignore_errors=True)

    def log(self) -> str:
        """Return the log of the running or last process: warnings and errors."""
        file = self._home / "log"
        return file.read_text(errors="replace") if file.exists() else ""
