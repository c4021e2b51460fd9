"""Divide keyed states into migrated states (``--state``) and states that are not migrated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from decoder import DecodeError
from decoder.keyed_state import KeyedState, KeyedStates, StateKind
from migrate.extensions.keyed_state.listing import MERGING_WINDOWS, ddl
from migrate.extensions.keyed_state.select import choose_state
from migrate.extensions.keyed_state.type_mapping import column_type, namespace_type, value_type
from migrate.extensions.stateful_query.catalog import (
    STATES_LEFT_BEHIND,
    TIME_TO_LIVE,
    TIMERS_LEFT_BEHIND,
    UNREAD_TIMERS_LEFT_BEHIND,
    UNREADABLE_STATE_LEFT_BEHIND,
)
from migrate.model.column_types import StructOf, quoted
from migrate.model.errors import UsageError
from migrate.model.log import log
from migrate.model.option_names import option
from migrate.model.warning import WarningText

MOVES = "moves to Spark"
# The event-time timers that Flink's window operator sets.
_WINDOW_TIMERS = "_timer_state/event_window-timers"


@dataclass(frozen=True, slots=True)
class StateToPrime:
    """A state with which the Spark query starts.

    Attributes:
        operator, state: the operator's ID and the state's name, for ``flink_state``.
        keys: a tuple for each part of the key: the column name, the DDL type, and the expression
            that reads the part.
        value: the DDL type of the value; None for a LIST or MAP (several values for a key).
        windowed: True if a key has separate values for each window.
        merging: True if the windows are session windows.
        ttl: True if the state has a TTL; the duration of the TTL is only in the job's code.
    """

    operator: str
    state: str
    keys: tuple[tuple[str, str, str], ...]
    value: str | None
    windowed: bool
    merging: bool
    ttl: bool = False


@dataclass(frozen=True, slots=True)
class TakenStates:
    """The states in a checkpoint, divided into migrated, non-migrated, and unreadable states.

    Attributes:
        taken: the states with which the Spark query starts, in the order in which the user listed
            them.
        left_behind: the readable states, except timers, that do not move.
        unreadable: descriptions of unreadable states, with the operator, the state if known, and
            the reason.
        merging: the IDs of operators whose windows are sessions.
        window_timers: states with pending event-time timers of windows whose state is taken.
        other_timers: all other states with pending timers. These timers are not migrated.
        timers_read: True if the timer states were read, to determine which of them have pending
            timers. If False, ``other_timers`` contains all timer states.
    """

    taken: tuple[KeyedState, ...]
    left_behind: tuple[KeyedState, ...]
    unreadable: tuple[str, ...]
    merging: frozenset[str]
    window_timers: tuple[KeyedState, ...]
    other_timers: tuple[KeyedState, ...]
    timers_read: bool

    @property
    def fully_taken_operators(self) -> frozenset[str]:
        """The IDs of the operators whose readable states, except timers, are all migrated."""
        staying = {state.operator_id for state in self.left_behind}
        return frozenset(state.operator_id for state in self.taken) - staying

    def to_prime(self) -> Iterator[StateToPrime]:
        """Yield the migrated states in the format that the generated priming code requires."""
        for state in self.taken:
            key = column_type(state.key)
            assert key is not None  # a migrated state is readable
            parts = [("key", key.ddl, "key")]
            if isinstance(key, StructOf):
                parts = [
                    (quoted(name), part.ddl, f"key.{quoted(name)}") for name, part in key.fields
                ]
            is_single = state.kind not in (StateKind.LIST, StateKind.MAP)
            yield StateToPrime(
                state.operator_id,
                state.name,
                tuple(parts),
                ddl(value_type(state)) if is_single else None,
                windowed=namespace_type(state) is not None,
                merging=state.operator_id in self.merging,
                ttl=state.ttl,
            )

    def lines(self, taken: str = MOVES) -> Iterator[str]:
        """Yield lines about all states; the line of each migrated state ends with ``taken``."""
        yield from self.taken_lines(taken)
        yield from self.warnings()

    def taken_lines(self, taken: str = MOVES) -> Iterator[str]:
        """Yield the lines about the migrated states and the timers of their windows."""
        for state in self.taken:
            yield f"state {_label(state)} {taken}"
        for state in self.window_timers:
            yield (
                f"timers {_label(state)} are replaced by Spark's watermark, because it "
                "closes the windows of the migrated states"
            )

    def warnings(self) -> Iterator[WarningText]:
        """Yield warnings about required user input, and about states that are not migrated."""
        for state in self.taken:
            if state.ttl:
                yield WarningText(TIME_TO_LIVE(state=_label(state)))
        if self.other_timers:
            timers = TIMERS_LEFT_BEHIND if self.timers_read else UNREAD_TIMERS_LEFT_BEHIND
            yield WarningText(timers(timers=_labels(self.other_timers)))
        if self.left_behind:
            count, states = len(self.left_behind), _labels(self.left_behind)
            yield WarningText(STATES_LEFT_BEHIND(count=count, states=states))
        for reason in self.unreadable:
            yield WarningText(UNREADABLE_STATE_LEFT_BEHIND(reason=reason))


def take_states(keyed: KeyedStates, names: Sequence[str]) -> TakenStates:
    """Divide a checkpoint's keyed states into migrated, non-migrated, and unreadable states.

    Timers cannot be selected. Spark's watermark replaces the timers of event-time windows whose
    state is taken. All other pending timers are not migrated. The result does not list timer states
    without pending timers.

    Args:
        keyed: the states.
        names: the states to migrate, each as ``OPERATOR/NAME``. The operator is an ID, a name, or a
            uid. If no names are passed, no entries are read, and every timer state counts as
            pending.

    Raises:
        UsageError: an element of ``names`` is not in the format ``OPERATOR/NAME``, matches no
            operator or state, or refers to a timer state or to ``merging-window-set``; or the
            checkpoint has no keyed state.
        Refused: an element of ``names`` matches states of several operators.
        DecodeError: a selected state cannot be read.
    """
    if names and not (keyed.states or keyed.unread):
        raise UsageError(
            f"states {', '.join(names)}: this checkpoint contains no keyed state; pass a "
            "checkpoint with keyed state"
        )
    taken = tuple(_choose(keyed, name) for name in names)
    taken_names = {(state.operator_id, state.name) for state in taken}
    # If a state of a session window operator moves, the operator's sessions move with the state.
    taken_names |= {(operator_id, MERGING_WINDOWS) for operator_id, _ in taken_names}
    operators = {state.operator_id for state in taken}
    left_behind: list[KeyedState] = []
    window_timers: list[KeyedState] = []
    other_timers: list[KeyedState] = []
    unreadable: list[str] = []
    for state in keyed.states:
        if (state.operator_id, state.name) in taken_names:
            continue
        if state.kind is StateKind.TIMERS:
            try:
                pending = not names or next(state.entries(), None) is not None
            except DecodeError as error:
                unreadable.append(f"{_label(state)}: {error}")
                continue
            if pending:
                with_windows = state.operator_id in operators and state.name == _WINDOW_TIMERS
                (window_timers if with_windows else other_timers).append(state)
        elif state.readable:
            left_behind.append(state)
        else:
            unreadable.append(f"{_label(state)}: {state.reason}")
    unreadable += (f"operator {unread.operator_id}: {unread.error}" for unread in keyed.unread)
    return TakenStates(
        taken,
        tuple(left_behind),
        tuple(unreadable),
        frozenset(state.operator_id for state in keyed.states if state.name == MERGING_WINDOWS),
        tuple(window_timers),
        tuple(other_timers),
        timers_read=bool(names),
    )


def log_states(states: TakenStates, taken: str = MOVES) -> None:
    """Log whether each state is migrated."""
    for line in states.taken_lines(taken):
        log.info(line)
    for line in states.warnings():
        log.warning(line)


def _choose(keyed: KeyedStates, text: str) -> KeyedState:
    """Return the state for an ``OPERATOR/NAME`` string."""
    operator, slash, name = text.partition("/")
    if not (operator and slash and name):
        raise UsageError(
            f"{option('state')} {text!r}: expected OPERATOR/NAME; `migrate state CHK` lists the "
            "states"
        )
    state = choose_state(keyed, operator, name)
    state.check_readable()
    if state.kind is StateKind.TIMERS or name == MERGING_WINDOWS:
        raise UsageError(
            f"{option('state')} {text!r}: timers and {MERGING_WINDOWS} cannot be selected; pass "
            "the state of the windows"
        )
    return state


def _labels(states: Sequence[KeyedState]) -> list[str]:
    return [_label(state) for state in states]


def _label(state: KeyedState) -> str:
    return f"{state.uid or state.operator_name or state.operator_id}/{state.name}"
