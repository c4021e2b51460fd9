"""The IDs of Flink jobs in directory names."""

from __future__ import annotations

import posixpath
import re

_JOB_ID = re.compile(r"[0-9a-f]{32}")

# In an application cluster with high availability, Flink gives every job this ID, so the ID does
# not identify a job (ApplicationDispatcherBootstrap.ZERO_JOB_ID @ Flink 1.15.4; removed by 1.16.3).
FIXED_JOB_ID = "0" * 32
# Flink's name for a savepoint starts with the first digits of the job ID
# (AbstractFsCheckpointStorageAccess.initializeLocationForSavepoint @ Flink 1.15.4 to 2.2.0).
SAVEPOINT_NAME = re.compile(r"savepoint-([0-9a-f]{6})-[0-9a-f]{12}")


def job_id_of(job_directory: str | None) -> str | None:
    """Return the name of a job's directory if that name is a job ID, else None."""
    name = posixpath.basename(job_directory) if job_directory is not None else ""
    return name if _JOB_ID.fullmatch(name) else None
