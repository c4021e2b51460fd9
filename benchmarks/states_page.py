"""Write the section of docs/performance.md about keyed state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks import words
from benchmarks.results import Results, Spread, States, StateShape
from benchmarks.words import paragraph, table

# The targets: millions of entries per second of CPU time, in the order of the shapes.
_MILLIONS = (8, 8, 4, 2, 4, 8, 1)
# The target for the kernel's rate, as a multiple of the State Processor API's rate.
_TIMES_AS_FAST = 50
# The target for the CPU seconds of the first start, including the kernel's compilation.
_COMPILE_SECONDS = 3
# The target for the peak memory while the kernel reads the large savepoint.
_MEMORY_BYTES = 300_000_000
# The target for the speedup of Spark with two cores.
_SPEEDUP = 1.8


def keyed_state_section(results: Results) -> Iterator[str]:
    """Yield the lines of the section."""
    states = results["states"]
    yield from ("## Keyed state", "")
    yield from paragraph(
        "`read_state` reads a keyed state into Arrow with the kernel from the `[fast]` extra. "
        "Flink's State Processor API reads the same savepoint but only counts the entries. Each "
        "reader is a process on one core that reads the savepoint several times. The first read is "
        "not counted, and the result is the fastest of the other reads. All readers find the same "
        f"entries and sums. The results were measured on {words.measured(results, 'states')}. "
        f"Other processes used {words.digits(states['others_cores'])} cores. The savepoints were "
        "written by the encoder from the tests. The SQL and timer savepoints contain copies of "
        "entries that Flink wrote. In the tables, each state is followed by its format: the "
        "canonical savepoint format, the native format of the heap backend (heap's own), or the "
        "native files of the RocksDB backend (RocksDB's files)."
    )
    yield ""
    yield from paragraph(
        "The following table shows millions of entries per second of CPU time. Each value is the "
        "median of the rounds, with the range in parentheses."
    )
    yield ""
    yield from _table_of_measured(
        ("State", "Entries", "Size", "Kernel", "Target", "Without `[fast]`", "State Processor API"),
        [
            (
                shape["name"],
                f"{shape['entries']:,}",
                words.size(shape["file_bytes"]),
                _millions(shape, "kernel"),
                str(target),
                _millions(shape, "plain"),
                _millions(shape, "processor"),
            )
            for shape, target in zip(states["shapes"], _MILLIONS, strict=True)
        ],
    )
    yield ""
    yield "The next table shows the speedup of the kernel:"
    yield ""
    yield from _table_of_measured(
        ("State", "Over reading without `[fast]`", "Over the State Processor API"),
        [
            (
                shape["name"],
                _ratio(shape["times_as_fast"].get("plain")),
                _ratio(shape["times_as_fast"].get("processor")),
            )
            for shape in states["shapes"]
        ],
    )
    yield ""
    yield from paragraph(_verdict(states))
    yield ""
    kernel, processor = (states["shapes"][0]["starts"][name] for name in ("kernel", "processor"))
    yield from paragraph(
        f"The kernel loads in {words.seconds(kernel['median'])} of CPU time. The first start on a "
        "machine, which also compiles it, takes "
        f"{words.seconds(states['compiled_seconds']['median'])}. The State Processor API takes "
        f"{words.seconds(processor['median'])} to start and to perform the first read."
    )
    yield ""
    large = states["large"]
    reached = "below" if large["peak_bytes"] <= _MEMORY_BYTES else "above"
    yield from paragraph(
        f"`read_state` reads a {words.size(large['file_bytes'])} savepoint with "
        f"{large['entries']:,} entries in {words.seconds(large['seconds'])} "
        f"({words.seconds(large['cpu_seconds'])} of CPU time). It uses "
        f"{words.size(large['peak_bytes'])} of memory, which is {reached} the target of 300 MB."
    )
    yield ""
    single, double = (results["state_on_spark"][cores] for cores in ("1", "2"))
    yield from paragraph(
        "On Spark, the `flink_state` data source reads this savepoint in "
        f"{words.seconds(single['min'])} with one core, and in {words.seconds(double['min'])} with "
        f"two cores. The speedup is {words.digits(single['min'] / double['min'])}, and the target "
        f"is {_SPEEDUP}. Each result is from the faster of two runs, and excludes the start of "
        "Spark and the first state."
    )


def _table_of_measured(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a table without the columns and the rows without a figure."""
    columns = [column for column in zip(head, *rows, strict=True) if any(column[1:])]
    head_cells, *row_cells = zip(*columns, strict=True)
    return table(head_cells, [cells for cells in row_cells if any(cells[1:])])


def _millions(shape: StateShape, reader: str) -> str:
    """Return a reader's entries per second of CPU in millions; empty if it was not measured."""
    rates = shape["rates"].get(reader)
    if rates is None:
        return ""
    least, median, most = (rate / 1e6 for rate in (rates["min"], rates["median"], rates["max"]))
    return words.ratio({"min": least, "median": median, "max": most})


def _ratio(times_as_fast: Spread | None) -> str:
    return "" if times_as_fast is None else words.ratio(times_as_fast)


def _verdict(states: States) -> str:
    """Return a sentence about the targets that were not reached."""
    shapes = states["shapes"]
    missed = [
        f"{shape['name']} ({words.digits(millions)} of {target} million)"
        for shape, target in zip(shapes, _MILLIONS, strict=True)
        if (millions := shape["rates"]["kernel"]["median"] / 1e6) < target
    ]
    missed += [
        f"{shape['name']} (a speedup of {words.digits(ratio)} instead of {_TIMES_AS_FAST} over the "
        "State Processor API)"
        for shape in shapes[:2]
        if (ratio := shape["times_as_fast"]["processor"]["median"]) < _TIMES_AS_FAST
    ]
    if (seconds := states["compiled_seconds"]["median"]) > _COMPILE_SECONDS:
        missed.append(f"the first compile ({words.seconds(seconds)} of {_COMPILE_SECONDS} s)")
    return (
        "This run missed these targets: " + "; ".join(missed) + "."
        if missed
        else "This run reached all targets."
    )
