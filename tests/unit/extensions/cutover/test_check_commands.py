"""Check for missing programs and scripts in a spec's commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from migrate.extensions.cutover.check_commands import check_programs
from migrate.extensions.cutover.spec import Spec
from migrate.model.errors import Refused
from tests.support.checkpoints import splits, write_source
from tests.support.command import migrate


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


_UNPARSABLE: tuple[str, dict[str, str]] = ("command-not-parsed", {})
_COMMENT: tuple[str, dict[str, str]] = ("command-is-comment", {})
_NO_SCRIPT = ("script-missing", {"script": "missing.sh", "program": "sh"})


@pytest.mark.parametrize(
    ("line", "problems"),
    [
        ("sh there.sh", []),
        ("sh missing.sh", [_NO_SCRIPT]),
        (["sh", "missing.sh"], [_NO_SCRIPT]),
        ("sh -e missing.sh", [_NO_SCRIPT]),
        (
            "spark-submit --master local missing.py",
            [("script-missing", {"script": "missing.py", "program": "spark-submit"})],
        ),
        ("sh missing.sh && true", [_NO_SCRIPT]),
        ("exec sh missing.sh", [_NO_SCRIPT]),
        ("sh 'missing.sh'", [_NO_SCRIPT]),
        ('sh "missing.sh" >out.sh 2>&1 &', [_NO_SCRIPT]),
        ("echo 'a; b' && sh missing.sh", []),
        ("exec no-such-program-here", [("program-missing", {"program": "no-such-program-here"})]),
        ("sh missing.sh >out.sh", [_NO_SCRIPT]),
        ("sh \\\n missing.sh", [_NO_SCRIPT]),
        (
            "no-such-program-here missing.sh",
            [("program-missing", {"program": "no-such-program-here"})],
        ),
        # A later command may need a file that the first command creates.
        ("cp there.sh made.sh && sh made.sh", []),
        ("true && no-such-program-here", []),
        ("true && \\\n true", []),
        ("true \\\n --flag", []),
        ("run() { true; }; run", []),
        ("(sh missing.sh)", []),
        ("`echo true`", []),
        # The missing file is not a script of the program.
        ("sh there.sh --out missing.sh", []),
        ("sh there.sh > missing.sh", []),
        ("sh -c 'missing.sh'", []),
        ("sh -c 'true; sh there.sh'", []),
        ("python3 -m missing.py", []),
        ("sh [abc].sh", []),
        # The script is elsewhere, or the line does not show its path.
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
        # Only spark-submit runs the first argument that has the suffix of a script.
        ("python3 there --out missing.sh", []),
        ("spark-submit --name orders --deploy-mode=cluster missing.py", []),
        ("spark-submit s3://bucket/there.py missing.py", []),
        # Regression: The dry run found no obstacle if the template's first line was the command.
        ("# spark-submit --packages a:b:1 missing.py", [_COMMENT]),
        ("# spark-submit \\\n  # missing.py\n", [_COMMENT]),
        ("  \n", [_COMMENT]),
        ("# start the query\nsh missing.sh", [_NO_SCRIPT]),
        ("# start the query \\\nsh missing.sh", [_NO_SCRIPT]),
        ("sh there.sh  # missing.sh", []),
        ("", []),
    ],
)
def test_missing_programs_and_scripts_are_refused(
    line: Any, problems: list[tuple[str, dict[str, str]]], tmp_path: Path
) -> None:
    (tmp_path / "there.sh").touch()
    spec = _spec(line or "true")
    expected = [(key, *problem) for key in ("prime", "start") for problem in problems]
    refusals: list[Any] = []
    try:
        check_programs(spec, tmp_path)
    except Refused as refused:
        refusals = list(refused.reasons)
    found = [
        (
            reason.subject,
            reason.code,
            {name: fact for name, fact in reason.facts.items() if name != "directory"},
        )
        for reason in refusals
    ]
    assert found == expected
    assert all(reason.facts.get("directory", tmp_path) == tmp_path for reason in refusals)


@pytest.mark.parametrize(
    ("line", "first"),
    [
        ("echo start; no-such-program query.py", "echo"),
        ("true && no-such-program", "true"),
        ("cd elsewhere && sh missing.sh", "cd"),
        ("if true; then sh missing.sh; fi", "if"),
        ("HERE=x sh missing.sh", "none"),
        ("(sh missing.sh)", "none"),
        ("exec sh there.sh; sh missing.sh", "sh"),
        ("echo 'a; b'", None),
        ("sh there.sh > out 2>&1", None),
        ("sh there.sh &", None),
        ("sh there.sh", None),
    ],
)
def test_log_reports_that_only_first_command_of_line_was_checked(
    line: str, first: str | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """If a shell line has several commands, only the first is checked. The log says which one."""
    (tmp_path / "there.sh").touch()
    with caplog.at_level("INFO", "migrate"):
        check_programs(_spec(line), tmp_path)
    note = f"only the first command ({first}) was checked; check the commands after it yourself"
    if first == "none":
        note = "the command was not checked, because its first word is not a program name; "
        note += "check it yourself"
    keys = () if first is None else ("prime", "start")
    assert caplog.messages == [f"{key}: {note}" for key in keys]


@pytest.mark.parametrize(
    ("line", "is_noted"),
    [
        ("python3 -m orders", True),
        ("sh $HERE/orders.sh", True),
        ("sh -c true", True),
        ("sh there.sh", False),
        ("true orders.sh", False),
    ],
)
def test_log_states_that_script_was_not_checked(
    line: str, is_noted: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Regression: A dry run found no obstacle, and did not say which script it had not checked."""
    (tmp_path / "there.sh").touch()
    with caplog.at_level("INFO", "migrate"):
        check_programs(_spec(line), tmp_path)
    note = f"only the program ({line.split()[0]}) was checked; check yourself what it runs"
    assert caplog.messages == [f"{key}: {note}" for key in ("prime", "start") if is_noted]


def test_unedited_query_template_in_start_command_is_refused(tmp_path: Path) -> None:
    """Regression: The job was stopped, and the script only showed 20 records."""
    checkpoint = write_source(tmp_path / "savepoint-1", {0: splits("orders", [5, 6])})
    script = tmp_path / "query.py"
    written = migrate("to-spark", checkpoint, "--format", "python", "--query-file", script)
    assert written.code == 0, written.stderr
    template = script.read_text()
    # Edit the template as its comments say. The comments remain.
    (trial,) = [line for line in template.splitlines() if line.startswith("sink = ")]
    with_sink = template.replace(trial, 'sink = rows.writeStream.format("noop")')
    for code, name, part in (
        (
            template,
            "query-template-unedited",
            "is an unedited query template, which shows 20 records and does not start",
        ),
        (
            with_sink,
            "query-location-missing",
            "still contains the placeholder CHECKPOINT-DIR, so the query would not start",
        ),
    ):
        script.write_text(code)
        with pytest.raises(Refused) as refused:
            check_programs(_spec("python3 query.py --fast"), tmp_path)
        assert refused.value.codes == [name]
        assert f"start: the script {script} {part}" in str(refused.value)
    script.write_text(with_sink.replace('"CHECKPOINT-DIR"', f'"{tmp_path}/query"'))
    check_programs(_spec("python3 query.py --fast"), tmp_path)
