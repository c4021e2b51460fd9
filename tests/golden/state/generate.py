"""Make the golden snapshots of keyed state with real Flink jobs, and record Flink's reports.

    python -m tests.golden.state.generate                   # all of them (`make golden`)
    python -m tests.golden.state.generate --only '1.20/*'   # one Flink version

The jobs write under the neutral `/flink`, and the files of each snapshot are copied to this
package. See the package's docstring for the written files.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Sequence
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path
from typing import Any

from tests.golden.generate import belonging_files
from tests.golden.state.jobs import JOBS, KeyedJob
from tests.support.flink import RELEASES
from tests.support.jdk import JavaError
from tests.support.keyed_jobs import run_keyed_jobs

STATE = Path(__file__).parent
MANIFEST = STATE / "manifest.json"
WRITTEN = Path("/flink/state")


def generate(version: str, jobs: Sequence[KeyedJob]) -> list[str]:
    """Run jobs of one Flink version, adopt each as soon as it is done, and return the failures."""
    root = WRITTEN / version
    shutil.rmtree(root, ignore_errors=True)
    by_name = {job.name: job for job in jobs}
    missed: list[str] = []
    try:
        if "evolved" in by_name:
            (told,) = run_keyed_jobs(version, root, ["evolving"], pojo="pojo_1")
        for told in run_keyed_jobs(version, root, by_name):
            if "failed" in told:
                missed.append(f"{version}/{told['job']}: {told['failed']}")
                print(missed[-1], file=sys.stderr, flush=True)
            else:
                adopt(version, by_name[told["job"]], told)
    except JavaError as error:
        missed.append(f"{version}: {error}")
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return missed


def adopt(version: str, job: KeyedJob, told: dict[str, Any]) -> None:
    """Replace a job's earlier snapshots, and their expected contents, with new ones."""
    name = f"{version}/{job.name}"
    shutil.rmtree(STATE / name, ignore_errors=True)
    (STATE / name).mkdir(parents=True)
    expected = STATE / name / "expected.json"
    expected.write_text(expected_json(told["operators"]), encoding="utf-8")
    entries = []
    for form, directory in told["snapshots"].items():
        snapshot = Path(directory)
        top = snapshot.parent
        copied = [expected]
        for source in sorted(belonging_files(snapshot)):
            target = STATE / name / form.lower() / source.relative_to(top)
            target.parent.mkdir(parents=True, exist_ok=True)
            copied.append(Path(shutil.copyfile(source, target)))
        entries.append(
            {
                "name": f"{name}/{form.lower()}",
                "description": job.description,
                "flink": told["flink"],
                "path": f"{name}/{form.lower()}/{snapshot.name}",
                "written_at": str(snapshot),
                "expected": f"{name}/expected.json",
                "files": {
                    str(file.relative_to(STATE)): sha256(file.read_bytes()).hexdigest()
                    for file in copied
                },
            }
        )
    record(name, entries)


def expected_json(operators: list[dict[str, Any]]) -> str:
    """Return a line for each entry, in an order that is the same in every run."""
    parts = []
    for operator in operators:
        states = []
        for state in operator.pop("states"):
            lines = sorted(json.dumps(entry) for entry in state.pop("entries", ()))
            head = json.dumps(state)[1:-1]
            if "unreadable" in state:
                states.append(f"  {{{head}}}")
            else:
                states.append(
                    f'  {{{head}, "entries": [' + ",".join(f"\n   {x}" for x in lines) + "]}"
                )
        parts.append(
            f' {{{json.dumps(operator)[1:-1]}, "states": [\n' + ",\n".join(states) + "\n ]}"
        )
    return "[\n" + ",\n".join(parts) + "\n]\n"


def record(job: str, entries: list[dict[str, Any]]) -> None:
    """Replace a job's earlier entries in the manifest with new ones."""
    old = json.loads(MANIFEST.read_text())["snapshots"] if MANIFEST.exists() else []
    kept = [entry for entry in old if entry["expected"] != f"{job}/expected.json"]
    snapshots = sorted([*kept, *entries], key=lambda entry: str(entry["name"]))
    manifest = {"generator": "python -m tests.golden.state.generate", "snapshots": snapshots}
    MANIFEST.write_text(json.dumps(manifest, indent=1) + "\n")
    print(job, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", metavar="VERSION/JOB", help="with * and ?")
    only = parser.parse_args().only or ["*"]
    missed: list[str] = []
    for version in RELEASES:
        jobs = [
            job
            for job in JOBS
            if version in job.versions
            and any(fnmatchcase(f"{version}/{job.name}", pattern) for pattern in only)
        ]
        if jobs:
            missed += generate(version, jobs)
    if missed:
        sys.exit("\n".join(missed))


if __name__ == "__main__":
    main()
