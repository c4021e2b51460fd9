"""How far Spark has come, told while it works."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# In seconds, between two looks.
_EVERY = 0.2


@contextmanager
def watched(spark: SparkSession, tell: Callable[[int, int], None] | None) -> Iterator[None]:
    """Tell, now and then, how many of the tasks of what Spark is at are done, and how many it has.

    Nothing is told where ``tell`` is None, or where Spark does not tell (Spark Connect).
    """
    if tell is None or "connect" in type(spark).__module__:
        yield
        return
    tracker = spark.sparkContext.statusTracker()
    done = Event()

    def watch() -> None:
        while not done.wait(_EVERY):
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            there = [stage for stage in stages if stage is not None]
            if there:
                tell(
                    sum(stage.numCompletedTasks for stage in there),
                    sum(stage.numTasks for stage in there),
                )

    thread = Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
