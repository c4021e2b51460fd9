"""Run the command ``rehearse`` of the spec, in a dry run of a cut-over."""

from __future__ import annotations

import subprocess

from migrate.cutover.context import CutOverContext
from migrate.model.errors import Refused
from migrate.model.log import log
from migrate.model.wording import printable


def rehearse(context: CutOverContext) -> str:
    """Run the command ``rehearse`` of the spec, log its output, and return what was done.

    Raises:
        Refused: the command could not be started, or has failed.
    """
    command = context.spec.rehearse
    assert command is not None
    words = ["/bin/sh", "-c", command] if isinstance(command, str) else command
    log.info("rehearse: running the command")
    try:
        done = subprocess.run(
            words,
            cwd=context.file.base,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
    except OSError as error:
        raise Refused(f"rehearse: {error.strerror or error}") from error
    for number, line in enumerate(done.stdout.decode(errors="replace").splitlines(), start=1):
        log.info(f"rehearse {number}: {printable(line)}")
    if done.returncode:
        raise Refused(f"rehearse: the command has ended with exit code {done.returncode}")
    return "the command that rehearses the query has ended well"
