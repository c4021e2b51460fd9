"""Write rollback files atomically, read them strictly, and determine the progress of a change."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from typing import Any, Literal, cast

import pytest

from migrate.kafka.groups import ConsumerGroups
from migrate.model.cluster_snapshot import Committed, GroupView
from migrate.model.errors import InputError, Refused
from migrate.model.warning import record_warnings
from migrate.storage.json_models import EditedFile, checksum, write_file
from migrate.targets.group import rollback_decision, rollback_file
from migrate.targets.group.commit import write_rollback_file
from migrate.targets.group.rollback_file import ChangeProgress, LoggedChange, RollbackFile
from tests.support.command import migrate
from tests.support.reasons import message_of

Offsets = dict[tuple[str, int], Committed]

A0, A1, B0 = ("a", 0), ("a", 1), ("b", 0)
NOTHING: Offsets = {}


def _view(offsets: Offsets, name: str = "g") -> GroupView:
    return GroupView(name, bool(offsets), "Empty", "classic", (), offsets)


def _at(**offsets: int) -> Offsets:
    """Return offsets. ``a0=5`` is partition 0 of topic a at offset 5."""
    return {(name[0], int(name[1])): Committed(offset) for name, offset in offsets.items()}


def _file(
    before: Offsets, after: Offsets, change: Literal["commit", "rollback"] = "commit"
) -> RollbackFile:
    return rollback_file.rollback_file(
        change, "cluster", "localhost:9092", _view(before), after, {"a": "x1", "b": "x2"}
    )


def test_rollback_target_of_large_group_is_computed_quickly() -> None:
    before = {("t", n): Committed(5) for n in range(2_000)}
    after = {place: Committed(9) for place in before}
    begun = time.process_time()
    assert rollback_decision.rollback_target(_file(before, after), _view(after)) == before
    assert time.process_time() - begun < 2


# -- files ---------------------------------------------------------------------------------------


def test_rollback_file_is_read_back_unchanged(tmp_path: Path) -> None:
    file = _file(
        {A0: Committed(1, "theirs, ünïcode \x00", 7), B0: Committed(2**63 - 1)}, _at(a0=5, b0=6)
    )
    write_file(file, tmp_path / "r.json")
    again = rollback_file.read(tmp_path / "r.json")
    assert again.model_copy(update={"sha256": None}) == file
    assert list(tmp_path.iterdir()) == [tmp_path / "r.json"]


def test_rollback_file_is_readable_json(tmp_path: Path) -> None:
    """The file has one field per line."""
    write_file(_file(_at(a0=1), _at(a0=5)), tmp_path / "r.json")
    lines = (tmp_path / "r.json").read_text(encoding="utf-8").splitlines()
    assert lines[:3] == ["{", '  "kind": "flink-offset-migrate rollback",', '  "version": 2,']
    assert lines[-1] == "}"


def test_existing_file_is_not_overwritten_by_rollback_file(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text("mine")
    with pytest.raises(FileExistsError):
        write_file(_file(NOTHING, _at(a0=5)), path)
    assert path.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [path]


def _written() -> dict[str, Any]:
    written: dict[str, Any] = _file(_at(a0=1), _at(a0=5)).model_dump(mode="json")
    return written


@pytest.mark.parametrize(
    "change",
    [
        {"version": 3},
        {"kind": "flink-offset-migrate plan"},
        {"group": None},
        {"unknown": 1},
        {"before": {"exists": True, "offsets": [{"topic": "a", "partition": 0}]}},
        *(
            {
                "before": {
                    "exists": True,
                    "offsets": [
                        {
                            **{"topic": "a", "partition": 0, "next_offset": 1, "metadata": ""},
                            **{"leader_epoch": None, **wrong},
                        }
                    ],
                }
            }
            for wrong in (
                {"next_offset": -1},
                {"next_offset": "1"},
                {"next_offset": 2**63},
                {"partition": -1},
                {"partition": 2**31},
                {"leader_epoch": -1},
            )
        ),
    ],
    ids=str,
)
def test_invalid_rollback_file_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    path = tmp_path / "r.json"
    path.write_text(json.dumps(_written()))
    rollback_file.read(path)
    path.write_text(json.dumps({**_written(), **change}))
    with pytest.raises(InputError) as refused:
        rollback_file.read(path)
    message = message_of(refused.value)
    assert message.code in (
        "file-invalid",
        "file-of-other-kind",
        "file-of-other-version",
        "file-of-unknown-kind",
    )
    assert message.facts["name"] == "rollback file of version 1 or 2"


def test_duplicate_partition_in_rollback_file_is_refused(tmp_path: Path) -> None:
    written = _written()
    written["before"]["offsets"] *= 2
    path = tmp_path / "r.json"
    path.write_text(json.dumps(written))
    with pytest.raises(InputError, match="twice"):
        rollback_file.read(path)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[]", b"null"])
def test_rollback_file_without_json_object_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "r.json").write_bytes(content)
    with pytest.raises(InputError):
        rollback_file.read(tmp_path / "r.json")


def test_missing_rollback_file_is_reported_with_remedy(tmp_path: Path) -> None:
    for path, code in ((tmp_path / "r.json", "file-missing"), (tmp_path, "path-is-directory")):
        with pytest.raises(InputError) as refused:
            rollback_file.read(path)
        assert refused.value.codes == [code]
        assert "commit-group with execute=True" in message_of(refused.value).way_out


@pytest.mark.parametrize("group", ["orders", "../../etc/passwd", "a b\nc", "ü" * 300, "."])
def test_default_path_of_rollback_file_stays_in_directory(tmp_path: Path, group: str) -> None:
    path = rollback_file.default_path(group, tmp_path)
    assert path.parent == tmp_path
    assert re.fullmatch(r"rollback-[A-Za-z0-9._-]{1,100}-\d{8}T\d{6}\.\d{6}Z\.json", path.name)
    write_file(_file(NOTHING, _at(a0=5)), path)


# -- progress of a change ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "now", "fate"),
    [
        (_at(a0=1, a1=1), _at(a0=5, a1=5), _at(a0=5, a1=5), ChangeProgress.APPLIED),
        (_at(a0=1, a1=1), _at(a0=5, a1=5), _at(a0=1, a1=1), ChangeProgress.UNCHANGED),
        (_at(a0=1, a1=1), _at(a0=5, a1=5), _at(a0=5, a1=1), ChangeProgress.IN_PART),
        (_at(a0=1, a1=1), _at(a0=5, a1=5), _at(a0=5), ChangeProgress.IN_PART),
        (_at(a0=1, a1=1), _at(a0=5, a1=5), _at(a0=5, a1=9), ChangeProgress.MOVED_ON),
        (NOTHING, _at(a0=5, a1=5), _at(a0=5, a1=5), ChangeProgress.APPLIED),
        (NOTHING, _at(a0=5, a1=5), NOTHING, ChangeProgress.UNCHANGED),
        (NOTHING, _at(a0=5, a1=5), _at(a0=5), ChangeProgress.IN_PART),
        # Offsets outside the change may have changed, or were deleted with their topic.
        (_at(b0=1), _at(b0=1, a0=5), _at(b0=9, a0=5), ChangeProgress.APPLIED),
        (_at(b0=1), _at(b0=1, a0=5), _at(a0=5), ChangeProgress.APPLIED),
        (_at(b0=1), _at(b0=1, a0=5), _at(b0=9), ChangeProgress.UNCHANGED),
    ],
)
def test_progress_of_commit_is_determined_from_offsets_of_group(
    before: Offsets, after: Offsets, now: Offsets, fate: ChangeProgress
) -> None:
    assert rollback_file.change_progress(_file(before, after), _view(now)) is fate


def test_group_with_original_offsets_is_reported_as_unchanged_or_rolled_back() -> None:
    """Regression: A second rollback reported that the commit "ended before it changed anything"."""
    assert _meaning(_file(_at(a0=1), _at(a0=5)), _at(a0=1)) == (
        "an earlier commit by migrate wrote this file, but it changed nothing or was rolled back"
    )


def _meaning(file: RollbackFile, now: Offsets) -> str:
    change = rollback_file.newest_of([(Path("back.json"), file)], _view(now))
    assert change is not None
    return change.meaning


def test_description_of_rollback_file_identifies_run_that_wrote_it() -> None:
    """Regression: A file written by a rollback was reported as "applied by an earlier run"."""
    commit, more = _file(_at(a0=1), _at(a0=5)), _file(_at(a0=1, a1=1), _at(a0=5, a1=5))
    back = commit.model_copy(update={"change": "rollback"})
    removal = _file(_at(a0=5), NOTHING).model_copy(update={"change": "rollback"})
    wrote = "by migrate wrote this file"
    for file, now, meaning in (
        (commit, _at(a0=5), f"an earlier commit {wrote} and set the group's current offsets"),
        (back, _at(a0=5), f"an earlier rollback {wrote} and set the group's current offsets"),
        (removal, NOTHING, f"an earlier rollback {wrote} and removed the group's offsets"),
        (commit, _at(a0=9), f"an earlier commit {wrote}; the group has newer commits"),
        (
            more,
            _at(a0=5, a1=1),
            f"an earlier commit {wrote}; the group has only some of the offsets that it set or "
            "removed",
        ),
    ):
        assert _meaning(file, now) == meaning


def test_different_metadata_counts_as_changed_offset() -> None:
    file = _file(_at(a0=5), {A0: Committed(5, "ours")})
    assert file.changed_partitions == {A0}
    assert rollback_file.change_progress(file, _view(_at(a0=5))) is ChangeProgress.UNCHANGED


def _newest_change(folders: list[Path], cluster_id: str, now: GroupView) -> LoggedChange | None:
    return rollback_file.newest_of(rollback_file.history(folders, cluster_id, now.name), now)


def test_newest_rollback_file_of_group_is_found(tmp_path: Path) -> None:
    older, newer = _file(NOTHING, _at(a0=5)), _file(_at(a0=5), _at(a0=6))
    # The creation time decides, not the name.
    write_file(newer, tmp_path / "a.json")
    write_file(older, tmp_path / "z.json")
    (tmp_path / "other.json").write_text('{"topic": 1}')
    for number in range(8):  # some of them are listed before the newest file
        cut = tmp_path / f"cut-{number}.json"
        cut.write_bytes((tmp_path / "a.json").read_bytes()[:150])  # without the group's name
    (tmp_path / "directory.json").mkdir()
    os.mkfifo(tmp_path / "pipe.json")  # opening it would wait for a writer
    run = _newest_change([tmp_path], "cluster", _view(_at(a0=6)))
    assert run is not None
    assert (run.path, run.progress) == (tmp_path / "a.json", ChangeProgress.APPLIED)


def test_newest_rollback_file_is_not_skipped_if_it_was_edited(tmp_path: Path) -> None:
    """Regression: An older file was treated as the newest file."""
    write_file(_file(NOTHING, _at(a0=5)), tmp_path / "older.json")
    write_file(_file(_at(a0=5), _at(a0=6)), tmp_path / "newer.json")
    text = (tmp_path / "newer.json").read_text()
    (tmp_path / "newer.json").write_text(text.replace('"next_offset": 6', '"next_offset": 7'))
    with pytest.raises(EditedFile) as refused:
        _newest_change([tmp_path], "cluster", _view(_at(a0=6)))
    assert refused.value.codes == ["file-edited"]


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('"next_offset": 6', '"next_offset": 7', "was edited (its checksum does not match)"),
        ('"version": 2', '"version": 9', "has version 9"),
        ("\n}\n", "", "because it is not valid JSON"),
    ],
)
def test_unreadable_rollback_file_of_group_is_ignored_with_warning_on_request(
    tmp_path: Path, old: str, new: str, why: str
) -> None:
    """Regression: An edited copy stopped commands that did not name it; half a copy was silent."""
    write_file(_file(_at(a0=5), _at(a0=6)), tmp_path / "original.json")
    text = (tmp_path / "original.json").read_text()
    assert old in text
    (tmp_path / "copy.json").write_text(text.replace(old, new))
    folders = [tmp_path, tmp_path / "." / "sub" / ".."]
    (tmp_path / "sub").mkdir()
    now = _view(_at(a0=6))
    with record_warnings() as warnings:
        found = rollback_file.history(folders, "cluster", now.name, ignore_unreadable=True)
    assert [path.name for path, _ in found] == ["original.json"]
    [warning] = warnings
    assert warning.code == "rollback-file-ignored"
    assert "copy.json" in warning and why in warning
    assert warning.facts["group"] == now.name
    with record_warnings() as warnings:
        assert not rollback_file.history(folders, "cluster", "other", ignore_unreadable=True)
    assert warnings == []
    with pytest.raises(InputError):
        rollback_file.history(folders, "cluster", now.name)


@pytest.mark.parametrize(("key", "value"), [("version", 9), ("new_field", 1)])
def test_newest_rollback_file_is_not_skipped_if_different_release_wrote_it(
    tmp_path: Path, key: str, value: int
) -> None:
    """Regression: An older file was treated as the newest file."""
    write_file(_file(NOTHING, _at(a0=5)), tmp_path / "older.json")
    write_file(_file(_at(a0=5), _at(a0=6)), tmp_path / "newer.json")
    document = json.loads((tmp_path / "newer.json").read_text())
    (tmp_path / "newer.json").write_text(json.dumps({**document, key: value}))
    with pytest.raises(InputError):
        _newest_change([tmp_path], "cluster", _view(_at(a0=6)))
    (tmp_path / "newer.json").write_text(json.dumps({**document, key: value, "group": "other"}))
    run = _newest_change([tmp_path], "cluster", _view(_at(a0=5)))
    assert run is not None and run.path == tmp_path / "older.json"


def test_rollback_file_without_checksum_is_not_applied(tmp_path: Path) -> None:
    """Regression: A rollback applied a file without its checksum and with edited offsets."""
    path = tmp_path / "r.json"
    write_file(_file(_at(a0=5), _at(a0=6)), path)
    assert rollback_file.read_to_apply(path).before.committed == _at(a0=5)
    content = json.loads(path.read_text())
    del content["sha256"]
    content["before"]["offsets"][0]["next_offset"] = 3
    path.write_text(json.dumps(content))
    refused = migrate("rollback", path, "-b", "127.0.0.1:1")
    assert (refused.code, refused.stdout) == (3, "")
    assert "has no checksum, so it may have been edited" in refused.stderr


def test_newest_rollback_file_is_found_in_any_of_several_directories(tmp_path: Path) -> None:
    older, newer = _file(NOTHING, _at(a0=5)), _file(_at(a0=5), _at(a0=6))
    for name, file in (("older", older), ("newer", newer)):
        (tmp_path / name).mkdir()
        write_file(file, tmp_path / name / "r.json")
    folders = [tmp_path / "newer", tmp_path / "older"]
    for order in (folders, folders[::-1], [*folders, *folders]):
        run = _newest_change(order, "cluster", _view(_at(a0=6)))
        assert run is not None
        assert run.path == tmp_path / "newer/r.json"


def test_rollback_files_of_different_groups_and_clusters_are_ignored(tmp_path: Path) -> None:
    write_file(_file(NOTHING, _at(a0=5)), tmp_path / "a.json")
    now = _at(a0=5)
    assert _newest_change([tmp_path], "cluster", _view(now)) is not None
    assert _newest_change([tmp_path], "cluster", _view(now, "other")) is None
    assert _newest_change([tmp_path], "elsewhere", _view(now)) is None
    assert _newest_change([tmp_path / "missing"], "cluster", _view(now)) is None


class _Groups:
    """A cluster that answers the queries for a rollback file."""

    bootstrap_servers = "localhost:9092"

    def cluster_id(self) -> str:
        return "cluster"

    def topic_ids(self, topics: set[str]) -> dict[str, str]:
        return dict.fromkeys(topics, "an id")


def test_rollback_file_created_in_the_meantime_is_not_overwritten(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, groups = tmp_path / "r.json", cast(ConsumerGroups, _Groups())
    with caplog.at_level("INFO", "migrate"):
        write_rollback_file("commit", groups, _view(_at(a0=1)), _at(b0=2), path)
    assert caplog.messages == [f"saving current offsets to {path}"]
    assert rollback_file.read(path).topic_ids == {"a": "an id", "b": "an id"}
    with pytest.raises(Refused) as refused:
        write_rollback_file("commit", groups, _view(_at(a0=1)), _at(a0=5), path)
    assert refused.value.codes == ["already-exists"]


def test_rollback_file_above_size_limit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: The file was written, but the change could not be undone."""
    path = tmp_path / "r.json"
    monkeypatch.setattr("migrate.storage.json_models.MAX_FILE_BYTES", 1000)
    with pytest.raises(Refused) as refused:
        write_file(_file({A0: Committed(1, "\0" * 200)}, _at(a0=2)), path)
    assert refused.value.codes == ["file-too-large"]
    assert message_of(refused.value).facts["limit"] == 1000
    assert not path.exists()


@pytest.mark.parametrize("topic", ["", "a b", "a\0b", "x" * 250])
def test_rollback_file_with_invalid_topic_name_is_input_error(tmp_path: Path, topic: str) -> None:
    """Regression: An empty topic name caused a confluent_kafka traceback (exit code 70)."""
    document = _file(_at(a0=1), _at(a0=2)).model_dump(mode="json")
    document["after"]["offsets"][0]["topic"] = topic
    document["sha256"] = checksum(document)
    path = tmp_path / "r.json"
    path.write_text(json.dumps(document))
    result = migrate("rollback", path)
    assert result.code == 3, result.stderr
    assert "after.offsets.0.topic" in result.stderr
