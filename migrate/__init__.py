"""Positions that Flink stored, checked against Kafka, written where Spark starts from.

The room in one line: a decoded checkpoint in; a plan that says what would happen; a target written
or a refusal, with nothing in between.

Every command of the command line is a call of the same name: ``from migrate import plan``. Nothing
is imported before it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from decoder import DecodeError
    from migrate.api.comparing import diff, verify
    from migrate.api.going_back import GroupRollback, rollback
    from migrate.api.group import GroupChange, commit_group
    from migrate.api.inspecting import inspect
    from migrate.api.planning import plan
    from migrate.api.scanning import Inventory, scan
    from migrate.api.spark import SparkStart, SparkStream, to_spark
    from migrate.comparison import Diff
    from migrate.errors import InputError, MigrateError, Refused, ServiceError, UsageError
    from migrate.extract import Extraction
    from migrate.planning import Plan
    from migrate.verification import Verification

__all__ = [
    "DecodeError",
    "Diff",
    "Extraction",
    "GroupChange",
    "GroupRollback",
    "InputError",
    "Inventory",
    "MigrateError",
    "Plan",
    "Refused",
    "ServiceError",
    "SparkStart",
    "SparkStream",
    "UsageError",
    "Verification",
    "commit_group",
    "diff",
    "inspect",
    "plan",
    "rollback",
    "scan",
    "to_spark",
    "verify",
]

_ROOMS = {
    "decoder": ("DecodeError",),
    "migrate.api.comparing": ("diff", "verify"),
    "migrate.api.going_back": ("GroupRollback", "rollback"),
    "migrate.api.group": ("GroupChange", "commit_group"),
    "migrate.api.inspecting": ("inspect",),
    "migrate.api.planning": ("plan",),
    "migrate.api.scanning": ("Inventory", "scan"),
    "migrate.api.spark": ("SparkStart", "SparkStream", "to_spark"),
    "migrate.comparison": ("Diff",),
    "migrate.errors": ("InputError", "MigrateError", "Refused", "ServiceError", "UsageError"),
    "migrate.extract": ("Extraction",),
    "migrate.planning": ("Plan",),
    "migrate.verification": ("Verification",),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}

if not TYPE_CHECKING:  # to whom every name would be one of them

    def __getattr__(name: str) -> Any:
        if name not in _ROOM_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(import_module(_ROOM_OF[name]), name)
        globals()[name] = found  # so that this is asked once
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
