"""Check that packages export every name in ``__all__``, and refuse unknown names."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest

import migrate.spark

ROOT = Path(__file__).parents[2]


def _packages() -> list[str]:
    """Return the names of the packages with an ``__all__``."""
    found = ["migrate"]  # computes its list on access
    for file in sorted((*ROOT.glob("decoder/**/*.py"), *ROOT.glob("migrate/**/*.py"))):
        names = {
            target.id
            for node in ast.parse(file.read_text()).body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        if "__all__" in names:
            found.append(".".join(file.relative_to(ROOT).with_suffix("").parts))
    return [name.removesuffix(".__init__") for name in found]


@pytest.mark.parametrize("name", _packages())
def test_every_exported_name_exists(name: str) -> None:
    package = import_module(name)
    assert package.__all__
    for one in package.__all__:
        assert getattr(package, one) is not None


def test_unknown_name_in_spark_package_raises_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        migrate.spark.Nothing  # noqa: B018


@pytest.mark.parametrize("name", sorted(migrate.spark.__all__))
def test_spark_name_without_pyspark_reports_install_command(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("migrate.spark.find_spec", lambda _: None)
    with pytest.raises(ImportError, match=f"{name} requires PySpark: pip install"):
        getattr(migrate.spark, name)


def test_data_source_error_on_pyspark_older_than_4_suggests_read_checkpoints_function(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("migrate.spark.find_spec", lambda name: name if name == "pyspark" else None)
    with pytest.raises(ImportError, match="or newer, but this is") as refused:
        migrate.spark.FlinkCheckpointDataSource  # noqa: B018
    assert "read_checkpoints(spark, PATH, view=…)" in str(refused.value)
    assert callable(migrate.spark.read_checkpoints)
