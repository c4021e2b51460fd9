-- The job of flink.sql on its way back: from a savepoint with the state that it had and with Spark's
-- positions, which `migrate to-flink` wrote. Of a program this is `flink run -s`.

SET 'execution.state-recovery.path' = 's3://flink/savepoints/totals-again';
