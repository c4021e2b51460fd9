"""The jobs whose snapshots are the golden files of keyed state: what each is of, in which versions.

The jobs themselves are in `tests/support/java/keyed`, under the same names.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.support.flink import RUN_BY_TESTS


@dataclass(frozen=True, slots=True)
class KeyedJob:
    name: str
    description: str
    versions: tuple[str, ...] = RUN_BY_TESTS


JOBS = (
    KeyedJob(
        "kinds",
        "every kind of state, with and without a time to live, and timers; Long keys, "
        "parallelism 2, heap backend",
    ),
    KeyedJob("types", "a value state of every simple type; String keys"),
    KeyedJob(
        "composites", "tuples, rows, lists, maps, arrays, POJOs, nullable values in each other"
    ),
)
