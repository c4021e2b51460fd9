"""Candidates put together into shares of about the same work, one for each task."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from migrate.fleet.candidates import Candidate

# A task is worth its start, and what is lost with an executor is soon read again.
_MOST_CANDIDATES = 250
_MOST_BYTES = 32 * 1024 * 1024
# What a checkpoint costs besides its metadata: finding and opening it, as bytes of metadata.
_BYTES_OF_ONE = 32 * 1024


def pack(candidates: Sequence[Candidate], shares: int | None = None) -> list[list[Candidate]]:
    """Cut into ``shares``, or as many as their number and size ask for.

    The largest is given away first, each to the share that has the least so far: a giant ends up
    alone, thousands of small ones together. No share is empty, and each keeps the given order.
    """
    if shares is None:
        size = sum(candidate.metadata_bytes or 0 for candidate in candidates)
        shares = max(-(-len(candidates) // _MOST_CANDIDATES), -(-size // _MOST_BYTES))
    shares = min(shares, len(candidates))
    packed: list[list[int]] = [[] for _ in range(shares)]
    lightest = [(0, index) for index in range(shares)]
    costs = [_BYTES_OF_ONE + (candidate.metadata_bytes or 0) for candidate in candidates]
    for place in sorted(range(len(candidates)), key=lambda place: -costs[place]):
        cost, index = lightest[0]
        packed[index].append(place)
        heapq.heapreplace(lightest, (cost + costs[place], index))
    return [[candidates[place] for place in sorted(share)] for share in packed]
