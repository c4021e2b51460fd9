"""An estate a thousand times larger, by arithmetic: what the measured figures make of it."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import words
from benchmarks.results import Results, largest_scans, times_as_fast
from benchmarks.words import paragraph, table
from decoder.checkpoint import MAX_METADATA_BYTES

TIMES = 1_000
# Not measured here, and said so: what an object store takes to answer.
_ROUND_TRIP_SECONDS = 0.03
# As migrate.fleet asks: the driver when it looks for checkpoints, and a task when it reads them.
DISCOVERING_AT_ONCE = 16
READING_AT_ONCE = 8
CHECKPOINTS_OF_A_TASK = 250
BYTES_OF_A_TASK = 32 * 1024 * 1024
# What Amazon says of S3: "at least 5,500 GET/HEAD requests per second per partitioned prefix".
_S3_REQUESTS_PER_SECOND = 5_500
_HOUR = 3_600


def arithmetic(results: Results) -> Iterator[str]:
    """The section of the page."""
    small = results["cases"]["d"]["checkpoints"] * TIMES
    yield from ("## A thousand times larger", "")
    yield from paragraph(
        f"Take {small / 1e6:,.0f} million small checkpoints, {TIMES:,} giants like (a) and "
        f"{TIMES:,} like (b). The following is computed from the figures above."
    )
    for heading, part in (
        ("Processor time", _time(results, small)),
        ("Memory", _memory(results, small)),
        ("Requests to a store", _requests(results, small)),
        ("Where it breaks first", _breaks(results, small)),
    ):
        yield from ("", f"### {heading}", "")
        yield from part


def _time(results: Results, small: int) -> Iterator[str]:
    one, *_, most = largest_scans(results)
    of_small = one["cpu_seconds"]["median"] / one["checkpoints"]
    parts = [(f"{small:,} small ones, as the scan above reads its own", of_small, of_small * small)]
    for name in ("a", "b"):
        seconds = results["cases"][name]["readers"]["ours"]["cpu_seconds"]["median"]
        parts.append((f"{TIMES:,} of ({name})", seconds, seconds * TIMES))
    rows = [(told, words.seconds(each), words.seconds(all_)) for told, each, all_ in parts]
    yield from table(("", "of one", "of all, on one core"), rows)
    yield ""
    whole = sum(all_ for _, _, all_ in parts)
    faster = times_as_fast(most, one)
    longest = max(each for _, each, _ in parts)
    yield from paragraph(
        f"Together: {words.seconds(whole)} of one core, or an hour of "
        f"{words.digits(whole / _HOUR)} cores if twice as many were twice as fast; as counted "
        f"above, {most['cores']} cores are "
        f"{words.digits(faster)} times as fast as one. A task takes at most "
        f"{CHECKPOINTS_OF_A_TASK} checkpoints, {BYTES_OF_A_TASK >> 20} MiB of them, or one giant: "
        f"{small // CHECKPOINTS_OF_A_TASK:,} tasks for the small ones. One checkpoint takes at "
        f"most {words.seconds(longest)}."
    )


def _memory(results: Results, small: int) -> Iterator[str]:
    peaks = {name: results["cases"][name]["readers"]["ours"]["peak_bytes"]["max"] for name in "abc"}
    growth = results["growth"]["handles"]
    largest = growth["points"][-1]
    count = MAX_METADATA_BYTES / (largest["file_bytes"] / largest["count"])
    time, memory = growth["seconds"]["ours"], growth["peak_bytes"]["ours"]
    of_one = results["costs"]["candidate_bytes"]
    yield from paragraph(
        "An executor's Python worker holds one giant, or small checkpoints of some ten thousand "
        f"positions: here {words.size(max(peaks.values()))}. At the limit of 1 GiB, `_metadata` "
        f"names some {count / 1e6:.1f} million files of keyed state; the lines above give "
        f"{words.seconds(time['intercept'] + time['slope'] * count)} and "
        f"{words.size(memory['intercept'] + memory['slope'] * count)}. The driver keeps "
        f"{words.size(of_one)} for each checkpoint, {words.size(of_one * small)} in all, and a "
        "line for each job."
    )


def _requests(results: Results, small: int) -> Iterator[str]:
    found, read = results["costs"]["discovery_requests"], results["costs"]["reading_requests"]
    yield from paragraph(
        "Counted at an S3 server, for small checkpoints with inline Kafka state. A LIST counts as "
        "a GET."
    )
    yield ""
    rows = [
        (
            told,
            ", ".join(f"{count:.3g} {method}" for method, count in requests.items()),
            f"{sum(requests.values()) * small / 1e6:,.0f} million",
        )
        for told, requests in (("to find one (driver)", found), ("to read one (task)", read))
    ]
    yield from table(("", "of one", "of all"), rows, numbers_from=2)
    yield ""
    waiting = sum(read.values()) * _ROUND_TRIP_SECONDS / READING_AT_ONCE
    whole = (sum(found.values()) + sum(read.values())) * small
    yield from paragraph(
        f"If a request takes {words.seconds(_ROUND_TRIP_SECONDS)} (not measured), a task with "
        f"{READING_AT_ONCE} requests under way waits {words.seconds(waiting)} for a checkpoint: "
        f"{words.seconds(waiting * small)} of one core for all. At "
        f"{_S3_REQUESTS_PER_SECOND:,} requests a second, which Amazon promises for each prefix of "
        f"a bucket, all requests take {words.seconds(whole / _S3_REQUESTS_PER_SECOND)}."
    )


def _breaks(results: Results, small: int) -> Iterator[str]:
    costs = results["costs"]
    requests = sum(costs["discovery_requests"].values()) * small
    alone = requests * _ROUND_TRIP_SECONDS / DISCOVERING_AT_ONCE
    yield from paragraph(
        f"The search: one driver, with {DISCOVERING_AT_ONCE} requests under way, needs "
        f"{words.seconds(alone)} and {words.size(costs['candidate_bytes'] * small)} to find "
        f"{small / 1e6:,.0f} million checkpoints before the first task starts. More cores do not "
        "help the driver. What to do:"
    )
    yield ""
    yield from paragraph(
        "Run a `migrate scan` for each bucket, team, or first digit of the job ids, side by side. "
        "The requests then also spread over more prefixes.",
        "1. ",
        "   ",
    )
    yield from paragraph("Take only the newest checkpoint of each job (`--latest-only`).", "2. ")
    yield from paragraph(
        "Not built yet: executors that list, or a scan of the store's own inventory.", "3. "
    )
