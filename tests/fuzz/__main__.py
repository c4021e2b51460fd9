"""``python -m tests.fuzz --target all --runs N --seed S [--summary FILE]``"""

from __future__ import annotations

import argparse
import platform
import sys
from importlib.metadata import version
from pathlib import Path

from tests.fuzz.corpus import corpus_hash, seeds
from tests.fuzz.runner import CRASHES, INPUT_SECONDS, MEMORY_MB, as_markdown, run
from tests.fuzz.targets import TARGETS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--target", choices=["all", *TARGETS], default="all")
    parser.add_argument("--runs", type=int, default=10_000_000, help="executions, in all")
    parser.add_argument("--seed", type=int, default=20261121, help="of libFuzzer's mutations")
    parser.add_argument("--summary", type=Path, help="write the table to this file, as Markdown")
    asked = parser.parse_args()

    corpus = seeds()
    chosen = list(TARGETS.values()) if asked.target == "all" else [TARGETS[asked.target]]
    shares = sum(target.share for target in chosen)
    head = (
        f"`python -m tests.fuzz --target {asked.target} --runs {asked.runs} --seed {asked.seed}`, "
        f"atheris {version('atheris')}, Python {platform.python_version()}; at most "
        f"{INPUT_SECONDS} s an input and {MEMORY_MB} MB a process; "
        f"corpus sha256 `{corpus_hash(corpus)}`.\n"
    )
    print(head, flush=True)
    results = []
    for target in chosen:
        # Round up, so that the total is never lower than the requested number.
        runs = -(-asked.runs * target.share // shares)
        result = run(target, corpus[target.name], runs, asked.seed)
        results.append(result)
        for name in result.findings:
            print(f"{result.log[-4000:]}\nfound: {CRASHES / name}", file=sys.stderr)
        print(
            f"{target.name}: {result.executions:,} executions in {result.seconds:.0f} s, "
            f"{len(result.findings)} findings",
            flush=True,
        )
    table = as_markdown(results)
    print(f"\n{table}")
    if asked.summary is not None:
        asked.summary.write_text(f"{head}\n{table}")
    return 1 if any(result.findings for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
