"""Single steps of a cut-over, for tests."""

from __future__ import annotations

from pathlib import Path

from migrate.extensions.cutover.context import CutOverContext
from migrate.extensions.cutover.decide import Decision, Done
from migrate.extensions.cutover.facts import Facts
from migrate.extensions.cutover.observe import observe
from migrate.extensions.cutover.read_spec import read_spec
from migrate.extensions.cutover.record import Record
from migrate.extensions.cutover.steps import ACTIONS, STEPS

_STEPS = {step.name: step for step in STEPS}


def open_context(spec: Path, *, adopt: bool = False) -> CutOverContext:
    """Return the context of a spec; changes of its record are written to disk."""
    file = read_spec(spec)
    file.folder.mkdir(exist_ok=True)
    return CutOverContext(file, Record(file, write=True, replace_rolled_back=True), adopt=adopt)


def facts_of(context: CutOverContext, step: str) -> Facts:
    """Return the facts that a step needs."""
    return observe(context, *_STEPS[step].needs)


def decide(context: CutOverContext, step: str) -> Decision:
    """Return the decision of a step."""
    return _STEPS[step].decide(facts_of(context, step))


def reason_done(context: CutOverContext, step: str) -> str | None:
    """Return why a step has nothing to do, or None if it has an action."""
    decision = decide(context, step)
    return decision.reason if isinstance(decision, Done) else None


def act(context: CutOverContext, step: str) -> str:
    """Execute a step, and return its text."""
    facts = facts_of(context, step)
    decision = _STEPS[step].decide(facts)
    assert not isinstance(decision, Done), decision
    return ACTIONS[decision](context, facts)
