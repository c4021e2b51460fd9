"""How numbers are written for people, and rows as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable


def number_text(number: int | None, unknown: str = "") -> str:
    """In digits; empty, or ``unknown``, where there is none."""
    return unknown if number is None else str(number)


def difference_text(difference: int | None) -> str:
    """With its sign; empty where there is none."""
    return f"{difference:+d}" if difference else number_text(difference)


def csv_text(columns: Iterable[str], rows: Iterable[tuple[object, ...]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()
