-- A job with state: how many orders each customer has made, and for how much, so far. It reads the
-- table of orders/tables.sql, as a group of its own.

SET 'pipeline.name' = 'totals';

CREATE TABLE totals (
    `customer` STRING,
    `orders` BIGINT,
    `cents` BIGINT,
    PRIMARY KEY (`customer`) NOT ENFORCED
) WITH (
    'connector' = 'upsert-kafka',
    'topic' = 'totals',
    'properties.bootstrap.servers' = 'kafka:9092',
    'key.format' = 'json',
    'value.format' = 'json'
);

INSERT INTO totals SELECT `customer`, COUNT(*), SUM(`cents`)
FROM orders /*+ OPTIONS('properties.group.id' = 'totals') */
GROUP BY `customer`;
