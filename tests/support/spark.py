"""Run a real, local Spark session for the tests, and run queries from Kafka to their end.

The Kafka connector comes from the locked jars. ``read_all`` writes to Spark's exactly-once file
sink, and reads the records from this sink.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.errors import StreamingQueryException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.version import __version__ as pyspark_version

from tests.support.jars import cache_dir, classpath, read_lock
from tests.support.jdk import QUICK_START, find_jdk
from tests.support.kafka import Record

# The Kafka connector for the imported PySpark, from .venv or from `spark_versions.py`.
CONNECTOR = f"spark-{pyspark_version}"
# Not every version of Spark has a release of Delta Lake.
_DELTA = f"delta-{pyspark_version}"
_DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
_QUERY_SECONDS = 180
_RECORD = "topic STRING, partition INT, offset LONG, value STRING"
# The session runs for minutes. In 48 MB, the default for C1 alone, compiled code is thrown away.
_LONG_LIVED = ("-XX:ReservedCodeCacheSize=192m",)
# The maximum number of records in a micro-batch, low enough for several micro-batches per query.
_RECORDS_PER_BATCH = 400


class SparkQueryError(RuntimeError):
    """A streaming query failed, did not end, or did not write every record that it read."""


def launch_environment() -> dict[str, str]:
    """Return the variables that Spark's launcher reads only from the environment."""
    return {
        "JAVA_HOME": str(find_jdk()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,  # runs the tests' functions
    }


def process_environment(conf_dir: Path) -> dict[str, str]:
    """Return the environment of a process that starts its own Spark.

    Args:
        conf_dir: an empty directory for the configuration of this Spark.
    """
    names = ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions")
    defaults = "".join(f"{name} {' '.join(QUICK_START)}\n" for name in names)
    (conf_dir / "spark-defaults.conf").write_text(defaults)
    return {**os.environ, **launch_environment(), "SPARK_CONF_DIR": str(conf_dir)}


_IVY = """\
<ivysettings>
  <settings defaultResolver="locked"/>
  <resolvers>
    <filesystem name="locked">
      <artifact pattern="{jars}/[orgPath]/[module]/[artifact]-[revision].jar"/>
    </filesystem>
  </resolvers>
</ivysettings>
"""


def submit_environment(home: Path) -> dict[str, str]:
    """Return the environment of ``spark-submit --packages`` for Kafka, and of ``spark-shell``.

    Ivy searches for packages only among the locked jars. Their dependencies are already on the
    class path.

    Args:
        home: an empty directory for the configuration and the files of this Spark.
    """
    environment = process_environment(home)
    ivy = home / "ivysettings.xml"
    ivy.write_text(_IVY.format(jars=cache_dir() / "jars"))
    settings = {
        "spark.jars": ",".join(map(str, classpath(CONNECTOR))),
        "spark.jars.ivy": home / "ivy",
        "spark.jars.ivySettings": ivy,
        "spark.ui.enabled": "false",
    }
    with (home / "spark-defaults.conf").open("a") as defaults:
        defaults.writelines(f"{name} {value}\n" for name, value in settings.items())
    programs = Path(sys.executable).parent
    environment.pop("SPARK_HOME", None)
    return {**environment, "PATH": f"{programs}{os.pathsep}{environment['PATH']}"}


class Spark:
    """A local Spark session with two threads; a context manager.

    A process can have only one session, because PySpark keeps its JVM until the interpreter ends.
    """

    def __init__(self) -> None:
        self._home = Path(tempfile.mkdtemp(prefix="spark-"))
        os.environ.update(launch_environment())
        # Otherwise, a different installed Spark could run.
        os.environ.pop("SPARK_HOME", None)
        settings = {
            "spark.master": "local[2]",
            "spark.app.name": "tests",
            "spark.jars": ",".join(map(str, classpath(CONNECTOR))),
            "spark.driver.memory": "1g",
            "spark.driver.extraJavaOptions": " ".join((*QUICK_START, *_LONG_LIVED)),
            "spark.local.dir": str(self._home / "local"),
            "spark.python.daemon.module": "tests.support.spark_daemon",
            "spark.sql.warehouse.dir": str(self._home / "warehouse"),
            "spark.sql.shuffle.partitions": "1",
            # Many tests run the same queries.
            "spark.sql.codegen.cache.maxEntries": "2000",  # 100 by default
            "spark.ui.enabled": "false",
        }
        if _DELTA in read_lock():
            settings |= {
                "spark.jars": ",".join(map(str, classpath(CONNECTOR) + classpath(_DELTA))),
                "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
                "spark.sql.catalog.spark_catalog": _DELTA_CATALOG,
                "spark.databricks.delta.snapshotPartitions": "1",  # 50 by default
            }
        conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
        # Hide Spark's many warnings, and the directory `artifacts` that it makes in its working
        # directory. A failed query raises an exception anyway.
        with (self._home / "log").open("wb") as log:
            options = {"stderr": log, "cwd": self._home}
            gateway = launch_gateway(conf, options)  # type: ignore[no-untyped-call]  # PySpark's
        self._session = SparkSession(SparkContext(conf=conf, gateway=gateway))

    def __enter__(self) -> Spark:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the session and remove its files."""
        self._session.stop()
        shutil.rmtree(self._home, ignore_errors=True)

    @property
    def session(self) -> SparkSession:
        return self._session

    def stream(
        self, bootstrap_servers: str, name: str | None = None, /, **options: str
    ) -> DataFrame:
        """Return a stream from Kafka; without a seed, it starts at the log end offset.

        A stream can have a name since Spark 4.2.
        """
        reader = self._session.readStream
        if name is not None:
            reader = reader.name(name)  # type: ignore[attr-defined]  # since 4.2
        source = reader.format("kafka")
        return source.option("kafka.bootstrap.servers", bootstrap_servers).options(**options).load()

    def read_all(
        self,
        bootstrap_servers: str,
        subscription: Mapping[str, str],
        checkpoint_dir: Path,
        *,
        starting_offsets: str | None = None,
        stateful: bool = False,
    ) -> list[Record]:
        """Run a query over the current records in Kafka, and return the sorted records of its sink.

        The sink is next to the checkpoint directory. A second run of the query adds records to it.

        Args:
            bootstrap_servers: the brokers.
            subscription: an option of the source, such as `{"subscribe": "orders,payments"}`.
            checkpoint_dir: the checkpoint location.
            starting_offsets: None for Spark's default, `latest`. A query that ignores its
                checkpoint location then reads no records.
            stateful: True for a state store that removes records that the query reads twice.
        """
        source = (
            self._session.readStream.format("kafka")
            .option("kafka.bootstrap.servers", bootstrap_servers)
            .option("maxOffsetsPerTrigger", str(_RECORDS_PER_BATCH))
            .options(**subscription)
        )
        if starting_offsets is not None:
            source = source.option("startingOffsets", starting_offsets)
        records = source.load().selectExpr(
            "topic", "partition", "offset", "CAST(value AS STRING) AS value"
        )
        if stateful:
            records = records.dropDuplicates(["topic", "partition", "offset"])
        checkpoint_dir = checkpoint_dir.absolute()
        sink = checkpoint_dir.with_name(f"{checkpoint_dir.name}-sink")
        before = len(self._written(sink))
        query = (
            records.writeStream.format("json")
            .option("path", str(sink))
            .option("checkpointLocation", str(checkpoint_dir))
            .trigger(availableNow=True)
            .start()
        )
        read = run_to_end(query)
        written = self._written(sink)
        # A stateful query hides a record that it has read twice, so compare the counts.
        if len(written) - before != read:
            raise SparkQueryError(
                f"the query read {read} records and wrote {len(written) - before}"
            )
        return written

    def _written(self, sink: Path) -> list[Record]:
        """Return the records that a query's file sink has committed."""
        if not sink.exists():
            return []
        rows = self._session.read.schema(_RECORD).json(str(sink)).collect()
        return sorted((row.topic, row.partition, row.offset, row.value) for row in rows)


def run_to_end(query: StreamingQuery) -> int:
    """Wait until a query has ended, and return the number of records that it has read."""
    try:
        if not query.awaitTermination(_QUERY_SECONDS):
            raise SparkQueryError(f"the query has not ended after {_QUERY_SECONDS} s")
    except StreamingQueryException as error:
        raise SparkQueryError(str(error)) from error
    finally:
        query.stop()
    return sum(progress["numInputRows"] for progress in query.recentProgress)
