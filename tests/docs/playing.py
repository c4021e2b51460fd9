"""Set up the scene of a page: a directory, and the required broker, store, and Spark session."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tests.docs.blocks import ROOT, Scene
from tests.docs.stage import BROKER, PLAYGROUND_BROKER, Stage, new_directory

if TYPE_CHECKING:
    from tests.support.kafka import Broker
    from tests.support.spark import Spark

# The languages of blocks that are run.
RUN = ("console", "python", "pycon")


@contextmanager
def played(
    scene: Scene, broker: Broker | None = None, spark: Spark | None = None
) -> Iterator[Stage]:
    """Yield a stage on which a page's blocks can run.

    If the scene requires a broker or Spark but the caller did not pass one, this function starts
    it.
    """
    with ExitStack() as stack:
        if scene.playground:
            yield _playground(stack)
            return
        if not scene.copies and not scene.kafka and not scene.records:
            yield Stage(ROOT)
            return
        stage = Stage(stack.enter_context(new_directory()))
        if scene.kafka or scene.records:
            if broker is None:
                from tests.support.kafka import Broker

                broker = stack.enter_context(Broker())
            _produce(broker, scene)
            stack.callback(_clear, broker, scene)
            stage.actual[BROKER] = broker.bootstrap_servers
        stage.lay(scene)
        if any(target.startswith("s3://") for target in scene.copies.values()):
            from tests.support.stores import s3

            store = stack.enter_context(s3()).store
            for source, target in scene.copies.items():
                if target.startswith(store.root):
                    store.put(ROOT / source, target.removeprefix(f"{store.root}/"))
        if scene.spark:
            if spark is None:
                from tests.support.spark import Spark

                spark = stack.enter_context(Spark())
            stage.names["spark"] = spark.session
        yield stage


def _playground(stack: ExitStack) -> Stage:
    """Return a stage that looks like a clone of the repository, for ``make playground``.

    When ``stack`` is closed, the playground is stopped and its folder is removed.
    """
    from examples.playground.__main__ import stop
    from tests.support.kafka import free_ports
    from tests.support.spark import submit_environment

    directory = stack.enter_context(new_directory())
    home = directory / "playground"

    @stack.callback
    def _() -> None:
        if home.exists():
            stop(home)

    (port,) = free_ports(1)
    module = f"{sys.executable} -m examples.playground"
    actual = {
        "make playground-stop": f"{module} stop",
        "make playground": f"{module} start --port {port}",
        PLAYGROUND_BROKER: f"localhost:{port}",
    }
    spark = Path(stack.enter_context(TemporaryDirectory()))
    environment = {**submit_environment(spark), "BASH_ENV": str(home / "environment")}
    return Stage(directory, actual, environment)


def _produce(broker: Broker, scene: Scene) -> None:
    for topic, counts in scene.kafka.items():
        broker.create_topic(topic, len(counts))
        for partition, count in enumerate(counts):
            broker.produce(
                topic, partition, [f"{topic}/{partition} record {n}" for n in range(count)]
            )
    for topic, directory in scene.records.items():
        files = sorted((ROOT / directory).iterdir())
        broker.create_topic(topic, len(files))
        for file in files:
            broker.produce(topic, int(file.name), file.read_text().splitlines())


def _clear(broker: Broker, scene: Scene) -> None:
    """Delete the scene's topics and all groups, because the next page may use the same names."""
    from confluent_kafka.admin import AdminClient

    for topic in (*scene.kafka, *scene.records):
        broker.delete_topic(topic)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    groups = [group.group_id for group in admin.list_consumer_groups().result().valid]
    for deleted in admin.delete_consumer_groups(groups).values() if groups else ():
        deleted.result()
