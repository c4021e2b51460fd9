"""The record of a cut-over, and its folder.

The folder contains:

* ``record.json``, written at each change, and its page ``record.html``
* ``plan.json``, and the rollback file of a group
* ``lock``, which the active run locks
* ``query.*`` and ``prime.*``, the files of the ``start`` and ``prime`` commands (see ``command``)
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import getpass
import os
import platform
import secrets
import socket
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from decoder.urls import redact_urls
from migrate.extensions.cutover import catalog
from migrate.extensions.cutover.page import cut_over_page
from migrate.extensions.cutover.report import (
    KIND,
    VERSION,
    CutOverRecord,
    FlinkReport,
    QuestionReport,
    RunReport,
    StepReport,
    StepState,
)
from migrate.extensions.cutover.spec import SpecFile
from migrate.model.errors import Refused, UsageError
from migrate.model.message import Message
from migrate.model.warning import warn
from migrate.model.wording import package_version
from migrate.storage.files import is_same_place
from migrate.storage.json_models import EditedFile, as_json, read_file
from migrate.storage.new_file import MAKE_WRITABLE, replace_file


def now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")


class Record:
    """The record of a cut-over. Methods that change the record also write it to disk.

    Args:
        file: the spec.
        write: True to write to disk.
        replace_rolled_back: True to replace a rolled-back record with a new one.

    Raises:
        Refused: the spec has a forbidden change (see ``forbidden_changes``).
        InputError: ``record.json`` is not a record, has a different version, or was edited.
    """

    def __init__(self, file: SpecFile, *, write: bool, replace_rolled_back: bool) -> None:
        self.folder, self.writes_to_disk = file.folder, write
        self.path = self.folder / "record.json"
        self.page = self.folder / "record.html"
        self.plan_path = self.folder / "plan.json"
        new, saved = _new_record(file), None
        if self.path.exists():
            name = f"record of version {VERSION}"
            hint = "a cut-over creates this file"
            saved = read_file(CutOverRecord, self.path, name, creation_hint=hint)
            if saved.sha256 is None:
                raise EditedFile(catalog.RECORD_WITHOUT_CHECKSUM(path=self.path))
        if saved is not None and saved.state == "went back" and replace_rolled_back:
            saved = None
            if write:
                self.put_aside(self.path, self.page)
        self.model = self._continued(saved, new, file) if saved is not None else new

    @staticmethod
    def _continued(saved: CutOverRecord, new: CutOverRecord, file: SpecFile) -> CutOverRecord:
        if changed := [*forbidden_changes(saved, file)]:
            raise Refused(changed)
        before, host = saved.flink.host, new.flink.host
        if before not in (None, host) and (saved.flink.job_id or saved.flink.savepoint):
            warn(catalog.FLINK_REST_CHANGED(before=before, host=host or "no host"))
        from_spec = ("spec_sha256", "brokers", "target", "sink")
        changes = {name: getattr(new, name) for name in from_spec}
        changes["flink"] = saved.flink.model_copy(update={"host": host})
        return saved.model_copy(update=changes)

    def change(self, **fields: Any) -> None:
        self.model = self.model.model_copy(update=fields)
        if self.writes_to_disk:
            replace_file(self.path, as_json(self.model))

    def change_flink(self, **fields: object) -> None:
        self.change(flink=self.model.flink.model_copy(update=fields))

    def put_aside(self, *files: Path) -> None:
        """Rename the files that exist: add the current time to their names."""
        at = now().replace(":", "")
        for file in files:
            if file.exists():
                file.rename(file.with_stem(f"{file.stem}-{at}"))

    def begin_run(self, command: str) -> None:
        """Add a run; ``command`` is ``execute``, ``until STEP``, or ``back``."""
        run = RunReport(
            number=len(self.model.runs) + 1,
            asked=command,
            user=_user(),
            host=socket.gethostname(),
            migrate=package_version() or "not installed",
            python=platform.python_version(),
            began_at=now(),
            ended_at=None,
            end=None,
        )
        self.change(runs=[*self.model.runs, run])

    def add_question(self, asked_at: str) -> None:
        """Record that the run waited for the user's answer from ``asked_at`` until now."""
        *before, run = self.model.runs
        question = QuestionReport(asked_at=asked_at, answered_at=now())
        self.change(runs=[*before, run.model_copy(update={"question": question})])

    def end_run(self, end: str, codes: Sequence[str] = ()) -> None:
        """Record how the run ended and the codes of its refusals or errors, and write the page."""
        *before, run = self.model.runs
        ended = run.model_copy(
            update={"ended_at": now(), "end": redact_urls(end), "codes": list(codes)}
        )
        self.change(runs=[*before, ended])
        if self.writes_to_disk:
            replace_file(self.page, cut_over_page(self.model))

    def add_step(self, name: str, state: StepState, text: str, seconds: float) -> None:
        """Record the result of a step, and replace the step's earlier result."""
        step = StepReport(
            name=name,
            state=state,
            told=redact_urls(text),
            ended_at=now(),
            seconds=round(seconds, 3),
            run=len(self.model.runs),
        )
        steps = {earlier.name: earlier for earlier in self.model.steps} | {name: step}
        self.change(steps=list(steps.values()))

    def add_done_step(self, name: str, text: str) -> None:
        """Record that a step was completed earlier, unless the record already contains the step."""
        if not any(step.name == name and step.state == "done" for step in self.model.steps):
            self.add_step(name, "done", text, 0.0)


def saved_records(folder: Path) -> Iterator[tuple[Path, CutOverRecord]]:
    """Yield the path and the content of each record in a record's folder and sibling folders.

    The file name of a rolled-back record contains the time at which the record was replaced.
    """
    for path in sorted({*folder.glob("record*.json"), *folder.parent.glob("*/record*.json")}):
        try:
            yield path, CutOverRecord.model_validate_json(path.read_bytes())
        except (OSError, ValueError):
            continue  # not a record, or not readable


def forbidden_changes(record: CutOverRecord, file: SpecFile) -> Iterator[Message]:
    """Yield the changes to the spec that are no longer allowed.

    - After a request to stop the job: a different job, or a savepoint instead of a job. A different
      folder for the savepoint is allowed only if the stop failed.
    - If an earlier spec contained a savepoint: a job instead of the savepoint.
    - After the target was written: a different value for a key that determines the target's start
      position.
    """
    job, savepoint, flink = file.spec.flink.job, file.spec.flink.savepoint, record.flink
    if flink.job_id is not None and savepoint is None:
        if job not in (flink.job_id, flink.job_name):
            name = f"{flink.job_name} ({flink.job_id})"
            yield catalog.SPEC_KEY_CHANGED(key="flink.job", before=name, after=job)
        if flink.savepoints is not None and not _is_same(
            "flink.savepoints", flink.savepoints, file.savepoint_folder
        ):
            # The stop writes to the recorded folder, even if the spec now contains a different
            # folder.
            yield catalog.SPEC_KEY_CHANGED(
                key="flink.savepoints", before=flink.savepoints, after=file.savepoint_folder
            )
    elif record.moved_with is None and flink.job_id is not None:
        yield catalog.SAVEPOINT_KEY_ADDED(
            savepoint=savepoint, job=flink.job_name, job_id=flink.job_id
        )
    elif record.moved_with is None and flink.savepoint is not None and savepoint is None:
        # The spec now contains a job to stop, but the record contains the savepoint of an earlier
        # spec.
        yield catalog.SAVEPOINT_KEY_REMOVED(savepoint=flink.savepoint)
    if record.moved_with is not None:
        decides = file.deciding_values()
        for name in sorted(record.moved_with.keys() | decides.keys()):
            before, after = record.moved_with.get(name), decides.get(name)
            if not _is_same(name, before, after):
                yield catalog.SPEC_KEY_CHANGED(
                    key=name, before=before or "unset", after=after or "unset"
                )


# The keys in the spec whose values are paths or addresses.
_PLACES = frozenset(
    {"flink.savepoint", "flink.savepoints", "kafka.to-config", "sink", "target.checkpoint-dir"}
)


def _is_same(key: str, before: str | None, after: str | None) -> bool:
    """Return whether a key in the spec still has the same value or an equivalent one."""
    if before is None or after is None or key not in _PLACES:
        return before == after
    return is_same_place(before, after)


def _new_record(file: SpecFile) -> CutOverRecord:
    spec, rest = file.spec, file.spec.flink.rest
    host = urlsplit(rest).hostname if rest is not None else None
    fields: dict[str, object] = {
        **dict.fromkeys(CutOverRecord.model_fields),  # null until a step records the value
        **{name: [] for name in ("verifications", "partitions", "steps", "runs", "lags")},
        "kind": KIND,
        "version": VERSION,
        "id": secrets.token_hex(8),
        "name": file.name,
        "state": "begun",
        "spec_sha256": file.sha256,
        "brokers": spec.kafka.bootstrap_servers or "",
        "target": spec.target.name,
        "sink": spec.sink,
        "flink": {**dict.fromkeys(FlinkReport.model_fields), "host": host, "finished": False},
    }
    return CutOverRecord.model_validate(fields)


def check_writable(folder: Path) -> None:
    """Check, without writing anything, that a run can write to a record's folder.

    This function does not check whether the folder is a file or is inside a file; the ``check``
    step does.

    Raises:
        UsageError: as in ``locked``.
        OSError: the disk is full.
    """
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    for path in (existing, folder / "lock"):
        if path.exists() and not os.access(path, os.W_OK):
            read_only = os.statvfs(path).f_flag & os.ST_RDONLY
            code = errno.EROFS if read_only else errno.EACCES
            cause = OSError(code, os.strerror(code))
            raise _unwritable(folder, cause) from cause
    disk = os.statvfs(existing)
    if disk.f_blocks and not disk.f_bavail:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))


def _unwritable(folder: Path, error: OSError) -> UsageError:
    remedy = "set record in the spec to a writable folder"
    if (folder / "record.json").exists():
        # Do not suggest a new folder, because it would have no record of the earlier runs.
        remedy = MAKE_WRITABLE
    return UsageError(f"{folder}: the record cannot be written: {error.strerror}; {remedy}")


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a record's folder.

    Raises:
        Refused: another run has locked the folder.
        UsageError: the folder cannot be created or written to.
        OSError: the disk is full.
    """
    path = folder / "lock"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = path.open("a+")
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise _unwritable(folder, error) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            holder = file.read().strip() or "another process"
            raise Refused(catalog.CUT_OVER_ACTIVE(holder=holder)) from error
        holder = f"process {os.getpid()} on {socket.gethostname()}, since {now()}\n"
        try:
            file.truncate(0)
            os.write(file.fileno(), holder.encode())  # unbuffered, so that close() writes nothing
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from error
        yield


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # in a container, the user may have no name
        return str(os.getuid())
