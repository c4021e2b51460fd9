"""Read the golden tables, and the reports of their writers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parent
MANIFEST = GOLDEN / "manifest.json"


def read_manifest() -> list[dict[str, Any]]:
    """Return the entry of each table, as written by ``generate.py``.

    An entry has ``table``, ``writer``, ``memory`` (last number by name), ``rows``, and ``files``.
    ``second_query`` (Spark) and ``jobs`` (Flink) have the number of records that later writers
    sent to the table, and the number that the table gained.
    """
    if not MANIFEST.exists():
        return []
    tables: list[dict[str, Any]] = json.loads(MANIFEST.read_text(encoding="ascii"))["tables"]
    return tables
