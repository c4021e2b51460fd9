"""Plot time and memory against partitions and files for docs/performance.md."""

from __future__ import annotations

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from benchmarks import words
from benchmarks.results import DOCS, Growth, Results
from benchmarks.targets import memory_limit

GROWTH = DOCS / "img" / "performance-growth.svg"

_READERS = {"ours": ("migrate inspect", "#0b6e4f"), "bare": ("Flink's bare reader", "#b3541e")}
_X_LABELS = {"partitions": "partitions of one source", "handles": "files of keyed state"}
_MB = 1e6


def plot_growth(results: Results) -> None:
    """Write ``GROWTH`` with a column for each kind, and rows for time and memory."""
    # Without a date and with constant ids, the same figures produce the same bytes.
    mpl.rcParams["svg.hashsalt"] = "performance"
    figure = Figure(figsize=(10, 7), layout="constrained")
    rows = figure.subplots(2, len(_X_LABELS), squeeze=False)
    for column, (kind, label) in enumerate(_X_LABELS.items()):
        growth = results["growth"][kind]
        _plot_times(rows[0][column], growth)
        _plot_memory(rows[1][column], growth)
        for axes in (rows[0][column], rows[1][column]):
            axes.set_xlabel(label)
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.yaxis.set_major_formatter(FuncFormatter(_tick_label))
            axes.xaxis.set_major_formatter(FuncFormatter(_tick_label))
            axes.yaxis.set_minor_formatter(NullFormatter())
            axes.grid(True, which="major", color="#dddddd")
            axes.legend(frameon=False, fontsize=8)
    figure.savefig(GROWTH, metadata={"Date": None}, facecolor="white")


def _plot_times(axes: Axes, growth: Growth) -> None:
    axes.set_ylabel("seconds, start-up included")
    counts = [point["count"] for point in growth["points"]]
    for name, (label, colour) in _READERS.items():
        spreads = [point["readers"][name]["seconds"] for point in growth["points"]]
        medians = [spread["median"] for spread in spreads]
        axes.plot(counts, medians, marker="o", color=colour, label=label)
        axes.fill_between(
            counts,
            [spread["min"] for spread in spreads],
            [spread["max"] for spread in spreads],
            color=colour,
            alpha=0.2,
            linewidth=0,
        )


def _plot_memory(axes: Axes, growth: Growth) -> None:
    axes.set_ylabel("peak memory, MB")
    counts = [point["count"] for point in growth["points"]]
    for name, (label, colour) in _READERS.items():
        peaks = [point["readers"][name]["peak_bytes"]["max"] / _MB for point in growth["points"]]
        axes.plot(counts, peaks, marker="o", color=colour, label=label)
    files = [point["file_bytes"] for point in growth["points"]]
    for label, style, sizes in (
        ("1.5 times the file and 60 MB", "--", [memory_limit(size) for size in files]),
        ("the file itself", ":", files),
    ):
        megabytes = [size / _MB for size in sizes]
        axes.plot(counts, megabytes, linestyle=style, color="#555555", label=label)


def _tick_label(value: float, _: int | None) -> str:
    return words.digits(value)
