"""What docs/performance.md tells of keyed state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks import words
from benchmarks.results import Results, Spread, StateShape
from benchmarks.words import paragraph, table

# Millions of entries of a CPU's second, in the order of the shapes; and how many times as many as
# the State Processor API.
_AIMS = (8, 8, 4, 2, 4, 8, 1)
_TIMES = 50
_COMPILED = 3
_MOST_MEMORY = 300_000_000
_TWO_CORES = 1.8


def keyed_state(results: Results) -> Iterator[str]:
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
    yield from _measured(
        ("", "entries", "files", "kernel", "aim", "without `[fast]`", "State Processor API"),
        [
            (
                shape["name"],
                f"{shape['entries']:,}",
                words.size(shape["file_bytes"]),
                _millions(shape, "kernel"),
                str(aim),
                _millions(shape, "plain"),
                _millions(shape, "processor"),
            )
            for shape, aim in zip(states["shapes"], _AIMS, strict=True)
        ],
    )
    yield ""
    yield "How many times as many the kernel reads:"
    yield ""
    yield from _measured(
        ("", "as without `[fast]`", "as the State Processor API"),
        [
            (
                shape["name"],
                _times(shape["times_as_fast"].get("plain")),
                _times(shape["times_as_fast"].get("processor")),
            )
            for shape in states["shapes"]
        ],
    )
    yield ""
    yield from paragraph(_verdict(results))
    yield ""
    first = states["shapes"][0]["starts"]
    yield from paragraph(
        f"The kernel loads in {words.seconds(first['kernel']['median'])} of CPU; a machine's first "
        f"start compiles it, in {words.seconds(_median(results))}. "
        "The State Processor API takes "
        f"{words.seconds(first['processor']['median'])} for its start and the first time."
    )
    yield ""
    large = states["large"]
    reached = "below" if large["peak_bytes"] <= _MOST_MEMORY else "above"
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
        f"{words.digits(single['min'] / double['min'])} times as fast (aim: {_TWO_CORES} times). "
        "The quickest of two runs counts, without Spark's start and the first state."
    )


def _measured(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a table without the columns and the rows that have no figure."""
    columns = [0, *(at for at in range(1, len(head)) if any(row[at] for row in rows))]
    return table(
        [head[at] for at in columns], [[row[at] for at in columns] for row in rows if any(row[1:])]
    )


def _millions(shape: StateShape, reader: str) -> str:
    rates = shape["rates"].get(reader)
    if rates is None:
        return ""
    return words.ratio(
        {"min": _m(rates["min"]), "median": _m(rates["median"]), "max": _m(rates["max"])}
    )


def _m(value: float) -> float:
    return value / 1e6


def _times(times: Spread | None) -> str:
    return "" if times is None else words.ratio(times)


def _median(results: Results) -> float:
    return results["states"]["compiled_seconds"]["median"]


def _verdict(results: Results) -> str:
    shapes = results["states"]["shapes"]
    missed = [
        f"{shape['name']} ({words.digits(_m(shape['rates']['kernel']['median']))} of {aim} million)"
        for shape, aim in zip(shapes, _AIMS, strict=True)
        if _m(shape["rates"]["kernel"]["median"]) < aim
    ]
    missed += [
        f"{shape['name']} ({words.digits(found['median'])} of {_TIMES} times as many as the State "
        "Processor API)"
        for shape in shapes[:2]
        if (found := shape["times_as_fast"]["processor"])["median"] < _TIMES
    ]
    if (compiled := _median(results)) > _COMPILED:
        missed.append(f"the first compile ({words.seconds(compiled)} of {_COMPILED} s)")
    return (
        "Aims that this run did not reach: " + "; ".join(missed) + "."
        if missed
        else "All aims were reached."
    )
