-- The job that moves: orders from Kafka into files, exactly once.

SET 'pipeline.name' = 'orders';

INSERT INTO lake SELECT `order_id`, `customer`, `cents`, `partition`, `offset` FROM orders;
