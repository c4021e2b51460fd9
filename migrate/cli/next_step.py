"""The command that a user should run next, as text to copy."""

from __future__ import annotations

import os
import posixpath
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from migrate.model.positions import Origin
    from migrate.moves.options import ConnectionArguments, KafkaArguments, MoveArguments


def command(*words: str | os.PathLike[str], kafka: KafkaArguments | None = None) -> str:
    """Return a ``migrate`` command with its Kafka options; the values of ``-X`` are not shown."""
    arguments = [
        *(os.fspath(word) for word in words),
        *_kafka_options(cast("ConnectionArguments", kafka or {})),
    ]
    more = " -X …" if kafka and kafka.get("kafka_properties") else ""
    return shlex.join(["migrate", *arguments]) + more


def _kafka_options(kafka: ConnectionArguments) -> Iterator[str]:
    if servers := kafka.get("bootstrap_servers"):
        yield from ("-b", servers)
    if file := kafka.get("kafka_config"):
        yield from ("--kafka-config", os.fspath(file))
    if servers := kafka.get("to_bootstrap_servers"):
        yield from ("--to-bootstrap-servers", servers)
    if file := kafka.get("to_kafka_config"):
        yield from ("--to-kafka-config", os.fspath(file))


def verification(
    chk: str | None, plan: str | None, origin: Origin | None, target: str, arguments: MoveArguments
) -> str | None:
    """Return the ``verify`` command that checks a move, or None if no command can check it.

    Without a saved plan, ``verify`` cannot check a move whose options changed the positions.

    Args:
        chk: the checkpoint that was moved.
        plan: the plan file that was applied.
        origin: what the positions were read from.
        target: the target, as ``verify`` takes it.
        arguments: the arguments of the move.
    """
    if plan is not None:
        return command("verify", f"plan:{plan}", target, kafka=arguments)
    if chk is None or origin is None or origin.kind != "checkpoint":
        return None
    # Imported here, because only moves have policies.
    from migrate.model.policies import policies_of
    from migrate.moves.options import target_connection

    if policies_of(arguments).may_change_positions or target_connection(arguments).is_given:
        return None
    options = [
        word
        for flag, value in (
            ("--source", arguments.get("source")),
            ("--cluster", arguments.get("cluster")),
        )
        if value is not None
        for word in (flag, value)
    ]
    if arguments.get("allow_external_files"):
        options.append("--allow-external-files")
    if arguments.get("one_cluster"):
        options.append("--one-cluster")
    # If ``chk`` is a job's checkpoint directory, name the checkpoint itself: the directory may have
    # newer checkpoints later.
    directory = posixpath.basename(origin.pointer)
    name = chk if directory in chk.split("/")[-2:] else origin.pointer
    return command("verify", name, target, *options, kafka=arguments)
