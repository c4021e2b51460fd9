"""``--state OPERATOR/NAME``: which keyed states a Spark query goes on with, and which stay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from decoder import DecodeError
from decoder.keyed_state import KeyedState, KeyedStates, StateKind
from migrate.model.errors import UsageError
from migrate.model.log import log
from migrate.model.wording import counted
from migrate.state.columns import StructOf, column_type, namespace_type, quoted, value_type
from migrate.state.select import choose_state

GOES_ALONG = "goes along"
# Says where the contents of sessions lie; it goes with them.
MERGING = "merging-window-set"
# Flink's own, of a window operator.
_OF_WINDOWS = "_timer_state/event_window-timers"


@dataclass(frozen=True, slots=True)
class StateToPrime:
    """A state that goes along.

    Attributes:
        operator, state: by which ``flink_state`` finds it.
        keys: for each part of its key a column: its name, its DDL, what reads it.
        value: the DDL of its value; None of a list or map, whose entries are several.
        windowed: whether it is kept by window.
        merging: whether those windows are sessions, which become one.
        ttl: whether it has a time to live, whose length only the job's code says.
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
    """The states of a checkpoint, divided.

    Attributes:
        taken: what goes along, in the order in which it was named.
        left: what stays, by choice.
        unreadable: what could not go along: an operator, a state where it is known, and why.
        merging: the ids of operators whose windows are sessions.
        closed: pending timers of windows that go along.
        timers: pending timers that Spark has none in place of.
        looked: whether it was looked if they are pending.
    """

    taken: tuple[KeyedState, ...]
    left: tuple[KeyedState, ...]
    unreadable: tuple[str, ...]
    merging: frozenset[str]
    closed: tuple[KeyedState, ...] = ()
    timers: tuple[KeyedState, ...] = ()
    looked: bool = True

    @property
    def whole_operators(self) -> frozenset[str]:
        """The ids of operators of which no keyed state stays."""
        staying = {one.operator_id for one in self.left}
        return frozenset(one.operator_id for one in self.taken) - staying

    def to_prime(self) -> Iterator[StateToPrime]:
        """What a file that primes them must know of each."""
        for one in self.taken:
            key = column_type(one.key)
            assert key is not None  # it is readable
            parts = [("key", key.ddl, "key")]
            if isinstance(key, StructOf):
                parts = [
                    (quoted(name), part.ddl, f"key.{quoted(name)}") for name, part in key.fields
                ]
            value = None if one.kind in (StateKind.LIST, StateKind.MAP) else value_type(one)
            yield StateToPrime(
                one.operator_id,
                one.name,
                tuple(parts),
                None if value is None else value.ddl,
                windowed=namespace_type(one) is not None,
                merging=one.operator_id in self.merging,
                ttl=one.ttl,
            )

    def lines(self, taken: str = GOES_ALONG) -> Iterator[str]:
        """Yield what happens to each state; ``taken`` to those that are named."""
        yield from self.along(taken)
        yield from self.warnings()

    def warnings(self) -> Iterator[str]:
        """Yield what is lost, or has to be given."""
        for state in self.taken:
            if state.ttl:
                yield (
                    f"state {_named(state)} has a time to live, whose length is in the job's code "
                    "alone: priming takes it as ttl_ms, and refuses without it"
                )
        yield from self.behind()

    def along(self, taken: str = GOES_ALONG) -> Iterator[str]:
        """The lines of what is not left behind."""
        for one in self.taken:
            yield f"state {_named(one)} {taken}"
        for one in self.closed:
            yield f"timers {_named(one)}: in their place Spark's watermark closes what goes along"

    def behind(self) -> Iterator[str]:
        """Those of what is."""
        if self.timers:
            told = ", ".join(map(_named, self.timers))
            pending = "pending timers" if self.looked else "timers, pending or not,"
            yield f"{pending} left behind, as Spark sets none for them: {told}"
        if self.left:
            told = ", ".join(map(_named, self.left))
            yield f"{counted(len(self.left), 'state')} left behind by choice: {told}"
        for reason in self.unreadable:
            yield f"left behind, as it cannot be read: {reason}"


def take_states(found: KeyedStates, names: Sequence[str]) -> TakenStates:
    """Divide the keyed states of a checkpoint.

    Timers are told by nobody's name. Those of event-time windows that go along Spark's watermark
    stands in for; of others that are pending it has none. States of timers without one are nothing.

    Args:
        found: those states.
        names: ``OPERATOR/NAME``; an operator as in ``find_state``. Where there are none, no entry
            is read, and so no timer looked for.

    Raises:
        UsageError: a name of another form, no such operator or state, or one of timers.
        Refused: several operators have such a state.
        DecodeError: a state that is named cannot be read.
    """
    taken = [_one(found, name) for name in names]
    along = {(one.operator_id, one.name) for one in taken}
    along |= {(operator_id, MERGING) for operator_id, _ in along}
    others = [one for one in found.states if (one.operator_id, one.name) not in along]
    operators = {one.operator_id for one in taken}
    closed: list[KeyedState] = []
    timers: list[KeyedState] = []
    unreadable = []
    for one in [one for one in others if one.kind is StateKind.TIMERS]:
        try:
            pending = not names or next(one.entries(), None) is not None
        except DecodeError as error:
            unreadable.append(f"{_named(one)}: {error}")
            continue
        if pending:
            with_windows = one.operator_id in operators and one.name == _OF_WINDOWS
            (closed if with_windows else timers).append(one)
    others = [one for one in others if one.kind is not StateKind.TIMERS]
    return TakenStates(
        tuple(taken),
        tuple(one for one in others if one.readable),
        (
            *(f"{_named(one)}: {one.reason}" for one in others if not one.readable),
            *unreadable,
            *(f"operator {one.operator_id}: {one.error}" for one in found.unread),
        ),
        frozenset(one.operator_id for one in found.states if one.name == MERGING),
        tuple(closed),
        tuple(timers),
        looked=bool(names),
    )


def tell(states: TakenStates, taken: str = GOES_ALONG) -> None:
    """Say of each state what becomes of it."""
    for line in states.along(taken):
        log.info(line)
    for line in states.warnings():
        log.warning(line)


def _one(found: KeyedStates, text: str) -> KeyedState:
    operator, slash, name = text.partition("/")
    if not (operator and slash and name):
        raise UsageError(f"--state {text!r}: not OPERATOR/NAME, as `migrate state CHK` lists them")
    state = choose_state(found, operator, name)
    state.check_readable()
    if state.kind is StateKind.TIMERS or name == MERGING:
        raise UsageError(f"--state {text!r}: it goes with the state of its windows: name that one")
    return state


def _named(state: KeyedState) -> str:
    return f"{state.uid or state.operator_name or state.operator_id}/{state.name}"
