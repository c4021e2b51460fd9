"""What one checkpoint of many costs beside its decoding: to be found, and asked of a store."""

from __future__ import annotations

import tempfile
import tracemalloc
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from shutil import copytree

from benchmarks.checkpoints import D
from benchmarks.results import Costs
from migrate.fleet.candidates import Candidate, read_candidate
from migrate.fleet.discovery import discover
from migrate.storage.files import Files
from tests.support.stores import S3, s3

# Twenty tell the same as ten thousand: each job has a directory of its own.
_JOBS = 20


def costs() -> Costs:
    """Of a checkpoint of ``D``, found as the newest of its job's directory."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, s3() as server:
        for file in D.files()[:_JOBS]:
            job = file.parent.parent
            copytree(job, Path(folder) / job.name)
        root = server.store.put(Path(folder), "jobs")
        files = Files()
        discover([root], files)  # connects, once for all
        server.clear_log()
        found = discover([root], files, latest_only=True)
        discovery = _requests(server)
        server.clear_log()
        for candidate in found:
            read_candidate(candidate, files)
        reading = _requests(server)
    return {
        "discovery_requests": discovery,
        "reading_requests": reading,
        "candidate_bytes": _candidate_bytes(),
    }


def _requests(server: S3) -> dict[str, float]:
    """By method, of one checkpoint."""
    methods = Counter(request["method"] for request in server.requests())
    return {method: count / _JOBS for method, count in sorted(methods.items())}


def _candidate_bytes() -> float:
    """What the driver holds of each checkpoint found."""
    tracemalloc.start()
    found: Sequence[Candidate] = discover([str(D.folder)], Files(), latest_only=True)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return held / len(found)
