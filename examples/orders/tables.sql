-- The source and the sink of the orders. No other SQL file in this folder contains addresses. The
-- addresses are from docker-compose.yml, and `make demo` replaces them with the addresses of its
-- local processes.

CREATE TABLE orders (
    `order_id` BIGINT,
    `customer` STRING,
    `cents` BIGINT,
    `partition` INT METADATA VIRTUAL,
    `offset` BIGINT METADATA VIRTUAL
) WITH (
    'connector' = 'kafka',
    'topic' = 'orders',
    'properties.bootstrap.servers' = 'kafka:9092',
    'properties.group.id' = 'orders',
    'scan.startup.mode' = 'earliest-offset',
    -- Discover partitions that are added while the job runs.
    'scan.topic-partition-discovery.interval' = '10 s',
    'format' = 'json'
);

-- With CSV, every checkpoint completes the current file and makes it visible. With JSON, it would
-- not. If the job stopped, the rows in an unfinished file would stay hidden until Flink resumes.
CREATE TABLE lake (
    `order_id` BIGINT,
    `customer` STRING,
    `cents` BIGINT,
    `partition` INT,
    `offset` BIGINT
) WITH (
    'connector' = 'filesystem',
    'path' = 'file:///lake/orders/flink',
    'format' = 'csv'
);
