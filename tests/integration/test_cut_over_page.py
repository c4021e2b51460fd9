"""Open the page of a cut-over in a real browser, with hostile text in the record."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate.extensions.cutover.page import cut_over_page
from migrate.extensions.cutover.report import (
    KIND,
    CutOverRecord,
    FlinkReport,
    PartitionReport,
    PlanReport,
    RunReport,
    StepReport,
    VerificationReport,
)
from migrate.model.positions import Marker
from migrate.planning import Verdict
from migrate.planning.verify import StartOutcome
from tests.support.chromium import NoChromium, chromium, console_messages, requests

pytestmark = pytest.mark.integration

_HOSTILE = "<script>document.title = 'mine'</script><img src=http://127.0.0.1:1/x>\x1b[2J"


def _record(text: str, *, lost: int) -> CutOverRecord:
    """Return a record in which every string from a user or another program is this text."""
    at = "2026-01-02T03:04:05.678+00:00"
    return CutOverRecord(
        kind=KIND,
        version=2,
        id="0" * 16,
        name=text,
        state="done" if not lost else "begun",
        spec_sha256="0" * 64,
        brokers=text,
        target=f"spark:{text}",
        sink=text,
        moved_with={"target.group": text},
        written=text,
        query_id=text,
        flink=FlinkReport(
            savepoints=text,
            host=text,
            version="1.20.3",
            job_id="a" * 32,
            job_name=text,
            savepoint=f"s3://bucket/{text}",
            savepoint_sha256="1" * 64,
            finished=True,
            ended_ms=1,
        ),
        plan=PlanReport(
            sha256="2" * 64,
            made_at=at,
            cluster_id=text,
            policies={"on-expired": "earliest"},
            findings=[text],
            warnings=[text],
            states=[text],
            streams={"0": [text]},
        ),
        primed=0,
        start=None,
        verifications=[
            VerificationReport(
                when="after", verified=not lost, partitions=2, unknown=0, lost=lost, repeated=0
            )
        ],
        partitions=[
            PartitionReport(
                topic="orders",
                partition=partition,
                verdict=Verdict.OK,
                checkpoint=Marker.EARLIEST if partition else 12,
                planned=12,
                log_start=0,
                log_end=40,
                started=12 + lost,
                outcome=StartOutcome.LOST if lost else StartOutcome.OK,
                lost=lost,
                repeated=0,
                reached=40,
            )
            for partition in range(2)
        ],
        steps=[
            StepReport(name="stop", state="done", told=text, ended_at=at, seconds=1.25, run=1),
            StepReport(
                name="verify-again",
                state="failed" if lost else "done",
                told=text,
                ended_at=at,
                seconds=0,
                run=2,
            ),
        ],
        runs=[
            RunReport(
                number=number,
                asked="execute",
                user=text,
                host=text,
                migrate="0.1.0",
                python="3.11.1",
                began_at=at,
                ended_at=at if number == 2 else None,
                end=text if number == 2 else None,
            )
            for number in (1, 2)
        ],
    )


@pytest.mark.parametrize("lost", [0, 7])
def test_cut_over_page_is_complete_escaped_and_self_contained(tmp_path: Path, lost: int) -> None:
    page = tmp_path / "record.html"
    page.write_text(cut_over_page(_record(_HOSTILE, lost=lost)), encoding="ascii")
    try:
        with chromium() as browser:
            browser.get(page.as_uri())
            assert requests(browser) == [page.as_uri()]
            assert console_messages(browser) == []
            assert browser.title == "Cut-over of " + _HOSTILE.replace("\x1b", "\\x1b")
            text = browser.find_element("css selector", "body").text
            totals = browser.find_element("css selector", ".totals").text.split()
            wide, inner = browser.execute_script(
                "return [document.documentElement.scrollWidth, window.innerWidth]"
            )
            bad = [one.text for one in browser.find_elements("css selector", "td.bad, b.bad")]
    except NoChromium as reason:
        pytest.skip(str(reason))
    assert totals[:6] == ["partitions", "2", "lost", str(lost), "repeated", "0"]
    assert totals[6:8] == ["verified", "no" if lost else "yes"]
    assert text.count(_HOSTILE.replace("\x1b", "\\x1b")) >= 14
    for shown in ("earliest", "2026-01-02 03:04:05", "1.2 s", "killed", "0.1.0", "on-expired"):
        assert shown in text
    assert wide <= inner
    # The last run of the record has failed, and its end is the hostile text.
    state, *others = bad
    assert "run 2" in state
    assert ("failed" in others and "lost" in others) if lost else others == []
