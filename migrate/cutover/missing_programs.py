"""Look for the programs and scripts that the commands of a spec name."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from migrate.cutover.spec import Spec

# Programs that read a script of this machine, and how the names of scripts end. What other
# programs (kubectl, docker, ssh) are given may lie elsewhere.
_READ_SCRIPTS = frozenset({"spark-submit", "python", "python3", "bash", "sh"})
_SCRIPTS = (".py", ".sh", ".jar")
# Words of the shell after which a line can no longer be followed by reading it.
_CONTROL = frozenset({"cd", "pushd", "if", "for", "while", "until", "case", "{", "(", "eval", "."})
_SEPARATORS = frozenset({"&&", "||", ";", "|", "&", "\n"})


def missing_programs(spec: Spec, home: Path) -> Iterator[str]:
    """Yield a refusal for each program or script of ``start`` and ``prime`` that does not exist.

    Args:
        spec: the spec.
        home: the folder that the commands run in.
    """
    for key, line in (("prime", spec.prime), ("start", spec.start)):
        if line is None:
            continue
        for words in _simple_commands(line) if isinstance(line, str) else [line]:
            yield from (f"{key}: {problem}" for problem in _problems(words, home))


def _simple_commands(line: str) -> Iterator[list[str]]:
    """Yield the commands of a line of the shell, as far as it can be followed by reading it."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        tokens = list(lexer)
    except ValueError:  # an open quote: the shell will say so
        return
    words: list[str] = []
    for token in [*tokens, ";"]:
        if token in _SEPARATORS or set(token) <= set(";&|"):
            if words:
                yield words
            words = []
        elif not words and (token in _CONTROL or "=" in token or "$" in token):
            return
        else:
            words.append(token)


def _problems(words: Sequence[str], home: Path) -> Iterator[str]:
    program = words[0] if words else ""
    # The shell knows its own words, too.
    command = ["/bin/sh", "-c", 'command -v "$0" >/dev/null', program]
    known = subprocess.run(command, cwd=home, stdin=subprocess.DEVNULL, check=False)
    if known.returncode:
        yield f"there is no program {program}"
    # With --deploy-mode cluster a path may be one of the cluster's machines.
    if Path(program).name not in _READ_SCRIPTS or "cluster" in words:
        return
    for word in words[1:]:
        for name in word.split(","):
            if (
                name.endswith(_SCRIPTS)
                and not set(name) & set("$*?~:;&| ")
                and not (home / name).exists()
            ):
                yield f"{program} is given {name}, which does not exist in {home}"
