"""Check the commands of the spec before the job is stopped, and run ``rehearse``.

Programs and scripts must exist. Later commands of a shell line are not checked, because the first
command may create the programs of later commands. A command with an uncertain program is not
checked either.
"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from migrate.cutover.context import CutOverContext
from migrate.cutover.spec import Spec
from migrate.model.errors import Refused
from migrate.model.log import log
from migrate.model.wording import printable

# Programs that run a script, with their options that take no value.
_FLAGS_BY_PROGRAM = {
    "spark-submit": {"--verbose", "-v", "--supervise"},
    "python": {"-u", "-E", "-I", "-s", "-S", "-B", "-O"},
    "sh": {"-e", "-u", "-x", "-eu", "-ex", "-eux"},
}
_FLAGS_BY_PROGRAM["python3"] = _FLAGS_BY_PROGRAM["python"]
_FLAGS_BY_PROGRAM["bash"] = _FLAGS_BY_PROGRAM["sh"]
_SCRIPT_SUFFIXES = (".py", ".sh", ".jar")
_PUNCTUATION = set("();<>|&")


def check_programs(spec: Spec, working_directory: Path) -> None:
    """Refuse commands whose program or script does not exist."""
    refusals: list[str] = []
    commands = {"rehearse": spec.rehearse, "prime": spec.prime, "start": spec.start}
    for key, line in commands.items():
        if line is not None:
            words, more = _first_command(line) if isinstance(line, str) else (line, False)
            if more:
                first = words[0] if words else "none"
                log.info(f"{key}: the commands after the first ({first}) are not checked")
            refusals += (f"{key}: {problem}" for problem in _problems(words, working_directory))
    if refusals:
        raise Refused(refusals)


def _first_command(line: str) -> tuple[Sequence[str], bool]:
    """Return a shell line's first command (empty if not certain), and whether more may follow."""
    lexer = shlex.shlex(line.replace("\\\n", " "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    more = False
    try:
        for token in lexer:
            if "(" in token and set(token) <= _PUNCTUATION:  # a function, or a subshell
                return (), True
            if set(token) <= _PUNCTUATION:
                more = token[0] in ";&|" and lexer.get_token() is not None
                break
            words.append(token)
    except ValueError:  # an open quote; the shell reports it
        return (), more
    if not words or set(words[0]) & set("=$`"):
        return (), True
    return words, more


def _problems(words: Sequence[str], working_directory: Path) -> Iterator[str]:
    if not words:
        return
    program = words[0]
    # Ask the shell, because its builtins have no file.
    command = ["/bin/sh", "-c", 'command -v -- "$0" >/dev/null 2>&1', program]
    lookup = subprocess.run(command, cwd=working_directory, stdin=subprocess.DEVNULL, check=False)
    if lookup.returncode:
        yield f"there is no program {program}"
    script = _script(words)
    is_plain_path = script.endswith(_SCRIPT_SUFFIXES) and not set(script) & set("$*?[]~:;&| \n")
    if is_plain_path and not (working_directory / script).exists():
        yield f"{program} is given {script}, which does not exist in {working_directory}"


def _script(words: Sequence[str]) -> str:
    """Return the local script that a command runs, or an empty string."""
    program = Path(words[0]).name
    # With ``--deploy-mode cluster`` the script may be on another machine.
    if program not in _FLAGS_BY_PROGRAM or "cluster" in words:
        return ""
    rest = iter(words[1:])
    for word in rest:
        if not word.startswith("-"):
            return word
        if program != "spark-submit" and word not in _FLAGS_BY_PROGRAM[program]:
            return ""  # an option such as -c or -m, so no script follows
        if word not in _FLAGS_BY_PROGRAM[program] and "=" not in word:
            next(rest, None)  # skip the value of the option
    return ""


def rehearse(context: CutOverContext) -> str:
    """Run the spec's command ``rehearse``, and log its output.

    Raises:
        Refused: the command could not be started, or has failed.
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
        raise Refused(f"rehearse: {error.strerror or error}") from error
    for number, line in enumerate(done.stdout.decode(errors="replace").splitlines(), start=1):
        log.info(f"rehearse {number}: {printable(line)}")
    if done.returncode:
        raise Refused(f"rehearse: the command has ended with exit code {done.returncode}")
    return "the command that rehearses the query has ended well"
