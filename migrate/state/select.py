"""Which keyed state of a checkpoint is meant: ``--operator`` and ``--state``.

An operator is named by its operator id, its name or its uid, as a source is by ``--source``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from decoder.keyed_state import KeyedState, KeyedStates
from migrate.inputs.flink.choose_source import operator_id_of
from migrate.model.errors import NoSuchName, Refused


class NoSuchState(NoSuchName):
    """No operator with keyed state, or no state of it, answers to the name."""


class AmbiguousState(Refused):
    """Several operators have such a state."""


class _OfOperator(Protocol):
    @property
    def operator_id(self) -> str: ...
    @property
    def operator_name(self) -> str | None: ...
    @property
    def uid(self) -> str | None: ...


def of_operator(found: KeyedStates, operator: str | None) -> KeyedStates:
    """What there is of the operators that are meant; of all where none is named.

    Raises:
        NoSuchState: none answers to the name.
    """
    if operator is None:
        return found
    everything: list[_OfOperator] = [*found.states, *found.unread]
    if not everything:
        raise NoSuchState("this checkpoint holds no keyed state")
    meant = _meant(everything, operator)
    if not meant:
        names = {name for one in everything for name in (one.operator_name, one.uid) if name}
        raise NoSuchState(
            f"no operator with keyed state answers to {operator!r}",
            operator,
            names,
            f"there are: {_operators(everything)}",
        )
    return KeyedStates(
        tuple(state for state in found.states if state.operator_id in meant),
        tuple(one for one in found.unread if one.operator_id in meant),
    )


def choose_state(found: KeyedStates, operator: str | None, name: str) -> KeyedState:
    """The one state of that name.

    Raises:
        NoSuchState: there is none.
        AmbiguousState: several operators have one.
        DecodeError: there is none that is known, and of an operator that is meant not all are.
    """
    candidates = of_operator(found, operator)
    chosen = [state for state in candidates.states if state.name == name]
    if len(chosen) == 1:
        return chosen[0]
    if chosen:
        raise AmbiguousState(
            [
                f"{len(chosen)} operators have a state {name!r}: choose one with --operator, by "
                f"its operator id: {_operators(chosen)}"
            ]
        )
    if candidates.unread:
        raise candidates.unread[0].error
    known = sorted({state.name for state in candidates.states})
    if not known:
        raise NoSuchState("this checkpoint holds no keyed state")
    where = "" if operator is None else f" of operator {operator!r}"
    raise NoSuchState(
        f"no keyed state {name!r}{where}",
        name,
        known,
        f"there are: {', '.join(map(repr, known))}",
    )


def _meant(some: Iterable[_OfOperator], name: str) -> set[str]:
    """The ids of the operators that answer to a name."""
    known = {
        one.operator_id
        for one in some
        if name in (one.operator_name, one.uid) or one.operator_id == name.lower()
    }
    if known:
        return known
    hashed = operator_id_of(name)  # which takes a library that executors may not have
    return {one.operator_id for one in some if one.operator_id == hashed}


def _operators(some: Sequence[_OfOperator]) -> str:
    return "; ".join(_unique(map(_described, some)))


def _described(one: _OfOperator) -> str:
    return one.operator_id + "".join(f" {name!r}" for name in (one.uid, one.operator_name) if name)


def _unique(some: Iterable[str]) -> Iterable[str]:
    return dict.fromkeys(some)
