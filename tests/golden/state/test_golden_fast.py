"""Read every state of the golden snapshots with the kernel and with the plain reader."""

from __future__ import annotations

from typing import Any

import pytest

from decoder.keyed_state import KeyGroupLayout, read_keyed_states
from migrate.storage.files import Files
from tests.golden.state.generate import STATE
from tests.golden.state.test_golden_keyed_state import READ
from tests.support.compare_readers import compare_readers

pytestmark = pytest.mark.slow

# States that the kernel must support: some of each kind.
_KNOWN = {
    "types": {
        *("boolean", "byte", "short", "int", "long", "float", "double", "string", "bytes"),
        *("longs", "strings", "date", "instant", "sql-timestamp", "enum"),
        *("_timer_state/event_user-timers", "_timer_state/processing_user-timers"),
    },
    "kinds": {"value", "list", "map", "reducing", "aggregating"},
    "sql-groups": {"distinctAcc_0", "distinctAcc_0_null_state", "accState"},
    "windows": {"window-contents", "merging-window-set", "LEFT_BUFFER"},
}


@pytest.mark.parametrize("entry", READ, ids=lambda entry: str(entry["name"]))
def test_compiled_kernel_and_plain_python_reader_return_same_rows(entry: dict[str, Any]) -> None:
    job, form = entry["name"].split("/")[1:]
    known = set()
    for state in read_keyed_states(STATE / entry["path"], Files()).states:
        if not state.readable:
            continue
        ways = compare_readers(state)
        if any(way.supported for way in ways):
            known.add(state.name)
        if all(part.layout is KeyGroupLayout.CANONICAL for part in state.parts):
            assert not any(way.handed_over for way in ways), state.name
    if form == "canonical":
        assert _KNOWN.get(job, set()) <= known
