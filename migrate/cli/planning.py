"""From arguments to a plan: what ``to-spark`` and ``commit-group`` do alike."""

from __future__ import annotations

from decoder import read_checkpoint
from migrate.choose import choose_sources
from migrate.cli.errors import UsageError
from migrate.cli.options import KafkaOptions
from migrate.cli.streams import say
from migrate.extract import Extraction, extract
from migrate.kafka_config import kafka_config
from migrate.plan import Plan, make_plan, topics_to_ask
from migrate.policies import Policies
from migrate.snapshot import ClusterSnapshot


def plan_move(
    chk: str,
    source: str | None,
    kafka: KafkaOptions,
    source_group: str | None,
    policies: Policies,
    target_group: str | None = None,
) -> tuple[Extraction, ClusterSnapshot | None, Plan]:
    """Read the checkpoint, ask the broker where one is named, and plan."""
    extraction = extract(read_checkpoint(chk))
    chosen = choose_sources(extraction, source)
    snapshot = None
    if kafka.given:
        from migrate.broker import take_snapshot

        snapshot = take_snapshot(
            kafka_config(kafka.bootstrap_servers, kafka.file, kafka.properties or ()),
            topics_to_ask(chosen, policies),
            source_group,
        )
    elif source_group is not None:
        raise UsageError("--source-group needs a broker: add --bootstrap-servers HOST:PORT")
    return extraction, snapshot, make_plan(extraction, chosen, snapshot, policies)


def tell(plan: Plan, extraction: Extraction) -> None:
    """The plan in lines, on stderr."""
    from migrate.report.text import plan_lines, visible

    checkpoint = extraction.checkpoint
    say(f"checkpoint {checkpoint.checkpoint_id}: {visible(checkpoint.pointer)}")
    for line in plan_lines(plan):
        say(line)
    for warning in plan.warnings:
        say(f"warning: {visible(warning)}")
