"""docs/performance.md tells what docs/performance.json holds, and that is what was to be told."""

from __future__ import annotations

import re

import pytest

from benchmarks import page, thousandfold, words
from benchmarks.results import DOCS, Results, line, load, spread
from benchmarks.targets import memory_bound, verdicts
from migrate.fleet import candidates, discovery


@pytest.fixture(scope="module")
def results() -> Results:
    return load()


def test_the_page_is_made_of_the_figures(results: Results) -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.render(results), (
        "docs/performance.md was changed by hand: `python -m benchmarks page` writes it"
    )


def test_what_it_shows_is_there(results: Results) -> None:
    pictures = re.findall(r"!\[[^]]*\]\(([^)]+)\)", page.render(results))
    assert pictures
    for picture in pictures:
        assert (DOCS / picture).is_file()


def test_the_figures_are_of_what_was_asked_for(results: Results) -> None:
    a, b, c, d = (results["cases"][name] for name in "abcd")
    assert (a["partitions"], d["checkpoints"]) == (100_000, 10_000)
    assert 9e6 < a["file_bytes"] < 12e6
    assert 110e6 < b["file_bytes"] < 135e6
    assert c["file_bytes"] < 20e3
    for case in (a, c):
        assert set(case["readers"]) == {"ours", "bare", "processor"}
    assert {scan["cores"] for scan in results["scans"]} == {1, 2}


def test_a_target_is_judged_by_its_median_and_memory_by_its_most(results: Results) -> None:
    told = {verdict.told: verdict.reached for verdict in verdicts(results)}
    a = results["cases"]["a"]
    assert told["(a) a quarter of the bare reader's time"] == (
        a["ratios"]["bare"]["median"] <= 0.25
    )
    memory = next(reached for told_, reached in told.items() if told_.startswith("(a) peak"))
    assert memory == (a["readers"]["ours"]["peak_bytes"]["max"] < 1.5 * a["file_bytes"] + 60e6)
    assert memory_bound(a["file_bytes"]) == 1.5 * a["file_bytes"] + 60e6


def test_the_arithmetic_is_on_what_the_fleet_scan_does() -> None:
    assert thousandfold.DISCOVERING_AT_ONCE == discovery._THREADS
    assert thousandfold.READING_AT_ONCE == candidates._READ_AHEAD
    assert thousandfold.CHECKPOINTS_OF_A_TASK == candidates._MAX_CANDIDATES
    assert thousandfold.BYTES_OF_A_TASK == candidates._MAX_BYTES


def test_a_line_is_found_again() -> None:
    counts = [1_000, 10_000, 100_000]
    found = line(counts, [0.1 + 2e-6 * count for count in counts])
    assert found["slope"] == pytest.approx(2e-6)
    assert found["intercept"] == pytest.approx(0.1)


def test_the_spread_of_a_few_runs() -> None:
    assert spread([3.0, 1.0, 2.0, 10.0]) == {"min": 1.0, "median": 2.5, "max": 10.0}


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (words.seconds(0.0000021), "2.1 µs"),
        (words.seconds(0.0840), "84 ms"),
        (words.seconds(2.314), "2.31 s"),
        (words.seconds(600), "10 min"),
        (words.seconds(36_000), "10 h"),
        (words.seconds(864_000), "10 days"),
        (words.size(10_728_726), "10.7 MB"),
        (words.size(399.9), "400 B"),
        (words.digits(1234.5), "1,234"),
    ],
)
def test_figures_are_written_with_three_digits(told: str, expected: str) -> None:
    assert told == expected


def test_keyed_state_is_measured_beside_flinks_own_reader(results: Results) -> None:
    states = results["states"]
    assert len(states["shapes"]) == 7
    assert [set(shape["rates"]) - {"kernel", "plain"} for shape in states["shapes"][:3]] == [
        {"processor"}
    ] * 3
    assert states["large"]["file_bytes"] > 2e9
    # Aims that hold on any machine, however busy.
    for shape in states["shapes"][:2]:
        assert shape["times_as_fast"]["processor"]["median"] >= 50


def test_keyed_state_is_moved_by_the_million(results: Results) -> None:
    primed, initial = results["priming"]["primed"], results["priming"]["initial"]
    assert (primed["keys"], primed["records"]) == (1_000_000, 10_000_000)
    assert primed["keys"] / primed["seconds"] > initial["keys"] / initial["seconds"]
