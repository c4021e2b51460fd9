"""The command that a user should run next, as text to copy."""

from __future__ import annotations

import os
import posixpath
import shlex
from collections.abc import Iterable
from typing import TYPE_CHECKING

from decoder.urls import redact_url
from migrate.model.option_names import CONNECTION_FLAGS, PROPERTIES, flag_words

if TYPE_CHECKING:
    from migrate.model.positions import Origin
    from migrate.moves.options import KafkaArguments, MoveArguments
    from migrate.planning import Plan


_CHOICE_FLAGS = {
    "source": "--source",
    "cluster": "--cluster",
    "allow_external_files": "--allow-external-files",
    "one_cluster": "--one-cluster",
}


def command(
    *words: str | os.PathLike[str], kafka: KafkaArguments | None = None, more: Iterable[str] = ()
) -> str:
    """Return a ``migrate`` command with its Kafka options, but without the values of ``-X``.

    ``more`` contains the options after the Kafka options.
    """
    options = (*flag_words(CONNECTION_FLAGS, kafka or {}), *more)
    properties = PROPERTIES if kafka and kafka.get("kafka_properties") else ""
    return shlex.join(["migrate", *(os.fspath(word) for word in words), *options]) + properties


def application(plan: Plan, path: str, arguments: MoveArguments) -> str:
    """Return the command that applies a saved plan, and that queries Flink if the plan has."""
    flink = arguments.get("flink_rest") if plan.queried_flink else None
    words = ("--flink-rest", redact_url(flink)) if flink is not None else ()
    return command(*plan.target.apply_command(path), kafka=arguments, more=words)


def rollback(path: str | os.PathLike[str], arguments: MoveArguments) -> str:
    """Return the command that previews the rollback of a move to a group, in its cluster."""
    # Imported here, because only commands that move positions need this module.
    from migrate.moves.options import KafkaArguments, target_connection

    target = target_connection(arguments)
    if not target.is_given:
        return command("rollback", path, kafka=arguments)
    kafka = KafkaArguments(
        bootstrap_servers=target.bootstrap_servers, kafka_config=target.kafka_config
    )
    return command("rollback", path, kafka=kafka)


def comparison(chk: str, target: str, arguments: MoveArguments) -> str:
    """Return the ``diff`` command that compares the input of a move with the target.

    After ``copy-query``, this ``diff`` command is used instead of ``verify``. The copy contains the
    batches of the original query, so ``verify`` would check the start of the original query.
    """
    flags = {name: flag for name, flag in _CHOICE_FLAGS.items() if name != "one_cluster"}
    return command("diff", chk, target, *flag_words(flags, arguments), kafka=arguments)


def check_of_savepoint(old: str, side: str, new: str, arguments: MoveArguments) -> str:
    """Return the ``diff`` command that checks a savepoint with new positions, with its purpose.

    Normally, it compares the savepoint with the positions' input. If the positions may differ from
    this input, or if only some sources got them, it compares the savepoint with the old one.
    """
    is_part = arguments.get("source") is not None or arguments.get("cluster") is not None
    if _keeps_positions(side, arguments) and not is_part:
        return f"to check its positions: {comparison(side, new, arguments)}"
    return f"to show the changes: {_comparison_of_savepoints(old, new, arguments)}"


def _keeps_positions(chk: str, arguments: MoveArguments) -> bool:
    """Return whether a move uses the positions of its input, which do not change later."""
    # Imported here, because only commands that move positions need these modules.
    from migrate.model.policies import policies_of
    from migrate.moves.options import target_connection

    may_change = policies_of(arguments).may_change_positions or chk.startswith("broker:")
    return not may_change and not target_connection(arguments).is_given


def _comparison_of_savepoints(old: str, new: str, arguments: MoveArguments) -> str:
    from migrate.moves.options import target_connection  # imported here, as in ``rollback``

    # Without a second cluster, ``diff`` has no names to translate.
    names = (arguments.get("topic_map") or {}) if target_connection(arguments).is_given else {}
    words = (
        word for old_name, name in names.items() for word in ("--topic-map", f"{old_name}={name}")
    )
    return command("diff", old, new, kafka=arguments, more=words)


def verification(
    chk: str | None, plan: str | None, origin: Origin | None, target: str, arguments: MoveArguments
) -> str | None:
    """Return the command that checks a move before the target starts, or None if none can.

    Without a saved plan, a move can be checked only if it stays in the job's cluster and has no
    option that can change positions. ``verify`` requires a checkpoint, so the command for any other
    input is ``diff``.

    Args:
        chk: the checkpoint or other input of the move, or None if a plan was applied.
        plan: the plan file that was applied, or None.
        origin: the origin of the positions.
        target: the target, in the format for ``verify``.
        arguments: the arguments of the move.
    """
    if plan is not None:
        return command("verify", f"plan:{plan}", target, kafka=arguments)
    if chk is None or origin is None or not _keeps_positions(chk, arguments):
        return None
    if origin.kind != "checkpoint":
        return comparison(chk, target, arguments)
    # If ``chk`` is a job's checkpoint directory, use the checkpoint that was read, because a later
    # ``verify`` of the directory could read a newer checkpoint.
    directory = posixpath.basename(origin.pointer)
    name = chk if directory in chk.split("/")[-2:] else origin.pointer
    return command("verify", name, target, *flag_words(_CHOICE_FLAGS, arguments), kafka=arguments)
