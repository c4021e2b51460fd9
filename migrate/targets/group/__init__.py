"""A consumer group as a target: commit, rollback, rollback file, and follower of a query."""
