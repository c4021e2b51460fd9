"""Makes the golden checkpoints: real Flink jobs on a real Kafka, described by Flink itself.

    python -m tests.golden.generate                    # all of them (`make golden`)
    python -m tests.golden.generate --only 1.20        # one Flink version
    python -m tests.golden.generate --only 2.2/stop    # one checkpoint

Checkpoints hold absolute paths, so the jobs write below the neutral `/flink`, and what belongs to
each checkpoint is copied here. Every scenario is checked for what it is there to show, by the
oracle (`StateDump`, on Flink's own classes), before it replaces the one before.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

from tests.support.flink import DYNAMIC_VERSIONS, RELEASES, golden_jobs
from tests.support.kafka import Broker

GOLDEN = Path(__file__).parent
MANIFEST = GOLDEN / "manifest.json"

NEUTRAL_ROOT = Path("/flink")
CHECKPOINTS = NEUTRAL_ROOT / "checkpoints"
INPUT = NEUTRAL_ROOT / "input"

EARLIEST, LATEST, COMMITTED = -2, -1, -3

Dump = dict[str, Any]
Check = Callable[[Dump], None]


class GoldenError(RuntimeError):
    """A checkpoint that does not show what its scenario is for."""


def kafka_operators(dump: Dump) -> list[dict[str, Any]]:
    return [operator for operator in dump["operators"] if operator["reader_splits"] is not None]


def starts(dump: Dump) -> dict[tuple[str, int], int]:
    """(topic, partition) -> starting offset in reader state; for jobs with one reader of each."""
    return {
        (split["topic"], split["partition"]): split["starting_offset"]
        for operator in kafka_operators(dump)
        for split in operator["reader_splits"]
    }


def require(condition: object, what: str) -> None:
    if not condition:
        raise GoldenError(what)


def midway(dump: Dump) -> None:
    found = starts(dump)
    require(found["orders", 0] == 12, "orders-0 is fully read")
    require(12 < found["orders", 1] < 80, "orders-1 is partly read")
    require(found["orders", 2] == EARLIEST, "orders-2 is still at its marker")
    require(10 < found["payments", 0] < 40, "payments-0, with log start 10, is partly read")


def with_type(name: str | None, action: str | None, output_format: str | None) -> Check:
    """The snapshot type, where the metadata version holds one (4 and later)."""

    def check(dump: Dump) -> None:
        midway(dump)
        told = dump["checkpoint_type"]
        if dump["metadata_version"] >= 4:
            require(told["name"] == name, f"type {told['name']}")
            require(told.get("post_checkpoint_action") == action, "post-checkpoint action")
            require(told.get("format") == output_format, "savepoint format")

    return check


def empty_reader(dump: Dump) -> None:
    (source,) = kafka_operators(dump)
    readers = {split["subtask"] for split in source["reader_splits"]}
    require(len(readers) < source["parallelism"] == 3, "one reader has no split")
    require(10 < starts(dump)["payments", 0] < 40, "payments-0 is partly read")


def in_flight(dump: Dump) -> None:
    require(starts(dump)["orders", 1] == 80, "the source has read all of orders-1")
    require(sum(operator["in_flight_bytes"] for operator in dump["operators"]) > 0, "in-flight")


def many_splits(dump: Dump) -> None:
    require(len(starts(dump)) == 40, "40 splits")


def split_finished(dump: Dump) -> None:
    found = starts(dump)
    require(("payments", 0) not in found, "the finished split is gone from reader state")
    require(10 < found["payments", 1] < 80, "the other one is partly read")
    (source,) = kafka_operators(dump)
    listed = {(split["topic"], split["partition"]) for split in source["enumerator"]["splits"]}
    require(("payments", 0) in listed, "the enumerator still lists the finished split")


def subtask_finished(dump: Dump) -> None:
    split_finished(dump)
    (source,) = kafka_operators(dump)
    require(len(source["finished_subtasks"]) == 1, "one subtask is finished")


def source_finished(dump: Dump) -> None:
    require(any(operator["finished"] for operator in dump["operators"]), "a finished operator")
    require(("orders", 1) in starts(dump), "the other source goes on")


def two_sources(dump: Dump) -> None:
    positions = [
        {(split["topic"], split["partition"]): split["starting_offset"] for split in splits}
        for splits in (operator["reader_splits"] for operator in kafka_operators(dump))
    ]
    require(len(positions) == 2 and positions[0] != positions[1], "two sources that disagree")
    keyed(dump)


def keyed(dump: Dump) -> None:
    require(sum(operator["keyed_state_bytes"] for operator in dump["operators"]) > 0, "keyed state")


def two_clusters(dump: Dump) -> None:
    (source,) = [operator for operator in dump["operators"] if "dynamic" in operator]
    found = {
        (split["cluster"], split["topic"], split["partition"]): split["starting_offset"]
        for split in source["dynamic"]["reader_splits"]
    }
    require(found["east", "orders", 0] == 12, "orders-0 of east is fully read")
    require(12 < found["east", "orders", 1] < 80, "orders-1 of east is partly read")
    require(30 < found["west", "orders", 1] < 100, "orders-1 of west is partly read")
    require(found["east", "orders", 1] != found["west", "orders", 1], "two positions of orders-1")
    require(found["east", "orders", 2] == EARLIEST, "orders-2 of east is still at its marker")
    require(("west", "orders", 2) not in found, "west has no orders-2")


def no_kafka(dump: Dump) -> None:
    require(not kafka_operators(dump), "no KafkaSource")
    sources = [op for op in dump["operators"] if op["coordinator_state_bytes"] is not None]
    require(len(sources) >= 3, "three sources of other kinds")
    require(all("SourceReaderState" in op["state_names"] for op in sources), "readers with splits")


def markers(dump: Dump) -> None:
    found = {
        split["starting_offset"]
        for operator in kafka_operators(dump)
        for split in operator["reader_splits"]
        if split["topic"] == "idle"
    }
    require(COMMITTED in found, f"marker -3 among {sorted(found)}")
    # Later connectors (here: 3.4 and 5.0) resolve "latest" in the enumerator (FLINK-28303).
    if dump["metadata_version"] == 3:
        require(LATEST in found, f"marker -1 among {sorted(found)}")


@dataclass(frozen=True, slots=True)
class Scenario:
    """One job of GoldenJobs.java and how it is stopped; `check` says what its state must show."""

    name: str
    description: str
    check: Check
    versions: tuple[str, ...] = tuple(RELEASES)
    jar_set: str | None = None
    two_clusters: bool = False


SCENARIOS = (
    Scenario(
        "retained",
        "retained aligned checkpoint, inline state: two topics in one source, parallelism 2, uids; "
        "fully read, partly read and empty partitions; exactly-once file sink",
        with_type("Checkpoint", None, None),
    ),
    Scenario(
        "retained-files",
        "retained checkpoint, every state in a file; no uid; parallelism 3 over 2 partitions",
        empty_reader,
    ),
    Scenario(
        "savepoint",
        "canonical savepoint of a running job",
        with_type("Savepoint", "NONE", "CANONICAL"),
    ),
    Scenario(
        "native-savepoint",
        "native savepoint of a running job",
        with_type("Savepoint", "NONE", "NATIVE"),
    ),
    Scenario(
        "stop",
        "stop-with-savepoint (suspend)",
        with_type("Suspend Savepoint", "SUSPEND", "CANONICAL"),
    ),
    Scenario(
        "drain",
        "stop-with-savepoint --drain (terminate)",
        with_type("Terminate Savepoint", "TERMINATE", "CANONICAL"),
    ),
    Scenario(
        "unaligned",
        "unaligned retained checkpoint: the source is at the end of every partition, most of the "
        "records are in channel state before a slow operator",
        in_flight,
    ),
    Scenario(
        "compressed",
        "snapshot compression on, state in files, 40 partitions",
        many_splits,
    ),
    Scenario(
        "bounded",
        "bounded source, parallelism 1: payments-0 is finished (18), payments-1 is being read",
        split_finished,
    ),
    Scenario(
        "bounded-subtask-finished",
        "bounded source, parallelism 2: the reader of payments-0 is a finished subtask",
        subtask_finished,
    ),
    Scenario(
        "source-finished",
        "a bounded source that is fully finished beside an unbounded one",
        source_finished,
    ),
    Scenario(
        "two-sources",
        "two sources read one topic from different starts; keyed state counts records",
        two_sources,
    ),
    Scenario(
        "other-kinds",
        "NumberSequenceSource, FileSource (monitoring), HybridSource (files, then Kafka) and, "
        "but for 1.15, DataGeneratorSource: none of them a KafkaSource",
        no_kafka,
    ),
    Scenario(
        "rocksdb-incremental",
        "RocksDB, incremental: keyed state in shared/, under absolute URIs",
        keyed,
        versions=("1.20",),
        jar_set="flink-1.20-rocksdb",
    ),
    Scenario(
        "file-merging",
        "small files merged: states are segments of files in taskowned/ and shared/, "
        "under absolute URIs",
        midway,
        versions=("1.20", "2.2"),
    ),
    Scenario(
        "starting-offsets",
        "sources that start from committed and from the latest offsets: markers where nothing has "
        "been read yet",
        markers,
    ),
    Scenario(
        "dynamic",
        "DynamicKafkaSource: two streams on two clusters, whose topics have the same names; with "
        "connector 5.0, one of the clusters has a starting offsets initializer of its own",
        two_clusters,
        versions=DYNAMIC_VERSIONS,
        two_clusters=True,
    ),
)


def lay_out_topics(broker: Broker) -> None:
    """The same records for every job; nothing is produced while they run."""
    counts = {
        "orders": {0: 12, 1: 80, 2: 0},
        "payments": {0: 40, 1: 80},
        "wide": {partition: partition for partition in range(40)},
        "idle": {0: 5, 1: 0},
    }
    for topic, partitions in counts.items():
        broker.create_topic(topic, len(partitions))
        for partition, count in partitions.items():
            broker.produce(topic, partition, (f"{topic}-{partition}-{n}" for n in range(count)))
    broker.delete_records("payments", 0, before=10)
    broker.commit("golden-committed", {("orders", 0): 4, ("orders", 1): 40, ("idle", 0): 5})


def lay_out_second_cluster(broker: Broker) -> None:
    """Topics of the same names with other records, whose values say which cluster they are of."""
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
    """The files of a checkpoint: its own and, of a retained one, those it shares."""
    siblings = (checkpoint.parent / name for name in ("shared", "taskowned"))
    roots = (checkpoint, *(siblings if checkpoint.name.startswith("chk-") else ()))
    found = chain.from_iterable(root.rglob("*") for root in roots)
    return (path for path in found if path.is_file())


def adopt(version: str, scenario: Scenario, told: dict[str, Any]) -> dict[str, Any]:
    """Check a finished scenario, copy its files here; its entry in the manifest."""
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
        "kafka_sources": told["kafka_sources"],
        **({"dynamic_sources": told["dynamic_sources"]} if told["dynamic_sources"] else {}),
        "files": files,
        "expected": told["dump"],
    }


def generate(version: str, scenarios: list[Scenario]) -> None:
    """Run scenarios of one Flink version on fresh brokers; adopt each as soon as it is done."""
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
        watermarks = {
            topic: {
                str(partition): list(ends) for partition, ends in broker.watermarks(topic).items()
            }
            for topic in ("idle", "orders", "payments", "wide")
        }
        for jar_set in sorted({scenario.jar_set for scenario in scenarios}, key=str):
            by_name = {s.name: s for s in scenarios if s.jar_set == jar_set}
            for told in golden_jobs(
                version=version,
                bootstrap_servers=broker.bootstrap_servers,
                second_servers=second_servers,
                checkpoint_root=root,
                input_dir=INPUT,
                scenarios=by_name,
                jar_set=jar_set,
            ):
                entry = adopt(version, by_name[told["scenario"]], told)
                record(watermarks, entry)
                print(entry["name"])
    shutil.rmtree(root)


def record(watermarks: dict[str, dict[str, list[int]]], entry: dict[str, Any]) -> None:
    """Put an entry into the manifest, in the place of the one of its name."""
    old = json.loads(MANIFEST.read_text())["checkpoints"] if MANIFEST.exists() else []
    kept = [other for other in old if other["name"] != entry["name"]]
    manifest = {
        "generator": "python -m tests.golden.generate",
        "kafka": "4.1.1",
        "watermarks": watermarks,
        "checkpoints": sorted([*kept, entry], key=lambda checkpoint: str(checkpoint["name"])),
    }
    MANIFEST.write_text(to_json(manifest) + "\n")


def to_json(value: Any, indent: str = "") -> str:
    """JSON as a person reads it: an object or array of plain values on one line."""
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
    parser.add_argument("--only", metavar="NAME", help="a Flink version, or VERSION/SCENARIO")
    only = parser.parse_args().only
    try:
        lay_out_files()
    except OSError as error:
        sys.exit(f"golden checkpoints are written below {NEUTRAL_ROOT}, which fails: {error}")
    for version in RELEASES:
        scenarios = [
            scenario
            for scenario in SCENARIOS
            if version in scenario.versions
            and only in (None, version, f"{version}/{scenario.name}")
        ]
        if scenarios:
            generate(version, scenarios)
    shutil.rmtree(INPUT)


if __name__ == "__main__":
    main()
