"""Look for the programs and scripts that the commands of a spec name.

Only what is certain is refused: of a line of the shell the first command, as a later one may need
what the first one makes.
"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from migrate.cutover.spec import Spec

# Programs that read a script of this machine, each with its options that take no value.
_READ_SCRIPTS = {
    "spark-submit": frozenset({"--verbose", "-v", "--supervise"}),
    "python": frozenset({"-u", "-E", "-I", "-s", "-S", "-B", "-O"}),
    "python3": frozenset({"-u", "-E", "-I", "-s", "-S", "-B", "-O"}),
    "bash": frozenset({"-e", "-u", "-x", "-eu", "-ex", "-eux"}),
    "sh": frozenset({"-e", "-u", "-x", "-eu", "-ex", "-eux"}),
}
_SCRIPTS = (".py", ".sh", ".jar")
# Words of the shell after which a line can no longer be followed by reading it.
_CONTROL = frozenset({"cd", "pushd", "if", "for", "while", "until", "case", "{", "eval", "."})
_PUNCTUATION = frozenset("();<>|&")


def missing_programs(spec: Spec, home: Path) -> Iterator[str]:
    """Yield a refusal for each program or script of ``start`` and ``prime`` that does not exist.

    Args:
        spec: the spec.
        home: the folder that the commands run in.
    """
    for key, line in (("prime", spec.prime), ("start", spec.start)):
        if line is not None:
            words = _first_command(line) if isinstance(line, str) else line
            yield from (f"{key}: {problem}" for problem in _problems(words, home))


def _first_command(line: str) -> Sequence[str]:
    """Return the words of a line's first command; nothing where it cannot be told by reading."""
    lexer = shlex.shlex(line.replace("\\\n", " "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    try:
        for token in lexer:
            if "(" in token and set(token) <= _PUNCTUATION:  # a function, or a subshell
                return ()
            if set(token) <= _PUNCTUATION:
                break
            words.append(token)
    except ValueError:  # an open quote: the shell will say so
        return ()
    if not words or words[0] in _CONTROL or set(words[0]) & set("=$`"):
        return ()
    return words


def _problems(words: Sequence[str], home: Path) -> Iterator[str]:
    if not words:
        return
    program = words[0]
    # The shell knows its own words, too.
    command = ["/bin/sh", "-c", 'command -v -- "$0" >/dev/null 2>&1', program]
    known = subprocess.run(command, cwd=home, stdin=subprocess.DEVNULL, check=False)
    if known.returncode:
        yield f"there is no program {program}"
    script = _script(words)
    plain = script.endswith(_SCRIPTS) and not set(script) & set("$*?[]~:;&| \n")
    if plain and not (home / script).exists():
        yield f"{program} is given {script}, which does not exist in {home}"


def _script(words: Sequence[str]) -> str:
    """Return the script that a program is given; empty where there is none of this machine."""
    program = Path(words[0]).name
    # With --deploy-mode cluster a path may be one of the cluster's machines.
    if program not in _READ_SCRIPTS or "cluster" in words:
        return ""
    rest = iter(words[1:])
    for word in rest:
        if not word.startswith("-"):
            return word
        if program != "spark-submit" and word not in _READ_SCRIPTS[program]:
            return ""  # -c, -m and the like
        if word not in _READ_SCRIPTS[program] and "=" not in word:
            next(rest, None)  # its value
    return ""
