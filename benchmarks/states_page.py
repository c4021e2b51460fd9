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
        "`read_state` reads a keyed state into Arrow, with the kernel of the extra `[fast]`; "
        "without it, entry by entry. Flink's State Processor API reads the same savepoint and only "
        "counts. A reader that was not measured has no column. Each is a process on one core that "
        "reads several times. Its first time is left out, and the quickest of the others counts. "
        "All find the same number of entries, and the same sum. "
        f"Measured {results['states_measured']}; other processes kept "
        f"{words.digits(states['others_cores'])} cores busy meanwhile, so the ratios say more than "
        "the figures. Savepoints are written by the tests' encoder; those of SQL and timers repeat "
        "the entries of one that Flink wrote."
    )
    yield ""
    yield "Millions of entries of a CPU's second, warm: median (least to most) of the rounds."
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
    yield "How many times as many the kernel reads, by the rounds:"
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
    yield "With and without `[fast]`, the key group of each key is recomputed."
    yield ""
    first = states["shapes"][0]["starts"]
    yield from paragraph(
        f"To load the kernel takes {words.seconds(first['kernel']['median'])} of a CPU; on a "
        f"machine's first start it is compiled, in {words.seconds(_median(results))}. After that "
        "it is in numba's cache on disk. The State Processor API takes "
        f"{words.seconds(first['processor']['median'])} for its start and the first time."
    )
    yield ""
    large = states["large"]
    reached = "below" if large["peak_bytes"] <= _MOST_MEMORY else "above"
    yield from paragraph(
        f"A savepoint of {words.size(large['file_bytes'])}, {large['entries']:,} entries, is read "
        f"once from start to end in {words.seconds(large['seconds'])} "
        f"({words.seconds(large['cpu_seconds'])} of a CPU). The process needs "
        f"{words.size(large['peak_bytes'])} of memory at most, {reached} the aim of 300 MB: a key "
        "group is held at a time."
    )
    yield ""
    one, two = (states["on_spark"][cores] for cores in ("1", "2"))
    yield from paragraph(
        "The data source `flink_state` reads it on a Spark of one core in "
        f"{words.seconds(one['min'])}, of two in {words.seconds(two['min'])}: "
        f"{words.digits(one['min'] / two['min'])} times as fast. The aim is {_TWO_CORES} times. "
        "Spark's start, and the first state that it reads, are left out. The quickest of two runs "
        "counts."
    )


def _measured(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a table without the columns and the rows that have no figure."""
    columns = [0, *(at for at in range(1, len(head)) if any(row[at] for row in rows))]
    return table(
        [head[at] for at in columns], [[row[at] for at in columns] for row in rows if any(row[1:])]
    )


def _millions(shape: StateShape, reader: str) -> str:
    found = shape["rates"].get(reader)
    if found is None:
        return ""
    return words.ratio(
        {"min": _m(found["min"]), "median": _m(found["median"]), "max": _m(found["max"])}
    )


def _m(value: float) -> float:
    return value / 1e6


def _times(found: Spread | None) -> str:
    return "" if found is None else words.ratio(found)


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
