-- Where orders come from, and where they go: the only file here that holds addresses. They are those
-- of docker-compose.yml; `make demo` puts those of its local processes in their place.

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
    -- Partitions that are added while the job runs.
    'scan.topic-partition-discovery.interval' = '10 s',
    'format' = 'json'
);

-- A file is whole and visible with the checkpoint that it belongs to. (As JSON it would not be: what
-- such a file holds when the job stops stays hidden until Flink itself goes on.)
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
