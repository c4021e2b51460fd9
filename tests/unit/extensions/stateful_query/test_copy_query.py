"""`migrate copy-query spark:OLD --from SIDE`: rewritten entries and refusals."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.command import Result, migrate
from tests.support.spark_files import COMMIT, SEED, batch, spark_directory

_ID = "6f1c1a3e-6f58-4f3c-9a9b-2a0e3a1d5c11"
_STATEFUL = {
    "metadata": f'{{"id":"{_ID}"}}',
    "sources/0/0": SEED,
    "offsets/0": batch('{"t":{"0":2,"1":3}}'),
    "offsets/1": batch('{"t":{"0":5,"1":7}}'),
    "offsets/.1.crc": "stale",
    "commits/0": COMMIT,
    "commits/1": COMMIT,
    "commits/.1.crc": "as it is",
    "state/0/0/1.delta": "rows",
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("side.json").write_text('{"t":{"0":4,"1":9}}')
    return tmp_path


def _keep(
    files: Mapping[str, str], *options: str, side: str = "json:side.json", out: str = "new"
) -> Result:
    spark_directory(Path("old"), files)
    return migrate("copy-query", "spark:old", "--from", side, "--checkpoint-dir", out, *options)


def _tree(directory: str) -> dict[str, bytes]:
    root = Path(directory)
    return {
        file.relative_to(root).as_posix(): file.read_bytes()
        for file in root.rglob("*")
        if file.is_file()
    }


def test_copy_query_rewrites_only_newest_offset_entry(here: Path) -> None:
    result = _keep(_STATEFUL)
    assert (result.code, result.stdout) == (0, '{"t":{"0":4,"1":9}}\n'), result.stderr
    old, new = _tree("old"), _tree("new")
    assert new.pop("offsets/1") == old.pop("offsets/1").replace(
        b'{"t":{"0":5,"1":7}}', b'{"t":{"0":4,"1":9}}'
    )
    del old["offsets/.1.crc"]
    assert new == old
    assert old == {
        name: text.encode()
        for name, text in _STATEFUL.items()
        if name not in ("offsets/1", "offsets/.1.crc")
    }
    assert "t-0 rewinds from 5 to 4, so up to 1 record is double-counted" in result.stderr
    assert (
        "t-1 advances from 7 to 9, so up to 2 records are missing from the state" in result.stderr
    )


def test_copy_query_updates_each_source_with_its_own_topics(here: Path) -> None:
    """A source of a different kind is between the Kafka sources.

    The log of version 2 contains source names.
    """
    files = {**_STATEFUL, "offsets/1": 'v2\n{"batchWatermarkMs":0}\na:{"t":{"0":5}}\nb:7\nc:-'}
    side = "json:other.json"
    Path("other.json").write_text('{"t":{"0":1}}')
    result = _keep(files, side=side)
    assert result.code == 0, result.stderr
    entry = Path("new/offsets/1").read_text()
    assert entry == 'v2\n{"batchWatermarkMs":0}\na:{"t":{"0":1}}\nb:7\nc:-'


def test_copy_query_updates_each_source_with_its_own_partitions(here: Path) -> None:
    """Regression: A change to one source also changed the second source, so records were reread."""
    entry = batch('{"t":{"0":5,"1":6}}', '{"t":{"2":7}}', '{"t":{"1":6,"2":7}}')
    Path("side.json").write_text('{"t":{"0":3,"1":8,"2":7}}')
    result = _keep({**_STATEFUL, "offsets/1": entry})
    assert result.code == 0, result.stderr
    changed = entry.replace('"0":5,"1":6', '"0":3,"1":8').replace('"1":6', '"1":8')
    assert Path("new/offsets/1").read_text() == changed


def test_copy_query_refuses_new_partition_if_its_source_is_unclear(here: Path) -> None:
    """Regression: Each source was assigned the partition."""
    files = {**_STATEFUL, "offsets/1": batch('{"t":{"0":5,"1":6}}', '{"t":{"2":7}}')}
    Path("side.json").write_text('{"t":{"0":3,"1":6,"2":7,"3":0,"4":1}}')
    refused = _keep(files)
    assert (refused.code, refused.stdout) == (4, ""), refused.stderr
    assert "cannot determine which source reads t-3, t-4" in refused.stderr
    assert "[source-of-partitions-unknown]" in refused.stderr
    assert not Path("new").exists()
    assert _keep(files, "--partitions", "t:0,1,2").code == 0


def test_copy_query_adds_new_partition_to_sources_with_equal_partitions(here: Path) -> None:
    files = {**_STATEFUL, "offsets/1": batch(*['{"t":{"0":5}}'] * 2)}
    assert _keep(files).code == 0
    assert Path("new/offsets/1").read_text() == batch(*['{"t":{"0":4,"1":9}}'] * 2)


def test_verify_command_is_not_suggested_for_positions_from_file(here: Path) -> None:
    """``verify`` requires a checkpoint, so the suggested command would fail."""
    assert "migrate verify" not in _keep(_STATEFUL).stderr
    seeded = migrate("to-spark", "json:side.json", "--checkpoint-dir", "seed")
    assert seeded.code == 0
    assert "migrate verify" not in seeded.stderr


def test_copy_query_with_partitions_option_keeps_other_offsets(here: Path) -> None:
    result = _keep(_STATEFUL, "--partitions", "t:0")
    assert (result.code, result.stdout) == (0, '{"t":{"0":4,"1":7}}\n')


_SCHEMAS = "file:/old/place/state/0/_stateSchema/default"
# Spark 4.0.0 writes this file for transformWithState, with the escapes of Jackson.
_OPERATOR = (
    'v2\n{"operatorInfo":{"operatorId":0,"operatorName":"transformWithStateExec"},'
    '"stateStoreInfo":[{"storeName":"default","numColsPrefixKey":0,"numPartitions":1,'
    f'"stateSchemaFilePaths":["{_SCHEMAS}/0_a"]}}],'
    '"operatorPropertiesJson":"{\\"timeMode\\":\\"None\\"}"}'
)
_TRANSFORMS = {
    **_STATEFUL,
    "state/0/_metadata/v2/0": _OPERATOR,
    "state/0/_metadata/v2/.0.crc": "stale",
    "state/0/_stateSchema/default/0_a": "schema",
}


def test_paths_in_state_metadata_point_to_copy(here: Path) -> None:
    """Regression: The copy read schemas from the old location and failed without them."""
    result = _keep(_TRANSFORMS)
    assert result.code == 0, result.stderr
    new = _tree("new")
    there = f"file:{here}/new/state/0/_stateSchema/default"
    assert new["state/0/_metadata/v2/0"].decode() == _OPERATOR.replace(_SCHEMAS, there)
    assert "state/0/_metadata/v2/.0.crc" not in new
    assert new["state/0/_stateSchema/default/0_a"] == b"schema"


def test_escaped_paths_in_state_metadata_point_to_copy(here: Path) -> None:
    """Regression: Such paths still pointed to the old location, without a warning."""
    escaped = _SCHEMAS.replace("/", "\\/").replace("old", "\\u006Fld")
    metadata = _OPERATOR.replace(_SCHEMAS, escaped)
    result = _keep({**_TRANSFORMS, "state/0/_metadata/v2/0": metadata})
    assert result.code == 0, result.stderr
    there = f"file:{here}/new/state/0/_stateSchema/default"
    assert Path("new/state/0/_metadata/v2/0").read_text() == _OPERATOR.replace(_SCHEMAS, there)


@pytest.mark.parametrize(
    ("metadata", "code"),
    [
        (_OPERATOR.replace("_stateSchema/default", "elsewhere"), "state-schema-elsewhere"),
        (_OPERATOR.replace("v2", "v3", 1), "operator-metadata-version-unknown"),
        (_OPERATOR[:-1], "operator-metadata-damaged"),
        (_OPERATOR.replace('"stateStoreInfo"', '"more"'), "operator-metadata-damaged"),
    ],
)
def test_unsupported_state_metadata_is_refused(here: Path, metadata: str, code: str) -> None:
    result = _keep({**_TRANSFORMS, "state/0/_metadata/v2/0": metadata})
    assert (result.code, result.stdout) == (3, "")
    assert "old/state/0/_metadata/v2/0: " in result.stderr
    assert f"[{code}]" in result.stderr
    assert not Path("new").exists()


@pytest.mark.parametrize("name", ["state/0/0/2.delta", "state/1", "commits/0"])
def test_symbolic_link_in_query_is_refused(here: Path, name: str) -> None:
    """Regression: The copy lacked the target of the link."""
    spark_directory(Path("old"), {n: text for n, text in _STATEFUL.items() if n != name})
    (Path("old") / name).symlink_to(here / "elsewhere")
    result = _keep({})
    assert (result.code, result.stdout) == (4, "")
    assert f"old/{name} is a symbolic link" in result.stderr
    assert "[symbolic-link-in-query]" in result.stderr
    assert not Path("new").exists()


def test_copy_query_warns_of_duplicate_query_id(here: Path) -> None:
    """Regression: A table skipped the batches of a second copy, because the IDs were equal."""
    for out in ("new", "again"):
        assert "[query-copied]" in _keep(_STATEFUL, out=out).stderr


@pytest.mark.parametrize("link", [False, True])
def test_copy_of_query_at_its_own_positions_has_no_warning_about_state(
    here: Path, link: bool
) -> None:
    """Regression: A warning stated that rows were not moved, but the copy contained the rows."""
    if link:
        (here / "link").symlink_to(here / "old")
    result = _keep(_STATEFUL, side="spark:link" if link else "spark:old")
    assert result.code == 0, result.stderr
    assert _tree("new")["state/0/0/1.delta"] == _STATEFUL["state/0/0/1.delta"].encode()
    assert "[query-state]" not in result.stderr


def test_copy_query_warns_that_state_of_second_query_is_not_copied(here: Path) -> None:
    """Regression: The warning did not state whose rows the copy lacks.

    The second query provides only the positions.
    """
    spark_directory(Path("other"), {**_STATEFUL, "state/0/0/1.delta": "rows of the other query"})
    result = _keep(_STATEFUL, side="spark:other")
    assert result.code == 0, result.stderr
    assert _tree("new")["state/0/0/1.delta"] == _STATEFUL["state/0/0/1.delta"].encode()
    (warning,) = [line for line in result.stderr.splitlines() if "[query-state]" in line]
    assert f"query {here}/other stores" in warning


@pytest.mark.parametrize("language", ["python", "scala"])
def test_copy_query_cannot_print_code_of_query(here: Path, language: str) -> None:
    """Regression: The printed code had no state, although the copied location contained state."""
    result = _keep(_STATEFUL, "--format", language)
    assert (result.code, result.stdout) == (2, "")
    assert "'json', 'options'" in result.stderr
    assert not Path("new").exists()


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"offsets/2": batch('{"t":{"0":9,"1":9}}')}, "query-batch-not-committed"),
        ({"state/0/0/1.delta": None}, "query-stores-no-state"),
        ({"commits/0": None, "commits/1": None, "offsets/1": None}, "query-without-batch"),
        ({"offsets/0": 'v1\n\n{"t":{"0":5}}'}, "query-is-continuous"),
    ],
)
def test_copy_query_refuses_unsuitable_query(
    here: Path, change: dict[str, str | None], code: str
) -> None:
    files = {name: text for name, text in {**_STATEFUL, **change}.items() if text is not None}
    result = _keep(files)
    assert (result.code, result.stdout) == (4, "")
    assert f"[{code}]" in result.stderr
    assert not Path("new").exists()


def test_unsupported_offset_log_version_is_refused(here: Path) -> None:
    result = _keep({**_STATEFUL, "offsets/1": 'v9\n{}\n{"t":{"0":5}}'})
    assert result.code == 3
    assert "has the unknown version 'v9'; the known versions are " in result.stderr
    assert not Path("new").exists()


@pytest.mark.parametrize(
    ("side", "code"),
    [
        ({"t": {"0": 4}}, "no-position"),
        ({"t": {"0": 4, "1": 9}, "u": {"0": 1}}, "topics-left-out"),
        ({"u": {"0": 1}}, "topics-left-out"),
    ],
)
def test_positions_with_different_topics_or_partitions_are_refused(
    here: Path, side: object, code: str
) -> None:
    Path("side.json").write_text(json.dumps(side))
    result = _keep(_STATEFUL)
    assert (result.code, result.stdout) == (4, "")
    assert f"[{code}]" in result.stderr


def test_copy_query_requires_sink_at_newest_committed_batch(here: Path) -> None:
    """A file sink skips batches by number if its log already contains the number."""
    log = Path("sink/_spark_metadata")
    log.mkdir(parents=True)
    (log / "2").write_text("v1")
    refused = _keep(_STATEFUL, "--sink", "sink")
    assert (refused.code, refused.stdout) == (4, "")
    assert "[sink-files-ahead]" in refused.stderr
    command = (
        *("copy-query", "spark:old", "--from", "json:side.json"),
        *("--checkpoint-dir", "new", "--sink", "sink"),
    )
    (log / "2").rename(log / "0")
    behind = migrate(*command)
    assert (behind.code, behind.stdout) == (4, "")
    assert "batches up to 0, but the query would continue with batch 2" in behind.stderr
    (log / "0").rename(log / "1")
    again = migrate(*command)
    assert again.code == 0
    assert "sink-hides-files" not in again.stderr


def test_copy_of_query_with_file_sink_warns_of_missing_batches(here: Path) -> None:
    """Regression: Without a warning, the query failed at batch 9, when the sink compacts its log.

    Spark could not read the sink either.
    """
    result = _keep(_STATEFUL, "--sink", "sink")
    assert result.code == 0
    assert "batches 0 to 1 are missing" in result.stderr
    assert "[sink-hides-files]" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("spark:old",),
        ("old", "--checkpoint-dir", "new"),
        ("spark:old", "--checkpoint-dir", "s3://bucket/new"),
        ("spark:old", "--checkpoint-dir", "new", "--spark-source", "0=topic:t"),
        ("spark:old", "--checkpoint-dir", "new", "--to-bootstrap-servers", "127.0.0.1:1"),
    ],
)
def test_incompatible_arguments_of_copy_query_are_usage_errors(
    here: Path, arguments: tuple[str, ...]
) -> None:
    spark_directory(Path("old"), _STATEFUL)
    assert migrate("copy-query", "--from", "json:side.json", *arguments).code == 2
    assert not Path("new").exists()
