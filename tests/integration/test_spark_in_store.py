"""A Spark query whose checkpoint location lies in an object store is read where it lies."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from migrate.spark_query import query_extraction
from tests.golden.spark.jobs import GOLDEN
from tests.support import stores
from tests.support.command import migrate
from tests.support.stores import Store

pytestmark = pytest.mark.integration

QUERY = GOLDEN / "4.2" / "named-sources"


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    if find_spec("s3fs") is None or find_spec("moto") is None:
        pytest.skip("needs the extra s3, and moto[s3] with flask")
    with stores.s3() as running:
        yield running.store


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_a_query_in_s3_is_read_as_the_same_one_here(store: Store, scheme: str) -> None:
    url = store.put(QUERY, f"{scheme}-query").replace("s3:", f"{scheme}:")
    result = migrate("diff", f"spark:{url}", f"spark:{QUERY}", "--exit-code")
    assert result.code == 0, result.stderr
    assert "4 partitions: 4 same" in result.stdout

    there, here = query_extraction(f"spark:{url}"), query_extraction(f"spark:{QUERY}")
    assert there.sources == here.sources
    assert there.checkpoint.pointer == f"spark:{url}"
    assert query_extraction(there.checkpoint.pointer).sources == here.sources
    assert there.checkpoint.written_at is not None


def test_what_is_not_there_is_exit_3(store: Store) -> None:
    result = migrate("diff", f"spark:{store.root}/nothing", f"spark:{QUERY}")
    assert (result.code, result.stdout) == (3, "")
    assert "no such directory" in result.stderr
