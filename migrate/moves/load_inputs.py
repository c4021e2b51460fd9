"""Read the positions of a move from a *side*: a checkpoint, or another input (``parse_side``)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import nullcontext
from typing import NamedTuple

from migrate.inputs.flink.choose_source import choose
from migrate.inputs.flink.source import Source
from migrate.inputs.plan_input import PlanInput
from migrate.inputs.position_inputs import SideKind, parse_side, side_input
from migrate.model.errors import InputError, UsageError
from migrate.model.option_names import option
from migrate.model.positions import SPARK
from migrate.moves.options import Request
from migrate.storage.suggest_path import suggesting_group
from migrate.storage.uris import AnyPath, check_no_credentials


class ChosenInput(NamedTuple):
    """The positions that were read, and the sources that were chosen."""

    positions: PlanInput
    chosen: Sequence[Source]


def read_input(chk: AnyPath | None, request: Request, topics: Collection[str] = ()) -> ChosenInput:
    """Read a Flink checkpoint or, if the target allows it, another side, and choose its sources.

    ``topics`` are the topics of a ``broker:`` side, if the user does not pass partitions.

    Raises:
        Refused: as in ``side_input``.
        UsageError: options cannot be combined, a side has an unknown format, or a source is
            unknown.
        DecodeError: the checkpoint cannot be read.
        InputError: the side cannot be read, or its URL contains credentials.
        BrokerError: the broker did not answer, or it denied access.
    """
    if chk is None:
        raise UsageError(
            f"no checkpoint was specified; pass CHK, or a saved plan with {option('plan')}"
        )
    side = parse_side(chk)
    check_no_credentials(side.label, InputError)  # messages show this label
    broker = None
    if side.kind is not SideKind.CHECKPOINT:
        if request.target.group is not None and side.kind is not SideKind.SPARK:
            raise UsageError(f"{side.label}: commit-group requires a checkpoint (CHK) or spark:DIR")
        if (request.source, request.cluster, request.source_group) != (None, None, None):
            raise UsageError(
                f"{option('source')}, {option('cluster')}, and {option('source_group')} require a "
                f"Flink checkpoint, and cannot be combined with {side.label}"
            )
        broker = request.kafka.broker
    accepts_group = request.target is SPARK
    with suggesting_group(side.what) if accepts_group else nullcontext():
        positions = side_input(
            side,
            broker,
            set(request.policies.partitions or topics),
            allow_external_files=request.allow_external_files,
        )
    return ChosenInput(positions, choose(positions, request))
