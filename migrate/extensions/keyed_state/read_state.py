"""``state``: read the keyed states in a checkpoint, and their entries."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from decoder.keyed_state import KeyedState, KeyedStates, read_keyed_states
from decoder.urls import redact_url
from migrate.extensions.keyed_state.select import choose_state, states_of_operator
from migrate.model.errors import UsageError
from migrate.model.log import timed
from migrate.model.option_names import option
from migrate.model.wording import counted
from migrate.storage.files import Files
from migrate.storage.new_file import check_new_file, new_file
from migrate.storage.suggest_path import suggesting_path
from migrate.storage.uris import AnyPath, local_path

if TYPE_CHECKING:
    import pyarrow as pa

_PARQUET_ENDINGS = (".parquet", ".pq", "")


def keyed_states(
    chk: AnyPath, *, operator: str | None = None, allow_external_files: bool = False
) -> KeyedStates:
    """Return the keyed states in a checkpoint, with their types and whether they can be read.

    Args:
        chk: as in ``inspect``.
        allow_external_files: as in ``inspect``.
        operator: an operator's ID, name, or uid; by default, all operators.

    Raises:
        DecodeError: the checkpoint cannot be read. If only an operator's state cannot be read, the
            operator is listed in the result's ``unread`` instead.
        UsageError: no operator with keyed state has this ID, name, or uid, or the extra for this
            kind of URL is not installed.
    """
    pointer, files = os.fspath(chk), Files()
    with suggesting_path(pointer, files), timed(f"reading {redact_url(pointer)}"):
        keyed = read_keyed_states(pointer, files, allow_external_files=allow_external_files)
    return states_of_operator(keyed, operator)


def find_state(
    chk: AnyPath,
    *,
    operator: str | None = None,
    state: str,
    allow_external_files: bool = False,
) -> KeyedState:
    """Return one keyed state; its ``entries()`` method reads the entries.

    Args:
        chk: as in ``inspect``.
        operator: as in ``keyed_states``; optional if only one operator has a state with this name.
        state: the name of the state.
        allow_external_files: as in ``inspect``.

    Raises:
        DecodeError: the checkpoint or the state cannot be read.
        UsageError: the operator or the state does not exist, or an extra is missing.
        Refused: several operators have a state with this name.
    """
    keyed = keyed_states(chk, allow_external_files=allow_external_files)
    keyed_state = choose_state(keyed, operator, state)
    keyed_state.check_readable()
    return keyed_state


def read_state(
    chk: AnyPath,
    *,
    operator: str | None = None,
    state: str,
    allow_external_files: bool = False,
    truncate_keys: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Return the entries of a keyed state as Arrow record batches of limited size.

    The columns are ``key_group, key, namespace, map_key, value, last_access``; columns that the
    state does not have are omitted. The ``type_mapping`` module defines their types. All batches
    have the same schema. For a state without entries, return one batch without rows. At most one
    key group is in memory at a time.

    Args:
        chk: as in ``inspect``.
        operator: as in ``find_state``.
        state: the name of the state.
        allow_external_files: as in ``inspect``.
        truncate_keys: True to truncate nanoseconds in keys, namespaces, and map keys, which may
            make two keys equal. By default, a key with nanoseconds raises InputError.

    Raises:
        DecodeError: as in ``find_state``, raised immediately; or the state's bytes are damaged,
            raised while the batches are read.
        InputError: a value does not fit its column's type (``DoesNotFit``), raised while the
            batches are read.
        UsageError: as in ``find_state``; or pyarrow is not installed.
        Refused: as in ``find_state``.
    """
    from migrate.extensions.keyed_state.arrow import check_arrow, record_batches

    check_arrow()
    return record_batches(
        find_state(chk, operator=operator, state=state, allow_external_files=allow_external_files),
        truncate_keys=truncate_keys,
    )


def write_state(
    chk: AnyPath,
    file: AnyPath,
    *,
    operator: str | None = None,
    state: str,
    allow_external_files: bool = False,
    truncate_keys: bool = False,
) -> int:
    """Write the entries of a keyed state to a new Parquet file, and return the number of entries.

    The columns are the same as in ``read_state``. At most one key group is in memory at a time.

    Args:
        chk: as in ``inspect``.
        file: the new file, which is not created if an error occurs.
        operator: as in ``find_state``.
        state: the name of the state.
        allow_external_files: as in ``inspect``.
        truncate_keys: as in ``read_state``.

    Raises:
        DecodeError, InputError: as in ``read_state``.
        UsageError: as in ``read_state``; the file's name has the extension of a different format;
            or the file cannot be created.
        Refused: as in ``find_state``; or the file exists.
        OSError: an error during writing, such as a full disk.
    """
    path = local_path(os.fspath(file))
    if path.suffix.lower() not in _PARQUET_ENDINGS:
        raise UsageError(
            f"{option('output')} {path}: the file would be Parquet, not {path.suffix}; choose a "
            f"name that ends with {_PARQUET_ENDINGS[0]}; for CSV or JSON, use {option('format')} "
            "and redirect stdout"
        )
    check_new_file("output", path)
    batches = read_state(
        chk,
        operator=operator,
        state=state,
        allow_external_files=allow_external_files,
        truncate_keys=truncate_keys,
    )
    from pyarrow import parquet

    entries = 0
    with timed(f"writing {path}") as stage:
        first = next(batches)
        with new_file(path) as out, parquet.ParquetWriter(out, first.schema) as writer:
            for batch in chain([first], batches):
                writer.write_batch(batch)
                entries += batch.num_rows
                stage.seen(counted(entries, "entry", "entries"))
    return entries
