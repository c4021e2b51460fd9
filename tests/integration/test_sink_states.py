"""Compare the state of sinks as read by Flink's own classes and by the decoder."""

from __future__ import annotations

import pytest

from decoder.kafka.sink import (
    KafkaWriterState,
    PendingFile,
    PendingTransaction,
    read_committer_state,
    read_writer_state,
)
from tests.support.encoder import (
    COMMITTED_REQUEST,
    FAILED,
    RETRY,
    Committable,
    FileCommittable,
    encode_committer_element,
    encode_writer_element,
)
from tests.support.round_trip import read_sink_states

pytestmark = pytest.mark.integration

_CHECKPOINTS = {
    5: {
        0: [Committable("pay-0-5", 77, 3), Committable("pay-0-6", state=RETRY)],
        1: [Committable("pay-1-5", 78), Committable("pay-1-4", 78, state=FAILED)],
    },
    6: {0: [Committable("pay-0-7", 77, 4), Committable("pay-0-1", 77, state=COMMITTED_REQUEST)]},
}
_ONE_SUBTASK = {5: {0: _CHECKPOINTS[5][0]}}
_PENDING = {"RECEIVED", "RETRY"}


@pytest.mark.parametrize(
    ("flink", "written_by", "writer_versions"),
    [
        ("1.15", ("1.14", "1.15"), (1,)),
        ("1.20", ("1.14", "1.15", "1.20"), (1,)),
        ("2.2", ("1.14", "1.15", "1.20", "2.2"), (1, 2)),
    ],
)
def test_sink_state_matches_values_read_by_flinks_own_classes(
    flink: str, written_by: tuple[str, ...], writer_versions: tuple[int, ...]
) -> None:
    # Up to 1.15, the state contains no subtasks, so Flink assigns all committables to one subtask.
    committers = [
        encode_committer_element(
            release, _ONE_SUBTASK if release in ("1.14", "1.15") else _CHECKPOINTS
        )
        for release in written_by
    ]
    writers = [
        encode_writer_element("pay", version, {"pay-0-8": 8} if version == 2 else {})
        for version in writer_versions
    ]
    told = read_sink_states(
        flink,
        [*(("committer", one) for one in committers), *(("writer", one) for one in writers)],
    )
    for element, requests in zip(committers, told, strict=False):
        assert requests
        assert sorted(read_committer_state(element, "c")) == sorted(
            PendingTransaction(
                request["transactional_id"], request["producer_id"], request["epoch"]
            )
            for request in requests
            if request["state"] in _PENDING
        )
    for element, state in zip(writers, told[len(committers) :], strict=True):
        read = read_writer_state(element, "w")
        assert isinstance(read, KafkaWriterState)
        assert (read.prefix, list(read.open_transactions)) == (state["prefix"], state["under_way"])


_FILES = {
    5: {
        0: [FileCommittable("a", b"file", compacted="/a/b"), FileCommittable("b", None, b"old")],
        1: [FileCommittable("c", b"file", b"old"), FileCommittable("d", b"f", state=FAILED)],
    },
    6: {0: [FileCommittable("e", b"file", state=RETRY), FileCommittable("f", compacted="/f")]},
}
_FILES_OF_ONE = {5: {0: [*_FILES[5][0], *_FILES[6][0]]}}


@pytest.mark.parametrize(
    ("flink", "written_by"),
    [("1.15", ("1.14", "1.15")), ("1.20", ("1.14", "1.15", "1.20")), ("2.2", ("1.14", "2.2"))],
)
def test_pending_files_match_files_found_by_flinks_own_classes(
    flink: str, written_by: tuple[str, ...]
) -> None:
    elements = [
        encode_committer_element(release, _FILES_OF_ONE if release in ("1.14", "1.15") else _FILES)
        for release in written_by
    ]
    told = read_sink_states(flink, [("files", element) for element in elements])
    for element, requests in zip(elements, told, strict=True):
        assert sorted(read_committer_state(element, "c")) == sorted(
            PendingFile(request["bucket_id"])
            for request in requests
            if request["state"] in _PENDING and request["has_pending_file"]
        )
        assert any(request["has_pending_file"] for request in requests)
