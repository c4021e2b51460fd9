"""``migrate rollback``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from migrate.cli import options
from migrate.cli.asking import ask, check_can_ask
from migrate.cli.changing import Execute, Yes, carry_out, check_rollback_file
from migrate.cli.errors import Refused
from migrate.cli.streams import emit, say
from migrate.wording import counted


def rollback(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A rollback file.")],
    bootstrap_servers: options.BootstrapServers = None,
    execute: Execute = False,
    yes: Yes = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Go back although the group has moved on since, or an offset is no longer one of "
            "its log (below its start, beyond its end, of a topic created again); an offset of a "
            "partition that is gone is left out.",
        ),
    ] = False,
    rollback_path: Annotated[
        Path | None,
        typer.Option(
            "--rollback-file",
            metavar="F",
            help="Where to write what the group holds now, before it is changed. "
            "[default: rollback-<group>-<time>.json beside FILE]",
            show_default=False,
        ),
    ] = None,
    kafka_config: options.KafkaConfigFile = None,
    kafka_property: options.KafkaProperties = None,
) -> None:
    """Bring a consumer group back to what it held before a change, by its rollback file.

    Without --execute a dry run. Offsets, their metadata and their leader epochs come back as they
    were, and where there was none there will be none. If another rollback of the group was cut
    short, its file is looked for beside FILE and in the current folder.
    """
    from migrate import rollback_file
    from migrate.report.plan import restoration_table
    from migrate.report.text import visible
    from migrate.undo import look, restore

    if execute:
        check_can_ask(yes)
    change = rollback_file.read(file)
    servers = None if kafka_config is not None else change.bootstrap_servers
    config = options.KafkaOptions(
        bootstrap_servers or servers, kafka_config, kafka_property
    ).config()
    seen = look(config, file)
    about = f"group {change.group}, {change.change} of {change.created_at}"
    say(f"{visible(about)}: {seen.fate.value}")
    for warning in seen.warnings:
        say(f"warning: {visible(warning)}")
    table = restoration_table(seen.partitions, sys.stdout)
    refusals = [*seen.refusals, *(() if force else seen.unless_forced)]
    if execute or refusals:
        for line in table.splitlines():
            say(line)
    if refusals:
        raise Refused(refusals)
    if not seen.partitions:
        say(f"nothing to do: group {change.group} holds what it held before")
        return
    if not execute:
        emit(table, end="")
        say("dry run: nothing was changed; add --execute")
        return
    # Beside the file that it follows: a later run looks for both there.
    path = rollback_path or rollback_file.default_path(change.group, file.parent)
    check_rollback_file(path)
    ask(f"bring {counted(len(seen.partitions), 'offset')} of group {change.group} back?", yes)
    carry_out(lambda: restore(config, file, seen, path, force=force), change.group, path)
