"""Positions and a broker's answers -> a Plan: pure, no I/O.

A plan has, per topic-partition, the next offset that a target starts from and a verdict. What would
lose or repeat records is not clipped but refused, each with the way out and, where there is one,
the flag that allows it.

``planner`` makes a ``plan`` from ``obstacles`` to the whole move, ``shared_topics`` (that several
sources read), ``transactions`` (of sinks), each ``partition``, ``new_topics`` (that the checkpoint
does not know) and ``refusals_and_warnings``. ``plan_file`` saves it, ``recheck`` compares it with
the cluster before it is applied, ``compare_origin`` with what it was made from. ``verify`` checks a
target, ``diff`` compares two sides.
"""

from migrate.planning.new_topics import may_have_a_pattern, pattern_to_ask
from migrate.planning.plan import Plan, PlannedPartition, Refusal, Verdict
from migrate.planning.planner import make_plan, topics_to_ask
from migrate.planning.refusals_and_warnings import plan_lines
from migrate.planning.transactions import transactions_to_ask

__all__ = [
    "Plan",
    "PlannedPartition",
    "Refusal",
    "Verdict",
    "make_plan",
    "may_have_a_pattern",
    "pattern_to_ask",
    "plan_lines",
    "topics_to_ask",
    "transactions_to_ask",
]
