"""``diff``: compare two sets of positions."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from migrate.inputs.compared_sides import load_sides
from migrate.inputs.position_inputs import parse_side
from migrate.model.log import log, timed
from migrate.moves.options import SideArguments, choice, kafka
from migrate.planning import diff as comparison
from migrate.planning.diff import Diff

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from migrate.storage.uris import AnyPath


def diff(
    left: AnyPath,
    right: AnyPath,
    **arguments: Unpack[SideArguments],
) -> Diff:
    """Compare two sets of positions.

    Args:
        left: a checkpoint, ``group:NAME``, ``spark:DIR``, ``json:FILE``, ``csv:FILE``,
            ``broker:earliest``, ``broker:latest`` or ``broker:TIME``.
        right: as for ``left``.
        arguments: see ``ChoiceArguments`` and ``KafkaArguments``.

    Raises:
        Refused: a side holds a partition twice.
        UsageError: a side has an unknown form, or needs a broker and none is named.
        DecodeError, InputError: a side cannot be read.
        BrokerError: the broker did not answer, or denied the request.
    """
    parsed = parse_side(os.fspath(left)), parse_side(os.fspath(right))
    broker = kafka(arguments, SideArguments).broker
    with timed(f"reading {parsed[0].label} and {parsed[1].label}"):
        sides = load_sides(*parsed, broker, choice(arguments))
    for warning in sides.warnings:
        log.warning(warning)
    return comparison.diff(sides.left, sides.right, sides.logs, sides.warnings)
