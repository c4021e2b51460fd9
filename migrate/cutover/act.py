"""The actions of a cut-over, by name: each takes the context and the facts that decided it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from migrate.cutover import act_flink, act_target, preflight, start
from migrate.cutover.context import CutOverContext
from migrate.cutover.decision import Action
from migrate.cutover.facts import Facts

ACTIONS: Mapping[Action, Callable[[CutOverContext, Facts], str]] = {
    Action.CHECK: preflight.check,
    Action.STOP: act_flink.stop,
    Action.AWAIT_STOP: act_flink.await_stop,
    Action.KEEP_SAVEPOINT: act_flink.keep_savepoint,
    Action.KEEP_CLEAN: act_flink.keep_clean,
    Action.PLAN: act_target.make_plan,
    Action.WRITE: act_target.write,
    Action.ADOPT: act_target.adopt,
    Action.KEEP_PRIMED: act_target.keep_primed,
    Action.KEEP_WRITTEN: act_target.keep_written,
    Action.VERIFY: act_target.verify_before,
    Action.START: start.start,
    Action.AWAIT_BEGIN: start.await_begin,
    Action.VERIFY_AGAIN: act_target.verify_after,
}
