"""``--plan-out``: what ``to-spark`` and ``commit-group`` do alike where a plan is only saved."""

from __future__ import annotations

import sys

from migrate.cli import next_step
from migrate.cli.terminal import show, tell
from migrate.model.errors import UsageError
from migrate.moves.options import MoveArguments
from migrate.moves.plan import plan
from migrate.planning import Plan


def save_plan(
    path: str,
    chk: str | None,
    applied: str | None,
    group: str | None,
    arguments: MoveArguments,
    *,
    wide: bool = False,
) -> None:
    """Plan, and write the plan.

    Args:
        applied: the value of ``--plan``, which does not go with it.

    Raises:
        Refused, UsageError: as for ``plan`` and its ``save``.
    """
    if applied is not None:
        raise UsageError("--plan applies a plan and --plan-out saves one: one at a time")
    if chk is None:
        raise UsageError("name a checkpoint (CHK) to plan for")
    move = plan(chk, group=group, **arguments)
    show_move(move, needed=group is not None and bool(move.refusals), wide=wide)
    move.save(path)
    to = ("to-spark",) if group is None else ("commit-group", "--group", group)
    apply = next_step.command(*to, "--plan", path, kafka=arguments)
    tell(f"wrote {path}; next, once it is reviewed: {apply}")


def show_move(move: Plan, *, needed: bool, wide: bool = False) -> None:
    """A change partition by partition where it is no data: refused, or about to be made."""
    from migrate.report.plan import plan_table

    if move.partitions and sys.stderr is not None:
        show(plan_table(move.partitions, sys.stderr, wide=wide), needed=needed)
