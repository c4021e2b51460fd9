"""The section of docs/performance.md about keyed state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks import words
from benchmarks.results import Results, Spread, States, StateShape
from benchmarks.words import paragraph, table

# The targets: millions of entries per second of CPU, in the order of the shapes; this rate divided
# by that of the State Processor API; the CPU seconds of the first start, which compiles the kernel;
# the memory for the large savepoint; and the speedup of Spark with two cores.
_MILLIONS = (8, 8, 4, 2, 4, 8, 1)
_TIMES_AS_FAST = 50
_COMPILE_SECONDS = 3
_MEMORY_BYTES = 300_000_000
_SPEEDUP = 1.8


def keyed_state_section(results: Results) -> Iterator[str]:
    """Yield the lines of the section."""
    states = results["states"]
    yield from ("## Keyed state", "")
    yield from paragraph(
        "`read_state` reads a keyed state into Arrow with the kernel of `[fast]`; Flink's "
        "State Processor API reads the same savepoint and only counts. Each is a process on one "
        "core, whose first time is left out, and the quickest of the others counts. All find the "
        f"same entries and sums. Measured {words.measured(results, 'states')}; other processes "
        f"kept {words.digits(states['others_cores'])} cores busy. The tests' encoder writes the "
        "savepoints; those of SQL and timers repeat entries that Flink wrote."
    )
    yield ""
    yield "Millions of entries in a second of CPU: median (least to most) of the rounds."
    yield ""
    yield from _table_of_measured(
        ("", "entries", "files", "kernel", "aim", "without `[fast]`", "State Processor API"),
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
    yield "How many times as many the kernel reads:"
    yield ""
    yield from _table_of_measured(
        ("", "as without `[fast]`", "as the State Processor API"),
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
        f"The kernel loads in {words.seconds(kernel['median'])} of CPU; a machine's first start "
        f"compiles it, in {words.seconds(states['compiled_seconds']['median'])}. The State "
        f"Processor API takes {words.seconds(processor['median'])} for its start and the first "
        "time."
    )
    yield ""
    large = states["large"]
    reached = "below" if large["peak_bytes"] <= _MEMORY_BYTES else "above"
    yield from paragraph(
        f"A savepoint of {words.size(large['file_bytes'])}, {large['entries']:,} entries, is read "
        f"in {words.seconds(large['seconds'])} ({words.seconds(large['cpu_seconds'])} of CPU) and "
        f"{words.size(large['peak_bytes'])} of memory, {reached} the aim of 300 MB."
    )
    yield ""
    single, double = (results["state_on_spark"][cores] for cores in ("1", "2"))
    yield from paragraph(
        "The data source `flink_state` reads it on a Spark of one core in "
        f"{words.seconds(single['min'])}, of two in {words.seconds(double['min'])}: "
        f"{words.digits(single['min'] / double['min'])} times as fast (aim: {_SPEEDUP} times). "
        "The quickest of two runs counts, without Spark's start and the first state."
    )


def _table_of_measured(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a table without the columns and the rows that have no figure."""
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
        f"{shape['name']} ({words.digits(ratio)} of {_TIMES_AS_FAST} times as many as the State "
        "Processor API)"
        for shape in shapes[:2]
        if (ratio := shape["times_as_fast"]["processor"]["median"]) < _TIMES_AS_FAST
    ]
    if (seconds := states["compiled_seconds"]["median"]) > _COMPILE_SECONDS:
        missed.append(f"the first compile ({words.seconds(seconds)} of {_COMPILE_SECONDS} s)")
    return (
        "Aims that this run did not reach: " + "; ".join(missed) + "."
        if missed
        else "All aims were reached."
    )
