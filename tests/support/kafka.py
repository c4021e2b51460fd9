"""Run a real Kafka broker for the tests, as one node on 127.0.0.1.

The broker runs in a container if a Docker engine is available, or else as a local process from the
published jars. The environment variable KAFKA_RELEASE selects a different release in jars.toml.
Such a release always runs as a local process. Releases before 3.3 run with ZooKeeper, later ones in
KRaft mode.
"""

from __future__ import annotations

import base64
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from tests.support.jars import classpath
from tests.support.jdk import java_command, run_java, tail
from tests.support.service import Service

# (topic, partition, offset, value)
Record = tuple[str, int, int, str]

_OTHER_RELEASE = os.environ.get("KAFKA_RELEASE")
RELEASE = _OTHER_RELEASE or "4.1.1"
JARS = f"kafka-{RELEASE}"
# KRaft is production-ready since 3.3.
_WITH_ZOOKEEPER = tuple(map(int, RELEASE.split("."))) < (3, 3)
_IMAGE = "confluentinc/cp-kafka:7.9.0"
_START_SECONDS = 90
_ANSWER_SECONDS = 30
_NO_COORDINATOR = (
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
)

# For one node and a quick start. The broker has no rebalance delay and few internal partitions. An
# idle broker writes no empty records. The log cleaner allocates 4 MB instead of 128 MB.
_SETTINGS = {
    "auto.create.topics.enable": "false",
    "delete.topic.enable": "true",
    "group.initial.rebalance.delay.ms": "0",
    "log.cleaner.dedupe.buffer.size": "4194304",
    "metadata.max.idle.interval.ms": "0",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
}


# The files of a data directory that Kafka's tool has formatted, by name.
_FORMATTED: dict[str, bytes] = {}


@dataclass(frozen=True, slots=True)
class KeptProcess:
    """The directory and port of a broker that keeps running when this process ends.

    In the directory, the file ``pid`` has the broker's process id, and ``server.log`` is its log.
    """

    home: Path
    port: int


class BrokerError(RuntimeError):
    """The broker did not start, stop, or complete a test's request."""


class _Node(Protocol):
    """A way to run the broker. A restarted broker has the same data and address."""

    bootstrap_servers: str
    # The addresses of all listeners, by name.
    addresses: dict[str, str]

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def alive(self) -> bool: ...
    def log(self) -> str: ...
    def remove(self) -> None: ...


def _new_cluster_id() -> str:
    """Return an id like `kafka-storage random-uuid` that starts with `M`, so never with `-`."""
    return "M" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[1:22]


class _ProcessNode:
    """The broker as a local process, run from the published jars."""

    def __init__(
        self, settings: Mapping[str, str], protocols: Mapping[str, str], kept: KeptProcess | None
    ) -> None:
        self._is_kept = kept is not None
        self._home = kept.home if kept else Path(tempfile.mkdtemp(prefix="kafka-"))
        self._home.mkdir(parents=True, exist_ok=True)
        self._properties = self._home / "server.properties"
        self._log_file = self._home / "server.log"
        self._process: subprocess.Popen[bytes] | None = None
        protocols = {"PLAINTEXT": "PLAINTEXT", **protocols}
        controller_port, *ports = free_ports(1 + len(protocols))
        if kept is not None:
            ports[0] = kept.port
        self.addresses = {
            name: f"127.0.0.1:{port}" for name, port in zip(protocols, ports, strict=True)
        }
        self.bootstrap_servers = self.addresses["PLAINTEXT"]
        clients = ",".join(f"{name}://{address}" for name, address in self.addresses.items())
        listeners = {
            "listeners": clients,
            "advertised.listeners": clients,
            "log.dirs": str(self._home / "data"),
        }
        self._zookeeper: subprocess.Popen[bytes] | None = None
        self._zookeeper_port = controller_port
        if _WITH_ZOOKEEPER:
            listeners |= {"zookeeper.connect": f"127.0.0.1:{controller_port}", "broker.id": "1"}
        else:
            listeners |= {
                "process.roles": "broker,controller",
                "node.id": "1",
                "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
                "controller.listener.names": "CONTROLLER",
                "listeners": f"{clients},CONTROLLER://127.0.0.1:{controller_port}",
            }
            protocols["CONTROLLER"] = "PLAINTEXT"
        listeners["listener.security.protocol.map"] = ",".join(
            f"{name}:{protocol}" for name, protocol in protocols.items()
        )
        lines = [f"{key}={value}" for key, value in {**settings, **listeners}.items()]
        self._properties.write_text("\n".join(lines) + "\n")

    def start(self) -> None:
        if _WITH_ZOOKEEPER:
            self._start_zookeeper()
        elif not (self._home / "data").exists():
            self._format()
        command = java_command("kafka.Kafka", classpath(JARS), [str(self._properties)])
        with self._log_file.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=self._is_kept,
            )
        (self._home / "pid").write_text(f"{self._process.pid}\n")

    def _format(self) -> None:
        """Format the data directory for a new cluster; only the first call runs Kafka's tool."""
        data = self._home / "data"
        if not _FORMATTED:
            run_java(
                "kafka.tools.StorageTool",
                classpath(JARS),
                ["format", "-t", _new_cluster_id(), "-c", str(self._properties)],
            )
            files = [path for path in data.rglob("*") if path.is_file()]
            _FORMATTED.update({str(file.relative_to(data)): file.read_bytes() for file in files})
            return
        data.mkdir()
        for name, content in _FORMATTED.items():
            (data / name).parent.mkdir(parents=True, exist_ok=True)
            (data / name).write_bytes(content)
        meta = data / "meta.properties"
        ids = rf"\1={_new_cluster_id()}"
        meta.write_text(
            re.sub(r"^(cluster\.id|directory\.id)=.*$", ids, meta.read_text(), flags=re.M)
        )

    def _start_zookeeper(self) -> None:
        """Start ZooKeeper; the broker waits until ZooKeeper answers."""
        main = "org.apache.zookeeper.server.ZooKeeperServerMain"
        arguments = [str(self._zookeeper_port), str(self._home / "zookeeper")]
        with (self._home / "zookeeper.log").open("ab") as log:
            self._zookeeper = subprocess.Popen(
                java_command(main, classpath(JARS), arguments),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def start_second(self, home: Path) -> subprocess.Popen[bytes]:
        """Start a broker with the id 2 in the same cluster; ``home`` is an empty folder."""
        (port,) = free_ports(1)
        settings = dict(
            line.split("=", 1) for line in self._properties.read_text().splitlines() if line
        )
        own = settings | {
            "process.roles": "broker",
            "node.id": "2",
            "listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "log.dirs": str(home / "data"),
        }
        properties = home / "server.properties"
        properties.write_text("".join(f"{key}={value}\n" for key, value in own.items()))
        meta = (self._home / "data" / "meta.properties").read_text()
        (cluster_id,) = re.findall(r"^cluster\.id=(.*)$", meta, re.M)
        command = ["format", "-t", cluster_id, "-c", str(properties)]
        run_java("kafka.tools.StorageTool", classpath(JARS), command)
        with (home / "server.log").open("ab") as log:
            return subprocess.Popen(
                java_command("kafka.Kafka", classpath(JARS), [str(properties)]),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def stop(self) -> None:
        for process in (self._process, self._zookeeper):
            if process is None:
                continue
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._process = self._zookeeper = None

    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def log(self) -> str:
        return self._log_file.read_text(errors="replace") if self._log_file.exists() else ""

    def remove(self) -> None:
        shutil.rmtree(self._home, ignore_errors=True)


class _ContainerNode:
    """The broker in a container, with a fixed port, so that a restart keeps the address."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        from testcontainers.community.kafka import KafkaContainer

        (port,) = free_ports(1)
        self._container = KafkaContainer(_IMAGE).with_kraft().with_bind_ports(9093, port)
        for key, value in settings.items():
            self._container.with_env("KAFKA_" + key.upper().replace(".", "_"), value)
        self.bootstrap_servers = f"127.0.0.1:{port}"
        self.addresses = {"PLAINTEXT": self.bootstrap_servers}
        self._created = False

    def start(self) -> None:
        if self._created:
            self._container.get_wrapped_container().start()
        else:
            self._container.start(timeout=_START_SECONDS)
            self._created = True
            self.bootstrap_servers = self._container.get_bootstrap_server()

    def stop(self) -> None:
        self._container.get_wrapped_container().stop()

    def alive(self) -> bool:
        container = self._container.get_wrapped_container()
        container.reload()
        return bool(container.status == "running")

    def log(self) -> str:
        return b"\n".join(self._container.get_logs()).decode(errors="replace")

    def remove(self) -> None:
        self._container.stop()


class Broker(Service):
    """A Kafka broker, and the calls that tests need; a context manager.

    `stop` and `start` restart the broker with the same data and the same address.

    Args:
        settings: the broker's settings, in addition to the settings of every test broker.
        listeners: the security protocols of further listeners, by name. A broker with further
            listeners is a local process, because their settings contain local files.
        kept: the directory and port of a broker that keeps running if this process ends without
            ``close``; None for a temporary directory and a free port.
    """

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        listeners: Mapping[str, str] | None = None,
        kept: KeptProcess | None = None,
    ) -> None:
        merged = {**_SETTINGS, **(settings or {})}
        self._node: _Node = (
            _ContainerNode(merged)
            if not (listeners or kept or _OTHER_RELEASE) and _docker_can_run()
            else _ProcessNode(merged, listeners or {}, kept)
        )
        self._admin_client: AdminClient | None = None

    @property
    def bootstrap_servers(self) -> str:
        return self._node.bootstrap_servers

    def address(self, listener: str) -> str:
        """Return the address of a further listener."""
        return self._node.addresses[listener]

    def start(self) -> None:
        """Start the broker, and wait until it answers."""
        self._node.start()
        self._admin_client = AdminClient(self._client_config())
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                self._admin.list_topics(timeout=1)
                return
            except KafkaException:
                if not self._node.alive() or time.monotonic() > deadline:
                    raise BrokerError(
                        f"Kafka does not answer at {self.bootstrap_servers}\n"
                        + tail(self._node.log())
                    ) from None

    def stop(self) -> None:
        """Stop the broker, and keep its data and its address."""
        self._admin_client = None
        self._node.stop()

    def close(self) -> None:
        """Stop the broker, and remove its data."""
        self.stop()
        self._node.remove()

    @contextmanager
    def second(self, topic: str) -> Iterator[None]:
        """Run a second broker, and create a topic with a partition on each of the two brokers.

        Partition 0 is on this broker, and partition 1 is on the second broker. The topic has one
        replica. This broker must be a local process.
        """
        assert isinstance(self._node, _ProcessNode)
        with tempfile.TemporaryDirectory(prefix="kafka-") as home:
            process = self._node.start_second(Path(home))
            try:
                deadline = time.monotonic() + _START_SECONDS
                while len(self._admin.list_topics(timeout=5).brokers) < 2:
                    if process.poll() is not None or time.monotonic() > deadline:
                        raise BrokerError(tail((Path(home) / "server.log").read_text()))
                    time.sleep(0.2)
                _wait(
                    self._admin.create_topics([NewTopic(topic, 2, replica_assignment=[[1], [2]])])
                )
                self._await_partitions(topic, 2)
                yield
            finally:
                process.terminate()
                process.wait(timeout=30)

    def log(self) -> str:
        """Return the broker's log; a local process logs only warnings and errors."""
        return self._node.log()

    def create_topic(
        self, name: str, partitions: int, config: Mapping[str, str] | None = None
    ) -> None:
        topic = NewTopic(name, partitions, replication_factor=1, config=dict(config or {}))
        _wait(self._admin.create_topics([topic]))
        self._await_partitions(name, partitions)

    def add_partitions(self, topic: str, total: int) -> None:
        """Grow a topic to `total` partitions."""
        _wait(self._admin.create_partitions([NewPartitions(topic, total)]))
        self._await_partitions(topic, total)

    def delete_topic(self, name: str) -> None:
        _wait(self._admin.delete_topics([name]))
        self._await_partitions(name, 0)

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        """Raise the log start offset of a partition: delete the records below offset `before`."""
        _wait(self._admin.delete_records([TopicPartition(topic, partition, before)]))

    def produce(
        self,
        topic: str,
        partition: int,
        values: Iterable[str],
        timestamps_ms: Iterable[int] | None = None,
    ) -> list[int]:
        """Append values to a partition in order, and return their offsets."""
        delivered: list[tuple[KafkaError | None, Message]] = []
        producer = Producer(
            {
                **self._client_config(),
                "enable.idempotence": True,
                # Consumers read whole batches. With small batches, they can stop in the middle of a
                # partition.
                "batch.num.messages": 4,
                "linger.ms": 5,
            }
        )
        times = iter(timestamps_ms) if timestamps_ms is not None else None
        for value in values:
            # With 0 the client uses the current time.
            producer.produce(
                topic,
                value=value,
                partition=partition,
                timestamp=next(times) if times else 0,
                on_delivery=lambda error, message: delivered.append((error, message)),
            )
            producer.poll(0)
        if producer.flush(_ANSWER_SECONDS):
            raise BrokerError(f"{topic}-{partition}: records not reported\n{tail(self.log())}")
        reported: list[int | None] = []
        for error, message in delivered:
            if error is not None:
                raise BrokerError(f"{topic}-{partition}: record not reported: {error}")
            reported.append(message.offset())
        offsets = [offset for offset in reported if offset is not None]
        if len(offsets) < len(reported):
            # The broker reports no offset for a batch that the producer sent twice. Its records are
            # then the last records in the log.
            _, end = self.watermarks(topic)[partition]
            offsets = list(range(end - len(reported), end))
            if any(offset not in (None, at) for offset, at in zip(reported, offsets, strict=True)):
                raise BrokerError(f"{topic}-{partition}: others write here too: {reported}")
        return offsets

    def partitions(self, topic: str) -> list[int]:
        """Return the partition numbers of a topic; empty if the topic does not exist."""
        metadata = self._admin.list_topics(topic=topic, timeout=_ANSWER_SECONDS).topics[topic]
        return [] if metadata.error is not None else sorted(metadata.partitions)

    def watermarks(self, topic: str) -> dict[int, tuple[int, int]]:
        """Return (log start offset, log end offset) of each partition."""
        consumer = Consumer({**self._client_config(), "group.id": "tests-watermarks"})
        try:
            return {
                partition: consumer.get_watermark_offsets(
                    TopicPartition(topic, partition), timeout=_ANSWER_SECONDS
                )
                for partition in self.partitions(topic)
            }
        finally:
            consumer.close()

    def records(self, topic: str) -> list[Record]:
        """Read the current records of a topic with a plain consumer, by partition and offset."""
        todo = {p: end for p, (start, end) in self.watermarks(topic).items() if start < end}
        consumer = Consumer(
            {
                **self._client_config(),
                "group.id": "tests-records",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
            }
        )
        records: list[Record] = []
        try:
            consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in todo])
            deadline = time.monotonic() + _ANSWER_SECONDS
            while todo:
                if time.monotonic() > deadline:
                    raise BrokerError(f"{topic}: partitions {sorted(todo)} not read to their end")
                message = consumer.poll(1)
                if message is None:
                    continue
                error, partition, offset = message.error(), message.partition(), message.offset()
                if error is not None and error.code() != KafkaError._PARTITION_EOF:
                    raise KafkaException(error)
                # A message from the broker always has a partition and an offset.
                assert partition is not None and offset is not None
                if error is not None:
                    todo.pop(partition, None)
                else:
                    value = message.value() or b""
                    records.append((topic, partition, offset, value.decode()))
        finally:
            consumer.close()
        return sorted(records)

    def commit(self, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
        """Commit offsets of an empty consumer group."""
        partitions = [TopicPartition(t, p, offset) for (t, p), offset in offsets.items()]
        request = [ConsumerGroupTopicPartitions(group, partitions)]
        deadline = time.monotonic() + _ANSWER_SECONDS
        while True:
            answer = self._admin.alter_consumer_group_offsets(request)[group].result(
                _ANSWER_SECONDS
            )
            errors = [tp.error for tp in answer.topic_partitions if tp.error is not None]
            if not errors:
                return
            # At the first commit, the group's coordinator may be missing or still loading.
            if (
                any(error.code() not in _NO_COORDINATOR for error in errors)
                or time.monotonic() > deadline
            ):
                raise KafkaException(errors[0])
            time.sleep(0.05)

    def committed(self, group: str) -> dict[tuple[str, int], int]:
        """Return the committed offsets of a consumer group, by (topic, partition)."""
        request = [ConsumerGroupTopicPartitions(group)]
        deadline = time.monotonic() + _ANSWER_SECONDS
        while True:
            future = self._admin.list_consumer_group_offsets(request)[group]
            try:
                answer = future.result(_ANSWER_SECONDS)
            except KafkaException as error:
                if error.args[0].code() not in _NO_COORDINATOR or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
            else:
                return {(tp.topic, tp.partition): tp.offset for tp in answer.topic_partitions}

    @property
    def _admin(self) -> AdminClient:
        if self._admin_client is None:
            raise BrokerError("the broker is not running")
        return self._admin_client

    def _client_config(self) -> dict[str, Any]:
        # Log only emergencies. Otherwise every client logs errors until the broker answers.
        return {
            "bootstrap.servers": self.bootstrap_servers,
            "log_level": 0,
            "broker.address.family": "v4",
        }

    def _await_partitions(self, topic: str, count: int) -> None:
        """Wait until the broker reports this number of partitions."""
        deadline = time.monotonic() + _ANSWER_SECONDS
        while len(self.partitions(topic)) != count:
            if time.monotonic() > deadline:
                raise BrokerError(f"{topic}: not at {count} partitions after {_ANSWER_SECONDS} s")
            time.sleep(0.05)


def _wait(futures: Mapping[Any, Any]) -> None:
    for future in futures.values():
        future.result(_ANSWER_SECONDS)


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for free in sockets:
            free.bind(("127.0.0.1", 0))
        return [free.getsockname()[1] for free in sockets]
    finally:
        for free in sockets:
            free.close()


def docker(*arguments: str, seconds: float) -> bool:
    """Return whether a docker command succeeds; False if Docker is missing or does not answer."""
    try:
        done = subprocess.run(["docker", *arguments], capture_output=True, timeout=seconds)
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _docker_can_run() -> bool:
    """Return whether a Docker engine answers, and can provide the broker's image."""
    return docker("ps", seconds=10) and (
        docker("image", "inspect", _IMAGE, seconds=10) or docker("pull", _IMAGE, seconds=300)
    )
