"""Tables for programs."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable


def csv_text(columns: Iterable[str], rows: Iterable[tuple[object, ...]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()
