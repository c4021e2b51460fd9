"""Check for missing programs and scripts in a spec's commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from migrate.extensions.cutover.check_commands import check_programs
from migrate.extensions.cutover.spec import Spec
from migrate.model.errors import Refused


def _spec(line: Any) -> Spec:
    """Return a spec that primes and starts with the same command."""
    return Spec.model_validate(
        {
            "version": 1,
            "flink": {"savepoint": "s"},
            "kafka": {"bootstrap-servers": "b"},
            "target": {"checkpoint-dir": "q"},
            "states": ["a/b"],
            "prime": line,
            "start": line,
        }
    )


_UNPARSABLE = "the shell cannot parse the command; check its quotes and parentheses"
_NO_SCRIPT = "the script missing.sh of sh does not exist in {home}"


@pytest.mark.parametrize(
    ("line", "problems"),
    [
        ("sh there.sh", []),
        ("sh missing.sh", [_NO_SCRIPT]),
        (["sh", "missing.sh"], [_NO_SCRIPT]),
        ("sh -e missing.sh", [_NO_SCRIPT]),
        (
            "spark-submit --master local missing.py",
            ["the script missing.py of spark-submit does not exist in {home}"],
        ),
        ("sh missing.sh && true", [_NO_SCRIPT]),
        ("sh missing.sh >out.sh", [_NO_SCRIPT]),
        ("sh \\\n missing.sh", [_NO_SCRIPT]),
        ("no-such-program-here missing.sh", ["the program no-such-program-here does not exist"]),
        # A later command may need what the first one makes.
        ("cp there.sh made.sh && sh made.sh", []),
        ("true && no-such-program-here", []),
        ("true && \\\n true", []),
        ("true \\\n --flag", []),
        ("run() { true; }; run", []),
        ("(sh missing.sh)", []),
        ("`echo true`", []),
        # What is no script of the program's.
        ("sh there.sh --out missing.sh", []),
        ("sh there.sh > missing.sh", []),
        ("sh -c 'missing.sh'", []),
        ("sh -c 'true; sh there.sh'", []),
        ("python3 -m missing.py", []),
        ("sh [abc].sh", []),
        # Elsewhere, or not to be followed by reading the line.
        ("true missing.sh", []),
        ("sh s3://bucket/missing.sh", []),
        ("sh $HERE/missing.sh", []),
        ("sh *.sh", []),
        ("bash -c 'cd elsewhere; ./missing.sh'", []),
        ("sh --deploy-mode cluster missing.sh", []),
        ("cd elsewhere && sh missing.sh", []),
        ("HERE=x sh missing.sh", []),
        ("$RUN missing.sh", []),
        ("if true; then sh missing.sh; fi", []),
        ("sh 'missing.sh", [_UNPARSABLE]),
        ("if true; then sh missing.sh", [_UNPARSABLE]),
        # The first word with a script's suffix is the script of spark-submit, but not of others.
        ("python3 there --out missing.sh", []),
        ("spark-submit --name orders --deploy-mode=cluster missing.py", []),
        ("spark-submit s3://bucket/there.py missing.py", []),
        ("# a comment", []),
        ("", []),
    ],
)
def test_missing_programs_and_scripts_are_refused(
    line: Any, problems: list[str], tmp_path: Path
) -> None:
    (tmp_path / "there.sh").touch()
    spec = _spec(line or "true")
    expected = [
        f"{key}: {problem.format(home=tmp_path)}"
        for key in ("prime", "start")
        for problem in problems
    ]
    refusals: list[str] = []
    try:
        check_programs(spec, tmp_path)
    except Refused as refused:
        refusals = list(refused.reasons)
    assert refusals == expected


@pytest.mark.parametrize(
    ("line", "first"),
    [
        ("echo start; no-such-program query.py", "echo"),
        ("true && no-such-program", "true"),
        ("cd elsewhere && sh missing.sh", "cd"),
        ("if true; then sh missing.sh; fi", "if"),
        ("HERE=x sh missing.sh", "none"),
        ("(sh missing.sh)", "none"),
        ("sh there.sh > out 2>&1", None),
        ("sh there.sh &", None),
        ("sh there.sh", None),
    ],
)
def test_log_lists_first_command_if_later_commands_are_unchecked(
    line: str, first: str | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "there.sh").touch()
    with caplog.at_level("INFO", "migrate"):
        check_programs(_spec(line), tmp_path)
    note = f"the commands after the first ({first}) are not checked"
    if first == "none":
        note = "no program is checked, because the first word is not the name of a program"
    keys = () if first is None else ("prime", "start")
    assert caplog.messages == [f"{key}: {note}" for key in keys]
