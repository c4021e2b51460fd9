-- A job with state: the number and the total amount of each customer's orders so far. The job reads
-- the table of orders/tables.sql with a separate group.

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
