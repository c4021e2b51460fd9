"""What the user allows: by default nothing that would lose or repeat records.

Each field is a flag of the command line under the same name; the default refuses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class OnExpired(str, Enum):
    """A position below the log start: its records are gone whatever is done."""

    FAIL = "fail"
    EARLIEST = "earliest"


class OnBeyondEnd(str, Enum):
    """A position beyond the log end."""

    FAIL = "fail"
    LATEST = "latest"


class NewPartitions(str, Enum):
    """A partition the checkpoint does not know."""

    AS_FLINK = "as-flink"  # from the log start where Flink would start it there, else refused
    FAIL = "fail"
    EARLIEST = "earliest"
    LATEST = "latest"


class Gone(str, Enum):
    """A topic or partition that the broker does not have."""

    FAIL = "fail"
    SKIP = "skip"


class Unresolved(str, Enum):
    """A position that the state does not tell."""

    FAIL = "fail"
    EARLIEST = "earliest"
    LATEST = "latest"
    COMMITTED = "committed"  # what Flink's own group (--source-group) has committed
    TIMESTAMP = "timestamp"  # the first record at or after a time


class MergeSources(str, Enum):
    """Sources that read one topic from different positions."""

    FAIL = "fail"
    MIN = "min"


@dataclass(frozen=True, slots=True)
class Policies:
    """One choice for each way a move can go wrong.

    ``unresolved_since`` is the time of ``Unresolved.TIMESTAMP``, in milliseconds of the epoch.
    ``topic_map`` names topics as the target knows them, by their name in the checkpoint.
    ``partitions`` restricts the move to these, by the topic's name in the checkpoint; None moves
    all.
    """

    on_expired: OnExpired = OnExpired.FAIL
    on_beyond_end: OnBeyondEnd = OnBeyondEnd.FAIL
    new_partitions: NewPartitions = NewPartitions.AS_FLINK
    gone: Gone = Gone.FAIL
    unresolved: Unresolved = Unresolved.FAIL
    unresolved_since: int | None = None
    merge_sources: MergeSources = MergeSources.FAIL
    allow_in_flight: bool = False
    allow_ran_on: bool = False
    topic_map: Mapping[str, str] = field(default_factory=dict)
    partitions: Mapping[str, frozenset[int]] | None = None
