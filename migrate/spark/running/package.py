"""Sends this package to the executors of a cluster that does not have it."""

from __future__ import annotations

import atexit
import shutil
import tempfile
import zipfile
from pathlib import Path

from pyspark.sql import SparkSession

import decoder
import migrate

ZIP_NAME = "flink_offset_migrate.zip"


def add_package(spark: SparkSession) -> None:
    """Let the executors of a session import ``decoder`` and ``migrate``, as they are here.

    They need nothing else but what Spark itself does with Arrow, and beside it ``cramjam`` for
    compressed state and fsspec with its library for checkpoints in a store.
    """
    directory = Path(tempfile.mkdtemp(prefix="migrate-package-"))
    # Spark serves the file to executors for as long as the session lives.
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    archive = write_package(directory / ZIP_NAME)
    if spark.version < "4" and isinstance(spark, SparkSession):  # not Connect's
        spark.sparkContext.addPyFile(str(archive))
    else:
        spark.addArtifacts(str(archive), pyfile=True)


def write_package(path: Path) -> Path:
    """A zip of ``decoder`` and ``migrate``, for ``--py-files``; the path itself."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in (decoder, migrate):
            (root,) = package.__path__
            for file in sorted(Path(root).rglob("*.py")):
                archive.write(file, Path(package.__name__, file.relative_to(root)))
    return path
