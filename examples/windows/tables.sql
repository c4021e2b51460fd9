-- Orders, with the timestamps of their records as event time, and the revenue per customer and
-- window. The revenue is a Kafka topic in which only the newest record of a key counts, so a row
-- that is written twice does no harm.

SET 'table.local-time-zone' = 'UTC';

CREATE TABLE orders (
    `customer` STRING,
    `cents` BIGINT,
    `ordered_at` TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL,
    WATERMARK FOR `ordered_at` AS `ordered_at` - INTERVAL '1' SECOND
) WITH (
    'connector' = 'kafka',
    'topic' = 'orders',
    'properties.bootstrap.servers' = 'kafka:9092',
    'properties.group.id' = 'windows',
    'scan.startup.mode' = 'earliest-offset',
    'format' = 'json'
);

CREATE TABLE revenue (
    `window_start` STRING,
    `customer` STRING,
    `orders` BIGINT,
    `cents` BIGINT,
    PRIMARY KEY (`window_start`, `customer`) NOT ENFORCED
) WITH (
    'connector' = 'upsert-kafka',
    'topic' = 'revenue',
    'properties.bootstrap.servers' = 'kafka:9092',
    'key.format' = 'json',
    'value.format' = 'json'
);
