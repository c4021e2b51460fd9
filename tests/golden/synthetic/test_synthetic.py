"""Compare the synthetic metadata files with the manifest."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
MANIFEST: dict[str, list[dict[str, Any]]] = json.loads((HERE / "manifest.json").read_text())


def test_synthetic_manifest_lists_every_file_with_sha256() -> None:
    listed = {entry["path"]: entry["sha256"] for entry in MANIFEST["checkpoints"]}
    listed |= {
        f"{entry['path']}/_metadata": entry["sha256"]
        for entry in (*MANIFEST["sources"], *MANIFEST["unreleased"])
    }
    found = {
        file.relative_to(HERE).as_posix(): sha256(file.read_bytes()).hexdigest()
        for file in HERE.glob("*/_metadata")
    }
    assert found == listed
