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
    from migrate.commands.commit_group import GroupChange, commit_group
    from migrate.commands.compare import diff, verify
    from migrate.commands.inspect import inspect
    from migrate.commands.plan import plan
    from migrate.commands.rollback import GroupRollback, rollback
    from migrate.commands.scan import Inventory, scan
    from migrate.commands.to_spark import SparkStart, SparkStream, to_spark
    from migrate.comparing.diff import Diff
    from migrate.comparing.verify import Verification
    from migrate.errors import InputError, MigrateError, Refused, ServiceError, UsageError
    from migrate.flink.extract import Extraction
    from migrate.planning import Plan

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
    "migrate.commands.compare": ("diff", "verify"),
    "migrate.commands.rollback": ("GroupRollback", "rollback"),
    "migrate.commands.commit_group": ("GroupChange", "commit_group"),
    "migrate.commands.inspect": ("inspect",),
    "migrate.commands.plan": ("plan",),
    "migrate.commands.scan": ("Inventory", "scan"),
    "migrate.commands.to_spark": ("SparkStart", "SparkStream", "to_spark"),
    "migrate.comparing.diff": ("Diff",),
    "migrate.errors": ("InputError", "MigrateError", "Refused", "ServiceError", "UsageError"),
    "migrate.flink.extract": ("Extraction",),
    "migrate.planning": ("Plan",),
    "migrate.comparing.verify": ("Verification",),
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
