"""Find the missing versions that `make current` reports."""

from __future__ import annotations

import pytest

from tests.support.current import newer


@pytest.mark.parametrize(
    ("have", "available", "missing"),
    [
        ({"4.1.1"}, ["4.0.9", "4.1.0", "4.1.1"], []),
        ({"4.1.1"}, ["4.1.2", "4.1.10", "4.2.0", "4.2.1", "5.0.0"], ["4.1.10", "4.2.1", "5.0.0"]),
        ({"1.20.3", "2.2.0"}, ["1.20.5", "2.0.2", "2.2.1", "2.3.0"], ["1.20.5", "2.2.1", "2.3.0"]),
        ({"4.2.0"}, ["4.2.1-preview1", "4.3.0-rc1", "4.2.1.RC2"], []),
        (
            {"3.4.0-1.20", "5.0.0-2.2"},
            ["3.4.1-1.20", "4.0.1-2.0", "5.0.0-2.1", "5.1.0-2.3"],
            ["3.4.1-1.20", "5.1.0-2.3"],
        ),
    ],
    ids=["nothing", "patches and lines", "of each line that is there", "no previews", "connectors"],
)
def test_newest_missing_patch_release_of_each_minor_version_is_found(
    have: set[str], available: list[str], missing: list[str]
) -> None:
    assert newer(have, available) == missing
