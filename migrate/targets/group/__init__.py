"""A consumer group as a target: commit, rollback, the rollback file, and a follower of a query."""
