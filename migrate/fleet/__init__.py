"""Many checkpoints at once: where they are, and each of them as rows of a few flat tables.

The room in one line: roots in, candidates out (``discover``); a candidate in, its extraction or
why there is none out (``read_candidate``); that in, rows of a view out (``view_rows``). An
unreadable checkpoint is a row that says why. A scan of all (``estate``) is run by this machine's
processes (``local``), or by ``migrate.spark`` on executors, which need nothing but the standard
library for it: no Spark is known here.
"""

from migrate.fleet.candidates import Candidate, Failure, pack
from migrate.fleet.discovery import discover
from migrate.fleet.options import BadOption, FleetOptions, Mode, Selection, View, parse_options
from migrate.fleet.reading import UnreadableCheckpoint, read_candidate, read_each, scan
from migrate.fleet.rows import view_rows
from migrate.fleet.views import VIEWS, Column, ColumnType

__all__ = [
    "VIEWS",
    "BadOption",
    "Candidate",
    "Column",
    "ColumnType",
    "Failure",
    "FleetOptions",
    "Mode",
    "Selection",
    "UnreadableCheckpoint",
    "View",
    "discover",
    "pack",
    "parse_options",
    "read_candidate",
    "read_each",
    "scan",
    "view_rows",
]
