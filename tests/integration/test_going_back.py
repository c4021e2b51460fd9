"""Repeat a move without rewinding a group silently.

A commit simulates the consumers. `test_group_commands.py` uses consumers that read.
"""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Literal

import pytest

from migrate import commit_group
from migrate.kafka.snapshot import take_snapshot
from migrate.model.cluster_snapshot import Committed, GroupView, Question
from migrate.storage.json_models import write_file
from migrate.targets.group import rollback_file
from tests.support.checkpoints import splits, write_source
from tests.support.kafka import Broker

pytestmark = pytest.mark.integration


def _group(name: str, topic: str, *held: int) -> GroupView:
    """Return a group with these offsets in partitions 0, 1, and so on."""
    committed = {(topic, partition): Committed(at) for partition, at in enumerate(held)}
    return GroupView(name, bool(held), "Empty", "classic", committed=committed)


@pytest.mark.parametrize(
    ("change", "set_to", "now", "refusals"),
    [
        ("commit", (3, 4), (9, 4), ("rewind 1 offset", "up to 6 records")),
        ("commit", (3, 4), (9, 5), ("rewind 2 offsets", "up to 7 records")),
        ("commit", (3, 4), (2, 9), ("rewind 1 offset", "up to 5 records")),
        ("commit", (3, 4), (3, 4), ()),  # the offsets are unchanged since the earlier run
        ("commit", (3, 4), (1, 1), ()),  # the offsets are the same as before the earlier run
        ("commit", (3, 4), (2, 2), ()),  # the move only advances the offsets
        ("commit", (9, 9), (9, 9), ()),  # the group has no newer commits
        # No commit by `migrate` is known.
        ("rollback", (3, 4), (9, 9), ("rewind 2 offsets", "up to 11 records")),
        (None, (), (9, 9), ("rewind 2 offsets", "up to 11 records")),
        (None, (), (9, 1), ("rewind 1 offset", "up to 6 records")),
    ],
)
def test_repeated_move_of_group_with_newer_commits_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    broker: Broker,
    change: Literal["commit", "rollback"] | None,
    set_to: tuple[int, ...],
    now: tuple[int, int],
    refusals: tuple[str, ...],
) -> None:
    monkeypatch.chdir(tmp_path)
    topic = f"t-{uuid.uuid4().hex[:8]}"
    group, servers = f"g-{topic}", broker.bootstrap_servers
    broker.create_topic(topic, 2)
    for partition in range(2):
        broker.produce(topic, partition, map(str, range(20)))
    broker.commit(group, {(topic, partition): at for partition, at in enumerate(now)})
    chk = write_source(tmp_path / "chk-7", {0: splits(topic, [3, 4])})
    if change is not None:
        cluster_id = take_snapshot(
            {"bootstrap.servers": servers}, Question(frozenset({topic}))
        ).cluster_id
        before, after = _group(group, topic, 1, 1), _group(group, topic, *set_to).committed
        run = rollback_file.rollback_file(change, cluster_id, servers, before, after, {})
        write_file(run, tmp_path / "earlier.json")
    found = commit_group(chk, group=group, bootstrap_servers=servers)
    assert len(found.refusals) == bool(refusals)
    for says in refusals:
        assert says in found.refusals[0]
    allowed = commit_group(chk, group=group, bootstrap_servers=servers, allow_moved_on=True)
    assert not allowed.refusals
