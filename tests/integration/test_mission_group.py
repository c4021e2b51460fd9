"""The mission through a consumer group: what Flink processed and what a consumer that goes on in
the group reads is every record exactly once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.groups import PROTOCOLS, read_on
from tests.support.kafka import Broker
from tests.support.story import Handover, account, hand_over, migrate

pytestmark = pytest.mark.integration


@dataclass(frozen=True, slots=True)
class Scene:
    broker: Broker
    handover: Handover


@pytest.fixture(scope="module", params=["1.20", "2.2"])
def scene(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    with Broker() as broker:
        workdir = tmp_path_factory.mktemp("mission")
        yield Scene(broker, hand_over(request.param, broker, workdir, print))


def _commit_group(scene: Scene, group: str, folder: Path) -> None:
    migrate(
        "commit-group",
        str(scene.handover.savepoint),
        "--group",
        group,
        "--bootstrap-servers",
        scene.broker.bootstrap_servers,
        "--execute",
        "--yes",
        "--rollback-file",
        str(folder / "rollback.json"),
        say=print,
    )


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_nothing_is_lost_and_nothing_repeated(scene: Scene, tmp_path: Path, protocol: str) -> None:
    group = f"goes-on-{protocol}"
    _commit_group(scene, group, tmp_path)
    records = read_on(scene.broker, group, scene.handover.topics, protocol)

    accounts = account(scene.handover, records)
    assert [(a.topic, a.partition) for a in accounts] == scene.handover.partitions()
    for one in accounts:
        assert (one.lost, one.repeated) == (0, 0), one
        # Every partition grew after the savepoint: each has a part that is the consumer's.
        assert one.by_spark > 0, one
    assert scene.broker.committed(group) == {
        (topic, partition): log_end
        for topic in scene.handover.topics
        for partition, (_, log_end) in scene.broker.watermarks(topic).items()
    }


def test_the_account_finds_a_lost_and_a_repeated_record(scene: Scene, tmp_path: Path) -> None:
    """The same account on offsets that are wrong by one: else the test above could not fail."""
    _commit_group(scene, "wrong", tmp_path)
    orders = scene.handover.topics[0]
    right = scene.broker.committed("wrong")
    scene.broker.commit(
        "wrong", {(orders, 0): right[orders, 0] + 1, (orders, 1): right[orders, 1] - 1}
    )
    records = read_on(scene.broker, "wrong", scene.handover.topics, "classic")

    wrong = {
        (one.topic, one.partition): (one.lost, one.repeated)
        for one in account(scene.handover, records)
        if one.lost or one.repeated
    }
    assert wrong == {(orders, 0): (1, 0), (orders, 1): (0, 1)}
