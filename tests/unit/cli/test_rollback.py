"""The number of restored and removed offsets in a dry run and in the confirmation."""

from __future__ import annotations

import pytest

from migrate.cli.rollback import _changes, _would_change
from migrate.model.cluster_snapshot import Committed
from migrate.targets.group.rollback_decision import RestoredOffset


@pytest.mark.parametrize(
    ("targets", "dry_run", "question"),
    [
        ((1, 2), "2 offsets would change", "restore 2 offsets"),
        (
            (1, None),
            "2 offsets would change, including 1 to be removed",
            "restore 1 offset and remove 1 offset",
        ),
        ((None, None), "2 offsets would be removed", "remove 2 offsets"),
    ],
)
def test_rollback_distinguishes_removed_offsets_from_restored_offsets(
    targets: tuple[int | None, ...], dry_run: str, question: str
) -> None:
    """Regression: The prompt said "restore" for a rollback that removes all offsets."""
    partitions = [
        RestoredOffset(
            "a", number, Committed(9), None if target is None else Committed(target), None, None
        )
        for number, target in enumerate(targets)
    ]
    assert (_would_change(partitions), _changes(partitions)) == (dry_run, question)
