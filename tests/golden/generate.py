"""Make the golden checkpoints with real Flink jobs on a real Kafka, and record Flink's reports.

    python -m tests.golden.generate                      # all of them (`make golden`)
    python -m tests.golden.generate --only '1.20/*'      # one Flink version
    python -m tests.golden.generate --only '*/legacy*'   # some scenarios

Checkpoints contain absolute paths. The jobs therefore write under the neutral `/flink`, and the
files of each checkpoint are copied to this package. The oracle (`StateDump`, on Flink's own
classes) checks the state of every scenario before it replaces the previous checkpoint.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from fnmatch import fnmatchcase
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from tests.golden.checks import GoldenError
from tests.golden.scenarios import SCENARIOS, Scenario
from tests.support.flink import RELEASES, STANDALONE_JOBS, run_golden_jobs, run_standalone_job
from tests.support.jdk import JavaError
from tests.support.kafka import Broker

GOLDEN = Path(__file__).parent
MANIFEST = GOLDEN / "manifest.json"

NEUTRAL_ROOT = Path("/flink")
CHECKPOINTS = NEUTRAL_ROOT / "checkpoints"
INPUT = NEUTRAL_ROOT / "input"

# Log start and end offset, by topic and partition.
Watermarks = dict[str, dict[str, list[int]]]

# The longest possible name of a topic.
LONG_NAME = "long-" + "n" * 244
# The time of the first record of the topic "timed", in ms. The n-th record is n seconds later.
FIRST_TIME = 1_000_000_000_000


def lay_out_topics(broker: Broker) -> None:
    """Write the same records for every job; nothing is produced while the jobs run."""
    counts = {
        "orders": {0: 12, 1: 80, 2: 0},
        "payments": {0: 40, 1: 80},
        "wide": {partition: partition for partition in range(40)},
        "idle": {0: 5, 1: 0},
        "x": {0: 5},
        LONG_NAME: {0: 5},
    }
    for topic, partitions in counts.items():
        broker.create_topic(topic, len(partitions))
        for partition, count in partitions.items():
            broker.produce(topic, partition, (f"{topic}-{partition}-{n}" for n in range(count)))
    broker.delete_records("payments", 0, before=10)
    broker.create_topic("timed", 2, config={"retention.ms": "-1"})
    for partition, count in ((0, 40), (1, 10)):
        values = [f"timed-{partition}-{n}" for n in range(count)]
        broker.produce("timed", partition, values, (FIRST_TIME + 1000 * n for n in range(count)))
    broker.create_topic("copies", 1)
    broker.create_topic("keyed", 2)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "batch.num.messages": 4})
    for n in range(60):
        producer.produce("keyed", key=f"key-{n % 7}", value=f"keyed-{n}", partition=n % 7 % 2)
    producer.flush()
    broker.commit("golden-committed", {("orders", 0): 4, ("orders", 1): 40, ("idle", 0): 5})


def lay_out_second_cluster(broker: Broker) -> None:
    """Create topics of the same names; the values of their records contain the cluster."""
    counts = {"orders": {0: 20, 1: 100}, "payments": {0: 30}}
    for topic, partitions in counts.items():
        broker.create_topic(topic, len(partitions))
        for partition, count in partitions.items():
            values = (f"west-{topic}-{partition}-{n}" for n in range(count))
            broker.produce(topic, partition, values)
    broker.delete_records("orders", 1, before=30)


def lay_out_files() -> None:
    for name, lines in (("few", 3), ("many", 500)):
        directory = INPUT / name
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "lines.txt").write_text("".join(f"line {n}\n" for n in range(lines)))


def belonging_files(checkpoint: Path) -> Iterator[Path]:
    """Return the files of a checkpoint, including the shared files of a retained one."""
    siblings = (checkpoint.parent / name for name in ("shared", "taskowned", "dstl"))
    roots = (checkpoint, *(siblings if checkpoint.name.startswith("chk-") else ()))
    found = chain.from_iterable(root.rglob("*") for root in roots)
    return (path for path in found if path.is_file())


def adopt(version: str, scenario: Scenario, told: dict[str, Any]) -> dict[str, Any]:
    """Check a finished scenario, copy its files here, and return its entry in the manifest."""
    scenario.check(told["dump"])
    flink, connector = RELEASES[version]
    source_root = CHECKPOINTS / version / scenario.name
    name = f"{version}/{scenario.name}"
    target = GOLDEN / name
    shutil.rmtree(target, ignore_errors=True)
    files = {}
    for source in sorted(belonging_files(Path(told["checkpoint"]))):
        relative = source.relative_to(source_root)
        (target / relative).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target / relative)
        files[f"{name}/{relative}"] = sha256(source.read_bytes()).hexdigest()
    return {
        "name": name,
        "description": scenario.description,
        "flink": flink,
        "connector": connector,
        "path": f"{name}/{Path(told['checkpoint']).relative_to(source_root)}",
        "written_at": told["checkpoint"],
        **kinds(told["operators"]),
        "files": files,
        "expected": told["dump"],
    }


def kinds(operators: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return the operator ids by kind, for an entry of the manifest.

    Kinds without operators are omitted, except ``kafka_sources``.
    """
    return {"kafka_sources": [], **{kind: ids for kind, ids in operators.items() if ids}}


def generate(version: str, scenarios: list[Scenario]) -> list[str]:
    """Run scenarios of one Flink version on fresh brokers; adopt each as soon as it is done.

    Return the scenarios whose state failed the check.
    """
    missed: list[str] = []
    root = CHECKPOINTS / version
    shutil.rmtree(root, ignore_errors=True)
    with ExitStack() as brokers:
        broker = brokers.enter_context(Broker())
        lay_out_topics(broker)
        second_servers = ""
        if any(scenario.two_clusters for scenario in scenarios):
            second = brokers.enter_context(Broker())
            lay_out_second_cluster(second)
            second_servers = second.bootstrap_servers
        watermarks: Watermarks = {
            topic: {
                str(partition): list(ends) for partition, ends in broker.watermarks(topic).items()
            }
            for topic in ("idle", "orders", "payments", "timed", "wide")
        }
        for extra in sorted({scenario.extra for scenario in scenarios}, key=str):
            by_name = {s.name: s for s in scenarios if s.extra == extra}
            if version in STANDALONE_JOBS:
                jobs = lone_jobs(version, broker, root, by_name)
            else:
                jobs = run_golden_jobs(
                    version=version,
                    bootstrap_servers=broker.bootstrap_servers,
                    second_servers=second_servers,
                    checkpoint_root=root,
                    input_dir=INPUT,
                    scenarios=by_name,
                    extra=extra,
                )
            try:
                for told in jobs:
                    scenario = by_name[told["scenario"]]
                    try:
                        record(watermarks, adopt(version, scenario, told))
                    except GoldenError as error:
                        missed.append(f"{version}/{scenario.name}: not so: {error}")
            except JavaError as error:
                missed.append(f"{version}: {error}")
    shutil.rmtree(root, ignore_errors=True)
    return missed


def lone_jobs(
    version: str, broker: Broker, root: Path, names: Iterable[str]
) -> Iterator[dict[str, Any]]:
    for name in names:
        told = run_standalone_job(version, broker.bootstrap_servers, root / name)
        yield {"scenario": name, **told}


def record(watermarks: Watermarks, entry: dict[str, Any]) -> None:
    """Add an entry to the manifest, or replace the entry with the same name."""
    old = json.loads(MANIFEST.read_text())["checkpoints"] if MANIFEST.exists() else []
    kept = [other for other in old if other["name"] != entry["name"]]
    manifest = {
        "generator": "python -m tests.golden.generate",
        "kafka": "4.1.1",
        "watermarks": watermarks,
        "checkpoints": sorted([*kept, entry], key=lambda checkpoint: str(checkpoint["name"])),
    }
    MANIFEST.write_text(to_json(manifest) + "\n")
    print(entry["name"], flush=True)


def to_json(value: Any, indent: str = "") -> str:
    """Return readable JSON, in which an object or array of plain values takes only one line."""
    nested = value.values() if isinstance(value, dict) else value
    if not isinstance(value, dict | list) or not any(isinstance(v, dict | list) for v in nested):
        return json.dumps(value)
    inner = indent + " "
    if isinstance(value, dict):
        items = [f"{json.dumps(key)}: {to_json(item, inner)}" for key, item in value.items()]
    else:
        items = [to_json(item, inner) for item in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return f"{opening}\n" + ",\n".join(inner + item for item in items) + f"\n{indent}{closing}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", metavar="VERSION/SCENARIO", help="with * and ?")
    only = parser.parse_args().only or ["*"]
    try:
        lay_out_files()
    except OSError as error:
        sys.exit(f"golden checkpoints are written below {NEUTRAL_ROOT}, which fails: {error}")
    missed: list[str] = []
    for version in RELEASES:
        scenarios = [
            scenario
            for scenario in SCENARIOS
            if version in scenario.versions
            and any(fnmatchcase(f"{version}/{scenario.name}", pattern) for pattern in only)
        ]
        if scenarios:
            missed += generate(version, scenarios)
    shutil.rmtree(INPUT)
    if missed:
        sys.exit("\n".join(missed))


if __name__ == "__main__":
    main()
