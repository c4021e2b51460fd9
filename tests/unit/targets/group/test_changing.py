"""Report interrupted, failed, and refused changes of a group."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate.cli.changes import carry_out
from migrate.model.cluster_snapshot import Committed, GroupView, Member
from migrate.model.errors import UsageError, take_notes
from migrate.report.plan import outcome_lines
from migrate.targets.group.commit import ChangeOutcome, PartitionOutcome, Result, commit_refusals


def test_interrupt_inside_kafka_client_raises_keyboard_interrupt(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Regression: CPython raised SystemError for a Ctrl-C during a call into confluent-kafka."""
    path = tmp_path / "rollback.json"

    def change() -> ChangeOutcome:
        path.touch()
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as interrupt:
            raise SystemError("returned a result with an exception set") from interrupt

    with pytest.raises(KeyboardInterrupt):
        carry_out(change, "orders", path, f"migrate rollback {path} -b broker:9092")
    assert f"run `migrate rollback {path} -b broker:9092`" in " ".join(
        capsys.readouterr().err.split()
    )


def test_unrelated_system_error_is_not_converted_to_interrupt(tmp_path: Path) -> None:
    def change() -> ChangeOutcome:
        raise SystemError("of another kind")

    with pytest.raises(SystemError):
        carry_out(change, "orders", tmp_path / "rollback.json", "migrate rollback")


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), UsageError("no file")])
def test_error_for_unwritable_rollback_file_notes_that_nothing_was_committed(
    tmp_path: Path, error: Exception
) -> None:
    def change() -> ChangeOutcome:
        raise error

    with pytest.raises(type(error)) as failed:
        carry_out(change, "orders", tmp_path / "rollback.json", "migrate rollback")
    assert take_notes(failed.value) == ["nothing was committed"]


@pytest.mark.parametrize(
    ("written", "removed", "told"),
    [
        (1, 0, "1 offset written and read back"),
        (3, 0, "3 offsets written and read back"),
        (3, 2, "3 offsets written and read back, 2 removed"),
        (0, 1, "1 offset removed"),  # for example, with the group
    ],
)
def test_outcome_counts_written_and_removed_offsets_separately(
    written: int, removed: int, told: str
) -> None:
    held = [Committed(5)] * written + [None] * removed
    outcome = ChangeOutcome(
        "g",
        tuple(
            PartitionOutcome("t", number, Result.COMMITTED, one, one)
            for number, one in enumerate(held)
        ),
        Path("back.json"),
    )
    assert list(outcome_lines(outcome)) == [f"group g: applied; {told}"]


def test_refusal_for_active_group_counts_members() -> None:
    group = GroupView("g", True, "Stable", "classic", (Member("app", "host"),))
    (refusal,) = commit_refusals(group)
    assert refusal.facts == {"group": "g", "count": 1, "members": ["app on host"]}
    two = GroupView("g", True, "Stable", "classic", (Member("app", "host"),) * 2)
    assert commit_refusals(two)[0].facts["count"] == 2
