"""A cut-over's refusals and warnings mention spec keys instead of other commands' options."""

from __future__ import annotations

import pytest

from migrate.extensions.cutover.spec_keys import with_spec_keys


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "gone; add --allow-moved-on to go back",
            "gone; set move.allow-moved-on: true in the spec to go back",
        ),
        ("or add --one-cluster", "or set move.one-cluster: true in the spec"),
        ("omit it with --gone skip", "omit it with move.gone: skip"),
        (
            "choose a start with --unresolved earliest|latest",
            "choose a start with move.unresolved: earliest|latest",
        ),
        ("--source-group GROUP shows it", "move.source-group: GROUP shows it"),
        ("--partitions omits 2", "move.partitions omits 2"),
        ("one at a time with --source", "one at a time with move.source"),
        (
            "move from a newer one, or add --allow-ran-on to accept the duplicates",
            "move from a newer one, or set move.allow-ran-on: true in the spec to accept the "
            "duplicates",
        ),
        (
            "move from a newer one; or add --allow-kept-running to duplicate them",
            "move from a newer one; or set move.allow-kept-running: true in the spec to duplicate "
            "them",
        ),
        # Not options: parts of a path.
        ("/lake/eu--source/chk-7: refused", "/lake/eu--source/chk-7: refused"),
        ("/lake/--sink/orders is not empty", "/lake/--sink/orders is not empty"),
        # Options of cut-over itself, and of Flink.
        ("take it over with --adopt", "take it over with --adopt"),
        ("stop the job with --drain", "stop the job with --drain"),
    ],
)
def test_option_names_in_messages_become_spec_keys(text: str, expected: str) -> None:
    assert with_spec_keys(text) == expected
