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
        f"{TIMES:,} like (b). No machine here could hold them, so what follows is computed from "
        "the figures above."
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
        f"Together they take {words.seconds(whole)} of one core. If twice as many cores were twice "
        f"as fast, {words.digits(whole / _HOUR)} cores would take an hour. As counted above, "
        f"{most['cores']} cores are {words.digits(faster)} times as fast as one. A task takes at "
        f"most {CHECKPOINTS_OF_A_TASK} checkpoints, or {BYTES_OF_A_TASK >> 20} MiB of them, or one "
        f"giant. The small ones make {small // CHECKPOINTS_OF_A_TASK:,} tasks. No checkpoint alone "
        f"keeps a task busy for longer than {words.seconds(longest)}."
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
        "thousand positions. It needs the memory of the largest of them, here "
        f"{words.size(max(peaks.values()))}. "
        "`_metadata` of more than 1 GiB is refused by name. At that limit it names some "
        f"{count / 1e6:.1f} million files of keyed state. For these, the lines above give "
        f"{words.seconds(time['intercept'] + time['slope'] * count)} and "
        f"{words.size(memory['intercept'] + memory['slope'] * count)}. The driver keeps "
        f"{words.size(of_one)} for each checkpoint that it found, {words.size(of_one * small)} in "
        "all. It also keeps a line for each job. The rows of the tables stay with the executors."
    )


def _requests(results: Results, small: int) -> Iterator[str]:
    found, read = results["costs"]["discovery_requests"], results["costs"]["reading_requests"]
    yield from paragraph(
        "The requests were counted at an S3 server, for small checkpoints whose Kafka state is "
        "inline. A LIST counts as a GET."
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
        f"A request is assumed to take {words.seconds(_ROUND_TRIP_SECONDS)}, which is not "
        f"measured. With {READING_AT_ONCE} requests under way at once, a task waits "
        f"{words.seconds(waiting)} for a checkpoint. For all checkpoints, that is "
        f"{words.seconds(waiting * small)} of one core. Amazon promises at least "
        f"{_S3_REQUESTS_PER_SECOND:,} requests a second for each prefix of a bucket. At one "
        f"prefix, all requests take {words.seconds(whole / _S3_REQUESTS_PER_SECOND)}, however many "
        "cores ask."
    )


def _breaks(results: Results, small: int) -> Iterator[str]:
    costs = results["costs"]
    requests = sum(costs["discovery_requests"].values()) * small
    alone = requests * _ROUND_TRIP_SECONDS / DISCOVERING_AT_ONCE
    yield from paragraph(
        f"The search breaks first. One driver, with {DISCOVERING_AT_ONCE} requests under way, "
        f"needs {words.seconds(alone)} and {words.size(costs['candidate_bytes'] * small)} to find "
        f"{small / 1e6:,.0f} million checkpoints. Only then does the first task start. Tasks share "
        "nothing, so more cores make them faster. They do not make the driver faster. What to do:"
    )
    yield ""
    yield from paragraph(
        "Scan by prefix: run a `migrate scan` for each bucket, team, or first digit of the job "
        "ids, side by side. A tenth of the estate takes a tenth of a driver's time and memory. The "
        "requests also spread over more prefixes.",
        "1. ",
        "   ",
    )
    yield from paragraph(
        "Take only the newest checkpoint of each job (`--latest-only`). A job that retains a "
        "hundred checkpoints then costs as many requests as one that retains one.",
        "2. ",
        "   ",
    )
    yield from paragraph(
        "If that is not enough, two ways are left. Neither is built yet. The executors could list, "
        "one directory a task. Or the scan could read the inventory that the store itself writes.",
        "3. ",
        "   ",
    )
