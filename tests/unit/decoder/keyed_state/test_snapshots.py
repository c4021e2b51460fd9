"""Compare the names of keyed state types with the class names in Flink's snapshots."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from tests.golden.synthetic.test_serializers import WRITTEN
from tests.support.keyed_bytes import handle_of_value, only, read


def _class_names(type_: Any) -> Iterator[str]:
    """Yield the class names of a type and of all types in it."""
    if isinstance(type_, tuple):
        for one in type_:
            yield from _class_names(one)
    elif is_dataclass(type_):
        for field in fields(type_):
            part = getattr(type_, field.name)
            if field.name == "class_name":
                yield part
            else:
                yield from _class_names(part)


@pytest.mark.parametrize(
    "one", WRITTEN, ids=[f"{one['flink'][0]} {one['name']}" for one in WRITTEN]
)
def test_class_name_of_value_occurs_in_serializer_snapshot(one: dict[str, Any]) -> None:
    snapshot = bytes.fromhex(one["snapshot"])
    state = only(
        read(handle_of_value(snapshot, bytes.fromhex(one["value"])), flink=one["flink"][0])
    )
    for name in _class_names(state.value):
        assert name.rpartition(".")[2].encode() in snapshot
