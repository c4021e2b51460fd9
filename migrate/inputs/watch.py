"""Wait for a sign that the positions' reader (a Flink job or a Spark query) is still running.

A running job completes checkpoints, and a running query that has records to read starts batches.
Neither of them joins a consumer group, so a group's members do not show whether the reader is
running.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from migrate.model.log import log, timed

# How long to wait for the next checkpoint or batch, as a multiple of the interval. One interval is
# not enough, because checkpoints can be late.
_INTERVALS = 2.0
# The shortest wait in seconds. A shorter wait proves nothing, because a checkpoint of a busy job
# takes a while.
_SHORTEST = 3.0
# The longest wait in seconds. If a longer wait is necessary, `migrate` does not wait.
LONGEST_WAIT = 60.0
# The wait in seconds if there is only one recent checkpoint or batch, so that the interval is
# unknown.
_WAIT_WITHOUT_INTERVAL = 6.0
# The largest possible difference, in seconds, between the clocks of this machine and of the
# storage, such as a file server. If the newest checkpoint is older than the necessary wait plus
# this difference, `migrate` does not wait. S3 refuses requests if the clocks differ by more than 15
# minutes.
CLOCKS_OF_STORAGE = 900.0


def poll(seconds: float, pause: float = 0.25) -> Iterator[None]:
    """Yield immediately, and then after each pause until ``seconds`` have passed."""
    deadline = time.monotonic() + seconds
    while True:
        yield
        if time.monotonic() > deadline:
            return
        time.sleep(pause)


@dataclass(frozen=True, slots=True)
class Watch:
    """How long to wait for a job's next checkpoint, and the facts that determine this time.

    Attributes:
        interval: the job's checkpoint interval in seconds; None if unknown.
        age: the age of the newest checkpoint in seconds, by this machine's clock; None if unknown.
        wait: the number of seconds to wait; None if a wait would reveal nothing.
    """

    interval: float | None
    age: float | None
    wait: float | None

    @property
    def awaited(self) -> str:
        """The event that shows that the reader is running."""
        return "a checkpoint, which a running job would complete"

    @property
    def is_old(self) -> bool:
        """True if the newest event is older than two intervals plus a margin for clock skew."""
        if self.interval is None or self.age is None:
            return False
        return self.age > waiting_time(self.interval) + CLOCKS_OF_STORAGE

    @property
    def is_quiet(self) -> bool:
        """True if the checkpoint is so old that a running job would have completed a newer one."""
        return self.is_old

    @property
    def shows_stop(self) -> bool:
        """True if the absence of an event during the wait suggests that the reader has stopped."""
        return self.interval is not None

    @property
    def text(self) -> str:
        if self.interval is None:
            return "the job's files do not show its checkpoint interval"
        if self.wait is None:
            return (
                f"the job takes a checkpoint about every {self.interval:.0f} s, so migrate did not "
                "wait for the next one"
            )
        return f"no newer checkpoint was completed in {self.wait:.0f} s"


@dataclass(frozen=True, slots=True)
class QueryWatch(Watch):
    """How long to wait for a query's next batch, and the facts that determine this time.

    Attributes:
        interval: the longest time between recent batches in seconds; None if unknown.
        age: the age of the newest batch in seconds, by this machine's clock; None if unknown.
        wait: as in ``Watch``.
    """

    @property
    def awaited(self) -> str:
        return "a batch, which a running query would start if it has records to read"

    @property
    def is_quiet(self) -> bool:
        """False, because a running query without new records starts no batch."""
        return False

    @property
    def shows_stop(self) -> bool:
        """False, because a running query may have had no new records during the wait."""
        return False

    @property
    def text(self) -> str:
        if self.wait is not None:
            return f"the query's log has had no newer batch for {self.wait:.0f} s"
        if self.is_old and self.age is not None:
            return (
                f"the last batch in the query's log started {self.age / 60:.0f} minutes ago, so "
                "migrate did not wait for the next one"
            )
        if self.interval is None:
            return (
                "the query's log does not show how often the query starts a batch, so migrate did "
                "not wait for the next one"
            )
        return (
            f"the query's batches start up to {self.interval:.0f} s apart, so migrate did not wait "
            "for the next one"
        )


NO_WATCH = Watch(None, None, None)


def seconds_since(time_ms: int) -> float:
    """Return the number of seconds since ``time_ms`` (epoch milliseconds), by the local clock."""
    return max(0.0, time.time() - time_ms / 1000)


def waiting_time(interval: float) -> float:
    """Return the number of seconds within which a running reader would show activity."""
    return max(_INTERVALS * interval, _SHORTEST)


def possible_wait(interval: float | None, *, is_fresh: bool) -> float | None:
    """Return the number of seconds to wait, or None if a wait would reveal nothing.

    Args:
        interval: the interval in seconds; None if only one event is known.
        is_fresh: True if that event is so recent that another one may follow soon.
    """
    if interval is None:
        return _WAIT_WITHOUT_INTERVAL if is_fresh else None
    wait = waiting_time(interval)
    return wait if wait <= LONGEST_WAIT else None


def longest_interval(times: Iterable[tuple[int, int]]) -> float | None:
    """Return the longest time between successive events, in seconds; None for fewer than two.

    If the numbers of two successive events are not consecutive, the time between them is divided by
    the difference of the numbers.

    Args:
        times: each event's number and its time in epoch milliseconds, ascending by number.
    """
    return max(
        (
            (time - before) / (number - last) / 1000
            for (last, before), (number, time) in pairwise(times)
        ),
        default=None,
    )


def wait_for_sign(watch: Watch, signs: Callable[[], Sequence[str]], watched: str = "") -> bool:
    """Wait until a running reader would have shown a sign, and check that there is none.

    Unlike a query to a JobManager, the wait also detects a job on a different JobManager.

    Args:
        watch: how long to wait.
        signs: a function that raises ``Refused`` if there is any sign that the reader has
            continued. If the user allows a reader that has continued, the function returns the
            signs instead.
        watched: a clause about other evidence that ``signs`` checks. The log messages start with
            this clause.

    Returns:
        True if the absence of a newer checkpoint suggests that the job has stopped. False if
        ``signs`` returned any sign, if there was no wait, or for a query, which may have had no
        records to read.

    Raises:
        Refused: as in ``signs``.
    """
    if watch.is_quiet:
        log.info(
            f"{watched}no checkpoint has completed for {watch.age:.0f} s (by this machine's "
            f"clock), but {_expected(watch)}"
        )
        return True
    if watch.wait is None:
        return False
    # The wait starts now. The time since the plan was created does not count, because a saved plan
    # may contain times from a different machine's clock.
    log.info(f"waiting {watch.wait:.0f} s for {watch.awaited}")
    with timed(f"waiting for {watch.awaited.partition(',')[0]}"):
        time.sleep(watch.wait)
    if signs() or not watch.shows_stop:
        return False
    log.info(f"{watched}no checkpoint has completed for {watch.wait:.0f} s, but {_expected(watch)}")
    return True


def _expected(watch: Watch) -> str:
    return (
        f"the job used to take one about every {watch.interval:.1f} s; if this is the job's own "
        "checkpoint directory, the job has probably stopped"
    )
