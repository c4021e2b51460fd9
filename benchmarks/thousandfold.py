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
        f"{small / 1e6:,.0f} million small checkpoints, {TIMES:,} giants like "
        f"(a) and {TIMES:,} like (b). No machine here could hold them: what follows is arithmetic "
        "on the figures above."
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
        f"Together {words.seconds(whole)} of one core, or an hour of {words.digits(whole / _HOUR)} "
        f"cores if twice as many were twice as fast; as counted above, {most['cores']} are "
        f"{words.digits(faster)} times as fast as one. A task takes at most "
        f"{CHECKPOINTS_OF_A_TASK} checkpoints, or {BYTES_OF_A_TASK >> 20} MiB of them, or one "
        f"giant: {small // CHECKPOINTS_OF_A_TASK:,} tasks for the small ones, and no checkpoint "
        f"alone keeps a task for longer than {words.seconds(longest)}."
    )


def _memory(results: Results, small: int) -> Iterator[str]:
    peaks = {name: results["cases"][name]["readers"]["ours"]["peak_bytes"]["max"] for name in "abc"}
    growth = results["growth"]["handles"]
    largest = growth["points"][-1]
    count = MAX_METADATA_BYTES / (largest["file_bytes"] / largest["count"])
    time, memory = growth["seconds"]["ours"], growth["peak_bytes"]["ours"]
    of_one = results["costs"]["candidate_bytes"]
    yield from paragraph(
        "An executor's Python worker holds one giant at a time, or small checkpoints of some ten "
        "thousand positions: what the largest of them needs, here "
        f"{words.size(max(peaks.values()))}. "
        f"`_metadata` of more than 1 GiB is refused by name; at that limit, some {count / 1e6:.1f} "
        "million files of keyed state, the lines above give "
        f"{words.seconds(time['intercept'] + time['slope'] * count)} and "
        f"{words.size(memory['intercept'] + memory['slope'] * count)}. The driver holds what it "
        f"found, {words.size(of_one)} a checkpoint: {words.size(of_one * small)}, and each job's "
        "line; the rows of the tables stay with the executors."
    )


def _requests(results: Results, small: int) -> Iterator[str]:
    found, read = results["costs"]["discovery_requests"], results["costs"]["reading_requests"]
    yield from paragraph(
        "Counted at an S3 server, of small checkpoints whose Kafka state is inline; a LIST is a "
        "GET."
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
        f"At {words.seconds(_ROUND_TRIP_SECONDS)} each (assumed, not measured) and "
        f"{READING_AT_ONCE} under way at once, a task waits {words.seconds(waiting)} for a "
        f"checkpoint, {words.seconds(waiting * small)} of one core for all. Amazon promises at "
        f"least {_S3_REQUESTS_PER_SECOND:,} of them a second for each prefix of a bucket: at one "
        f"prefix, all take {words.seconds(whole / _S3_REQUESTS_PER_SECOND)}, however many cores "
        "ask."
    )


def _breaks(results: Results, small: int) -> Iterator[str]:
    costs = results["costs"]
    requests = sum(costs["discovery_requests"].values()) * small
    alone = requests * _ROUND_TRIP_SECONDS / DISCOVERING_AT_ONCE
    yield from paragraph(
        f"At the search: one driver, with {DISCOVERING_AT_ONCE} requests under way, needs "
        f"{words.seconds(alone)} and {words.size(costs['candidate_bytes'] * small)} to find "
        f"{small / 1e6:,.0f} million checkpoints, before the first task starts. Tasks share "
        "nothing and go faster with more cores; the driver does not. What to do:"
    )
    yield ""
    yield from paragraph(
        "Scan by prefix: a `migrate scan` for each bucket, team, or first digit of the job ids, "
        "side by side. A tenth of the estate is a tenth of a driver's time and memory, and the "
        "requests spread over more prefixes too.",
        "1. ",
        "   ",
    )
    yield from paragraph(
        "Take the newest of each job (`--latest-only`): it costs as many requests for a job that "
        "retains a hundred checkpoints as for one that retains one.",
        "2. ",
        "   ",
    )
    yield from paragraph(
        "Not built, and next if that is not enough: to list on the executors, a directory a task, "
        "or to read the inventory that the store itself writes.",
        "3. ",
        "   ",
    )
