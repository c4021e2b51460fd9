"""``diff``: compare two sets of positions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from migrate.inputs.compared_sides import load_sides
from migrate.inputs.position_inputs import SideKind, parse_side
from migrate.model.errors import UsageError
from migrate.model.log import log, timed
from migrate.moves.declare_options import check_combinations
from migrate.moves.options import (
    DiffArguments,
    SideArguments,
    check_job_cluster,
    choice,
    kafka,
    target_connection,
)
from migrate.moves.translate import translate_side
from migrate.planning import diff as comparison
from migrate.planning.diff import Diff

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from migrate.storage.uris import AnyPath


def diff(
    left: AnyPath,
    right: AnyPath,
    topic_map: Mapping[str, str] | None = None,
    **arguments: Unpack[SideArguments],
) -> Diff:
    """Compare two sets of positions.

    Args:
        left: a checkpoint, ``group:NAME``, ``spark:DIR``, ``json:FILE``, ``csv:FILE``,
            ``csv:FILE#GROUP``, ``hudi:TEXT``, ``broker:earliest``, ``broker:latest``, or
            ``broker:TIME``.
        right: the same kinds of names as in ``left``.
        topic_map: the names that LEFT's topics have in RIGHT's cluster, if the clusters differ.
        arguments: see ``ChoiceArguments`` and ``ConnectionArguments``.

    Raises:
        Refused: a side has two different positions for one partition, or positions in several
            clusters; or the connections to two clusters lead to the same cluster.
        UsageError: a side has an unknown format; a side requires a broker, and no broker is set; or
            the arguments cannot be combined.
        DecodeError, InputError: a side cannot be read.
        BrokerError: the broker did not answer, or it denied the request.
    """
    left_side, right_side = parse_side(left), parse_side(right)
    job, to_kafka = kafka(arguments, SideArguments), target_connection(arguments)
    check_job_cluster(job, to_kafka)
    check_combinations(DiffArguments, {**arguments, "topic_map": topic_map})
    old = new = job.broker
    translate = None
    if to_kafka.is_given:
        if left_side.kind is SideKind.BROKER:
            raise UsageError(
                f"{left_side.label} refers to offsets in the logs of one cluster, not to the "
                "positions of a reader, so migrate cannot translate it to the other cluster; pass "
                "a side with a reader's positions, such as CHK or group:NAME"
            )
        old, new = job.config(), to_kafka.config()
        translate = partial(translate_side, old=old, new=new, names=topic_map or {})
    with timed(f"reading {left_side.label} and {right_side.label}"):
        sides = load_sides(
            left_side, right_side, new, choice(arguments), left_broker=old, translate=translate
        )
    warnings = list(sides.warnings)
    if translate is None:
        for side in (sides.left, sides.right):
            warnings += comparison.recreated_topic_warnings(side, sides.logs)
    for side in (sides.left, sides.right):
        warnings += comparison.deleted_record_warnings(side, sides.logs)
    for warning in warnings:
        log.warning(warning)
    return comparison.diff(sides.left, sides.right, sides.logs, tuple(warnings))
