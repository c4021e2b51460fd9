"""Make a ``Plan`` from positions and a cluster snapshot; only ``plan_file`` does I/O.

For each topic-partition, a plan contains a verdict. Unless the partition is refused or skipped, the
plan also contains the next offset, from which the target starts. If starting at an offset would
lose or duplicate records, and no policy allows this, the plan contains a refusal. The refusal
states the remedy, if there is one, such as an option that allows the move.

``planner`` makes a ``Plan``. It uses ``obstacles`` (checks of the whole move), ``shared_topics``
(topics that several sources read), ``transactions`` (pending transactions of sinks), ``partition``
(the plan of one partition), ``new_topics`` (topics that are not in the checkpoint), and
``refusals_and_warnings`` (messages).

``plan_file`` saves a plan. Before a saved plan is applied, ``recheck`` compares it with the
cluster. ``verify`` checks the start offsets of a target, and ``diff`` compares two sets of
positions.
"""

from migrate.planning.new_topics import may_have_a_pattern
from migrate.planning.obstacles import check_topic_names
from migrate.planning.plan import Plan, PlannedPartition, Verdict
from migrate.planning.planner import make_plan, make_question
from migrate.planning.refusals_and_warnings import plan_lines

__all__ = [
    "Plan",
    "PlannedPartition",
    "Verdict",
    "check_topic_names",
    "make_plan",
    "make_question",
    "may_have_a_pattern",
    "plan_lines",
]
