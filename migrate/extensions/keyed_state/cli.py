"""``migrate state``."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import typer

from decoder import DecodeError
from decoder.keyed_state import Entry, KeyedState, KeyedStates
from migrate.cli import next_step
from migrate.cli.terminal import emit, emit_pieces, say
from migrate.cli.typer_parameters import Checkpoint, TextFormat, option, with_options
from migrate.extensions.keyed_state import read_state as state_module
from migrate.extensions.keyed_state.catalog import KEYED_STATE_NOT_LISTED
from migrate.model.errors import UsageError
from migrate.model.log import Stage, log, timed
from migrate.model.warning import warn
from migrate.model.wording import counted
from migrate.moves.declare_options import ReadArguments

# The number of characters to buffer before the first write. If reading fails before the first
# write, stdout stays empty.
_BUFFER_SIZE = 4 * 1024 * 1024
# The number of rows in a table of entries without --limit.
_DEFAULT_ROWS = 50
_ENTRIES_BETWEEN_REPORTS = 5000


@with_options
def state(
    chk: Checkpoint,
    *,
    operator: str | None = option(
        "Select the operator by its operator ID, name, or uid.", metavar="S"
    ),
    state: str | None = option("Print the entries of this state.", metavar="NAME"),
    format: TextFormat | None = option(
        "Select the output format. table is for people, and json and csv are for programs. "
        "[default: table; with --state json, one object per line]"
    ),
    output: str | None = option(
        "Write all entries of --state to a new Parquet file, such as FILE.parquet, instead of "
        "stdout.",
        metavar="FILE",
    ),
    truncate_keys: bool = option(
        "With --output, truncate nanoseconds in keys to microseconds, so different keys may "
        "become equal. [default: a key with nanoseconds is an error]"
    ),
    limit: int | None = typer.Option(
        None,
        metavar="N",
        min=1,
        help=f"Print only the first N entries. [default: all, or {_DEFAULT_ROWS} in a table]",
    ),
    reading: ReadArguments,
) -> None:
    """List the keyed states of a checkpoint, or show the entries of one state."""
    if output is not None:
        if state is None or format is not None or limit is not None:
            raise UsageError(
                "--output requires --state, and cannot be combined with --format or --limit"
            )
        entries = state_module.write_state(
            *(chk, output),
            operator=operator,
            state=state,
            truncate_keys=truncate_keys,
            **reading,
        )
        log.info(f"wrote {output}: {counted(entries, 'entry', 'entries')}")
        return
    if truncate_keys:
        raise UsageError(
            "--truncate-keys requires --output, because stdout always contains the exact keys; add "
            "--output FILE, or omit --truncate-keys"
        )
    if state is not None:
        keyed_state = state_module.find_state(chk, operator=operator, state=state, **reading)
        _print_entries(keyed_state, format or TextFormat.JSON, limit)
        return
    if limit is not None:
        raise UsageError("--limit requires --state NAME, because it limits the entries of a state")
    keyed_states = state_module.keyed_states(chk, operator=operator, **reading)
    _list(keyed_states, format or TextFormat.TABLE)
    if format in (None, TextFormat.TABLE) and keyed_states.states:
        log.info(_summary(chk, keyed_states.states))


def _summary(chk: str, states: Sequence[KeyedState]) -> str:
    """Return the number of states, and a command that prints the first readable state, if any."""
    operators = len({state.operator_id for state in states})
    unread = sum(not state.readable for state in states)
    summary = f"{counted(len(states), 'state')} of {counted(operators, 'operator')}" + (
        f", {unread} of them cannot be read" if unread else ""
    )
    first = next((state for state in states if state.readable), None)
    if first is None:
        return summary
    which = ("--operator", first.operator_id, "--state", first.name)
    return (
        f"{summary}; next, to print the entries of one state: "
        f"{next_step.command('state', chk, *which)}"
    )


def _list(keyed_states: KeyedStates, format: TextFormat) -> None:
    from migrate.extensions.keyed_state.report import states_csv, states_json, states_table

    if not keyed_states.states:
        if keyed_states.unread:
            raise keyed_states.unread[0].error
        log.info("this checkpoint contains no keyed state")
    match format:
        case TextFormat.JSON:
            emit(states_json(keyed_states.states))
        case TextFormat.CSV:
            emit(states_csv(keyed_states.states), end="")
        case TextFormat.TABLE:
            emit(states_table(keyed_states.states, sys.stdout), end="")
    for unread in keyed_states.unread:
        name = f" ({unread.operator_name})" if unread.operator_name else ""
        operator = f"{unread.operator_id}{name}"
        warn(KEYED_STATE_NOT_LISTED(operator=operator, error=str(unread.error)))


def _print_entries(state: KeyedState, format: TextFormat, limit: int | None) -> None:
    from migrate.extensions.keyed_state.report import entries_csv, entries_json, entries_table

    entries = state.entries()
    if format is TextFormat.TABLE:
        emit(entries_table(state, islice(entries, limit or _DEFAULT_ROWS), sys.stdout), end="")
        if next(entries, None) is not None and limit is None:
            log.info(
                f"the table shows only the first {_DEFAULT_ROWS} entries; for more, pass "
                "--limit N or --format json"
            )
        return
    print_as = entries_json if format is TextFormat.JSON else entries_csv
    if sys.stdout.isatty():  # the printed entries already show the progress
        emit_pieces(_buffered(print_as(state, islice(entries, limit))))
        return
    with timed(f"printing the entries of {state.name}") as stage:
        emit_pieces(_buffered(print_as(state, _reported(islice(entries, limit), stage))))


def _reported(entries: Iterable[Entry], stage: Stage) -> Iterator[Entry]:
    """Yield the entries, and periodically report the number of yielded entries to ``stage``."""
    number = 0
    for number, entry in enumerate(entries, start=1):
        if number % _ENTRIES_BETWEEN_REPORTS == 0:
            stage.seen(counted(number, "entry", "entries"))
        yield entry
    stage.seen(counted(number, "entry", "entries"))


def _buffered(pieces: Iterable[str]) -> Iterator[str]:
    """Yield the pieces, but first read ahead ``_BUFFER_SIZE`` characters or all pieces."""
    buffered: list[str] = []
    size = 0
    remaining = iter(pieces)
    for piece in remaining:
        buffered.append(piece)
        size += len(piece)
        if size >= _BUFFER_SIZE:
            break
    yield from buffered
    try:
        yield from remaining
    except DecodeError:
        say("migrate: the printed entries are incomplete")
        raise
