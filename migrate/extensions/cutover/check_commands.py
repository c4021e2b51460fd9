"""Check the commands in the spec before the job is stopped, and run ``rehearse``.

A command in the spec is a shell line or a list of words. The shell must be able to parse the line.
The program and the script of the first command in the line must exist. Later commands in the line
are not checked, because the first command may create their files.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path

from migrate.extensions.cutover import catalog
from migrate.extensions.cutover.context import CutOverContext
from migrate.extensions.cutover.spec import Spec
from migrate.model.errors import Refused
from migrate.model.log import log
from migrate.model.message import Message
from migrate.model.wording import printable
from migrate.targets.query_code import lacks_location, runs_trial

# Programs that run a script.
_RUNNERS = frozenset({"spark-submit", "python", "python3", "sh", "bash"})
_SCRIPT_SUFFIXES = (".py", ".sh", ".jar")
# Characters without a special meaning in a shell.
_PLAIN = r"[^\s'\"\\$`=*?~#!{}\[\]();&|<>]+"
_PROGRAM = re.compile(rf"{_PLAIN}(?=[\s;&|<>]|$)")
_PUNCTUATION = ";|&<>\n"
# The comments at the start of a command.
_COMMENTS = re.compile(r"\A(?:\s*#[^\n]*)+")
# The separators between commands in a shell line. The ``&`` in ``2>&1`` is not a separator.
_SEPARATOR = re.compile(r"[;|&\n]+")
_REDIRECTION = re.compile(r"[;|&\n]*[<>][;|&<>\n]*")
_SCRIPT_NOT_CHECKED = "only the program ({program}) was checked; check yourself what it runs"
_NOT_CHECKED = "the command was not checked, because {reason}; check it yourself"


def check_programs(spec: Spec, working_directory: Path) -> None:
    """Refuse commands that certainly fail or do nothing.

    The shell cannot parse such a command, it is only a comment, one of its files does not exist, or
    ``start`` runs a query template that is not completed.
    """
    refusals: list[Message] = []
    commands = {"rehearse": spec.rehearse, "prime": spec.prime, "start": spec.start}
    for key, command in commands.items():
        if command is None:
            continue
        words: Sequence[str] = command
        if isinstance(command, str):
            if not _succeeds(["/bin/sh", "-n", "-c", command], working_directory):
                refusals.append(catalog.COMMAND_NOT_PARSED().about(key))
                continue
            code = _COMMENTS.sub("", command)
            if not code.strip():
                refusals.append(catalog.COMMAND_IS_COMMENT().about(key))
                continue
            words, unchecked = _first_command(code)
            if unchecked:
                log.info(f"{key}: {unchecked}")
        script = _script(words) if words else None
        if script == "":
            log.info(f"{key}: {_SCRIPT_NOT_CHECKED.format(program=words[0])}")
        problems = [*_problems(words, script, working_directory)]
        if key == "start" and script:
            problems += _template_problems(working_directory / script)
        refusals += (problem.about(key) for problem in problems)
    if refusals:
        raise Refused(refusals)


def _template_problems(script: Path) -> Iterator[Message]:
    """Yield a problem if a script is a query template that the user has not completed."""
    if script.suffix != ".py":
        return
    try:
        code = script.read_text(errors="replace")
    except OSError:  # ``_problems`` reports a missing script
        return
    if runs_trial(code):
        yield catalog.QUERY_TEMPLATE_UNEDITED(script=script)
    elif lacks_location(code):
        yield catalog.QUERY_LOCATION_MISSING(script=script)


def _first_command(line: str) -> tuple[Sequence[str], str]:
    """Return the words of a shell line's first command, and a note about any unchecked commands.

    Quotes and a leading ``exec`` are removed. The words end at the first redirection.
    """
    line = line.replace("\\\n", " ").strip()
    if not _PROGRAM.match(line):
        return (), _NOT_CHECKED.format(reason="its first word is not a program name")
    lexer = shlex.shlex(line, posix=True, punctuation_chars=_PUNCTUATION)
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t", True, ""
    try:
        tokens = list(lexer)
    except ValueError:  # a quotation mark in a substitution such as $(…)
        return (), _NOT_CHECKED.format(reason="migrate cannot split it into words")
    end = next((n for n, token in enumerate(tokens) if _SEPARATOR.fullmatch(token)), len(tokens))
    first, rest = tokens[:end], tokens[end:]
    words = list(takewhile(lambda token: not _REDIRECTION.fullmatch(token), first))
    if words[0] == "exec" and len(words) > 1:
        del words[0]
    is_more = any(not _SEPARATOR.fullmatch(token) for token in rest)
    note = f"only the first command ({words[0]}) was checked; check the commands after it yourself"
    return words, note if is_more else ""


def _problems(
    words: Sequence[str], script: str | None, working_directory: Path
) -> Iterator[Message]:
    if not words:
        return
    program = words[0]
    # Ask the shell, because its builtins have no file.
    lookup = ["/bin/sh", "-c", 'command -v -- "$0"', program]
    if not _succeeds(lookup, working_directory):
        yield catalog.PROGRAM_MISSING(program=program)
    if script and not (working_directory / script).exists():
        yield catalog.SCRIPT_MISSING(script=script, program=program, directory=working_directory)


def _succeeds(command: Sequence[str], working_directory: Path) -> bool:
    done = subprocess.run(
        command, cwd=working_directory, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    return done.returncode == 0


def _script(words: Sequence[str]) -> str | None:
    """Return the local script that a command runs.

    The result is None for a program that runs no script, and an empty string if the script cannot
    be determined.
    """
    program = Path(words[0]).name
    if program not in _RUNNERS:
        return None
    # With ``--deploy-mode cluster``, the script may be on a different machine. The options ``-c``
    # and ``-m`` are not followed by a script.
    if any(word.endswith("cluster") or word in ("-c", "-m") for word in words):
        return ""
    # Most options of spark-submit take a value, but most options of the other programs do not.
    script = next(
        (
            word
            for word in words[1:]
            if word.endswith(_SCRIPT_SUFFIXES)
            or not (program == "spark-submit" or word.startswith("-"))
        ),
        "",
    )
    is_plain_path = script.endswith(_SCRIPT_SUFFIXES) and re.fullmatch(_PLAIN, script)
    return script if is_plain_path and ":" not in script else ""


def rehearse(context: CutOverContext) -> str:
    """Run the ``rehearse`` command from the spec, and log its output.

    Raises:
        Refused: the command could not be started, or it failed.
    """
    command = context.spec.rehearse
    assert command is not None
    words = ["/bin/sh", "-c", command] if isinstance(command, str) else command
    log.info("rehearse: running the command")
    try:
        done = subprocess.run(
            words,
            cwd=context.file.base,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
    except OSError as error:
        raise Refused(catalog.REHEARSE_NOT_STARTED(error=error.strerror or str(error))) from error
    for number, line in enumerate(done.stdout.decode(errors="replace").splitlines(), start=1):
        log.info(f"rehearse {number}: {printable(line)}")
    if done.returncode:
        raise Refused(catalog.REHEARSE_FAILED(exit_code=done.returncode))
    return "the command succeeded"
