"""Positions and what a broker said -> a Plan: pure, no I/O.

A plan names, per topic-partition, the next offset a target is to start from and a verdict. What
would lose or repeat records is not clipped but refused, each with the way out and, where there is
one, the flag that allows it.

The rooms: ``model`` (what a plan is), ``obstacles`` (what stands in the way of the whole),
``transactions`` (what brokers say of a sink's), ``position`` (one position against one log),
``new_topics`` (topics that the checkpoint does not know), ``refusals_and_warnings`` (of partitions;
the plan in lines), joined by ``planner``; ``savepoint`` plans what a savepoint is to hold;
``plan_file`` saves a plan, ``recheck`` says what has moved since, and ``compare_origin`` compares a
saved plan with what it was made from.
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
