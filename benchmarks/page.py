"""The content of docs/performance.md, made from docs/performance.json alone."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import words
from benchmarks.priming import moved_state_section
from benchmarks.rehearsing import rehearsal_section
from benchmarks.results import DOCS, Case, Growth, Results, Scan, cpu_speedup, find_scan
from benchmarks.states_page import keyed_state_section
from benchmarks.targets import verdicts
from benchmarks.words import paragraph, table

PAGE = DOCS / "performance.md"

# The code on which the figures depend.
MEASURED_PATHS = (
    *("decoder", "migrate/cli", "migrate/fleet", "migrate/inputs"),
    *("migrate/report", "migrate/spark", "migrate/state"),
)

_CASES = {
    "a": "(a) one KafkaSource of {partitions} partitions, parallelism 1,000, its state inline",
    "b": "(b) 50 keyed operators, parallelism 512, 40 RocksDB files each: a million handles",
    "c": "(c) an everyday job: two sources, a join on RocksDB, a sink",
    "d": "(d) {checkpoints} everyday checkpoints, read by one process",
}
_READERS = {
    "ours": "ours",
    "bare": "Flink's bare reader",
    "processor": "State Processor API",
    "bytes": "the bytes alone",
}
# By the name of a growth: the singular and the plural of what is counted.
_GROWTHS = {
    "partitions": ("partition", "partitions"),
    "handles": ("file of keyed state", "files of keyed state"),
}
_ON_SPARK = "on Spark, Parquet"
_SCAN_HEAD = ("", "checkpoints", "cores", "least", "median", "most", "times as fast")
# The page mentions other processes if they kept at least this many cores busy.
_NOTICEABLE_CORES = 0.1


def write(results: Results) -> None:
    PAGE.write_text(render(results), encoding="utf-8")


def render(results: Results) -> str:
    """Return the text of the page."""
    sections = (
        _opening(results),
        _targets(results),
        _cases(results),
        _profiles(results),
        _growth(results),
        _scans(results),
        keyed_state_section(results),
        moved_state_section(results),
        rehearsal_section(results),
        _method(),
    )
    return "\n".join(line for section in sections for line in (*section, "")).rstrip("\n") + "\n"


def _opening(results: Results) -> Iterator[str]:
    machine = results["machine"]
    yield from ("# Performance", "")
    yield from paragraph(
        "For maintainers: the time and memory of `migrate inspect --format json`, of `scan` and of "
        "keyed state, beside Flink's own readers. Whole processes are measured, start-up included. "
        "Flink's own serializers wrote the checkpoints. `make bench` measures all of it."
    )
    yield ""
    commit, paths = results["measured"]["cases"]["commit"], " ".join(MEASURED_PATHS)
    yield from paragraph(
        f"Measured at commit `{commit}` where no other is named. Figures of later code may differ: "
        "the site says how many commits are newer, and in a clone "
        f"`git log --oneline {commit}..HEAD -- {paths}` lists "
        "them."
    )
    yield from ("", f"<!-- generated: newer-commits {commit} {paths} -->", "")
    yield from table(
        ("machine", ""),
        (
            ("measured", results["measured"]["cases"]["date"]),
            ("processor", f"{machine['cpu']}, {machine['cores']} cores"),
            ("memory", words.size(machine["memory_bytes"])),
            ("system", machine["system"]),
            ("Python", machine["python"]),
            ("Java", machine["jdk"]),
            ("Flink", f"{machine['flink']}, Kafka connector {machine['connector']}"),
        ),
        numbers_from=2,
    )
    yield ""
    others = machine["others_cores"]
    if others >= _NOTICEABLE_CORES:
        yield from paragraph(
            f"Other processes kept {words.digits(others)} cores busy on average, so the ratios, "
            "of runs side by side, say more than the seconds."
        )
    else:
        yield "Nothing else of note ran on the machine."


def _targets(results: Results) -> Iterator[str]:
    yield from ("## What was to be reached", "")
    yield from table(
        ("at most", "measured: median (least to most)", "reached"),
        (
            (verdict.title, verdict.measured, "yes" if verdict.reached else "**no**")
            for verdict in verdicts(results)
        ),
        numbers_from=3,
    )
    yield ""
    growth = results["growth"]["partitions"]["seconds"]
    yield from paragraph(
        f"(a): our start alone takes {words.seconds(growth['ours']['intercept'])}. Then each "
        f"position takes {words.seconds(growth['ours']['slope'])} to decode, merge and print; the "
        f"bare reader takes {words.seconds(growth['bare']['slope'])} and prints none."
    )
    yield ""
    case = results["cases"]["d"]
    ours, read, bare = (
        words.seconds(case["readers"][name]["cpu_seconds"]["median"] / case["checkpoints"])
        for name in ("ours", "bytes", "bare")
    )
    yield from paragraph(
        f"(d): one core reads a small file that is in memory in {read}. To decode it and extract "
        f"its positions takes {ours}; Flink's bare reader takes {bare} once it is warm. The table "
        "by module below shows that no part of ours stands out."
    )
    yield ""
    on_one, on_two = (
        find_scan(results, "this machine", cores)["cpu_seconds"]["median"] for cores in (1, 2)
    )
    yield from paragraph(
        f"A scan on 2 cores takes {words.seconds(on_two - on_one)} of CPU more than on 1: a second "
        "Python process starts, imports the same modules, gets its checkpoints and returns its "
        "rows through pipes."
    )


def _cases(results: Results) -> Iterator[str]:
    yield from ("## Reader by reader", "")
    yield from paragraph(
        "The bare reader is a Java `main` that calls `Checkpoints.loadCheckpointMetadata` and "
        "Flink's restore of operator state, and prints the number of splits and the sum of their "
        "offsets. The State Processor API reads `SourceReaderState` with a local job. Ours prints "
        "every position, operator and finding. An uncounted first round shows that all find the "
        "same partitions and the same sum."
    )
    for name, case in results["cases"].items():
        title = _CASES[name].format(
            partitions=f"{case['partitions']:,}", checkpoints=f"{case['checkpoints']:,}"
        )
        files = "All `_metadata`" if case["checkpoints"] > 1 else "`_metadata`"
        counted = f"{case['partitions']:,} partitions, {case['rounds']} rounds"
        yield from ("", f"### {title}", "")
        yield from (f"{files}: {words.size(case['file_bytes'])}; {counted}.", "")
        yield from _case(case)


def _case(case: Case) -> list[str]:
    rows = []
    for name, figures in case["readers"].items():
        seconds = figures["seconds"]
        ratios = [
            words.ratio(by_reader[name]) if name in by_reader else ""
            for by_reader in (case["ratios"], case["cpu_ratios"])
        ]
        row = (
            _READERS[name],
            words.seconds(seconds["min"]),
            f"**{words.seconds(seconds['median'])}**",
            words.seconds(seconds["max"]),
            words.seconds(figures["cpu_seconds"]["median"]),
            words.size(figures["peak_bytes"]["max"]),
            *ratios,
        )
        rows.append(row)
    head = ("", "least", "median", "most", "CPU", "peak memory", "ours/theirs", "of CPU")
    return table(head, rows)


def _profiles(results: Results) -> Iterator[str]:
    yield from ("## Where our time goes", "")
    yield from paragraph(
        "By module, as cProfile counts, which makes small calls look slower than they are. "
        "Functions in C count for the module that calls them."
    )
    yield ""
    rows = [
        (f"({name})", ", ".join(f"{share['module']} {share['share']:.0%}" for share in shares))
        for name, shares in results["profiles"].items()
    ]
    yield from table(("", "share of the time"), rows, numbers_from=2)


def _growth(results: Results) -> Iterator[str]:
    yield from (
        "## Growth",
        "",
        "![Time and memory against partitions and files](img/performance-growth.svg)",
        "",
    )
    yield from paragraph(
        "A straight line is fitted to the quickest runs, and to the most memory of any run."
    )
    yield ""
    rows = []
    for kind, growth in results["growth"].items():
        for reader in growth["seconds"]:
            time, memory = growth["seconds"][reader], growth["peak_bytes"][reader]
            row = (
                f"{_READERS[reader]}, by {_GROWTHS[kind][0]}",
                words.seconds(time["intercept"]),
                words.seconds(time["slope"]),
                words.size(memory["intercept"]),
                words.size(memory["slope"]),
            )
            rows.append(row)
    yield from table(("", "start", "each", "memory at the start", "of each"), rows)
    for kind, growth in results["growth"].items():
        yield ""
        yield from _points(_GROWTHS[kind][1], growth)


def _points(unit: str, growth: Growth) -> list[str]:
    rows = []
    for point in growth["points"]:
        row = [f"{point['count']:,}", words.size(point["file_bytes"])]
        for figures in point["readers"].values():
            row.append(words.seconds(figures["seconds"]["min"]))
            row.append(words.size(figures["peak_bytes"]["max"]))
        rows.append(row)
    head = (unit, "`_metadata`", "ours", "memory", "bare reader", "memory")
    return table(head, rows, numbers_from=0)


def _scans(results: Results) -> Iterator[str]:
    scans = [scan for scan in results["scans"] if scan["where"] != _ON_SPARK]
    yield from ("## A fleet: one core against two", "")
    yield from paragraph(
        f"Whole `migrate scan` commands, measured {words.measured(results, 'scans')}. "
        "With Parquet, the command also writes tables. Reading alone is one process that reads all "
        "checkpoints, or two that read half of them each, without their start. A scan holds a row "
        "for each checkpoint, and one `_metadata`, or from a store up to 8 of at most 4 MiB each."
    )
    others = max(scan["others_cores"] for scan in scans)
    if others >= _NOTICEABLE_CORES:
        yield ""
        yield from paragraph(
            f"Other processes kept up to {words.digits(others)} cores busy meanwhile. CPU is what "
            "all processes of the scan used; the last column is computed from it, as on cores of "
            "its own."
        )
    yield ""
    rows = [
        (
            *_scan_row(scan, scans),
            words.seconds(scan["cpu_seconds"]["median"]),
            words.digits(cpu_speedup(scan, _on_one_core(scan, scans))),
        )
        for scan in scans
    ]
    yield from table((*_SCAN_HEAD, "CPU", "times as fast by CPU"), rows)
    yield from _scans_on_spark([scan for scan in results["scans"] if scan["where"] == _ON_SPARK])


def _scans_on_spark(scans: list[Scan]) -> Iterator[str]:
    if not scans:
        return
    yield ""
    yield from paragraph(
        "On Spark the cores are `local[1]` and `local[2]`, shared by the driver, the JVM and "
        "Python. Executors of their own (`local-cluster`, or other machines) were not measured: "
        "two cores cannot show how a scan grows with them. Two starts are left out: the session "
        f"({words.seconds(max(scan['start_seconds']['median'] for scan in scans))}), and "
        "a first scan, which starts Python and warms the JVM "
        f"({words.seconds(max(scan['first_seconds']['median'] for scan in scans))})."
    )
    yield ""
    rows = [_scan_row(scan, scans) for scan in scans]
    least = min(scan["checkpoints"] for scan in scans)
    smallest = {scan["cores"]: scan for scan in scans if scan["checkpoints"] == least}
    seconds_by_cores = {
        scan["cores"]: _seconds_per_thousand(smallest[scan["cores"]], scan)
        for scan in scans
        if scan["checkpoints"] > least
    }
    for cores, seconds in seconds_by_cores.items():
        name = "on Spark, each further thousand"
        speedup = words.digits(seconds_by_cores[1] / seconds)
        rows.append((name, "1,000", str(cores), "", words.seconds(seconds), "", speedup))
    yield from table(_SCAN_HEAD, rows)


def _scan_row(scan: Scan, scans: list[Scan]) -> tuple[str, ...]:
    seconds = scan["seconds"]
    speedup = words.digits(_on_one_core(scan, scans)["seconds"]["median"] / seconds["median"])
    spread = (words.seconds(value) for value in (seconds["min"], seconds["median"], seconds["max"]))
    return scan["where"], f"{scan['checkpoints']:,}", str(scan["cores"]), *spread, speedup


def _on_one_core(scan: Scan, scans: list[Scan]) -> Scan:
    """Return the same scan on one core."""
    return next(
        other
        for other in scans
        if (other["where"], other["checkpoints"]) == (scan["where"], scan["checkpoints"])
        and other["cores"] == 1
    )


def _seconds_per_thousand(smaller: Scan, larger: Scan) -> float:
    """Return the seconds for each thousand of the checkpoints that only the larger scan has."""
    seconds = larger["seconds"]["median"] - smaller["seconds"]["median"]
    return seconds / (larger["checkpoints"] - smaller["checkpoints"]) * 1_000


def _method() -> Iterator[str]:
    yield from ("## How it is measured", "")
    yield from paragraph(
        "In each round every reader runs once, in the opposite order every other time. A ratio "
        "compares two runs of a round; a target is judged by the median of the ratios. Time is "
        "wall-clock time of the whole process, CPU that of all its threads, memory the largest "
        "resident set. The files are on a local disk and in the page cache, and Python's modules "
        "are compiled. Java chooses its heap itself, so its peak memory is not what it needs."
    )
