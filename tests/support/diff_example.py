"""Write the picture of a diff page for the docs: ``python -m tests.support.diff_example``."""

from __future__ import annotations

import tempfile
from datetime import datetime, timezone
from pathlib import Path

from migrate.model.cluster_snapshot import LogRange
from migrate.model.positions import Marker, PositionSet, Start, Unknown
from migrate.planning.diff import Diff, diff
from migrate.report.diff_page import diff_page
from tests.support.chromium import screenshot

IMAGE = Path(__file__).parents[2] / "docs/img/diff.png"
_SIZE = (1280, 900)
_MADE = datetime(2025, 11, 21, 3, 12, 40, tzinfo=timezone.utc)

# topic, partition, left, right, log start offset, log end offset
_ROWS: tuple[tuple[str, int, Start, Start, int, int], ...] = (
    ("orders", 0, 184_201, 184_201, 120_000, 196_040),
    ("orders", 1, 190_554, 191_870, 186_400, 195_730),
    ("orders", 2, Marker.EARLIEST, 1_200, 1_200, 60_000),
    ("orders", 3, 201_877, 201_877, 119_000, 201_877),
    ("orders", 4, 90_112, 81_400, 70_000, 93_010),
    ("orders", 10, 77_000, 77_001, 0, 80_000),
    ("payments", 0, 5_120, 5_120, 0, 5_633),
    ("payments", 1, 4_988, 4_988, 0, 5_210),
    ("payments", 2, Marker.LATEST, 5_001, 0, 5_300),
    ("payments", 3, Unknown.ABSENT, 0, 0, 40),
    ("returns.eu", 0, 312, 312, 100, 330),
    ("returns.eu", 1, 298, Unknown.ABSENT, 340, 352),
)


def example() -> Diff:
    """Return a comparison of a checkpoint with a group, with every kind of row."""
    logs: dict[str, dict[int, LogRange]] = {}
    left: dict[tuple[str, int], Start] = {}
    right: dict[tuple[str, int], Start] = {}
    for topic, partition, on_left, on_right, start, end in _ROWS:
        logs.setdefault(topic, {})[partition] = LogRange(start, end)
        for position, where in ((on_left, left), (on_right, right)):
            if position is not Unknown.ABSENT:
                where[topic, partition] = position
    return diff(
        PositionSet("checkpoints/5f1c20/chk-42", left, "checkpoint 42"),
        PositionSet("group:orders-spark", right),
        logs,
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        page = Path(directory) / "diff.html"
        page.write_text(diff_page(example(), _MADE), encoding="utf-8")
        IMAGE.parent.mkdir(exist_ok=True)
        screenshot(page, IMAGE, _SIZE)


if __name__ == "__main__":
    main()
