"""Many checkpoints at once: where they are, and each of them as rows of a few flat tables.

Roots -> candidates (``discover``); a candidate -> its extraction, or why there is none
(``read_candidate``); an extraction -> rows of a view (``view_rows``); rows and their ``lag`` -> the
jobs (``inventory``) and the tables. ``estate`` does it all for a scan, here or on Spark, whose
executors need nothing but the standard library for it. This room does not know Spark.
"""

from migrate.fleet.candidates import Candidate, Failure, pack, read_candidate, read_each
from migrate.fleet.discovery import discover
from migrate.fleet.options import (
    BadOption,
    FleetOptions,
    Mode,
    UnreadableCheckpoint,
    parse_options,
    scan,
)
from migrate.fleet.rows import Selection, view_rows
from migrate.fleet.views import VIEWS, Column, ColumnType, View

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
