"""Read the inputs of a move: a checkpoint or another side, and the broker's answers about it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from migrate.inputs.ask_broker import ask_broker
from migrate.inputs.flink.extract import Extraction
from migrate.inputs.flink.read import read
from migrate.inputs.flink.source import Source, topics_of
from migrate.inputs.plan_input import PlanInput
from migrate.inputs.position_inputs import SideKind, parse_side, side_input
from migrate.model.cluster_snapshot import ClusterSnapshot
from migrate.model.errors import InputError, NoSuchName, UsageError
from migrate.model.finding import Code
from migrate.model.policies import Policies
from migrate.moves.options import Request
from migrate.planning import make_question, may_have_a_pattern
from migrate.storage.uris import check_no_credentials


def read_input(request: Request, topics: Collection[str] = ()) -> PlanInput:
    """Read the positions to move from a Flink checkpoint or, if the target allows it, another side.

    Args:
        request: what the user asked for.
        topics: the topics of a ``broker:`` side, if the user names no partitions.

    Raises:
        Refused: as for ``side_input``.
        UsageError: options that do not go together, or a side of an unknown form.
        DecodeError: the checkpoint cannot be read.
        InputError: the side cannot be read, or its URL contains credentials.
        BrokerError: the broker did not answer, or denied access.
    """
    chk = request.chk
    if chk is None:
        raise UsageError("name a checkpoint (CHK), or a saved plan with --plan")
    check_no_credentials(chk, InputError)  # also for a group, whose name is shown in messages
    side = parse_side(chk)
    if side.kind is SideKind.CHECKPOINT:
        extraction = read(chk, allow_external_files=request.allow_external_files)
        return _drop_moved_state(extraction, request.state_taken)
    if request.target.group is not None and side.kind is not SideKind.SPARK:
        raise UsageError(f"{chk}: commit-group takes a checkpoint (CHK), or spark:DIR")
    if (request.source, request.cluster, request.source_group) != (None, None, None):
        raise UsageError(f"--source, --cluster and --source-group are Flink's: not with {chk}")
    named_topics = set(request.policies.partitions or topics)
    return side_input(side, request.kafka.broker, named_topics)


def _drop_moved_state(extraction: Extraction, taken: frozenset[str]) -> Extraction:
    """Drop the findings ``STATE_NOT_MOVED`` of operators in ``taken`` without operator state."""
    moves = {
        item.operator_id
        for item in extraction.checkpoint.operators
        if item.operator_id in taken and not item.operator_state_bytes
    }
    return replace(
        extraction,
        findings=tuple(
            item
            for item in extraction.findings
            if item.code is not Code.STATE_NOT_MOVED or item.operator_id not in moves
        ),
    )


def ask_about(
    request: Request, positions: PlanInput, chosen: Sequence[Source], into: PlanInput | None = None
) -> ClusterSnapshot | None:
    """Ask the broker about the sources' topics; return None if no broker is named.

    Args:
        request: what the user asked for.
        positions: the checkpoint or other side that was read.
        chosen: the sources of ``positions`` whose topics the broker is asked about.
        into: the savepoint or query that receives the positions, or None. The broker is asked about
            its topics and transactions, too.

    Raises:
        UsageError: options that do not go together, or that name a topic that no source reads.
        BrokerError: the broker did not answer, or denied the request.
    """
    policies = request.policies
    _check_names(policies, topics_of(chosen))
    if policies.topic_pattern is not None:
        if not request.kafka.is_given:
            raise UsageError("--topic-pattern needs a broker: add --bootstrap-servers HOST:PORT")
        if not may_have_a_pattern(chosen):
            raise UsageError(
                "--topic-pattern: a DynamicKafkaSource finds streams by a pattern, not topics"
            )
    if not request.kafka.is_given:
        if request.source_group is not None:
            raise UsageError("--source-group needs a broker: add --bootstrap-servers HOST:PORT")
        return None
    question = make_question(
        positions,
        chosen,
        policies,
        source_group=request.source_group,
        target=request.target,
        into=into,
    )
    return ask_broker(request.kafka.config(), question)


def _check_names(policies: Policies, topics: set[str]) -> None:
    """Refuse a topic of ``--topic-map`` or ``--partitions`` that no chosen source reads.

    A topic that matches ``--topic-pattern`` counts as read.
    """
    for option, names in (
        ("--topic-map", policies.topic_map),
        ("--partitions", policies.partitions or {}),
    ):
        pattern = policies.topic_pattern
        unknown = sorted(set(names) - topics - set(pattern.matching(names) if pattern else ()))
        if unknown:
            raise NoSuchName(
                f"{option} {unknown[0]}: no source reads it",
                unknown[0],
                topics,
                f"they read: {', '.join(sorted(topics))}"
                if topics
                else "no source reads any topic of what is moved",
            )
