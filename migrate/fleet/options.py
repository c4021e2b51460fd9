"""The options of the data source ``flink_checkpoint``, and the rows that they ask for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from migrate.fleet.candidates import Candidate, Failure, read_each
from migrate.fleet.rows import Row, Selection, view_rows
from migrate.fleet.views import View
from migrate.model.errors import InputError, UsageError
from migrate.storage.files import Files


class UnreadableCheckpoint(InputError):
    """A checkpoint that could not be read, where the mode is FAILFAST."""


class BadOption(UsageError):
    """An option that is not known, or not of the known values."""


class Mode(str, Enum):
    """What becomes of a checkpoint that cannot be read; as Spark's own readers have it."""

    PERMISSIVE = "PERMISSIVE"  # a row with its error
    DROPMALFORMED = "DROPMALFORMED"  # no row
    FAILFAST = "FAILFAST"  # the scan fails


@dataclass(frozen=True, slots=True)
class FleetOptions:
    """What to scan for.

    Attributes:
        latest_only: of each job's directory the newest complete ``chk-<n>`` alone.
        allow_external_files: whether state may be read from outside of a checkpoint's directories.
        partitions: into how many shares the work is cut; None: by number and size.
    """

    view: View = View.POSITIONS
    mode: Mode = Mode.PERMISSIVE
    selection: Selection = field(default_factory=Selection)
    latest_only: bool = False
    allow_external_files: bool = False
    partitions: int | None = None


_NAMES = ("view", "mode", "topic", "uid", "latestOnly", "allowExternalFiles", "numPartitions")
_VIEWS = [view.value for view in View]
_MODES = [mode.value for mode in Mode]
# Spark hands these over as well.
_PATHS = frozenset({"path", "paths"})


def parse_options(options: Mapping[str, str]) -> FleetOptions:
    """Spark's options -> what they ask for; names and known values in any case.

    ``topic`` takes several with commas between them.

    Raises:
        BadOption: an unknown name or value; the message names the known ones.
    """
    given = {name.lower(): value for name, value in options.items()}
    unknown = sorted(given.keys() - {name.lower() for name in _NAMES} - _PATHS)
    if unknown:
        raise BadOption(f"no such option: {unknown[0]}; there are: {', '.join(_NAMES)}")
    return FleetOptions(
        view=View(_one_of("view", given.get("view", "positions").lower(), _VIEWS)),
        mode=Mode(_one_of("mode", given.get("mode", "permissive").upper(), _MODES)),
        selection=_selection(given.get("topic", ""), given.get("uid")),
        latest_only=_flag("latestOnly", given),
        allow_external_files=_flag("allowExternalFiles", given),
        partitions=_count("numPartitions", given),
    )


def _selection(topics: str, uid: str | None) -> Selection:
    names = frozenset(name for part in topics.split(",") if (name := part.strip()))
    if uid is None:
        return Selection(names)
    from migrate.inputs.flink.choose_source import operator_id_of

    return Selection(names, uid, operator_id_of(uid))


def _one_of(name: str, value: str, known: list[str]) -> str:
    if value not in known:
        raise BadOption(f"{name} = {value!r}: not one of {', '.join(known)}")
    return value


def _flag(name: str, given: Mapping[str, str]) -> bool:
    value = given.get(name.lower(), "false").lower()
    return _one_of(name, value, ["true", "false"]) == "true"


def _count(name: str, given: Mapping[str, str]) -> int | None:
    value = given.get(name.lower())
    if value is None:
        return None
    if not value.isdecimal() or int(value) < 1:
        raise BadOption(f"{name} = {value!r}: not a number of at least 1")
    return int(value)


def scan(candidates: Iterable[Candidate], files: Files, options: FleetOptions) -> Iterator[Row]:
    """The rows of ``options.view`` of these candidates, in their order.

    Raises:
        UnreadableCheckpoint: one could not be read, and the mode is FAILFAST.
    """
    external = options.allow_external_files
    for candidate, outcome in read_each(candidates, files, allow_external_files=external):
        if isinstance(outcome, Failure) and options.mode is not Mode.PERMISSIVE:
            if options.mode is Mode.FAILFAST:
                raise UnreadableCheckpoint(f"{outcome.message} ({outcome.kind})")
            continue
        yield from view_rows(options.view, candidate, outcome, options.selection)
