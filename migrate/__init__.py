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
    from decoder import DecodeError as DecodeError
    from migrate.commands.commit_group import GroupChange as GroupChange
    from migrate.commands.commit_group import commit_group as commit_group
    from migrate.commands.diff import diff as diff
    from migrate.commands.follow import follow as follow
    from migrate.commands.inspect import inspect as inspect
    from migrate.commands.plan import plan as plan
    from migrate.commands.rollback import GroupRollback as GroupRollback
    from migrate.commands.rollback import rollback as rollback
    from migrate.commands.scan import scan as scan
    from migrate.commands.show import show as show
    from migrate.commands.state import find_state as find_state
    from migrate.commands.state import keyed_states as keyed_states
    from migrate.commands.state import read_state as read_state
    from migrate.commands.to_flink import NewSavepoint as NewSavepoint
    from migrate.commands.to_flink import to_flink as to_flink
    from migrate.commands.to_spark import to_spark as to_spark
    from migrate.commands.verify import verify as verify
    from migrate.comparing.diff import Diff as Diff
    from migrate.comparing.verify import Verification as Verification
    from migrate.cutover.run import CutOver as CutOver
    from migrate.cutover.run import cut_over as cut_over
    from migrate.errors import InputError as InputError
    from migrate.errors import MigrateError as MigrateError
    from migrate.errors import Refused as Refused
    from migrate.errors import ServiceError as ServiceError
    from migrate.errors import UsageError as UsageError
    from migrate.fleet.inventory import Inventory as Inventory
    from migrate.flink.extract import Extraction as Extraction
    from migrate.planning import Plan as Plan
    from migrate.spark.query import QueryLocation as QueryLocation
    from migrate.spark.source_options import SparkStream as SparkStream
    from migrate.spark.spark_start import SparkStart as SparkStart

_ROOMS = {
    "decoder": ("DecodeError",),
    "migrate.commands.diff": ("diff",),
    "migrate.commands.verify": ("verify",),
    "migrate.commands.rollback": ("GroupRollback", "rollback"),
    "migrate.commands.commit_group": ("GroupChange", "commit_group"),
    "migrate.commands.follow": ("follow",),
    "migrate.commands.inspect": ("inspect",),
    "migrate.commands.plan": ("plan",),
    "migrate.commands.scan": ("scan",),
    "migrate.commands.state": ("find_state", "keyed_states", "read_state"),
    "migrate.commands.show": ("show",),
    "migrate.commands.to_flink": ("NewSavepoint", "to_flink"),
    "migrate.commands.to_spark": ("to_spark",),
    "migrate.comparing.diff": ("Diff",),
    "migrate.cutover.run": ("CutOver", "cut_over"),
    "migrate.fleet.inventory": ("Inventory",),
    "migrate.spark.query": ("QueryLocation",),
    "migrate.spark.source_options": ("SparkStream",),
    "migrate.spark.spark_start": ("SparkStart",),
    "migrate.errors": ("InputError", "MigrateError", "Refused", "ServiceError", "UsageError"),
    "migrate.flink.extract": ("Extraction",),
    "migrate.planning": ("Plan",),
    "migrate.comparing.verify": ("Verification",),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}
__all__ = sorted(_ROOM_OF)

if not TYPE_CHECKING:  # to whom every name would be one of them

    def __getattr__(name: str) -> Any:
        if name not in _ROOM_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(import_module(_ROOM_OF[name]), name)
        globals()[name] = found  # so that this is asked once
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
