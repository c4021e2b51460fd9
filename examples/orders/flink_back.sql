-- The same job on its way back: it goes on where Spark stopped, as its group's offsets say. A
-- partition that came meanwhile, and that Spark has not seen, is read from its beginning.

SET 'pipeline.name' = 'orders';

INSERT INTO lake SELECT `order_id`, `customer`, `cents`, `partition`, `offset`
FROM orders /*+ OPTIONS(
    'scan.startup.mode' = 'group-offsets',
    'properties.auto.offset.reset' = 'earliest'
) */;
