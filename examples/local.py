"""Run the stack of docker-compose.yml as processes of this machine, for `make demo` and the tests.

The releases, the SQL and the cut-over script are the same. Only the addresses differ.
"""

from __future__ import annotations

import csv
import itertools
import json
import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from confluent_kafka import KafkaError, Message, Producer

from tests.support.flink_session import JARS as FLINK_JARS
from tests.support.flink_session import FlinkSession
from tests.support.jars import classpath
from tests.support.jdk import QUICK_START, find_jdk, tail
from tests.support.kafka import JARS as KAFKA_JARS
from tests.support.kafka import Broker
from tests.support.service import Service
from tests.support.stores import s3

EXAMPLES = Path(__file__).parent
TOPIC = "orders"
TOTALS = "totals"
PARTITIONS = 5
_CUSTOMERS = 5
_SECONDS_BETWEEN_ORDERS = 0.005
_SPARK_JARS = "spark-4.0.0"
JARS = (FLINK_JARS, KAFKA_JARS, _SPARK_JARS)
_SCRIPT_SECONDS = 600

# partition, offset, order_id, customer, cents
Order = tuple[int, int, int, str, int]
# customer -> (orders, cents)
Totals = dict[str, tuple[int, int]]


class StackError(RuntimeError):
    """The cut-over failed, or orders did not reach Kafka."""


class LocalStack(Service):
    """Kafka, and a Flink session cluster that stores its checkpoints in S3, as a context manager.

    Args:
        directory: the directory of all files.
        flink_settings: Flink's settings, in addition to the cluster's settings.
    """

    flink: FlinkSession
    _checkpoints: str
    _savepoints: str

    def __init__(self, directory: Path, flink_settings: Mapping[str, str] | None = None) -> None:
        self._home = directory.absolute()
        self._flink_settings = flink_settings or {}
        self.lake = self._home / "lake"
        self.broker = Broker()
        self._orders = itertools.count(1)
        self._enough = threading.Event()
        self._producing: threading.Thread | None = None
        self._undelivered: list[str] = []
        self._stack = ExitStack()

    def start(self) -> None:
        stack = self._stack
        stack.enter_context(self.broker)
        self.broker.create_topic(TOPIC, PARTITIONS)
        self.broker.create_topic(TOTALS, 1)
        stack.callback(self._end_orders)
        store = stack.enter_context(s3())
        self._checkpoints = f"{store.store.root}/flink/checkpoints"
        self._savepoints = f"{store.store.root}/flink/savepoints"
        checkpoints = {
            "execution.checkpointing.dir": self._checkpoints,
            "execution.checkpointing.savepoint-dir": self._savepoints,
            "s3.endpoint": store.endpoint,
            "s3.path.style.access": "true",
            "s3.access-key": os.environ["AWS_ACCESS_KEY_ID"],
            "s3.secret-key": os.environ["AWS_SECRET_ACCESS_KEY"],
            **self._flink_settings,
        }
        self.flink = stack.enter_context(FlinkSession(self._home / "flink", checkpoints))
        stack.callback(self._stop_spark)

    def close(self) -> None:
        self._stack.close()

    def submit(self, *files: str) -> None:
        """Run SQL files of examples/ with Flink's SQL client, one after the other."""
        self.flink.submit("\n".join(map(self.sql, files)))

    def sql(self, file: str) -> str:
        """Return the contents of a SQL file of examples/, with the addresses of this stack."""
        text = (EXAMPLES / file).read_text()
        text = text.replace("kafka:9092", self.broker.bootstrap_servers)
        text = text.replace("s3://flink/savepoints", self._savepoints)
        return text.replace("file:///lake", self.lake.as_uri())

    def start_orders(self) -> None:
        """Start a writer of about two hundred orders a second."""
        self._enough.clear()
        self._producing = threading.Thread(target=self._produce, daemon=True)
        self._producing.start()

    def add_partition(self) -> None:
        """Add a partition with some orders."""
        self.broker.add_partitions(TOPIC, PARTITIONS + 1)
        self.broker.produce(TOPIC, PARTITIONS, [self._order(_now_ms()) for _ in range(50)])

    def add_orders(self, count: int) -> None:
        """Write this number of orders into each partition."""
        for partition in range(PARTITIONS + 1):
            orders = [self._order(_now_ms()) for _ in range(count)]
            self.broker.produce(TOPIC, partition, orders)

    def stop_orders(self) -> None:
        """Stop writing orders, and wait until all are in Kafka."""
        self._end_orders()
        if self._undelivered:
            raise StackError(f"orders did not reach Kafka: {self._undelivered[0]}")

    def spec(self) -> Path:
        """Write ``examples/orders/cut-over.yaml`` with the addresses of this stack."""
        text = (EXAMPLES / "orders/cut-over.yaml").read_text()
        for there, here in (
            ("http://jobmanager:8081", self.flink.rest_url),
            ("s3://flink/savepoints", self._savepoints),
            ("kafka:9092", self.broker.bootstrap_servers),
            ("/lake/", f"{self.lake}/"),
        ):
            text = text.replace(there, here)
        spec = self._home / "cut-over.yaml"
        spec.write_text(text)
        return spec

    def start_command(self) -> str:
        """Return a shell line that runs the query until it is stopped."""
        path = self._commands()["PATH"]
        pid, log = self._home / "spark.pid", self._home / "spark.log"
        return f"echo $$ >{pid}; PATH={shlex.quote(path)} exec orders-on-spark >{log} 2>&1"

    def totals_command(self, *arguments: str) -> str:
        """Return a shell line that runs the query of the totals."""
        commands = self._commands()
        names = ("PATH", "JAVA_HOME", "PYSPARK_PYTHON")
        values = " ".join(f"{name}={shlex.quote(commands[name])}" for name in names)
        return f"export {values}; {self._spark_query(TOTALS, *arguments)}"

    def cut_over(self, way: str, say: Callable[[str], None]) -> None:
        """Run ``examples/cut-over there`` or ``back``; ``say`` gets each line of its output."""
        process = subprocess.Popen(
            [str(EXAMPLES / "cut-over"), way],
            env={**os.environ, **self._commands()},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        late = threading.Timer(_SCRIPT_SECONDS, process.kill)
        late.start()
        with process:
            assert process.stdout is not None
            for line in process.stdout:
                say(line.rstrip("\n"))
        late.cancel()
        if process.returncode:
            raise StackError(f"cut-over {way}: exit code {process.returncode}")

    def by_flink(self) -> list[Order]:
        """Return the orders in Flink's finished files, whose names do not start with a dot."""
        return _orders(sorted((self.lake / "orders/flink").glob("part-*")))

    def by_spark(self) -> list[Order]:
        """Return the orders in the files that Spark has committed, according to its sink's log."""
        sink = self.lake / "orders/spark"
        names: set[str] = set()
        for log in (sink / "_spark_metadata").glob("[0-9]*"):
            _, *entries = log.read_text().splitlines()
            names |= {json.loads(entry)["path"].rpartition("/")[2] for entry in entries}
        return _orders([sink / name for name in sorted(names)])

    def totals(self) -> Totals:
        """Return the totals of each customer from the newest record of that key in the topic."""
        rows = [json.loads(value) for *_, value in self.broker.records(TOTALS)]
        return {row["customer"]: (row["orders"], row["cents"]) for row in rows}

    def totals_on_spark(self, savepoint: str) -> str:
        """Run the Spark query of the totals up to the last order, and return its output."""
        query = self._spark_query("totals", "--savepoint", savepoint, "--available-now")
        done = subprocess.run(
            ["bash", "-c", query],
            env={**os.environ, **self._commands()},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SCRIPT_SECONDS,
        )
        if done.returncode:
            raise StackError(f"totals on Spark: {tail(done.stdout + done.stderr)}")
        return done.stdout.strip()

    def totals_again(self, savepoint: str, *flags: str) -> tuple[int, str]:
        """Copy the savepoint with Spark's positions by ``migrate``; return exit code and stderr."""
        done = subprocess.run(
            [
                *("migrate", "to-flink", savepoint, "--out", f"{self._savepoints}/totals-again"),
                *("--from", f"spark:{self.lake}/queries/totals", *flags),
                *("-b", self.broker.bootstrap_servers),
            ],
            env={**os.environ, **self._commands()},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SCRIPT_SECONDS,
        )
        return done.returncode, done.stderr.strip()

    def in_kafka(self) -> list[Order]:
        """Return every order in Kafka, as a plain consumer reads it."""
        return [
            (partition, offset, order["order_id"], order["customer"], order["cents"])
            for _, partition, offset, value in self.broker.records(TOPIC)
            for order in [json.loads(value)]
        ]

    def spark_log(self) -> str:
        """Return the end of the log of the query's Spark."""
        log = self._home / "spark.log"
        return tail(log.read_text(errors="replace")) if log.exists() else "Spark did not start"

    def _order(self, at_ms: int) -> str:
        number = next(self._orders)
        order = {
            "order_id": number,
            "customer": f"customer-{number % _CUSTOMERS}",
            "cents": 100 + number % 900,
            "ordered_ms": at_ms,
        }
        return json.dumps(order)

    def _produce(self) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self.broker.bootstrap_servers,
                "broker.address.family": "v4",
                "enable.idempotence": True,
                "linger.ms": 100,  # every reader wakes up ten times a second, not two hundred times
                "log_level": 0,
            }
        )
        for partition in itertools.cycle(range(PARTITIONS)):
            at_ms = _now_ms()
            producer.produce(
                TOPIC,
                self._order(at_ms),
                partition=partition,
                timestamp=at_ms,
                on_delivery=self._delivered,
            )
            producer.poll(0)
            if self._enough.wait(_SECONDS_BETWEEN_ORDERS):
                break
        if left := producer.flush(30):
            self._undelivered.append(f"{left} were not delivered within 30 s")

    def _delivered(self, error: KafkaError | None, _: Message[bytes, bytes]) -> None:
        if error is not None:
            self._undelivered.append(str(error))

    def _end_orders(self) -> None:
        self._enough.set()
        if self._producing is not None:
            self._producing.join()

    def _commands(self) -> Mapping[str, str]:
        """Return the environment of the script, so that its commands run without containers."""
        pid, log = self._home / "spark.pid", self._home / "spark.log"
        sql_client, sql_log = shlex.join(self.flink.sql_client()), self._home / "sql-client.log"
        programs = {
            # The client's output matters only if it fails.
            "sql-client": f'{sql_client} "$@" >{sql_log} 2>&1 || {{ cat {sql_log}; exit 1; }}\n'
            f'grep "^Job ID" {sql_log}',
            "start-spark": f"setsid orders-on-spark >{log} 2>&1 </dev/null &\necho $! >{pid}",
            "stop-spark": f"kill $(<{pid})\ntail --pid $(<{pid}) --follow /dev/null",
            "finish-spark": f"orders-on-spark --available-now >>{log} 2>&1 </dev/null",
            "orders-on-spark": self._spark_query("orders", "--path", f"{self.lake}/orders/spark"),
        }
        folder = self._home / "bin"
        folder.mkdir(exist_ok=True)
        for name, line in programs.items():
            program = folder / name
            program.write_text(f"#!/bin/bash\nset -euo pipefail\n{line}\n")
            program.chmod(0o755)
        sql = self._home / "sql"
        sql.mkdir(exist_ok=True)
        for file in ("tables.sql", "flink_back.sql"):
            (sql / file).write_text(self.sql(f"orders/{file}"))
        return {
            "PATH": os.pathsep.join(
                [str(folder), str(Path(sys.executable).parent), os.environ["PATH"]]
            ),
            "JAVA_HOME": str(find_jdk()),
            "PYSPARK_PYTHON": sys.executable,
            "SQL_CLIENT": "sql-client",
            "MIGRATE": "migrate",
            "START_SPARK": "start-spark",
            "STOP_SPARK": "stop-spark",
            "FINISH_SPARK": "finish-spark",
            "BROKERS": self.broker.bootstrap_servers,
            "CHECKPOINT": str(self.lake / "queries/orders"),
            "SPEC": str(self.spec()),
            "ROLLBACK": str(self._home / "rollback-orders.json"),
            "SQL": str(sql),
        }

    def _spark_query(self, example: str, *arguments: str) -> str:
        settings = {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.extraJavaOptions": " ".join(QUICK_START),
            "spark.local.dir": str(self._home / "spark"),
            "spark.sql.warehouse.dir": str(self._home / "warehouse"),
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
        }
        command = [str(Path(sys.executable).with_name("spark-submit"))]
        command += ["--master", "local[2]", "--driver-memory", "1g"]
        command += ["--jars", ",".join(map(str, classpath(_SPARK_JARS)))]
        for key, value in settings.items():
            command += ["--conf", f"{key}={value}"]
        command += [str(EXAMPLES / example / "spark_query.py")]
        command += ["--bootstrap-servers", self.broker.bootstrap_servers]
        command += ["--checkpoint", str(self.lake / "queries" / example), *arguments]
        return f'exec env -u SPARK_HOME {shlex.join(command)} "$@"'

    def _stop_spark(self) -> None:
        """Stop the query if the demo ended while it ran."""
        with suppress(FileNotFoundError, ProcessLookupError):
            os.kill(int((self._home / "spark.pid").read_text()), 15)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _orders(files: Sequence[Path]) -> list[Order]:
    """Return the rows of CSV files; here, Flink and Spark write the same format."""
    orders: list[Order] = []
    for file in files:
        with file.open(newline="") as lines:
            for number, customer, cents, partition, offset in csv.reader(lines):
                orders.append((int(partition), int(offset), int(number), customer, int(cents)))
    return orders
