"""Make a Plan from positions and a cluster snapshot; ``plan_file`` alone does I/O.

For each topic-partition a plan has a verdict and, unless the partition is refused or skipped, the
next offset that the target starts from. If an offset would lose or duplicate records and no policy
allows this, the plan has a refusal. The refusal states the remedy, if there is one, such as a flag
that allows the move.

``planner`` makes a ``Plan``. It uses ``obstacles`` (checks of the whole move), ``shared_topics``
(topics that several sources read), ``transactions`` (pending transactions of sinks), ``partition``
(the plan of one partition), ``new_topics`` (topics that are not in the checkpoint) and
``refusals_and_warnings`` (texts).

``plan_file`` saves a plan. Before a saved plan is applied, ``recheck`` compares it with the
cluster. ``verify`` checks where a target started, and ``diff`` compares two position sets.
"""

from migrate.planning.new_topics import may_have_a_pattern
from migrate.planning.obstacles import check_topic_names
from migrate.planning.plan import Plan, PlannedPartition, Refusal, Verdict
from migrate.planning.planner import make_plan, make_question
from migrate.planning.refusals_and_warnings import plan_lines

__all__ = [
    "Plan",
    "PlannedPartition",
    "Refusal",
    "Verdict",
    "check_topic_names",
    "make_plan",
    "make_question",
    "may_have_a_pattern",
    "plan_lines",
]
