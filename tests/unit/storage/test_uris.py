"""Read URIs of object stores, and suggest fixes for unsupported URIs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from migrate.inputs.position_inputs import parse_side
from migrate.storage import uris
from tests.support.command import migrate
from tests.support.golden import golden

_ANY = (
    "pass a local path or a URI with s3://, gs://, abfs://, hdfs://, webhdfs://; or copy the "
    "whole directory to this machine"
)


@pytest.mark.parametrize(
    ("uri", "advice"),
    [
        ("hdfs:/flink/ck", "did you mean hdfs:///flink/ck?"),
        ("webhdfs:/flink/ck", "add the host, as in webhdfs://HOST:9870/flink/ck"),
        ("s3:/bucket/ck", "did you mean s3://bucket/ck?"),
        ("gs:/bucket/ck", "did you mean gs://bucket/ck?"),
        ("abfs:/c@a.dfs.core.windows.net/ck", "did you mean abfs://c@a.dfs.core.windows.net/ck?"),
        ("dbfs:/ck/chk-1", "this machine has no /dbfs; run the command on Databricks, or copy"),
        ("dbfs:/Volumes/a/b/c/chk-1", "this machine has no /Volumes; run the command on"),
        ("oss://b/ck", "copy the whole directory with `ossutil cp -r` to this machine"),
        ("oss:/b/ck", "copy the whole directory with `ossutil cp -r` to this machine"),
        ("cos://b/ck", "copy the whole directory with `coscli cp -r` to this machine"),
        ("cosn://b/ck", "copy the whole directory with `hadoop fs -get` to this machine"),
        ("obs://b/ck", "copy the whole directory with `obsutil cp -r` to this machine"),
        ("viewfs://c/ck", "pass the hdfs:// URI from the mount table of viewfs"),
        ("swift://c/ck", _ANY),
        ("ftp:/c/ck", _ANY),
    ],
)
@pytest.mark.parametrize("command", ["inspect", "to-spark", "spark", "scan"])
def test_error_for_unsupported_uri_suggests_supported_uri_or_copy(
    uri: str, advice: str, command: str, tmp_path: Path
) -> None:
    """Regression: ``hdfs:/x`` was read as a host named x, and ``dbfs:/x`` as ``dbfs://x``."""
    arguments = {
        "spark": ("to-spark", f"spark:{uri}"),
        "scan": ("scan", uri),
    }.get(command, (command, uri))
    result = migrate(*arguments)
    assert result.code == 3
    shown = result.stderr + " ".join(result.stdout.split())
    assert "URIs of this kind are not supported" in shown
    assert f"; {advice}" in shown


def test_error_explains_that_file_uri_of_job_directory_has_no_checkpoint(tmp_path: Path) -> None:
    """Regression: The message was "; file: is missing"."""
    job = tmp_path / "43468374059c2ea6b7cf72518ff650e1"
    (job / "shared").mkdir(parents=True)
    for uri in (f"file:{job}", f"file://{job}"):
        result = migrate("to-spark", uri)
        assert result.code == 3
        assert result.stderr == (
            f"migrate: {job}: not a complete checkpoint; neither this directory nor a chk-<n> "
            "under it contains _metadata; Flink deletes a job's checkpoints when the job finishes, "
            "as after a stop-with-savepoint; pass the savepoint\n"
        )
    result = migrate("inspect", f"file:{tmp_path}/nope/x")
    assert f"; {tmp_path}/nope is missing" in result.stderr


@pytest.fixture
def dbfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that replaces the mount of Databricks."""
    mount = tmp_path / "dbfs"
    mount.mkdir()
    monkeypatch.setattr(uris, "DBFS", mount)
    return mount


def test_dbfs_location_written_by_to_spark_can_be_read_with_same_uri(dbfs: Path) -> None:
    """Regression: to-spark wrote to ``dbfs:/q``, but no command could read ``spark:dbfs:/q``."""
    checkpoint = golden("1.20/retained-files")
    written = migrate("to-spark", checkpoint, "--checkpoint-dir", "dbfs:/queries/q")
    assert written.code == 0, written.stderr
    assert (dbfs / "queries/q/sources/0/0").is_file()
    for name in ("dbfs:/queries/q", "dbfs:///queries/q"):
        assert migrate("diff", checkpoint, f"spark:{name}", "--exit-code").code == 0
        assert migrate("verify", checkpoint, f"spark:{name}").code == 0
        assert migrate("show", f"spark:{name}").code == 0
        assert parse_side(f"spark:{name}").what == str(dbfs / "queries/q")


def test_checkpoint_in_dbfs_is_read(dbfs: Path) -> None:
    shutil.copytree(golden("1.20/retained-files").parent, dbfs / "job")
    result = migrate("to-spark", "dbfs:/job")
    assert (result.code, result.stdout) == (0, '{"payments":{"0":24,"1":13}}\n')
    missing = migrate("inspect", "dbfs:/jobb")
    assert f"did you mean {dbfs}/job?" in missing.stderr


def test_dollar_sign_in_existing_directory_or_in_store_is_no_shell_variable(tmp_path: Path) -> None:
    directory = tmp_path / "a$b"
    directory.mkdir()
    assert uris.why_no_path(f"{directory}/new") == ""
    assert uris.why_no_path(f"file://{directory}") == ""
    assert uris.why_no_path("abfss://$web@account.dfs.core.windows.net/query") == ""
    assert "does not expand $DATE" in uris.why_no_path(f"{tmp_path}/query-$DATE")
