"""Draw numbers, strings, and paths as they occur in checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from hypothesis import strategies as st

_Value = TypeVar("_Value")

MAX_PARALLELISM = 2**15
HIGHEST_INT = 2**31 - 1
HIGHEST_LONG = 2**63 - 1
# The highest size, low enough that the sum of a few sizes fits into a long.
_HIGHEST_SIZE = 2**48

# Modified UTF-8 differs from UTF-8 in NUL and in characters beyond U+FFFF.
texts = st.text(st.characters(codec="utf-8"), max_size=12) | st.just("\0é€😀")
names = texts.filter(bool)
blobs = st.binary(max_size=24)

ints = st.integers(-(2**31), HIGHEST_INT)
longs = st.integers(-(2**63), HIGHEST_LONG)
sizes = st.integers(0, _HIGHEST_SIZE)
offset_lists = st.lists(sizes, max_size=4).map(tuple)

# Flink's Path would change dots, double slashes, and blanks at the ends, so the paths have none.
relative_paths = st.lists(st.text("abc0-_ü", min_size=1, max_size=6), min_size=1, max_size=2).map(
    "/".join
)
uris = st.builds(
    "{}{}".format, st.sampled_from(("file:/", "s3://bucket/", "hdfs://name:8020/")), relative_paths
)


def tuples_of(
    items: st.SearchStrategy[_Value],
    max_size: int = 2,
    unique_by: Callable[[_Value], object] | None = None,
) -> st.SearchStrategy[tuple[_Value, ...]]:
    """Draw tuples of any length up to `max_size`."""
    return st.lists(items, max_size=max_size, unique_by=unique_by).map(tuple)
