package testjobs;

import static testjobs.KeyedJob.Form.CANONICAL;
import static testjobs.KeyedJob.Form.NATIVE;
import static testjobs.KeyedJob.Form.RETAINED;

import java.math.BigDecimal;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.util.Map;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.types.Row;

/** SQL jobs with state. Each job runs several queries on the table {@code events}. */
final class TableJobs implements KeyedJobBook {
    private static final long START = 1_700_000_000_000L;

    private static final String[] GROUPS = {
        "SELECT name, COUNT(*), SUM(amount), AVG(price), MAX(big), MIN(ts9), MAX(ltz) FROM events"
                + " GROUP BY name",
        "SELECT id, COUNT(DISTINCT amount), COUNT(DISTINCT name), SUM(DISTINCT amount)"
                + " FROM events GROUP BY id",
        "SELECT name, id, COLLECT(amount), FIRST_VALUE(price), LAST_VALUE(flag), LISTAGG(name)"
                + " FROM events GROUP BY name, id",
        // The input of this query has updates, so MAX must also store values that it may return to.
        "SELECT c, COUNT(*), MAX(s) FROM"
                + " (SELECT name, COUNT(*) AS c, SUM(amount) AS s FROM events GROUP BY name)"
                + " GROUP BY c",
        "SELECT DISTINCT name, flag FROM events",
    };

    private static final String[] WINDOWS = {
        "SELECT name, window_start, COUNT(*), SUM(amount) FROM"
                + " TABLE(TUMBLE(TABLE events, DESCRIPTOR(stamp), INTERVAL '10' SECONDS))"
                + " GROUP BY name, window_start, window_end",
        "SELECT name, window_start, COUNT(*) FROM TABLE("
                + "HOP(TABLE events, DESCRIPTOR(stamp), INTERVAL '5' SECONDS, INTERVAL '10' SECONDS))"
                + " GROUP BY name, window_start, window_end",
        "SELECT name, window_start, MAX(price) FROM TABLE(CUMULATE("
                + "TABLE events, DESCRIPTOR(stamp), INTERVAL '5' SECONDS, INTERVAL '20' SECONDS))"
                + " GROUP BY name, window_start, window_end",
        "SELECT name, TUMBLE_END(stamp, INTERVAL '10' SECOND), SUM(amount) FROM events"
                + " GROUP BY name, TUMBLE(stamp, INTERVAL '10' SECOND)",
        "SELECT name, SESSION_END(stamp, INTERVAL '5' SECOND), SUM(amount) FROM events"
                + " GROUP BY name, SESSION(stamp, INTERVAL '5' SECOND)",
    };

    /** Few columns, because every state of whole rows contains the types of all columns. */
    private static final String NARROW = "(SELECT id, name, amount, stamp FROM events)";

    private static final String[] RANKS = {
        first(NARROW, "name", "stamp ASC", 1),
        first(NARROW, "name", "stamp DESC", 1),
        first(NARROW, "name", "PROCTIME() ASC", 1),
        first(NARROW, "name", "PROCTIME() DESC", 1),
        first(NARROW, "name", "amount DESC", 2),
        "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY s DESC) AS n FROM"
                + " (SELECT name, SUM(amount) AS s FROM events GROUP BY name)) WHERE n <= 2",
        "SELECT name, SUM(amount) OVER"
                + " (PARTITION BY name ORDER BY stamp ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)"
                + " FROM events",
    };

    private static final String[] JOINS = {
        "SELECT a.id, b.price FROM events a JOIN events b ON a.name = b.name AND a.amount < b.amount",
        "SELECT a.name, b.c FROM events a LEFT JOIN"
                + " (SELECT name, COUNT(*) AS c FROM events GROUP BY name) b ON a.name = b.name",
        "SELECT a.name, b.id FROM events a JOIN events b ON a.name = b.name"
                + " AND b.stamp BETWEEN a.stamp AND a.stamp + INTERVAL '60' SECOND",
        "SELECT name FROM events WHERE name IN (SELECT name FROM events WHERE amount > 3)",
    };

    private static final String[] ASYNC = {"table.exec.async-state.enabled", "true"};

    @Override
    public KeyedJob named(String name) {
        return switch (name) {
            case "sql-groups" -> job(GROUPS);
            // The accumulators of a group, and of a window.
            case "sql-small" -> job(GROUPS[0], WINDOWS[0]).in(1, 4);
            case "sql-async-forst" -> async(GROUPS[0], WINDOWS[0], JOINS[0]);
            case "sql-windows" -> job(WINDOWS);
            case "sql-ranks" -> job(RANKS);
            case "sql-joins" -> job(JOINS);
            // Whole rows, with every SQL type.
            case "sql-rows" -> job(first("events", "id", "PROCTIME() DESC", 1));
            default -> null;
        };
    }

    private static KeyedJob job(String... queries) {
        return KeyedJob.of(env -> run(env, queries), CANONICAL, NATIVE).in(1, 16);
    }

    /** Returns a job on ForSt with the asynchronous API; the heap backend reports its contents. */
    private static KeyedJob async(String... queries) {
        KeyedJob job = KeyedJob.of(env -> run(env, queries), NATIVE).in(1, 4).with(ASYNC);
        return KeyedJob.of(env -> run(env, queries), RETAINED)
                .in(1, 4)
                .with(ASYNC)
                .with(StateJobs.FORST)
                .toldBy(job, false);
    }

    private static String first(String table, String by, String order, int most) {
        return String.format(
                "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY %s ORDER BY %s) AS n"
                        + " FROM %s) WHERE n <= %d",
                by, order, table, most);
    }

    private static void run(StreamExecutionEnvironment env, String... queries) {
        StreamTableEnvironment tables = StreamTableEnvironment.create(env);
        tables.getConfig().setLocalTimeZone(java.time.ZoneOffset.UTC);
        tables.createTemporaryView("events", events(env), schema());
        for (int i = 0; i < queries.length; i++) {
            tables.toChangelogStream(tables.sqlQuery(queries[i]))
                    .map(row -> 0)
                    .returns(Types.INT)
                    .name("query " + i)
                    .uid("query " + i);
        }
    }

    private static Schema schema() {
        return Schema.newBuilder()
                .column("id", "BIGINT")
                .column("name", "STRING")
                .column("amount", "INT")
                .column("price", "DECIMAL(10, 2)")
                .column("big", "DECIMAL(30, 5)")
                .column("flag", "BOOLEAN")
                .column("tiny", "TINYINT")
                .column("small", "SMALLINT")
                .column("real", "FLOAT")
                .column("wide", "DOUBLE")
                .column("bin", "BYTES")
                .column("d", "DATE")
                .column("t", "TIME(0)")
                .column("ts3", "TIMESTAMP(3)")
                .column("ts9", "TIMESTAMP(9)")
                .column("ltz", "TIMESTAMP_LTZ(6)")
                .column("nested", "ROW<a INT, b ROW<c STRING, d DECIMAL(20, 1)>>")
                .column("items", "ARRAY<STRING>")
                .column("counts", "MAP<STRING, BIGINT>")
                .columnByMetadata("stamp", DataTypes.TIMESTAMP_LTZ(3), "rowtime")
                .watermark("stamp", "SOURCE_WATERMARK()")
                .build();
    }

    private static DataStream<Row> events(StreamExecutionEnvironment env) {
        return env.fromSource(
                        new Numbers("events", 9), WatermarkStrategy.noWatermarks(), "numbers")
                .uid("numbers")
                .map(TableJobs::event)
                .returns(
                        Types.ROW_NAMED(
                                new String[] {
                                    "id", "name", "amount", "price", "big", "flag", "tiny",
                                    "small", "real", "wide", "bin", "d", "t", "ts3", "ts9", "ltz",
                                    "nested", "items", "counts"
                                },
                                Types.LONG,
                                Types.STRING,
                                Types.INT,
                                Types.BIG_DEC,
                                Types.BIG_DEC,
                                Types.BOOLEAN,
                                Types.BYTE,
                                Types.SHORT,
                                Types.FLOAT,
                                Types.DOUBLE,
                                Types.PRIMITIVE_ARRAY(Types.BYTE),
                                Types.LOCAL_DATE,
                                Types.LOCAL_TIME,
                                Types.LOCAL_DATE_TIME,
                                Types.LOCAL_DATE_TIME,
                                Types.INSTANT,
                                Types.ROW_NAMED(
                                        new String[] {"a", "b"},
                                        Types.INT,
                                        Types.ROW_NAMED(
                                                new String[] {"c", "d"},
                                                Types.STRING,
                                                Types.BIG_DEC)),
                                Types.OBJECT_ARRAY(Types.STRING),
                                Types.MAP(Types.STRING, Types.LONG)))
                .uid("rows")
                .assignTimestampsAndWatermarks(
                        WatermarkStrategy.<Row>forGenerator(
                                        context -> new WindowJobs.AfterEachEvent<>())
                                .withTimestampAssigner(
                                        (row, before) ->
                                                START + 1_000L * (int) row.getField("amount")))
                .uid("times");
    }

    /** Every third event has nulls. Some strings fit into a row's slot, and others do not. */
    private static Row event(int n) {
        boolean some = n % 3 != 2;
        LocalDateTime time = LocalDateTime.of(2024, 2, 29, 12, 0).plusNanos(n * 1_000_000_001L);
        Row row = Row.withNames();
        row.setField("id", (long) n % 4);
        row.setField("name", some ? "name-" + n % 2 : "a longer name that takes more than a slot");
        row.setField("amount", n * n);
        row.setField("price", some ? new BigDecimal(n + ".25") : null);
        row.setField("big", some ? new BigDecimal("-1234567890123456789012345.00001") : null);
        row.setField("flag", some ? (Object) (n % 2 == 0) : null);
        row.setField("tiny", some ? (Object) (byte) -n : null);
        row.setField("small", some ? (Object) (short) (n * 1000) : null);
        row.setField("real", some ? (Object) 0.5f : null);
        row.setField("wide", some ? (Object) (n / 3.0) : null);
        row.setField("bin", some ? (n == 0 ? new byte[0] : new byte[] {1, (byte) n}) : null);
        row.setField("d", some ? LocalDate.of(1969, 12, 1 + n) : null);
        row.setField("t", some ? LocalTime.of(n, 59, 1) : null);
        row.setField("ts3", some ? time.withNano(n * 1_000_000) : null);
        row.setField("ts9", some ? time : null);
        row.setField("ltz", some ? Instant.ofEpochSecond(-n, 1_000L * n) : null);
        row.setField(
                "nested",
                some ? Row.of(n, n == 0 ? null : Row.of("\u20ac" + n, new BigDecimal("9.5"))) : null);
        row.setField("items", some ? new String[] {"a", null, "item " + n} : null);
        row.setField("counts", some ? Map.of("key", (long) n, "other key", -1L) : null);
        return row;
    }
}
