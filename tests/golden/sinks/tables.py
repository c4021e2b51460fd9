"""The golden tables, and what their writers said of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parent
MANIFEST = GOLDEN / "manifest.json"


def read_manifest() -> list[dict[str, Any]]:
    """A table each: ``table``, ``writer``, ``memory`` (last number by name), ``rows``, ``files``.

    Of Spark's ``second_query``, of Flink's ``jobs``: how many records were sent to the table by one
    that came later, and how many it gained.
    """
    if not MANIFEST.exists():
        return []
    tables: list[dict[str, Any]] = json.loads(MANIFEST.read_text(encoding="ascii"))["tables"]
    return tables
