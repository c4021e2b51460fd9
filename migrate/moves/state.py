"""``state``: the keyed states of a checkpoint, and their entries."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from decoder.keyed_state import KeyedState, KeyedStates, read_keyed_states
from decoder.urls import redact_url
from migrate.model.log import timed
from migrate.state.select import choose_state, of_operator
from migrate.storage.files import Files

if TYPE_CHECKING:
    import pyarrow as pa

    from migrate.moves.options import AnyPath


def keyed_states(
    chk: AnyPath, *, operator: str | None = None, allow_external_files: bool = False
) -> KeyedStates:
    """Return the keyed states of a checkpoint, with their types and whether they are readable.

    Args:
        chk: as for ``inspect``.
        allow_external_files: as for ``inspect``.
        operator: the operator that is meant, by its operator id, name or uid; all by default.

    Raises:
        DecodeError: the checkpoint cannot be read. What cannot be read of one operator's state
            is in ``unread``.
        UsageError: no operator with keyed state answers to the name, or the extra
            that reads such a URL is not installed.
    """
    return of_operator(_read(chk, allow_external_files), operator)


def find_state(
    chk: AnyPath,
    *,
    operator: str | None = None,
    state: str,
    allow_external_files: bool = False,
) -> KeyedState:
    """Return one keyed state; its ``entries()`` are what is in it.

    Args:
        chk: as for ``inspect``.
        operator: as for ``keyed_states``; it may be left out where only one has such a state.
        state: its name.
        allow_external_files: as for ``inspect``.

    Raises:
        DecodeError: the checkpoint, or the state, cannot be read.
        UsageError: there is no such operator or state, or an extra is missing.
        Refused: several operators have such a state.
    """
    keyed_state = choose_state(_read(chk, allow_external_files), operator, state)
    keyed_state.check_readable()
    return keyed_state


def read_state(
    chk: AnyPath,
    *,
    operator: str | None = None,
    state: str,
    allow_external_files: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Return the entries of a keyed state as batches of Arrow, some thousands of rows each.

    Columns are ``key_group, key, namespace, map_key, value, last_access``, each where the state has
    it; the types are those of ``migrate.state.type_mapping``, and all batches have the same. Of a
    state without entries there is one batch without rows. One key group is in memory at a time.

    Args:
        chk: as for ``inspect``.
        operator: as for ``find_state``.
        state: its name.
        allow_external_files: as for ``inspect``.

    Raises:
        DecodeError: as for ``find_state``, at once; later, if its bytes are not what Flink writes.
        InputError: later, if a value has no place in its column (``DoesNotFit``).
        UsageError: as for ``find_state``; or pyarrow is not installed.
        Refused: as for ``find_state``.
    """
    from migrate.state.arrow import check_arrow, record_batches

    check_arrow()
    return record_batches(
        find_state(chk, operator=operator, state=state, allow_external_files=allow_external_files)
    )


def _read(chk: AnyPath, allow_external_files: bool) -> KeyedStates:
    pointer = os.fspath(chk)
    with timed(f"reading {redact_url(pointer)}"):
        return read_keyed_states(pointer, Files(), allow_external_files=allow_external_files)
