"""Findings about records in keyed state that are waiting for the answer to a lookup.

The key-ordered async lookup join and the delta join of Flink SQL store their unprocessed records in
a keyed list state (TableKeyedAsyncWaitOperator @ Flink 2.2.0, StreamingDeltaJoinOperator @ Flink
2.2.0 and 2.3.0). As with AsyncWaitOperator, Flink waits for the pending responses only if the
job is stopped with --drain.

The name of a keyed state is not in ``_metadata``, so the state's own files are read. The planner
starts the names of these operators with the kind of join, so operators with other names are
skipped. From metadata version 6 (Flink 2.1) on, an operator without a name may also be a join.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from decoder import ByteSource, Checkpoint, DecodeError, Operator
from migrate.model.extensions import is_installed, service
from migrate.model.finding import Finding
from migrate.model.finding_catalog import (
    ASYNC_JOIN_NOT_READ,
    ASYNC_JOIN_RECORDS,
    ASYNC_JOIN_UNCOUNTED,
    ASYNC_JOIN_UNREADABLE,
)

STATE_NAMES = frozenset(
    {"_keyed_async_wait_operator_state_", "_delta_join_operator_async_wait_state_"}
)
# The planner's names for these operators start with these prefixes.
_JOINS = ("LookupJoin", "DeltaJoin")
_FIRST_METADATA_VERSION = 6


def findings_of_keyed_queues(
    checkpoint: Checkpoint, files: ByteSource, *, allow_external_files: bool = False
) -> Iterator[Finding]:
    """Yield a finding for each operator that has waiting records in its keyed state.

    Args:
        checkpoint: the checkpoint.
        files: the storage of the checkpoint's files.
        allow_external_files: as in ``read_checkpoint``.

    Raises:
        DecodeError: the checkpoint's ``_metadata`` can no longer be read.
    """
    joins = {
        operator.operator_id: operator.name
        for operator in checkpoint.operators
        if _may_be_a_join(operator)
    }
    if checkpoint.metadata_version < _FIRST_METADATA_VERSION or not joins:
        return
    if not is_installed("keyed_state"):
        for operator_id, name in joins.items():
            yield Finding(ASYNC_JOIN_NOT_READ(), operator_id, operator_name=name)
        return
    read_keyed_states = service("keyed_state", "read_keyed_states")
    keyed = read_keyed_states(checkpoint.pointer, files, allow_external_files=allow_external_files)
    for state in keyed.states:
        if state.operator_id not in joins or state.name not in STATE_NAMES:
            continue
        waiting, is_counted = 0, True
        try:
            # Do not use state.entries(), which refuses a queue because of the type of its elements.
            batches = chain.from_iterable(part.batches() for part in state.parts)
            for entry in chain.from_iterable(batches):
                waiting += len(entry.value) if isinstance(entry.value, list) else 1
        except DecodeError:  # for example, the queue contains a watermark between records
            is_counted = False
        if waiting or not is_counted:
            records = ASYNC_JOIN_RECORDS(records=waiting) if is_counted else ASYNC_JOIN_UNCOUNTED()
            yield Finding(records, state.operator_id, operator_name=state.operator_name)
    for unread in keyed.unread:
        if unread.operator_id in joins:
            message = ASYNC_JOIN_UNREADABLE(reason=str(unread.error))
            yield Finding(message, unread.operator_id, operator_name=unread.operator_name)


def _may_be_a_join(operator: Operator) -> bool:
    has_name = operator.name is None or operator.name.startswith(_JOINS)
    return bool(operator.keyed_state_bytes) and has_name
