-- The job to move. It copies orders from Kafka into files, exactly once.

SET 'pipeline.name' = 'orders';

INSERT INTO lake SELECT `order_id`, `customer`, `cents`, `partition`, `offset` FROM orders;
