"""Compare the schemas in docs/schemas with the models."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from migrate.extensions.cutover import spec
from migrate.planning import plan_file
from migrate.report import schemas
from migrate.targets.group import rollback_file

SCHEMAS = Path(__file__).parents[3] / "docs/schemas"


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("inspect", partial(schemas.json_schema, "inspect")),
        ("state", partial(schemas.json_schema, "state")),
        ("diff", partial(schemas.json_schema, "diff")),
        ("plan", plan_file.json_schema),
        ("cut-over", partial(schemas.json_schema, "cut-over")),
        ("cut-over-spec", spec.json_schema),
        ("rollback", rollback_file.json_schema),
    ],
)
def test_schema_in_docs_matches_model(name: str, made: Callable[[], dict[str, Any]]) -> None:
    assert json.loads((SCHEMAS / f"{name}.schema.json").read_text()) == made()
