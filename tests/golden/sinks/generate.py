"""Regenerate the golden tables: files that real writers wrote, and the writers' reports.

    python -m tests.golden.sinks.generate [NAME…]     # such as hudi-6; without one, all

Files with rows are omitted, and so are all other files that `sink_memory` does not read. Tables
contain the absolute paths of their files. They are therefore written under the neutral `/flink`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from fnmatch import fnmatch
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyspark

from tests.golden.sinks.tables import GOLDEN, MANIFEST, read_manifest
from tests.support.jars import classpath
from tests.support.jdk import compile_java, run_java
from tests.support.spark import launch_environment
from tests.support.spark_versions import ROOT, VENV_RELEASE, environments

NEUTRAL = Path("/flink/sinks")

_JAVA = Path(__file__).parents[2] / "support" / "java"
_KEPT = (
    "_spark_metadata/[0-9]*",
    "_delta_log/*.json",
    "_delta_log/*.parquet",
    ".hoodie/hoodie.properties",
    ".hoodie/*commit",
    "metadata/*.metadata.json",
    "metadata/version-hint.text",
    "snapshot/*",
)

# The jars that the writer of a table needs, and the writer's name, by table.
_DELTA, _HUDI = f"Spark {VENV_RELEASE}, Delta 4.0.0", "Spark 3.5.1, Hudi 1.1.1"
_SPARK: Mapping[str, tuple[str | None, str]] = {
    "files": (None, f"Spark {VENV_RELEASE}"),
    "delta-stream": ("delta-4.0.0", _DELTA),
    "delta-name": ("delta-4.0.0", _DELTA),
    "delta-uuid": ("delta-4.0.0", _DELTA),
    "delta-json": ("delta-4.0.0", _DELTA),
    "iceberg-spark": ("iceberg-spark-1.10.0", f"Spark {VENV_RELEASE}, Iceberg 1.10.0"),
    "hudi-default": ("hudi-1.1.1", _HUDI),
    "hudi-6": ("hudi-1.1.1", _HUDI),
    "hudi-named": ("hudi-1.1.1", _HUDI),
}
_EXTENSIONS: Mapping[str, Mapping[str, str]] = {
    "delta-4.0.0": {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "1",
    },
    "iceberg-spark-1.10.0": {
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "hadoop",
        "spark.sql.catalog.ice.warehouse": str(NEUTRAL),
    },
    "hudi-1.1.1": {
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    },
}

# Jobs without state, one after another, each with job id, uid, and number of checkpoints.
_ONE, _TWO, _THREE = (f"{n:032x}" for n in (1, 2, 3))
ICEBERG_JOBS = (
    f"IcebergSink,{_ONE},orders,6",
    f"IcebergSink,{_ONE},orders,3",
    f"IcebergSink,{_ONE},orders-2,3",
    f"IcebergSink,{_TWO},orders,3",
    f"FlinkSink,{_THREE},orders,6",
    f"FlinkSink,{_THREE},orders,3",
)
PAIMON_JOBS = (f"{_ONE},orders,6", f"{_ONE},orders,3")


def spark_tables(names: Iterable[str]) -> list[dict[str, Any]]:
    """Let Spark write tables, with one session for each set of jars."""
    told = []
    groups: dict[str | None, list[str]] = {}
    for name in names:
        groups.setdefault(_SPARK[name][0], []).append(name)
    for jars, group in groups.items():
        settings = {
            "spark.master": "local[2]",
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "1",
            **(_EXTENSIONS[jars] if jars else {}),
        }
        if jars:
            settings["spark.jars"] = ",".join(map(str, classpath(jars)))
        # Not every registry has Hudi's jar for Spark 4.0.
        old = jars == "hudi-1.1.1"
        environment = environments()["3.5"].variables() if old else dict(os.environ)
        environment |= launch_environment()
        environment.pop("SPARK_HOME", None)
        given = " ".join(f"--conf {key}={value}" for key, value in settings.items())
        environment["PYSPARK_SUBMIT_ARGS"] = f"{given} pyspark-shell"
        command = [sys.executable, "-m", "tests.golden.sinks.spark_tables", str(NEUTRAL), *group]
        done = subprocess.run(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True
        )
        # Hudi also prints warnings to stdout.
        told += [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return [{**one, "writer": _SPARK[one["table"]][1]} for one in told]


def iceberg_by_flink() -> dict[str, Any]:
    """Let Flink jobs write to one Iceberg table."""
    table = NEUTRAL / "iceberg-flink"
    lines = _flink("Iceberg", "flink-1.20-iceberg", table, ICEBERG_JOBS)
    return _jobs(table, "Flink 1.20.3, Iceberg 1.10.0", ICEBERG_JOBS, lines)


def paimon_by_flink() -> dict[str, Any]:
    """Let Flink jobs write to one Paimon table."""
    table, warehouse = NEUTRAL / "paimon-flink", NEUTRAL / "warehouse"
    lines = _flink("Paimon", "flink-1.20-paimon", warehouse, PAIMON_JOBS)
    shutil.rmtree(table, ignore_errors=True)
    (warehouse / "golden.db" / "orders").rename(table)
    return _jobs(table, "Flink 1.20.3, Paimon 1.3.1", PAIMON_JOBS, lines)


def _jobs(table: Path, writer: str, jobs: Iterable[str], lines: Iterable[str]) -> dict[str, Any]:
    """Return a table's entry from the output lines of its jobs.

    Each line contains the number of rows that the job passed to the sink, the number of rows in the
    table afterward, and the number and the name that the table stores for the job.
    """
    told = []
    memory: dict[str, int] = {}
    rows = 0
    for job, line in zip(jobs, lines, strict=True):
        passed, total, last, name = line.split(maxsplit=3)
        told.append({"job": job, "sent": int(passed), "gained": int(total) - rows})
        memory[name] = int(last)
        rows = int(total)
    return {"table": table.name, "memory": memory, "rows": rows, "jobs": told, "writer": writer}


def _flink(name: str, jar_set: str, place: Path, jobs: Iterable[str]) -> list[str]:
    """Return the output of a program of table_sinks, with a line for each job."""
    jars = [*classpath(jar_set), *_hadoop()]
    common = ("LocalFlink", "Progress", "KafkaLines")
    sources = [
        *(_JAVA / "table_sinks" / f"{one}.java" for one in (f"{name}Jobs", "TableJob")),
        *(_JAVA / "flink" / f"{one}.java" for one in common),
    ]
    checkpoints = NEUTRAL / "checkpoints"
    for folder in (place, checkpoints):
        shutil.rmtree(folder, ignore_errors=True)
    arguments = [str(place), str(checkpoints), *jobs]
    main = f"testjobs.{name}Jobs"
    return run_java(main, [compile_java(sources, jars), *jars], arguments, "1g").splitlines()


def _hadoop() -> list[Path]:
    """Return Hadoop's jars from PySpark, because both formats require them."""
    return sorted(Path(pyspark.__file__).parent.glob("jars/hadoop-client-*.jar"))


def keep(told: Mapping[str, Any]) -> dict[str, Any]:
    """Copy the relevant files of a table, and return its entry in the manifest."""
    name = told["table"]
    source, target = NEUTRAL / name, GOLDEN / name
    shutil.rmtree(target, ignore_errors=True)
    files = {}
    # Each of Iceberg's metadata files describes the complete table, so the last one is enough.
    older = sorted(source.glob("metadata/v*.json"), key=lambda path: path.stat().st_mtime)[:-1]
    for path in sorted({*source.rglob("*")} - {*older}):
        below = path.relative_to(source).as_posix()
        if not path.is_file() or not any(fnmatch(below, pattern) for pattern in _KEPT):
            continue
        copied = target / below
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copied)
        files[below] = sha256(copied.read_bytes()).hexdigest()
    return {**told, "files": files}


def main(names: list[str]) -> None:
    wanted = names or [*_SPARK, "iceberg-flink", "paimon-flink"]
    told = spark_tables(name for name in wanted if name in _SPARK)
    told += [iceberg_by_flink()] if "iceberg-flink" in wanted else []
    told += [paimon_by_flink()] if "paimon-flink" in wanted else []
    entries = {entry["table"]: entry for entry in read_manifest()}
    entries |= {one["table"]: keep(one) for one in told}
    text = json.dumps({"tables": [entries[name] for name in sorted(entries)]}, indent=2)
    MANIFEST.write_text(text + "\n", encoding="ascii")


if __name__ == "__main__":
    main(sys.argv[1:])
