"""Report an operator as read by the decoder, with the keys of Flink's reports.

StateDump and the generator of the synthetic checkpoints use these keys for the reports of Flink's
own classes.
"""

from __future__ import annotations

from typing import Any

from decoder import Operator


def as_flink_tells(operator: Operator) -> dict[str, Any]:
    coordinator = operator.coordinator_state
    return {
        "operator_id": operator.operator_id,
        "name": operator.name,
        "uid": operator.uid,
        "parallelism": operator.parallelism,
        "max_parallelism": operator.max_parallelism,
        "finished": operator.finished,
        "state_names": list(operator.state_names),
        "operator_state_bytes": operator.operator_state_bytes,
        "keyed_state_bytes": operator.keyed_state_bytes,
        "in_flight_bytes": operator.in_flight_bytes,
        "coordinator_state_bytes": coordinator.size if coordinator is not None else None,
        "subtasks": sorted(subtask.index for subtask in operator.subtasks),
        "finished_subtasks": list(operator.finished_subtasks),
    }
