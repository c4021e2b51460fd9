"""Edits of saved plans, with or without a new checksum."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Edit = Callable[[dict[str, Any]], None]


def edit_plan(path: Path, edit: Edit) -> None:
    """Edit a plan, and keep its old checksum."""
    plan = json.loads(path.read_text())
    edit(plan)
    path.write_text(json.dumps(plan))


def edit_and_seal_plan(path: Path, edit: Edit) -> None:
    """Edit a plan, and compute the new checksum as the documentation describes."""
    edit_plan(path, edit)
    plan = json.loads(path.read_text())
    plan.pop("sha256", None)
    canonical = json.dumps(plan, sort_keys=True, separators=(",", ":"))
    plan["sha256"] = hashlib.sha256(canonical.encode()).hexdigest()
    path.write_text(json.dumps(plan))
