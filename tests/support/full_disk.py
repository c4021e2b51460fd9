"""Run ``migrate`` on a disk that is full from a certain moment on.

With a file size limit of 0 bytes (``RLIMIT_FSIZE``), the same calls fail as on a full disk, but the
error is "File too large". The limit does not apply to pipes.

``python -m tests.support.full_disk TEXT ARGUMENT...`` sets the limit at the first log message that
starts with TEXT.
"""

from __future__ import annotations

import logging
import os
import resource
import subprocess
import sys
from pathlib import Path

from migrate.cli import main
from migrate.model.log import log
from tests.support.command import Result, check_warnings, without_progress

_ROOT = Path(__file__).parents[2]


def run_on_disk_full_after(message: str, *arguments: str | Path) -> Result:
    """Run ``migrate`` as a separate process whose disk is full after a log message."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.full_disk", message, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(_ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    check_warnings(done.stderr)
    return Result(done.returncode, done.stdout, without_progress(done.stderr))


def _main() -> None:
    _, message, *arguments = sys.argv

    def fill_disk(record: logging.LogRecord) -> bool:
        if record.getMessage().startswith(message):
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        return True

    log.addFilter(fill_disk)
    sys.argv = ["migrate", *arguments]
    main()


if __name__ == "__main__":
    _main()
