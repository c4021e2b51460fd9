"""Choose keyed states, according to ``--operator`` and ``--state``.

The user specifies an operator by its operator ID, its name, or its uid, as with ``--source``.
"""

from __future__ import annotations

from collections.abc import Iterable

from decoder.keyed_state import KeyedState, KeyedStates, Unread
from migrate.extensions.keyed_state.catalog import STATE_OF_SEVERAL_OPERATORS
from migrate.model.errors import NoSuchName, Refused
from migrate.model.operator_id import operator_id_of
from migrate.model.option_names import option

# A keyed state, or the error of an operator whose states cannot be read. Both types contain the
# operator's ID, name, and uid.
_StateOrError = KeyedState | Unread


def states_of_operator(keyed: KeyedStates, operator: str | None) -> KeyedStates:
    """Return the states of the operators with this ID, name, or uid; None selects all states.

    Raises:
        NoSuchName: no operator has this ID, name, or uid.
    """
    if operator is None:
        return keyed
    everything: list[_StateOrError] = [*keyed.states, *keyed.unread]
    if not everything:
        raise NoSuchName("this checkpoint contains no keyed state")
    ids = _ids_of(everything, operator)
    if not ids:
        names = {name for state in everything for name in (state.operator_name, state.uid) if name}
        raise NoSuchName(
            f"no operator with keyed state has the ID, name, or uid {operator!r}",
            operator,
            names,
            f"there are: {_operators(everything)}",
        )
    return KeyedStates(
        tuple(state for state in keyed.states if state.operator_id in ids),
        tuple(unread for unread in keyed.unread if unread.operator_id in ids),
    )


def choose_state(keyed: KeyedStates, operator: str | None, name: str) -> KeyedState:
    """Return the only state with this name.

    Raises:
        NoSuchName: no state has this name, or the operator does not exist.
        Refused: several operators have a state with this name.
        DecodeError: no readable state has this name, but the states of some operator could not be
            read, so one of these states may have the name.
    """
    candidates = states_of_operator(keyed, operator)
    chosen = [state for state in candidates.states if state.name == name]
    if len(chosen) == 1:
        return chosen[0]
    if chosen:
        raise Refused(
            STATE_OF_SEVERAL_OPERATORS(count=len(chosen), state=name, operators=_operators(chosen))
        )
    if candidates.unread:
        raise candidates.unread[0].error
    known = sorted({state.name for state in candidates.states})
    if not known:
        raise NoSuchName("this checkpoint contains no keyed state")
    of = "" if operator is None else f" of operator {operator!r}"
    operator_name, slash, state_name = name.partition("/")
    if slash and operator is None and state_name in known:
        raise NoSuchName(
            f"no keyed state {name!r}; pass {option('operator', operator_name)} and "
            f"{option('state', state_name)}"
        )
    raise NoSuchName(
        f"no keyed state {name!r}{of}", name, known, f"there are: {', '.join(map(repr, known))}"
    )


def _ids_of(states: Iterable[_StateOrError], name: str) -> set[str]:
    """Return the IDs of the operators with this ID, name, or uid."""
    ids = {
        state.operator_id
        for state in states
        if name in (state.operator_name, state.uid) or state.operator_id == name.lower()
    }
    if ids:
        return ids
    # Compute the operator ID from the uid only if no name or uid matches, because Spark executors
    # may lack the library for the hash.
    return {operator_id_of(name)} & {state.operator_id for state in states}


def _operators(states: Iterable[_StateOrError]) -> str:
    """Return the ID, uid, and name of each operator with these states, without duplicates."""
    described = (
        state.operator_id
        + "".join(f" {name!r}" for name in (state.uid, state.operator_name) if name)
        for state in states
    )
    return "; ".join(dict.fromkeys(described))
