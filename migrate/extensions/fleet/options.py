"""Parse the options of the ``flink_checkpoint`` data source, and select rows by these options."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from migrate.extensions.fleet.candidates import Candidate, Failure, read_each
from migrate.extensions.fleet.catalog import CHECKPOINT_UNREADABLE
from migrate.extensions.fleet.rows import Row, Selection, view_rows
from migrate.extensions.fleet.view_columns import CheckpointView
from migrate.model.errors import InputError, UsageError
from migrate.storage.files import Files


class Mode(str, Enum):
    """How to treat an unreadable checkpoint; Spark's own readers have the same modes."""

    PERMISSIVE = "PERMISSIVE"  # a row with the error
    DROPMALFORMED = "DROPMALFORMED"  # no row
    FAILFAST = "FAILFAST"  # the scan fails


@dataclass(frozen=True, slots=True)
class CheckpointOptions:
    """The parsed options.

    Attributes:
        latest_only: True to read only the newest complete ``chk-<n>`` of each job, and all
            savepoints.
        allow_external_files: True to also read state outside a checkpoint's directories.
        partitions: the maximum number of tasks; None to compute it from the number and size of the
            checkpoints.
    """

    view: CheckpointView = CheckpointView.POSITIONS
    mode: Mode = Mode.PERMISSIVE
    selection: Selection = field(default_factory=Selection)
    latest_only: bool = False
    allow_external_files: bool = False
    partitions: int | None = None


_NAMES = ("view", "mode", "topic", "uid", "latestOnly", "allowExternalFiles", "numPartitions")
_VIEWS = [view.value for view in CheckpointView]
_MODES = [mode.value for mode in Mode]
# Options that Spark adds.
_PATHS = frozenset({"path", "paths"})


def parse_options(options: Mapping[str, str]) -> CheckpointOptions:
    """Parse the Spark options; the case of names and of enumerated values does not matter.

    ``topic`` is one topic, or several topics separated by commas.

    Raises:
        UsageError: a name or a value is not valid.
    """
    values = {name.lower(): value for name, value in options.items()}
    unknown = sorted(values.keys() - {name.lower() for name in _NAMES} - _PATHS)
    if unknown:
        raise UsageError(f"unknown option {unknown[0]}; the options are {', '.join(_NAMES)}")
    return CheckpointOptions(
        view=CheckpointView(_one_of("view", values.get("view", "positions").lower(), _VIEWS)),
        mode=Mode(_one_of("mode", values.get("mode", "permissive").upper(), _MODES)),
        selection=_selection(values.get("topic", ""), values.get("uid")),
        latest_only=_flag("latestOnly", values),
        allow_external_files=_flag("allowExternalFiles", values),
        partitions=_count("numPartitions", values),
    )


def _selection(topics: str, uid: str | None) -> Selection:
    names = frozenset(name for part in topics.split(",") if (name := part.strip()))
    if uid is None:
        return Selection(names)
    from migrate.model.operator_id import operator_id_of

    return Selection(names, uid, operator_id_of(uid))


def _one_of(name: str, value: str, known: list[str]) -> str:
    if value not in known:
        raise UsageError(f"{name} = {value!r} is not one of {', '.join(known)}")
    return value


def _flag(name: str, values: Mapping[str, str]) -> bool:
    value = values.get(name.lower(), "false").lower()
    return _one_of(name, value, ["true", "false"]) == "true"


def _count(name: str, values: Mapping[str, str]) -> int | None:
    value = values.get(name.lower())
    if value is None:
        return None
    if not value.isdecimal() or int(value) < 1:
        raise UsageError(
            f"{name} = {value!r} is invalid; the value must be an integer of at least 1"
        )
    return int(value)


def selected_rows(
    candidates: Iterable[Candidate], files: Files, options: CheckpointOptions
) -> Iterator[Row]:
    """Yield the candidates' rows in the ``options.view`` view, in the order of the candidates.

    Raises:
        InputError: a candidate could not be read, and the mode is FAILFAST.
    """
    external = options.allow_external_files
    for candidate, outcome in read_each(candidates, files, allow_external_files=external):
        if isinstance(outcome, Failure) and options.mode is not Mode.PERMISSIVE:
            if options.mode is Mode.FAILFAST:
                raise InputError(CHECKPOINT_UNREADABLE(problem=outcome.message, kind=outcome.kind))
            continue
        yield from view_rows(options.view, candidate, outcome, options.selection)
