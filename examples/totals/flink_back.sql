-- Start the job of flink.sql again in Flink, from the savepoint that `migrate to-flink` wrote. The
-- savepoint contains the job's old state and Spark's positions. For a job that is not in SQL, use
-- `flink run -s` instead.

SET 'execution.state-recovery.path' = 's3://flink/savepoints/totals-again';
