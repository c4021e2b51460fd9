"""Render the content of docs/performance.md, only from docs/performance.json."""

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

# The code that the figures depend on.
MEASURED_PATHS = (
    *("decoder", "migrate/cli", "migrate/extensions", "migrate/inputs"),
    *("migrate/report", "migrate/spark"),
)

_CASES = {
    "a": "(a) one KafkaSource with {partitions} partitions, parallelism 1,000, inline state",
    "b": "(b) 50 keyed operators, parallelism 512, 40 RocksDB files each (a million handles)",
    "c": "(c) a typical job with two sources, a join on RocksDB, and a sink",
    "d": "(d) {checkpoints} typical checkpoints, read by one process",
}
_READERS = {
    "ours": "`migrate`",
    "bare": "Flink's bare reader",
    "processor": "State Processor API",
    "bytes": "reading the bytes only",
}
# The singular and the plural of the counted items, by the name of a growth.
_GROWTHS = {
    "partitions": ("partition", "Partitions"),
    "handles": ("file of keyed state", "Files of keyed state"),
}
_ON_SPARK = "on Spark, Parquet"
_SCAN_HEAD = ("Scan", "Checkpoints", "Cores", "Minimum", "Median", "Maximum", "Speedup")
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
        "This page is for maintainers. It compares the time and memory that `migrate` needs with "
        "those of Flink's own readers. The measured commands are `migrate inspect --format json`, "
        "`scan`, and the commands for keyed state. Each measurement covers an entire process, "
        "including startup. Flink's own serializers wrote the checkpoints. `make bench` repeats "
        "all measurements."
    )
    yield ""
    commit, paths = results["measured"]["cases"]["commit"], " ".join(MEASURED_PATHS)
    yield from paragraph(
        f"Unless a section lists a different commit, the results are from commit `{commit}`. "
        "Results of newer code may differ. The documentation site shows the number of newer "
        f"commits. In a clone, `git log --oneline {commit}..HEAD -- {paths}` lists them."
    )
    yield from ("", f"<!-- generated: newer-commits {commit} {paths} -->", "")
    yield from table(
        ("Property", "Value"),
        (
            ("Date", results["measured"]["cases"]["date"]),
            ("Processor", f"{machine['cpu']}, {machine['cores']} cores"),
            ("Memory", words.size(machine["memory_bytes"])),
            ("System", machine["system"]),
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
            f"Other processes used {words.digits(others)} cores on average. Therefore the ratios "
            "between runs in one round are more reliable than the times in seconds."
        )
    else:
        yield "The machine ran no other workload."


def _targets(results: Results) -> Iterator[str]:
    yield from ("## Targets", "")
    yield from table(
        ("Target (at most)", "Result: median (range)", "Reached"),
        (
            (verdict.title, verdict.measured, "yes" if verdict.reached else "**no**")
            for verdict in verdicts(results)
        ),
        numbers_from=3,
    )
    yield ""
    growth = results["growth"]["partitions"]["seconds"]
    yield from paragraph(
        f"(a) `migrate` takes {words.seconds(growth['ours']['intercept'])} to start. After that, "
        f"it takes {words.seconds(growth['ours']['slope'])} to decode, merge, and print each "
        f"position. The bare reader takes {words.seconds(growth['bare']['slope'])} per position, "
        "but it does not print positions."
    )
    yield ""
    case = results["cases"]["d"]
    ours, read, bare = (
        words.seconds(case["readers"][name]["cpu_seconds"]["median"] / case["checkpoints"])
        for name in ("ours", "bytes", "bare")
    )
    yield from paragraph(
        f"(d) One core reads a small cached file in {read}. `migrate` decodes the file and "
        f"extracts its positions in {ours}. When warmed up, Flink's bare reader takes {bare}. No "
        "single module of `migrate` dominates (see [Time by module](#time-by-module))."
    )
    yield ""
    on_one, on_two = (
        find_scan(results, "this machine", cores)["cpu_seconds"]["median"] for cores in (1, 2)
    )
    yield from paragraph(
        f"A scan on 2 cores takes {words.seconds(on_two - on_one)} more CPU time than on 1 core. "
        "The reason is the second Python process, which must start and import the same modules. It "
        "receives checkpoints and returns rows through pipes."
    )


def _cases(results: Results) -> Iterator[str]:
    yield from ("## Results by reader", "")
    yield from paragraph(
        "The bare reader is a Java program. It calls `Checkpoints.loadCheckpointMetadata`, "
        "restores operator state with Flink's own code, and prints the number of splits and the "
        "sum of their offsets. The State Processor API reads `SourceReaderState` with a local "
        "job. `migrate` prints every position, operator, and finding. The first round verifies "
        "that all readers find the same partitions and the same sum. This round is not counted."
    )
    for name, case in results["cases"].items():
        title = _CASES[name].format(
            partitions=f"{case['partitions']:,}", checkpoints=f"{case['checkpoints']:,}"
        )
        files = "all `_metadata` files" if case["checkpoints"] > 1 else "`_metadata`"
        counted = f"{case['partitions']:,} partitions, {case['rounds']} rounds"
        yield from ("", f"### {title}", "")
        yield from (f"Size of {files}: {words.size(case['file_bytes'])}; {counted}.", "")
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
    times = ("Minimum", "Median", "Maximum", "CPU")
    return table(("Reader", *times, "Peak memory", "Time ratio", "CPU ratio"), rows)


def _profiles(results: Results) -> Iterator[str]:
    yield from ("## Time by module", "")
    yield from paragraph(
        "The shares are measured with cProfile, which overstates the time of small calls. The time "
        "in C functions is attributed to the calling module."
    )
    yield ""
    rows = [
        (f"({name})", ", ".join(f"{share['module']} {share['share']:.0%}" for share in shares))
        for name, shares in results["profiles"].items()
    ]
    yield from table(("Case", "Share of the time"), rows, numbers_from=2)


def _growth(results: Results) -> Iterator[str]:
    yield from (
        "## Growth",
        "",
        "![Time and memory against partitions and files](img/performance-growth.svg)",
        "",
    )
    yield from paragraph(
        "For each size, the lines are fitted to the fastest run and the highest memory use."
    )
    yield ""
    rows = []
    for kind, growth in results["growth"].items():
        for reader in growth["seconds"]:
            time, memory = growth["seconds"][reader], growth["peak_bytes"][reader]
            row = (
                f"{_READERS[reader]}, per {_GROWTHS[kind][0]}",
                words.seconds(time["intercept"]),
                words.seconds(time["slope"]),
                words.size(memory["intercept"]),
                words.size(memory["slope"]),
            )
            rows.append(row)
    head = ("Reader", "Time at start", "Time per unit", "Memory at start", "Memory per unit")
    yield from table(head, rows)
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
    head = (unit, "`_metadata`", "`migrate`", "Memory", "Bare reader", "Memory")
    return table(head, rows, numbers_from=0)


def _scans(results: Results) -> Iterator[str]:
    scans = [scan for scan in results["scans"] if scan["where"] != _ON_SPARK]
    yield from ("## Fleet scans on one and two cores", "")
    yield from paragraph(
        "The table shows complete `migrate scan` commands, measured on "
        f"{words.measured(results, 'scans')}. "
        "With Parquet, the command also writes tables. *Reading only* is one process that reads "
        "all checkpoints, or two processes that each read half of the checkpoints. It excludes "
        "process startup. A scan keeps a row for each checkpoint and one `_metadata` file in "
        "memory. If it reads from an object store, it keeps up to 8 files of at most 4 MiB each."
    )
    others = max(scan["others_cores"] for scan in scans)
    if others >= _NOTICEABLE_CORES:
        yield ""
        yield from paragraph(
            f"Other processes used up to {words.digits(others)} cores at the same time. CPU is the "
            "time of all processes in the scan. The last column is computed from CPU time and "
            "estimates the speedup on dedicated cores."
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
    yield from table((*_SCAN_HEAD, "CPU", "Speedup by CPU"), rows)
    yield from _scans_on_spark([scan for scan in results["scans"] if scan["where"] == _ON_SPARK])


def _scans_on_spark(scans: list[Scan]) -> Iterator[str]:
    if not scans:
        return
    yield ""
    yield from paragraph(
        "On Spark, the runs with one core and with two cores use the masters `local[1]` and "
        "`local[2]`. The driver, the JVM, and Python share these cores. Separate executors "
        "(`local-cluster`, or other machines) were not measured, because two cores cannot show how "
        "executors scale. The results exclude the session start "
        f"({words.seconds(max(scan['start_seconds']['median'] for scan in scans))}). They also "
        "exclude the first scan, because it starts Python and warms up the JVM "
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
        name = "on Spark, each additional thousand"
        speedup = words.digits(seconds_by_cores[1] / seconds)
        rows.append((name, "1,000", str(cores), "", words.seconds(seconds), "", speedup))
    yield from table(_SCAN_HEAD, rows)


def _scan_row(scan: Scan, scans: list[Scan]) -> tuple[str, ...]:
    seconds = scan["seconds"]
    speedup = words.digits(_on_one_core(scan, scans)["seconds"]["median"] / seconds["median"])
    spread = (words.seconds(value) for value in (seconds["min"], seconds["median"], seconds["max"]))
    where = scan["where"].replace("reading alone", "reading only")
    return where, f"{scan['checkpoints']:,}", str(scan["cores"]), *spread, speedup


def _on_one_core(scan: Scan, scans: list[Scan]) -> Scan:
    """Return the same scan on one core."""
    return next(
        other
        for other in scans
        if (other["where"], other["checkpoints"]) == (scan["where"], scan["checkpoints"])
        and other["cores"] == 1
    )


def _seconds_per_thousand(smaller: Scan, larger: Scan) -> float:
    """Return the seconds per thousand additional checkpoints in the larger scan."""
    seconds = larger["seconds"]["median"] - smaller["seconds"]["median"]
    return seconds / (larger["checkpoints"] - smaller["checkpoints"]) * 1_000


def _method() -> Iterator[str]:
    yield from ("## Method", "")
    yield from paragraph(
        "In each round, every reader runs once. The order is reversed in every second round. "
        "Each ratio is the result of `migrate` divided by the result of the other reader in the "
        "same round. The median of the ratios determines whether a target is reached. Time is the "
        "wall-clock time of the entire process, CPU is the CPU time of all its threads, and "
        "memory is the largest resident set. The files are on a local disk and in the page cache, "
        "and the Python modules are compiled. Java chooses its own heap size, so its peak memory "
        "is not the amount that it actually requires."
    )
