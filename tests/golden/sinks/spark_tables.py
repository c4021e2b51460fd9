"""Write tables with streaming queries, one of each kind, and print their contents as JSON.

    python -m tests.golden.sinks.spark_tables FOLDER NAME…

The formats' own classes report the contents. ``generate.py`` runs this program with the Spark and
the jars of the tables. A query reads FILES files of a folder, one per batch. A second query, with a
different checkpoint location, then does the same into the same table. This is the situation of a
user's second move.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

FILES = 3
PER_FILE = 2
# An application id that looks like a query's id.
CONSTANT_UUID = "5d1a1b9e-8c1f-4b7e-9f0a-2d3c4b5a6978"

Told = dict[str, Any]
Write = Callable[[DataFrame, Path, str], Any]


class Tables:
    """The writers of the tables, with one session for this program's set of jars."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.spark = SparkSession.builder.getOrCreate()
        self.spark.sparkContext.setLogLevel("ERROR")

    def records(self, first: int) -> DataFrame:
        """Return a stream of FILES batches with PER_FILE records each."""
        folder = Path(tempfile.mkdtemp(prefix="records-"))
        for number in range(FILES):
            numbers = range(first + PER_FILE * number, first + PER_FILE * (number + 1))
            lines = (f'{{"n": {n}, "at": 0}}\n' for n in numbers)
            (folder / f"{number}.json").write_text("".join(lines))
        source = self.spark.readStream.schema("n LONG, at LONG").option("maxFilesPerTrigger", 1)
        return source.json(str(folder))

    def twice(
        self, name: str, start: Write, count: Callable[[str], int], memory: Callable[[str], Any]
    ) -> Told:
        """Run two queries, one after the other, and copy the table after the first to ``name``."""
        kept = self.folder / name
        live = self.folder / f"live-{name}"
        self._run(start, live, 0)
        told = memory(str(live))
        rows = count(str(live))
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(live, kept)
        batches = self._run(start, live, 1000).lastProgress["batchId"] + 1
        after = count(str(live))
        return {
            "table": name,
            "memory": told,
            "rows": rows,
            "second_query": {
                "batches": batches,
                "sent": FILES * PER_FILE,
                "gained": after - rows,
            },
        }

    def _run(self, start: Write, table: Path, first: int) -> Any:
        with tempfile.TemporaryDirectory(prefix="location-") as location:
            query = start(self.records(first), table, location)
            query.awaitTermination()
            return query


def stream(frame: DataFrame, location: str) -> Any:
    return frame.writeStream.option("checkpointLocation", location).trigger(availableNow=True)


def files(tables: Tables) -> Told:
    def start(frame: DataFrame, table: Path, location: str) -> Any:
        return stream(frame, location).format("parquet").start(str(table))

    def count(table: str) -> int:
        return tables.spark.read.parquet(table).count()

    def memory(table: str) -> Any:
        names = (path.name for path in Path(table, "_spark_metadata").iterdir())
        return {"": max(int(name) for name in names if name.isdecimal())}

    return tables.twice("files", start, count, memory)


def delta(tables: Tables, name: str, options: Mapping[str, str] | None, **conf: str) -> Told:
    """Write a Delta table from foreachBatch, with ``options`` for the batch writer.

    If ``options`` is None, write with Delta's own streaming sink.
    """
    for key, value in conf.items():
        tables.spark.conf.set(key.replace("__", "."), value)

    def start(frame: DataFrame, table: Path, location: str) -> Any:
        if options is None:
            return stream(frame, location).format("delta").start(str(table))

        def write(batch: DataFrame, number: int) -> None:
            writer = batch.write.format("delta").mode("append").options(**options)
            writer.option("txnVersion", str(number)).save(str(table))

        return stream(frame, location).foreachBatch(write).start()

    def count(table: str) -> int:
        return tables.spark.read.format("delta").load(table).count()

    def memory(table: str) -> Any:
        jvm: Any = tables.spark._jvm
        log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(tables.spark._jsparkSession, table)
        actions = jvm.scala.jdk.javaapi.CollectionConverters.asJava(
            log.unsafeVolatileSnapshot().setTransactions()
        )
        return {action.appId(): action.version() for action in actions}

    return tables.twice(name, start, count, memory)


def hudi(tables: Tables, name: str, **options: str) -> Told:
    identifier = "hoodie.datasource.write.streaming.checkpoint.identifier"
    given = {key.replace("__", "."): value for key, value in options.items()}

    def start(frame: DataFrame, table: Path, location: str) -> Any:
        settings = {
            "hoodie.table.name": "orders",
            "hoodie.datasource.write.recordkey.field": "n",
            "hoodie.datasource.write.precombine.field": "at",
            "hoodie.datasource.write.partitionpath.field": "",
            "hoodie.datasource.write.keygenerator.class": (
                "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
            ),
            "hoodie.metadata.enable": "false",
            **given,
        }
        return stream(frame, location).format("hudi").options(**settings).start(str(table))

    def count(table: str) -> int:
        return tables.spark.read.format("hudi").load(table).count()

    def memory(table: str) -> Any:
        jvm: Any = tables.spark._jvm
        hadoop = tables.spark._jsc.hadoopConfiguration()
        storage = jvm.org.apache.hudi.hadoop.fs.HadoopFSUtils.getStorageConf(hadoop)
        builder = jvm.org.apache.hudi.common.table.HoodieTableMetaClient.builder()
        client = builder.setConf(storage).setBasePath(table).build()
        writer = given.get(identifier, "default_single_writer")
        found = jvm.org.apache.hudi.common.util.CommitUtils.getValidCheckpointForCurrentWriter(
            client.getActiveTimeline(), "_hudi_streaming_sink_checkpoint", writer
        )
        return {writer: int(found.get())}

    return tables.twice(name, start, count, memory)


def iceberg(tables: Tables) -> Told:
    def start(frame: DataFrame, table: Path, location: str) -> Any:
        where = f"ice.`{table.name}`"
        tables.spark.sql(f"CREATE TABLE IF NOT EXISTS {where} (n LONG, at LONG) USING iceberg")
        return stream(frame, location).format("iceberg").toTable(where)

    def count(table: str) -> int:
        return tables.spark.table(f"ice.`{Path(table).name}`").count()

    def memory(table: str) -> Any:
        rows = tables.spark.sql(
            f"SELECT summary FROM ice.`{Path(table).name}`.snapshots ORDER BY committed_at"
        ).collect()
        return {
            row.summary["spark.sql.streaming.queryId"]: int(
                row.summary["spark.sql.streaming.epochId"]
            )
            for row in rows
        }

    return tables.twice("iceberg-spark", start, count, memory)


_CHECKPOINTS = {"spark__databricks__delta__properties__defaults__checkpointInterval": "2"}
_JSON = {
    **_CHECKPOINTS,
    "spark__databricks__delta__properties__defaults__checkpointPolicy": "v2",
    "spark__databricks__delta__checkpointV2__topLevelFileFormat": "json",
}

TABLES: Mapping[str, Callable[[Tables], Told]] = {
    "files": files,
    "delta-stream": lambda tables: delta(tables, "delta-stream", None),
    "delta-name": lambda tables: delta(
        tables, "delta-name", {"txnAppId": "orders-job"}, **_CHECKPOINTS
    ),
    "delta-uuid": lambda tables: delta(tables, "delta-uuid", {"txnAppId": CONSTANT_UUID}),
    "delta-json": lambda tables: delta(tables, "delta-json", {"txnAppId": "orders-job"}, **_JSON),
    "iceberg-spark": iceberg,
    "hudi-default": lambda tables: hudi(tables, "hudi-default"),
    "hudi-6": lambda tables: hudi(tables, "hudi-6", hoodie__write__table__version="6"),
    "hudi-named": lambda tables: hudi(
        tables,
        "hudi-named",
        hoodie__datasource__write__table__type="MERGE_ON_READ",
        hoodie__datasource__write__streaming__checkpoint__identifier="orders-job",
    ),
}


def main(folder: str, names: list[str]) -> None:
    tables = Tables(Path(folder))
    for name in names:
        print(json.dumps(TABLES[name](tables)), flush=True)
    tables.spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
