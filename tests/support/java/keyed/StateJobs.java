package testjobs;

import static testjobs.KeyedJob.Form.CANONICAL;
import static testjobs.KeyedJob.Form.NATIVE;
import static testjobs.KeyedJob.Form.RETAINED;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.typeinfo.BasicArrayTypeInfo;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.common.typeutils.base.LongSerializer;
import org.apache.flink.api.common.typeutils.base.StringSerializer;
import org.apache.flink.api.java.tuple.Tuple1;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.api.java.typeutils.EitherTypeInfo;
import org.apache.flink.api.java.typeutils.runtime.NullableSerializer;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.types.Either;
import org.apache.flink.types.Row;
import testjobs.KeyedJob.Form;

/** Jobs with keyed process functions that have every kind of state, with every type. */
final class StateJobs implements KeyedJobBook {
    private static final List<String> TEXTS =
            List.of("", "a", "h\u00e9llo w\u00f6rld", "\u65e5\u672c\u0000\u8a9e", "x\ud83d\ude00y", "key-5", "key-6");

    private static final Form[] ALL = {CANONICAL, NATIVE, RETAINED};

    private static final Shape TIMERS = Shape.timers(true, 4_102_444_800_000L, 5_000_000_000_000L);

    private static final String[] FILES = {
        "state.storage.fs.memory-threshold", "0 b",
        "execution.checkpointing.data-inline-threshold", "0 b"
    };
    private static final String[] COMPRESSED = {
        "execution.checkpointing.snapshot-compression", "true"
    };
    static final String[] INCREMENTAL = {
        "state.backend.incremental", "true",
        "execution.checkpointing.incremental", "true"
    };
    static final String[] ROCKSDB = {
        "state.backend", "rocksdb",
        "state.backend.type", "rocksdb",
        // RocksDB's OPTIONS file contains this path.
        "state.backend.rocksdb.localdir", "/flink/state/rocksdb",
        "state.storage.fs.memory-threshold", "0 b",
        "execution.checkpointing.data-inline-threshold", "0 b"
    };

    static final String[] FORST = {
        "state.backend.type", "forst",
        "state.backend.forst.local-dir", "/flink/state/forst",
        "state.storage.fs.memory-threshold", "0 b",
        "execution.checkpointing.data-inline-threshold", "0 b",
        "execution.checkpointing.incremental", "true"
    };

    @Override
    public KeyedJob named(String name) {
        return switch (name) {
            case "kinds" -> KeyedJob.of(StateJobs::kinds, ALL).in(2, 128);
            case "types" -> KeyedJob.of(StateJobs::types, CANONICAL, NATIVE).in(1, 16);
            case "composites" -> KeyedJob.of(StateJobs::composites, CANONICAL, NATIVE).in(1, 16);
            case "small" -> KeyedJob.of(StateJobs::small, CANONICAL, RETAINED).in(1, 8);
            default -> stored(name);
        };
    }

    /** Returns a job with the same state in one of the places where Flink can store it. */
    private static KeyedJob stored(String name) {
        KeyedJob few = KeyedJob.of(StateJobs::few, ALL).in(1, 64);
        KeyedJob retained = KeyedJob.of(StateJobs::few, CANONICAL, RETAINED).in(1, 64);
        KeyedJob timed = KeyedJob.of(env -> fewer(env, TIMERS), CANONICAL, RETAINED).in(1, 64);
        // RocksDB writes kilobytes for each state.
        KeyedJob fewer = KeyedJob.of(StateJobs::fewer, CANONICAL, RETAINED).in(1, 64);
        return switch (name) {
            case "files" -> few.with(FILES);
            case "compressed" -> KeyedJob.of(env -> fewer(env, TIMERS), ALL)
                    .in(2, 64)
                    .with(COMPRESSED);
            case "compressed-files" -> retained.with(COMPRESSED).with(FILES);
            case "wide" -> KeyedJob.of(env -> fewer(env, TIMERS), ALL).in(2, 300);
            case "rescaled-up" -> timed.in(3, 64).after(timed.in(1, 64));
            case "rescaled-down" -> timed.in(1, 64).after(timed.in(3, 64));
            case "rocksdb" -> few.with(ROCKSDB).with(INCREMENTAL);
            case "forst" -> KeyedJob.of(StateJobs::few, NATIVE)
                    .in(1, 64)
                    .with(FORST)
                    .toldBy(few.with(ROCKSDB), true);
            case "rocksdb-few" -> fewer.in(1, 8).with(ROCKSDB).with(INCREMENTAL);
            case "rocksdb-full" -> fewer.in(1, 8).with(ROCKSDB);
            case "rocksdb-compressed" -> fewer.with(ROCKSDB).with(INCREMENTAL).with(COMPRESSED);
            case "rocksdb-heap-timers" -> timed.with(ROCKSDB)
                    .with(INCREMENTAL)
                    .with("state.backend.rocksdb.timer-service.factory", "HEAP");
            case "rocksdb-wide" -> fewer.in(1, 300).with(ROCKSDB).with(INCREMENTAL);
            case "rocksdb-rescaled-up" -> fewer.in(2, 64)
                    .with(ROCKSDB)
                    .with(INCREMENTAL)
                    .after(fewer.with(ROCKSDB).with(INCREMENTAL));
            case "file-merging" -> retained.in(2, 64)
                    .with(FILES)
                    .with("execution.checkpointing.file-merging.enabled", "true");
            case "changelog" -> retained.with(changelog(name, "1 h"));
            case "changelog-materialized" -> retained.with(changelog(name, "300 ms"));
            case "changelog-rocksdb" -> timed.with(ROCKSDB)
                    .with(INCREMENTAL)
                    .with(changelog(name, "300 ms"));
            default -> null;
        };
    }

    private static String[] changelog(String name, String materialization) {
        // Flink adds the job's id, so the log is next to the job's checkpoints.
        String log = KeyedJobs.root().resolve(name).toUri().toString();
        return new String[] {
            "state.backend.changelog.enabled", "true",
            "state.changelog.enabled", "true",
            "state.backend.changelog.storage", "filesystem",
            "state.changelog.storage", "filesystem",
            "dstl.dfs.base-path", log,
            "state.changelog.dstl.dfs.base-path", log,
            "state.backend.changelog.periodic-materialize.interval", materialization,
            "state.changelog.periodic-materialize.interval", materialization
        };
    }

    /** Adds, for a few keys, a state of each kind, two of them with a time to live, and timers. */
    private static void few(StreamExecutionEnvironment env) {
        List<String> keys = new ArrayList<>();
        for (int i = 0; i < 12; i++) {
            keys.add("key-" + i * 37);
        }
        PutStates.add(
                env,
                "few",
                Types.STRING,
                keys,
                Shape.value("value", Types.LONG, 1L, -2L, Long.MAX_VALUE),
                Shape.list("list", Types.STRING, List.of("one", ",", "t,wo"), List.of(""), List.of()),
                Shape.map("map", Types.STRING, Types.LONG, new TreeMap<>(Map.of("a", 1L, "b", -2L)), Map.of()),
                Shape.aggregating(
                        "aggregating",
                        new Mean(),
                        Types.TUPLE(Types.LONG, Types.DOUBLE),
                        List.of(List.of(1.5, 2.5), List.of(-1.0)),
                        List.of(Tuple2.of(2L, 4.0), Tuple2.of(1L, -1.0))),
                Shape.list("lasting-list", Types.INT, List.of(1, 2)).lasting(),
                Shape.map("lasting-map", Types.INT, Types.STRING, Map.of(1, "a")).lasting(),
                Shape.timers(true, 4_102_444_800_000L, 5_000_000_000_000L),
                Shape.timers(false, 7_258_118_400_000L));
    }

    /** Adds a state of each kind that Flink stores differently, and other shapes. */
    private static void fewer(StreamExecutionEnvironment env, Shape... more) {
        List<Shape> shapes = new ArrayList<>(Arrays.asList(more));
        shapes.add(Shape.value("value", Types.LONG, 1L, -2L, Long.MAX_VALUE));
        shapes.add(
                Shape.list("list", Types.STRING, List.of("one", ",", "t,wo"), List.of("")).lasting());
        shapes.add(
                Shape.map("map", Types.STRING, Types.LONG, new TreeMap<>(Map.of("a", 1L, "b", -2L)), Map.of()));
        PutStates.add(
                env,
                "fewer",
                Types.STRING,
                List.of("", "key-1", "key-22", "key-333", "key-4444", "key-55555"),
                shapes.toArray(Shape[]::new));
    }

    /** Adds a state of each kind, values of each category of type, and a session window. */
    private static void small(StreamExecutionEnvironment env) {
        Things.Address elm = new Things.Address("Elm", 3);
        PutStates.add(
                env,
                "small",
                Types.STRING,
                List.of("", "h\u00e9llo", "\ud83d\ude00", "key"),
                Shape.value("value", Types.LONG, 1L, -2L, Long.MAX_VALUE),
                Shape.value("text", Types.STRING, "", "\u65e5\u672c").lasting(),
                Shape.list("list", Types.STRING, List.of("one", ",", "t,wo"), List.of(""), List.of()),
                Shape.list("lasting-list", Types.INT, List.of(1, 2)).lasting(),
                Shape.map("map", Types.STRING, Types.LONG, new TreeMap<>(Map.of("a", 1L, "b", -2L)), Map.of()),
                Shape.map("lasting-map", Types.INT, Types.STRING, Map.of(1, "a")).lasting(),
                Shape.reducing("reducing", Long::sum, Types.LONG, List.of(1L, 2L), List.of(44L)),
                Shape.aggregating(
                        "aggregating",
                        new Mean(),
                        Types.TUPLE(Types.LONG, Types.DOUBLE),
                        List.of(List.of(1.5, 2.5), List.of(-1.0)),
                        List.of(Tuple2.of(2L, 4.0), Tuple2.of(1L, -1.0))),
                Shape.value("row", Types.ROW(Types.STRING, Types.INT), Row.of("a", 1), Row.of(null, 2)),
                Shape.value(
                        "person",
                        Types.POJO(Things.Person.class),
                        new Things.Person("Anna", 41, 1L, Things.Color.RED, elm),
                        new Things.Person("Bo", 1, null, Things.Color.BLUE, null)),
                Shape.value(
                        "basket",
                        Types.POJO(Things.Basket.class),
                        new Things.Basket(1, new ArrayList<>(List.of("a")), new HashMap<>(Map.of("a", 1)), 3)),
                Shape.timers(true, 4_102_444_800_000L, 5_000_000_000_000L),
                Shape.timers(false, 7_258_118_400_000L));
        WindowJobs.sessions(env);
    }

    /** Adds each kind of state, with and without a time to live, and timers, for Long keys. */
    private static void kinds(StreamExecutionEnvironment env) {
        List<Long> keys = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            keys.add(i < 2 ? i - 1L : i * 7_919_000_003L * (1 - 2 * (i % 2)));
        }
        List<Shape> shapes = new ArrayList<>();
        for (boolean lasting : new boolean[] {false, true}) {
            String prefix = lasting ? "lasting-" : "";
            List<Shape> some =
                    List.of(
                            Shape.value(prefix + "value", Types.LONG, 1L, -2L, Long.MAX_VALUE),
                            Shape.list(
                                    prefix + "list",
                                    Types.STRING,
                                    List.of("one", ",", "t,wo"),
                                    List.of(""),
                                    List.of()),
                            Shape.map(
                                    prefix + "map",
                                    Types.STRING,
                                    Types.LONG,
                                    new TreeMap<>(Map.of("a", 1L, "b", -2L)),
                                    Map.of("", 0L),
                                    Map.of()),
                            Shape.reducing(
                                    prefix + "reducing",
                                    Long::sum,
                                    Types.LONG,
                                    List.of(1L, 2L, 3L),
                                    List.of(44L)),
                            Shape.aggregating(
                                    prefix + "aggregating",
                                    new Mean(),
                                    Types.TUPLE(Types.LONG, Types.DOUBLE),
                                    List.of(List.of(1.5, 2.5), List.of(-1.0)),
                                    List.of(Tuple2.of(2L, 4.0), Tuple2.of(1L, -1.0))));
            for (Shape shape : some) {
                shapes.add(lasting ? shape.lasting() : shape);
            }
        }
        shapes.add(Shape.timers(true, 4_102_444_800_000L, 5_000_000_000_000L));
        shapes.add(Shape.timers(false, 7_258_118_400_000L));
        PutStates.add(env, "kinds", Types.LONG, keys, shapes.toArray(Shape[]::new));
    }

    /** Adds a value state of every simple type. */
    private static void types(StreamExecutionEnvironment env) {
        Instant instant = Instant.ofEpochSecond(1_700_000_000L, 123_456_789);
        PutStates.add(
                env,
                "types",
                Types.STRING,
                TEXTS,
                Shape.value("string", Types.STRING, TEXTS.toArray(String[]::new)),
                Shape.value("long", Types.LONG, 0L, -1L, Long.MIN_VALUE, Long.MAX_VALUE),
                Shape.value("int", Types.INT, 0, -1, Integer.MIN_VALUE, Integer.MAX_VALUE),
                Shape.value("short", Types.SHORT, (short) 0, Short.MIN_VALUE, Short.MAX_VALUE),
                Shape.value("byte", Types.BYTE, (byte) 0, Byte.MIN_VALUE, Byte.MAX_VALUE),
                Shape.value("boolean", Types.BOOLEAN, true, false),
                Shape.value(
                        "double",
                        Types.DOUBLE,
                        0.1,
                        -0.0,
                        Double.NaN,
                        Double.NEGATIVE_INFINITY,
                        Double.MIN_VALUE),
                Shape.value("float", Types.FLOAT, 0.1f, Float.MAX_VALUE, Float.POSITIVE_INFINITY),
                Shape.value("char", Types.CHAR, 'a', '\u20ac'),
                Shape.value(
                        "big-integer",
                        Types.BIG_INT,
                        BigInteger.ZERO,
                        BigInteger.ONE,
                        BigInteger.TWO,
                        BigInteger.TEN,
                        BigInteger.valueOf(-1),
                        new BigInteger("-123456789012345678901234567890")),
                Shape.value(
                        "big-decimal",
                        Types.BIG_DEC,
                        BigDecimal.ZERO,
                        BigDecimal.ONE,
                        BigDecimal.TEN,
                        new BigDecimal("0.2"),
                        new BigDecimal("-12345678901234567890.123456789"),
                        new BigDecimal("1E+5")),
                Shape.value(
                        "date",
                        TypeInformation.of(java.util.Date.class),
                        new java.util.Date(0),
                        new java.util.Date(1_700_000_000_123L),
                        new java.util.Date(-1)),
                Shape.value("sql-date", Types.SQL_DATE, java.sql.Date.valueOf("2024-02-29")),
                Shape.value("sql-time", Types.SQL_TIME, java.sql.Time.valueOf("23:59:58")),
                Shape.value(
                        "sql-timestamp",
                        Types.SQL_TIMESTAMP,
                        java.sql.Timestamp.from(instant),
                        new java.sql.Timestamp(-1)),
                Shape.value("instant", Types.INSTANT, instant, Instant.EPOCH, Instant.ofEpochSecond(-1, 5)),
                Shape.value(
                        "local-date", Types.LOCAL_DATE, LocalDate.of(2024, 2, 29), LocalDate.of(-1, 1, 1)),
                Shape.value(
                        "local-time",
                        Types.LOCAL_TIME,
                        LocalTime.MIDNIGHT,
                        LocalTime.of(1, 2),
                        LocalTime.of(23, 59, 59, 999_999_999)),
                Shape.value(
                        "local-date-time",
                        Types.LOCAL_DATE_TIME,
                        LocalDateTime.of(2024, 2, 29, 12, 0),
                        LocalDateTime.of(1969, 12, 31, 23, 59, 59, 1_000)),
                Shape.value(
                        "enum", Types.ENUM(Things.Color.class), Things.Color.RED, Things.Color.BLUE),
                Shape.value(
                        "bytes",
                        PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO,
                        new byte[0],
                        new byte[] {0, 1, -1, 127}),
                Shape.value(
                        "longs",
                        PrimitiveArrayTypeInfo.LONG_PRIMITIVE_ARRAY_TYPE_INFO,
                        new long[0],
                        new long[] {1, Long.MIN_VALUE}),
                Shape.value("ints", PrimitiveArrayTypeInfo.INT_PRIMITIVE_ARRAY_TYPE_INFO, new int[] {1, -1}),
                Shape.value("shorts", PrimitiveArrayTypeInfo.SHORT_PRIMITIVE_ARRAY_TYPE_INFO, new short[] {1, -1}),
                Shape.value("doubles", PrimitiveArrayTypeInfo.DOUBLE_PRIMITIVE_ARRAY_TYPE_INFO, new double[] {0.5, -0.1}),
                Shape.value("floats", PrimitiveArrayTypeInfo.FLOAT_PRIMITIVE_ARRAY_TYPE_INFO, new float[] {0.5f, -0.1f}),
                Shape.value("chars", PrimitiveArrayTypeInfo.CHAR_PRIMITIVE_ARRAY_TYPE_INFO, new char[] {'a', '\u20ac'}),
                Shape.value(
                        "booleans", PrimitiveArrayTypeInfo.BOOLEAN_PRIMITIVE_ARRAY_TYPE_INFO, new boolean[] {true, false}),
                Shape.value(
                        "strings",
                        BasicArrayTypeInfo.STRING_ARRAY_TYPE_INFO,
                        new String[0],
                        new String[] {"a", null, "h\u00e9"}),
                Shape.value(
                        "boxed-longs",
                        BasicArrayTypeInfo.LONG_ARRAY_TYPE_INFO,
                        new Long[] {1L, null, -3L}));
    }

    /** Adds composite values, which contain other values. */
    private static void composites(StreamExecutionEnvironment env) {
        TypeInformation<Tuple3<String, Tuple2<Integer, Boolean>, Double>> nested =
                Types.TUPLE(Types.STRING, Types.TUPLE(Types.INT, Types.BOOLEAN), Types.DOUBLE);
        TypeInformation<Things.Person> person = Types.POJO(Things.Person.class);
        Things.Person anna =
                new Things.Person("Anna", 41, 12L, Things.Color.RED, new Things.Address("Elm", 3));
        Things.Person none = new Things.Person(null, 0, null, null, null);
        Row inner = Row.of(1L, null);
        PutStates.add(
                env,
                "composites",
                Types.STRING,
                TEXTS,
                Shape.value("tuple1", Types.TUPLE(Types.LONG), Tuple1.of(5L)),
                Shape.value("tuple2", Types.TUPLE(Types.STRING, Types.LONG), Tuple2.of("a", 1L), Tuple2.of(null, -1L)),
                Shape.value("nested-tuple", nested, Tuple3.of("t", Tuple2.of(7, true), 0.25)),
                Shape.value(
                        "row",
                        Types.ROW(Types.STRING, Types.LONG, Types.ROW(Types.LONG, Types.STRING)),
                        Row.of("a", 1L, inner),
                        Row.of(null, null, null),
                        Row.of("", 3L, null)),
                Shape.value(
                        "wide-row",
                        Types.ROW(
                                Types.INT, Types.INT, Types.INT, Types.INT, Types.INT, Types.INT,
                                Types.INT, Types.INT, Types.INT),
                        Row.of(1, null, 3, 4, 5, 6, null, 8, null),
                        Row.of(null, 2, null, null, null, null, 7, null, 9)),
                Shape.value(
                        "either",
                        new EitherTypeInfo<>(Types.STRING, Types.LONG),
                        Either.Left("left"),
                        Either.Right(7L)),
                Shape.value("list-value", Types.LIST(Types.LONG), List.of(1L, 2L), List.of()),
                Shape.value(
                        "map-value",
                        Types.MAP(Types.STRING, Types.INT),
                        new HashMap<>(Map.of("one", 1, "two", 2)),
                        withNull(),
                        Map.of()),
                Shape.value(
                        "map-of-numbers",
                        Types.MAP(Types.INT, Types.LIST(Types.STRING)),
                        Map.of(1, List.of("a", "b"))),
                Shape.value(
                        "tuples",
                        Types.OBJECT_ARRAY(Types.TUPLE(Types.STRING, Types.INT)),
                        tuples(Tuple2.of("a", 1), null),
                        tuples()),
                Shape.value("pojo", person, anna, none),
                Shape.list("pojos", person, Arrays.asList(anna, none), List.of(none)),
                Shape.map("pojo-by-name", Types.STRING, person, Map.of("anna", anna)),
                Shape.map(
                        "tuple-by-tuple",
                        Types.TUPLE(Types.STRING, Types.INT),
                        Types.TUPLE(Types.LONG),
                        Map.of(Tuple2.of("k", 1), Tuple1.of(2L))),
                Shape.map(
                        "nulls",
                        StringSerializer.INSTANCE,
                        NullableSerializer.wrap(LongSerializer.INSTANCE, true),
                        withNullLong()),
                Shape.map(
                        "unpadded-nulls",
                        StringSerializer.INSTANCE,
                        NullableSerializer.wrap(LongSerializer.INSTANCE, false),
                        withNullLong()),
                Shape.list("lists", Types.LIST(Types.INT), List.of(List.of(1, 2), List.of())),
                Shape.list("rows", Types.ROW(Types.LONG, Types.STRING), List.of(inner, Row.of(null, ","))));
    }

    private static Map<String, Integer> withNull() {
        Map<String, Integer> map = new HashMap<>();
        map.put("none", null);
        return map;
    }

    private static Map<String, Long> withNullLong() {
        Map<String, Long> map = new TreeMap<>();
        map.put("none", null);
        map.put("some", 3L);
        return map;
    }

    @SafeVarargs
    private static Tuple2<String, Integer>[] tuples(Tuple2<String, Integer>... tuples) {
        return tuples;
    }

    /** An average, whose accumulator contains the count and the sum. */
    static final class Mean
            implements AggregateFunction<Double, Tuple2<Long, Double>, Double> {
        private static final long serialVersionUID = 1L;

        @Override
        public Tuple2<Long, Double> createAccumulator() {
            return Tuple2.of(0L, 0.0);
        }

        @Override
        public Tuple2<Long, Double> add(Double value, Tuple2<Long, Double> sums) {
            return Tuple2.of(sums.f0 + 1, sums.f1 + value);
        }

        @Override
        public Double getResult(Tuple2<Long, Double> sums) {
            return sums.f1 / sums.f0;
        }

        @Override
        public Tuple2<Long, Double> merge(Tuple2<Long, Double> one, Tuple2<Long, Double> other) {
            return Tuple2.of(one.f0 + other.f0, one.f1 + other.f1);
        }
    }
}
