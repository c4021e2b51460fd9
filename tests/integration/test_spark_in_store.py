"""Read a Spark query whose checkpoint location is in an object store."""

from __future__ import annotations

import pytest

from migrate.inputs.spark_query import query_positions
from tests.golden.spark.jobs import GOLDEN
from tests.support.command import migrate
from tests.support.stores import S3

pytestmark = pytest.mark.integration

QUERY = GOLDEN / "4.2" / "named-sources"


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_query_in_s3_matches_local_query(s3: S3, scheme: str) -> None:
    url = s3.store.put(QUERY, f"{scheme}-query").replace("s3:", f"{scheme}:")
    result = migrate("diff", f"spark:{url}", f"spark:{QUERY}", "--exit-code")
    assert result.code == 0, result.stderr
    assert "4 partitions: 4 same" in result.stdout

    there, here = query_positions(f"spark:{url}"), query_positions(f"spark:{QUERY}")
    assert there.sources == here.sources
    assert there.origin.pointer == f"spark:{url}"
    assert query_positions(there.origin.pointer).sources == here.sources
    assert there.origin.written_at is not None


def test_missing_query_in_s3_exits_with_3(s3: S3) -> None:
    result = migrate("diff", f"spark:{s3.store.root}/nothing", f"spark:{QUERY}")
    assert (result.code, result.stdout) == (3, "")
    assert "[no-checkpoint-location]" in result.stderr
