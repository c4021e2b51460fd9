"""Read the start and the next positions of a Spark query from its checkpoint location.

Each Spark version wrote golden locations. The expected positions are the actual start of this Spark
version after a restart.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from decoder.storage import LocalFiles
from migrate.inputs.spark_log import (
    committed_positions,
    has_begun_batch,
    kafka_seeds,
    logged_batches,
    newest_committed_batch,
    oldest_is_continuous,
    positions_after,
    starting_positions,
)
from migrate.inputs.spark_query import query_positions
from migrate.model.errors import InputError, Refused
from migrate.model.positions import TopicPartition
from migrate.targets.seed import UNFINISHED
from tests.golden.spark.jobs import GOLDEN, MANIFEST, jobs_of
from tests.support.command import migrate
from tests.support.reasons import message_of
from tests.support.spark_files import COMMIT, SEED, batch, spark_directory

ENTRIES: list[dict[str, Any]] = json.loads(MANIFEST.read_text())["checkpoints"]
EACH = pytest.mark.parametrize("entry", ENTRIES, ids=[entry["name"] for entry in ENTRIES])


def entry_of(name: str) -> Path:
    assert any(entry["name"] == name for entry in ENTRIES)
    return GOLDEN / name


def by_partition(said: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    return {
        (topic, int(partition)): offset
        for topic, partitions in said.items()
        for partition, offset in partitions.items()
    }


@pytest.mark.parametrize(
    ("offsets", "continuous"),
    [
        ({}, False),
        ({"4": batch('{"t":{"0":3}}')}, False),
        ({"4": 'v1\n\n{"t":{"0":3}}'}, True),
        # The oldest entry decides. The query may have been restarted with a different trigger.
        ({"9": 'v1\n\n{"t":{"0":3}}', "10": batch('{"t":{"0":3}}')}, True),
        ({"9": batch('{"t":{"0":3}}'), "10": 'v1\n\n{"t":{"0":3}}'}, False),
    ],
)
def test_continuous_trigger_is_recognized_by_missing_metadata_in_log(
    tmp_path: Path, offsets: dict[str, str], continuous: bool
) -> None:
    files = {f"offsets/{name}": text for name, text in offsets.items()}
    where = str(spark_directory(tmp_path, files))
    assert oldest_is_continuous(where, LocalFiles()) is continuous
    assert has_begun_batch(where, LocalFiles()) is bool(offsets)


# -- golden locations of each Spark version ------------------------------------------------------


def test_golden_locations_cover_each_job_of_each_spark_version() -> None:
    sparks = {entry["spark"] for entry in ENTRIES}
    assert {spark[:3] for spark in sparks} == {"3.5", "4.0", "4.1", "4.2", "4.3"}
    assert {entry["name"] for entry in ENTRIES} == {
        f"{spark[:3]}/{job.name}" for spark in sparks for job in jobs_of(spark)
    }


def test_golden_files_match_manifest() -> None:
    listed = {name: digest for entry in ENTRIES for name, digest in entry["files"].items()}
    assert listed == {
        str(path.relative_to(GOLDEN)): sha256(path.read_bytes()).hexdigest()
        for path in GOLDEN.glob("[0-9]*/**/*")
        if path.is_file()
    }


@EACH
def test_committed_positions_equal_start_of_real_query_after_restart(entry: dict[str, Any]) -> None:
    found = committed_positions("spark:x", GOLDEN / entry["name"])
    assert found.starts == by_partition(entry["goes_on_at"])
    # Otherwise, an implementation that reads only the seeds would pass.
    assert found.starts != by_partition(entry["started_at"])


@EACH
def test_starting_positions_equal_first_start_of_real_query(entry: dict[str, Any]) -> None:
    found = starting_positions("spark:x", GOLDEN / entry["name"])
    assert found.starts == by_partition(entry["started_at"])


def test_golden_locations_cover_each_log_version() -> None:
    def versions(log: str) -> set[str]:
        return {
            path.read_text().partition("\n")[0]
            for path in GOLDEN.glob(f"[0-9]*/*/{log}/*")
            if not path.name.startswith(".")
        }

    assert versions("offsets") == {"v1", "v2"}
    assert versions("commits") == {"v1", "v2", "v3"}
    assert list(kafka_seeds(str(entry_of("4.2/named-sources")), LocalFiles())) == [
        "named_sources_orders",
        "named_sources_payments",
    ]


def test_batch_after_skipped_batch_has_lower_offsets() -> None:
    """Spark's repartitioning commits a batch that never ran.

    The next batch starts again from the start of the skipped batch.
    """
    directory = str(GOLDEN / "4.3" / "skipped-batch")
    ends = [
        next(iter(of_batch.values()))["skipped-batch-orders", 0]
        for _, of_batch in logged_batches(directory, LocalFiles())
    ]
    assert ends == [8, 14, 8]


def _unfinished(where: Path) -> Path:
    """A location in which repartitioning crashed between its offset entry and its commit."""
    shutil.copytree(entry_of("4.3/skipped-batch"), where)
    (where / "commits/2").unlink()
    return where


def test_unfinished_repartitioning_after_skipped_batch_is_refused(tmp_path: Path) -> None:
    """If repartitioning runs again, it finishes the work, and Spark resumes at lower offsets."""
    directory = _unfinished(tmp_path / "query")
    facts = {
        "location": str(directory),
        "batch": 2,
        "partition": "skipped-batch-orders-0",
        "offset": 8,
        "committed": 1,
        "committed_offset": 14,
    }
    for read in (
        lambda: committed_positions("spark:x", directory),
        lambda: query_positions(f"spark:{directory}"),
    ):
        with pytest.raises(InputError) as refused:
            read()
        assert refused.value.codes == ["uncommitted-batch-behind"]
        assert message_of(refused.value).facts == facts
    sides = (f"spark:{directory}", f"spark:{GOLDEN / '4.3' / 'skipped-batch'}")
    for arguments in (("to-spark", sides[0]), ("diff", *sides)):
        result = migrate(*arguments)
        assert (result.code, result.stdout) == (3, "")
        assert "[uncommitted-batch-behind]" in result.stderr


def test_query_is_refused_if_a_partition_occurs_only_in_skipped_batch(tmp_path: Path) -> None:
    files = {f"commits/{n}": COMMIT for n in range(2)}
    files |= {f"offsets/{n}": batch('{"t":{"0":5}}') for n in (0, 2)}
    files["offsets/1"] = batch('{"t":{"0":5,"1":7}}')
    with pytest.raises(InputError) as refused:
        committed_positions("spark:x", spark_directory(tmp_path / "skipped", files))
    assert refused.value.codes == ["uncommitted-batch-without-partition"]
    facts = message_of(refused.value).facts
    assert (facts["batch"], facts["partition"], facts["committed_offset"]) == (2, "t-1", 7)
    # A deleted topic is also missing from later batches, but this is allowed.
    files["offsets/2"] = batch('{"t":{"0":6}}')
    found = committed_positions("spark:x", spark_directory(tmp_path / "gone", files))
    assert found.starts == {("t", 0): 5, ("t", 1): 7}


def test_log_of_real_query_with_asynchronous_progress_lacks_batches() -> None:
    for entry in ENTRIES:
        if entry["name"].endswith("/async-progress"):
            logged = {
                int(path.name)
                for path in (GOLDEN / entry["name"] / "offsets").iterdir()
                if path.name.isdecimal()
            }
            assert logged != set(range(len(logged)))


def test_file_with_stale_checksum_is_read_as_spark_reads_it(tmp_path: Path) -> None:
    directory = tmp_path / "query"
    shutil.copytree(entry_of("4.0/stateless"), directory)
    last = max(
        (path for path in (directory / "offsets").iterdir() if path.name.isdecimal()),
        key=lambda path: int(path.name),
    )
    last.write_text(last.read_text().replace('"1":21', '"1":20'))
    assert committed_positions("spark:x", directory).at("stateless-orders", 1) == 20


# -- logs that Spark does not write, or only because of a bug -------------------------------------


def test_inconsistent_offset_and_commit_logs_are_refused(tmp_path: Path) -> None:
    # Spark resumes after batch 1, the second-newest entry, and not after batch 0.
    files = {f"offsets/{n}": batch(f'{{"t":{{"0":{n}}}}}') for n in range(3)}
    directory = spark_directory(tmp_path, {**files, "commits/0": COMMIT})
    with pytest.raises(InputError) as refused:
        committed_positions("spark:x", directory)
    assert refused.value.codes == ["commits-missing"]
    facts = message_of(refused.value).facts
    assert (facts["committed"], facts["planned"]) == (0, 2)


def test_offsets_of_named_source_are_read_from_log(tmp_path: Path) -> None:
    lines = ('orders:{"t":{"0":90}}', "clicks:-", 'files:{"logOffset":3}', "rate:17")
    files = {"offsets/0": batch(*lines, version="v2"), "commits/0": COMMIT}
    directory = spark_directory(tmp_path, {**files, "sources/orders/0": SEED})
    assert committed_positions("spark:x", directory).starts == {("t", 0): 90}
    assert kafka_seeds(str(directory), LocalFiles()) == {"orders": {("t", 0): 3}}


def test_query_resumes_after_newest_committed_batch(tmp_path: Path) -> None:
    directory = spark_directory(
        tmp_path,
        {
            "sources/0/0": SEED,
            "offsets/9": batch('{"t":{"0":90}}'),
            "offsets/10": batch('{"t":{"0":100}}'),
            "offsets/11": batch('{"t":{"0":110}}'),  # not committed, so Spark reruns it
            "commits/9": COMMIT,
            "commits/10": COMMIT,
            "commits/.12.crc": "",
            "commits/.12.tmp": "",
        },
    )
    found = committed_positions("spark:x", directory)
    assert (found.starts, found.note) == ({("t", 0): 100}, "after batch 10")
    assert starting_positions("spark:x", directory).starts == {("t", 0): 3}


def test_query_without_committed_batch_resumes_from_seed(tmp_path: Path) -> None:
    files = {"sources/0/0": SEED, "offsets/0": batch('{"t":{"0":90}}')}
    directory = spark_directory(tmp_path, files)
    (directory / "commits").mkdir()
    assert committed_positions("spark:x", directory).starts == {("t", 0): 3}


@pytest.mark.parametrize("version", ["3.5", "4.0", "4.1", "4.2"])
@pytest.mark.parametrize("commits", ["missing", "empty"])
def test_query_without_commit_log_resumes_after_second_newest_batch(
    tmp_path: Path, version: str, commits: str
) -> None:
    """Regression: ``diff`` and ``verify`` reported "before batch 0".

    The logs are from real queries, which tests/integration/test_spark_versions.py restarts.
    """
    directory = shutil.copytree(entry_of(f"{version}/stateless"), tmp_path / "query")
    newest = newest_committed_batch(str(directory), LocalFiles())
    assert newest is not None and newest > 0
    before = positions_after("spark:x", str(directory), newest - 1, LocalFiles())
    shutil.rmtree(directory / "commits")
    if commits == "empty":
        (directory / "commits").mkdir()
    assert committed_positions("spark:x", directory) == before
    shutil.rmtree(directory / "offsets")
    with pytest.raises(
        InputError, match=r"unless the query uses asynchronous progress tracking, Spark would fail"
    ):
        files = {"offsets/7": batch('{"t":{"0":9}}'), "offsets/5": batch('{"t":{"0":7}}')}
        committed_positions("spark:x", spark_directory(tmp_path / "gap", files))


@pytest.mark.parametrize("older", [(), (3,)])
def test_query_is_refused_if_offset_log_lacks_batch_before_newest_committed_batch(
    tmp_path: Path, older: tuple[int, ...]
) -> None:
    """Regression: The end of batch 5 was reported as the position, but Spark fails without batch 4.

    tests/integration/test_spark_versions.py restarts such real queries.
    """
    files = {f"offsets/{n}": batch(f'{{"t":{{"0":{n}}}}}') for n in (*older, 5)}
    commits = {f"commits/{n}": COMMIT for n in (*older, 4, 5)}
    directory = spark_directory(tmp_path / "query", {**files, **commits})
    with pytest.raises(InputError, match="offsets/4 is missing; Spark would fail"):
        committed_positions("spark:x", directory)


def test_continuous_query_without_commit_log_has_no_committed_batch(tmp_path: Path) -> None:
    """Regression: The second-newest epoch was reported, but Spark starts the query from scratch."""
    files = {f"offsets/{n}": f'v1\n\n{{"t":{{"0":{n}}}}}' for n in range(3)}
    directory = spark_directory(tmp_path, files)
    assert newest_committed_batch(str(directory), LocalFiles()) is None
    with pytest.raises(InputError) as refused:
        committed_positions("spark:x", directory)
    assert refused.value.codes == ["no-query-at-location"]


def test_query_is_refused_if_commit_log_is_ahead_of_offset_log(tmp_path: Path) -> None:
    """Spark 4.0.0 reruns the newest planned batch, and fails to commit this batch."""
    files = {f"offsets/{n}": batch(f'{{"t":{{"0":{n}}}}}') for n in range(3)}
    commits = {f"commits/{n}": COMMIT for n in range(4)}
    directory = spark_directory(tmp_path, {**files, **commits})
    with pytest.raises(InputError) as refused:
        committed_positions("spark:x", directory)
    assert refused.value.codes == ["commits-beyond-offsets"]
    facts = message_of(refused.value).facts
    assert (facts["committed"], facts["planned"]) == (3, 2)


def test_positions_of_several_sources_in_query_are_merged(tmp_path: Path) -> None:
    directory = spark_directory(
        tmp_path,
        {
            "sources/0/0": SEED,
            "sources/1/0": 'v1\n{"path":"a file source\'s"}',
            "sources/2/0": '\0v1\n{"u":{"1":4}}',
            "sources/10/0": '\0v1\n{"t":{"0":3},"v":{"0":1}}',
            "offsets/0": batch('{"t":{"0":90}}', '{"logOffset":3}', "-", "17", '{"u":{"1":8}}'),
            "commits/0": COMMIT,
        },
    )
    assert starting_positions("spark:x", directory).starts == {
        ("t", 0): 3,
        ("u", 1): 4,
        ("v", 0): 1,
    }
    assert committed_positions("spark:x", directory).starts == {("t", 0): 90, ("u", 1): 8}


def test_query_is_refused_if_two_sources_have_different_offsets_for_same_partition(
    tmp_path: Path,
) -> None:
    lines = batch('{"t":{"0":90}}', '{"t":{"0":91}}')
    directory = spark_directory(tmp_path, {"offsets/0": lines, "commits/0": COMMIT})
    with pytest.raises(Refused) as refused:
        committed_positions("spark:x", directory)
    assert refused.value.codes == ["streams-at-different-positions"]
    facts = message_of(refused.value).facts
    assert (facts["partition"], facts["first"], facts["second"]) == ("t-0", 90, 91)


@pytest.mark.parametrize(
    ("files", "code", "problem"),
    [
        ({}, "no-query-at-location", ""),
        ({"sources/0/0": "v1\n{}"}, "no-query-at-location", ""),
        ({"commits/3": COMMIT}, "cannot-read-file", ""),
        (
            {"commits/0": COMMIT, "offsets/0": batch('{"t":{"0":1}}', version="v3")},
            "log-version-unknown",
            "",
        ),
        (
            {"commits/0": COMMIT, "offsets/0": ""},
            "log-entry-empty",
            "",
        ),
        (
            {"commits/0": COMMIT, "offsets/0": "v1"},
            "log-entry-damaged",
            "it ends before its metadata",
        ),
        # Undamaged, but from a query without sources.
        ({"commits/0": COMMIT, "offsets/0": "v1\n{}"}, "no-kafka-source-in-query", ""),
        (
            {"commits/0": COMMIT, "offsets/0": batch('{"t":{"0":1')},
            "log-entry-damaged",
            "it is not valid JSON",
        ),
        (
            {"commits/0": COMMIT, "offsets/0": batch('{"t":{"0":-1}}')},
            "log-entry-damaged",
            "'t' partition 0: -1 is not an offset",
        ),
        (
            {"commits/0": COMMIT, "offsets/0": batch('{"logOffset":3}')},
            "no-kafka-source-in-query",
            "",
        ),
        ({"commits/0": "v4\n{}", "offsets/0": batch('{"t":{"0":1}}')}, "log-version-unknown", ""),
        (
            {"commits/0": "", "offsets/0": batch('{"t":{"0":1}}')},
            "log-entry-empty",
            "",
        ),
        (
            {"commits/0": COMMIT, "offsets/0": batch('{"t":{"0":1}}', version="v2")},
            "log-entry-damaged",
            "",
        ),
        (
            {"commits/0": COMMIT, "offsets/0": batch('0:{"t":{"0":1}}', "-", version="v2")},
            "log-entry-damaged",
            "the line '-' is not <source>:<offset>",
        ),
        (
            {"sources/0/0": SEED, "metadata": UNFINISHED.decode()},
            "log-entry-damaged",
            "it is not valid JSON",
        ),
        ({"sources/0/0": SEED, "metadata": '{"id":"1"}'}, "query-id-unreadable", ""),
        ({"sources/0/0": '\0v2\n{"t":{"0":3}}'}, "log-version-unknown", ""),
        ({"sources/0/0": '\0{"t":{"0":3}}'}, "log-version-unknown", ""),
        ({"sources/0/0": "\0v1\n"}, "log-entry-damaged", "it is not valid JSON"),
        (
            {"sources/0/0": '\0v1\n{"t":{"0":-2}}'},
            "log-entry-damaged",
            "'t' partition 0: -2 is not an offset",
        ),
    ],
)
def test_damaged_or_unsupported_location_is_refused(
    tmp_path: Path, files: Mapping[str, str], code: str, problem: str
) -> None:
    with pytest.raises(InputError) as refused:
        committed_positions("spark:x", spark_directory(tmp_path, files))
    assert refused.value.codes == [code]
    assert message_of(refused.value).facts.get("problem", "").startswith(problem)


def test_control_batch_is_refused(tmp_path: Path) -> None:
    """A control batch repartitions the state.

    The metadata in this test matches a class of Spark 4.2.1, but no Spark version writes such a
    batch yet.
    """
    metadata = (
        '{"batchWatermarkMs":0,"batchTimestampMs":1760000000000,"conf":{},"sourceMetadataInfo":{},'
        '"controlBatchInfo":{"operationType":"repartition","operationInfo":"numPartitions=8"}}'
    )
    offsets = "\n".join(["v2", metadata, '0:{"t":{"0":1}}'])
    directory = spark_directory(tmp_path, {"commits/0": COMMIT, "offsets/0": offsets})
    with pytest.raises(InputError) as refused:
        committed_positions("spark:x", directory)
    assert refused.value.codes == ["control-batch"]


def test_starting_positions_are_unknown_if_query_has_no_seed(tmp_path: Path) -> None:
    """A missing checkpoint location has its own error."""
    files = {"commits/0": COMMIT, "offsets/0": batch('{"t":{"0":1}}')}
    with pytest.raises(InputError) as refused:
        starting_positions("spark:x", spark_directory(tmp_path, files))
    assert refused.value.codes == ["query-start-unknown"]
    with pytest.raises(InputError) as refused:
        committed_positions("spark:x", tmp_path / "nothing")
    assert refused.value.codes == ["no-checkpoint-location"]
