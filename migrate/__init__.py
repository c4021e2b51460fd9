"""Move Kafka positions between Flink checkpoints, Spark queries, and consumer groups.

A move reads positions, checks them against Kafka if brokers are set, and plans the writes. If
a check fails, the move writes nothing.

Most commands are also available as functions: for example, ``from migrate import to_spark`` for
``migrate to-spark``. The module of a public name is imported when the name is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from migrate.model.extensions import declared_names

if TYPE_CHECKING:
    from decoder import DecodeError as DecodeError
    from migrate.extensions.cutover.run import CutOver as CutOver
    from migrate.extensions.cutover.run import cut_over as cut_over
    from migrate.extensions.fleet.inventory import Inventory as Inventory
    from migrate.extensions.fleet.scan import scan as scan
    from migrate.extensions.keyed_state.read_state import find_state as find_state
    from migrate.extensions.keyed_state.read_state import keyed_states as keyed_states
    from migrate.extensions.keyed_state.read_state import read_state as read_state
    from migrate.extensions.savepoints.to_flink import NewSavepoint as NewSavepoint
    from migrate.extensions.savepoints.to_flink import to_flink as to_flink
    from migrate.inputs.flink.extract import Extraction as Extraction
    from migrate.inputs.spark_query import QueryLocation as QueryLocation
    from migrate.model.errors import InputError as InputError
    from migrate.model.errors import MigrateError as MigrateError
    from migrate.model.errors import Refused as Refused
    from migrate.model.errors import ServiceError as ServiceError
    from migrate.model.errors import UsageError as UsageError
    from migrate.moves.commit_group import GroupChange as GroupChange
    from migrate.moves.commit_group import commit_group as commit_group
    from migrate.moves.diff import diff as diff
    from migrate.moves.follow import follow as follow
    from migrate.moves.inspect import inspect as inspect
    from migrate.moves.plan import plan as plan
    from migrate.moves.rollback import GroupRollback as GroupRollback
    from migrate.moves.rollback import rollback as rollback
    from migrate.moves.show import show as show
    from migrate.moves.to_spark import to_spark as to_spark
    from migrate.moves.verify import verify as verify
    from migrate.planning import Plan as Plan
    from migrate.planning.diff import Diff as Diff
    from migrate.planning.verify import Verification as Verification
    from migrate.targets.source_options import SparkStream as SparkStream
    from migrate.targets.spark_start import SparkStart as SparkStart

    __all__: list[str]  # created on demand, because extensions add names

_NAMES = {
    "decoder": ("DecodeError",),
    "migrate.moves.diff": ("diff",),
    "migrate.moves.verify": ("verify",),
    "migrate.moves.rollback": ("GroupRollback", "rollback"),
    "migrate.moves.commit_group": ("GroupChange", "commit_group"),
    "migrate.moves.follow": ("follow",),
    "migrate.moves.inspect": ("inspect",),
    "migrate.moves.plan": ("plan",),
    "migrate.moves.show": ("show",),
    "migrate.moves.to_spark": ("to_spark",),
    "migrate.planning.diff": ("Diff",),
    "migrate.inputs.spark_query": ("QueryLocation",),
    "migrate.targets.source_options": ("SparkStream",),
    "migrate.targets.spark_start": ("SparkStart",),
    "migrate.model.errors": ("InputError", "MigrateError", "Refused", "ServiceError", "UsageError"),
    "migrate.inputs.flink.extract": ("Extraction",),
    "migrate.planning": ("Plan",),
    "migrate.planning.verify": ("Verification",),
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names}

if not TYPE_CHECKING:  # with __getattr__, a type checker would accept any name

    def __getattr__(name: str) -> Any:
        if name == "__all__":
            value: Any = sorted(_modules())
        elif (module := _MODULE_OF.get(name) or _modules().get(name)) is not None:
            value = getattr(import_module(module), name)
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value  # from now on, Python finds the name without __getattr__
        return value


def _modules() -> dict[str, str]:
    """Return the module of each public name, including the names that extensions add."""
    return {**_MODULE_OF, **declared_names("CALLS")}


def __dir__() -> list[str]:
    return sorted({*globals(), *_modules()})
