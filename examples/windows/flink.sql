-- A job with state: until a window ends, only Flink's state contains the results of the window.

SET 'pipeline.name' = 'windows';

INSERT INTO revenue
SELECT DATE_FORMAT(`window_start`, 'yyyy-MM-dd HH:mm:ss'), `customer`, COUNT(*), SUM(`cents`)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(`ordered_at`), INTERVAL '4' SECOND))
GROUP BY `window_start`, `window_end`, `customer`;
