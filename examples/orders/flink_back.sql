-- The same job, moved back to Flink. It starts from the offsets of its group, which are the
-- positions at which Spark stopped. If a partition was added that Spark has not discovered, the job
-- reads the partition from its start.

SET 'pipeline.name' = 'orders';

INSERT INTO lake SELECT `order_id`, `customer`, `cents`, `partition`, `offset`
FROM orders /*+ OPTIONS(
    'scan.startup.mode' = 'group-offsets',
    'properties.auto.offset.reset' = 'earliest'
) */;
