package testjobs;

import static testjobs.KeyedJob.Form.CANONICAL;
import static testjobs.KeyedJob.Form.NATIVE;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Date;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.UUID;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.api.java.typeutils.EitherTypeInfo;
import org.apache.flink.api.java.typeutils.GenericTypeInfo;
import org.apache.flink.api.java.typeutils.PojoTypeInfo;
import org.apache.flink.formats.avro.typeutils.AvroTypeInfo;
import org.apache.flink.formats.avro.typeutils.GenericRecordAvroTypeInfo;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.types.Either;
import org.apache.flink.types.Row;

/** Jobs with keys of every type, and with values of user classes (POJOs, Avro, and Kryo). */
final class TypeJobs implements KeyedJobBook {
    private static final String EMPLOYEE = "testjobs.Things$Employee";
    private static final List<Integer> FEW = List.of(1, 2);

    @Override
    public KeyedJob named(String name) {
        KeyedJob.Form[] both = {CANONICAL, NATIVE};
        return switch (name) {
            case "keys" -> KeyedJob.of(TypeJobs::keys, both).in(1, 16);
            case "namespaces" -> KeyedJob.of(TypeJobs::namespaces, both).in(1, 16);
            case "pojos" -> KeyedJob.of(TypeJobs::pojos, both)
                    .in(1, 16)
                    .with(
                            "pipeline.registered-pojo-types",
                            EMPLOYEE,
                            "pipeline.serialization-config",
                            "[" + EMPLOYEE + ": {type: pojo}]");
            case "avro" -> KeyedJob.of(TypeJobs::avro, both).in(1, 16);
            case "kryo" -> KeyedJob.of(TypeJobs::kryo, both).in(1, 16);
            case "jdk" -> KeyedJob.of(TypeJobs::jdk, both).in(1, 16);
            case "evolving" -> KeyedJob.of(env -> evolve(env, true), CANONICAL).in(1, 16);
            case "evolved" -> KeyedJob.of(env -> evolve(env, false), both)
                    .in(1, 16)
                    .afterJob("evolving");
            default -> null;
        };
    }

    /** Adds an operator for each type of key, with a count and timers. */
    private static void keys(StreamExecutionEnvironment env) {
        Things.Address elm = new Things.Address("Elm", 3);
        Instant instant = Instant.ofEpochSecond(-1_700_000_000L, 123_456_789);
        by(env, Types.LONG, 0L, -1L, Long.MIN_VALUE, 1L << 40);
        by(env, Types.INT, 0, -1, Integer.MIN_VALUE, 77);
        by(env, Types.SHORT, (short) 0, (short) -1, Short.MAX_VALUE);
        by(env, Types.BYTE, (byte) 0, (byte) -1, Byte.MIN_VALUE);
        by(env, Types.CHAR, 'a', '\u20ac');
        by(env, Types.BOOLEAN, true, false);
        by(env, Types.DOUBLE, 0.0, -0.0, 0.1, Double.NaN, Double.MAX_VALUE);
        by(env, Types.FLOAT, 0.0f, -0.0f, 0.1f, Float.NEGATIVE_INFINITY);
        by(env, Types.STRING, "", "a", "h\u00e9llo", "\ud83d\ude00", "a".repeat(200));
        by(env, Types.BIG_INT, BigInteger.TEN, new BigInteger("-98765432109876543210"), BigInteger.TWO.pow(63));
        by(env, Types.BIG_DEC, BigDecimal.ONE, new BigDecimal("1.0"), new BigDecimal("-1234567890123.45"));
        by(env, Types.INSTANT, instant, Instant.EPOCH);
        by(env, Types.LOCAL_DATE, LocalDate.of(2024, 2, 29), LocalDate.of(-5, 1, 1));
        by(env, Types.LOCAL_TIME, LocalTime.MIDNIGHT, LocalTime.of(23, 59, 59, 999_999_999));
        by(env, Types.LOCAL_DATE_TIME, LocalDateTime.of(1969, 12, 31, 23, 59, 59, 7));
        by(env, TypeInformation.of(Date.class), new Date(0), new Date(-1_700_000_000_123L));
        by(env, Types.SQL_DATE, java.sql.Date.valueOf("2024-02-29"));
        by(env, Types.SQL_TIME, java.sql.Time.valueOf("01:02:03"));
        by(env, Types.SQL_TIMESTAMP, java.sql.Timestamp.from(instant));
        by(env, Types.TUPLE(Types.STRING, Types.LONG), Tuple2.of("a", 1L), Tuple2.of("", -7L));
        by(
                env,
                Types.TUPLE(Types.TUPLE(Types.INT, Types.BOOLEAN), Types.DOUBLE, Types.STRING),
                Tuple3.of(Tuple2.of(1, true), 0.5, "x"),
                Tuple3.of(Tuple2.of(-1, false), -0.5, ""));
        by(env, Types.ROW(Types.STRING, Types.INT), Row.of("a", 1), Row.of(null, 2));
        by(env, Types.POJO(Things.Person.class), new Things.Person("Anna", 41, 1L, Things.Color.RED, elm));
        by(env, new EitherTypeInfo<>(Types.STRING, Types.LONG), Either.Left("a"), Either.Right(-1L));
    }

    @SafeVarargs
    private static <K> void by(StreamExecutionEnvironment env, TypeInformation<K> type, K... keys) {
        PutStates.add(
                env,
                "keyed by " + type.getTypeClass().getName(),
                type,
                List.of(keys),
                Shape.value("count", Types.LONG, 1L, 2L, 3L),
                Shape.map("named", Types.STRING, Types.LONG, Map.of("a", 1L)),
                Shape.timers(true, 4_102_444_800_000L));
    }

    private static void namespaces(StreamExecutionEnvironment env) {
        env.fromSource(new Numbers("numbers", 8), WatermarkStrategy.noWatermarks(), "numbers")
                .uid("numbers")
                .keyBy(number -> "key-".repeat(number), Types.STRING)
                .transform("namespaces", Types.VOID, new NamespaceOperator())
                .uid("namespaces");
    }

    private static void pojos(StreamExecutionEnvironment env) {
        TypeInformation<Things.Person> person = Types.POJO(Things.Person.class);
        Things.Basket full = new Things.Basket(1, new ArrayList<>(List.of("a", "b")), new HashMap<>(Map.of("a", 1)), 3, 4);
        Things.Basket empty = new Things.Basket(-1, null, new HashMap<>());
        List<Shape> shapes = new ArrayList<>();
        shapes.add(
                Shape.value(
                        "registered",
                        person,
                        new Things.Employee("Bo", 30, "ACME", 1_000L),
                        new Things.Person("Anna", 41, null, Things.Color.BLUE, null)));
        shapes.add(Shape.value("basket", Types.POJO(Things.Basket.class), full, empty));
        shapes.add(Shape.value("moments", Types.POJO(Things.Moments.class), Things.Moments.sample(), new Things.Moments()));
        if (TypeInformation.of(Recorded.class) instanceof PojoTypeInfo<Recorded> record) {
            shapes.add(
                    Shape.value(
                            "record",
                            record,
                            new Recorded("Anna", 41, Things.Color.RED),
                            new Recorded(null, 0, null)));
        }
        setType().ifPresent(type -> shapes.add(Shape.value("set", type, Set.of(1), Set.of())));
        PutStates.add(env, "pojos", Types.INT, FEW, shapes.toArray(Shape[]::new));
        PutStates.add(
                env,
                "pojos-of-a-user",
                Types.INT,
                FEW,
                Shape.value("before", Types.LONG, 1L, 2L),
                Shape.value("manager", person, new Things.Manager("Cy", 50)),
                Shape.value("tree", Types.POJO(Things.Tree.class), Things.Tree.sample()),
                Shape.value("holder", Types.POJO(Things.Holder.class), Things.Holder.sample()),
                Shape.value("then", Types.STRING, "a", "b"));
    }

    /** Returns the type of a set, which exists since Flink 2.0. */
    @SuppressWarnings("unchecked")
    private static java.util.Optional<TypeInformation<Set<Integer>>> setType() {
        try {
            return java.util.Optional.of(
                    (TypeInformation<Set<Integer>>)
                            Types.class.getMethod("SET", TypeInformation.class).invoke(null, Types.INT));
        } catch (ReflectiveOperationException before) {
            return java.util.Optional.empty();
        }
    }

    private static void avro(StreamExecutionEnvironment env) {
        PutStates.add(
                env,
                "avro",
                Types.INT,
                FEW,
                Shape.value(
                        "generic",
                        new GenericRecordAvroTypeInfo(AvroThing.GENERIC),
                        AvroThing.generic(0),
                        AvroThing.generic(1)),
                Shape.list(
                        "specific",
                        new AvroTypeInfo<>(AvroThing.class),
                        List.of(new AvroThing("one", 1L), new AvroThing("", null))));
    }

    /** Adds values that Kryo writes, of standard classes and of a user class. */
    private static void kryo(StreamExecutionEnvironment env) {
        TypeInformation<Object> any = new GenericTypeInfo<>(Object.class);
        PutStates.add(
                env,
                "kryo",
                Types.INT,
                FEW,
                Shape.value("string", any, "text", "h\u00e9 \u65e5"),
                Shape.value("int", any, 1, Integer.MIN_VALUE),
                Shape.value("long", any, -1L, Long.MAX_VALUE),
                Shape.value("short", any, (short) -1),
                Shape.value("byte", any, (byte) -1),
                Shape.value("boolean", any, true, false),
                Shape.value("float", any, 0.5f, -0.1f),
                Shape.value("double", any, 0.5, -0.1),
                Shape.value("char", any, 'c', '\u20ac'),
                Shape.value("strings", any, new ArrayList<>(List.of("a", "b", "a"))),
                Shape.value("list", any, new ArrayList<>(Arrays.asList(1L, "two", null, 3))),
                Shape.value("map", any, new HashMap<>(Map.of("a", 1L)), new TreeMap<>(Map.of("b", 2))),
                Shape.value("nested", any, new HashMap<>(Map.of("l", new ArrayList<>(List.of(1, 2))))),
                Shape.value("date", any, new Date(1_700_000_000_123L)),
                Shape.value("decimal", any, new BigDecimal("-12.50"), BigDecimal.ZERO),
                Shape.value("integer", any, new BigInteger("12345678901234567890"), BigInteger.ONE),
                Shape.value("local-date", new GenericTypeInfo<>(LocalDate.class), LocalDate.of(2024, 2, 29)),
                Shape.value("local-time", new GenericTypeInfo<>(LocalTime.class), LocalTime.of(1, 2), LocalTime.of(1, 2, 3, 4)),
                Shape.value(
                        "local-date-time",
                        new GenericTypeInfo<>(LocalDateTime.class),
                        LocalDateTime.of(2024, 2, 29, 23, 59)),
                Shape.value("instant", new GenericTypeInfo<>(Instant.class), Instant.ofEpochSecond(5, 6)));
        PutStates.add(
                env,
                "kryo-of-a-user",
                Types.INT,
                FEW,
                Shape.value("before", Types.LONG, 1L, 2L),
                Shape.value("secret", new GenericTypeInfo<>(Secret.class), new Secret("a", 1)),
                Shape.map(
                        "secrets",
                        Types.STRING,
                        new GenericTypeInfo<>(Secret.class),
                        Map.of("a", new Secret("b", 2))),
                Shape.value("then", Types.STRING, "a", "b"));
    }

    /** Adds keys, fields, and elements of JDK classes that Kryo writes. */
    private static void jdk(StreamExecutionEnvironment env) {
        List<UUID> ids = new ArrayList<>();
        for (int i = 0; i < 6; i++) {
            ids.add(UUID.nameUUIDFromBytes(new byte[] {(byte) i}));
        }
        TypeInformation<UUID> id = new GenericTypeInfo<>(UUID.class);
        PutStates.add(
                env,
                "keyed by id",
                id,
                ids,
                Shape.value("count", Types.LONG, 1L, 2L),
                Shape.value(
                        "order",
                        Types.POJO(Things.Order.class),
                        new Things.Order(ids.get(0), Duration.ofSeconds(-90, 5), 7),
                        new Things.Order(null, null, 8)),
                Shape.list("ids", id, List.of(ids.get(1), ids.get(2))),
                Shape.map("lasting", id, new GenericTypeInfo<>(Duration.class), Map.of(ids.get(3), Duration.ZERO))
                        .lasting(),
                Shape.timers(true, 4_102_444_800_000L));
    }

    /** Only the first job writes the state "untouched", so it keeps the format of the old class. */
    private static void evolve(StreamExecutionEnvironment env, boolean first) {
        TypeInformation<Evolving> type = Types.POJO(Evolving.class);
        List<Shape> shapes = new ArrayList<>();
        shapes.add(Shape.value("touched", type, Evolving.sample(0), Evolving.sample(1)));
        shapes.add(Shape.value("count", Types.LONG, 1L, 2L));
        if (first) {
            shapes.add(Shape.value("untouched", type, Evolving.sample(2), Evolving.sample(3)));
        }
        List<Integer> keys = first ? List.of(1, 2, 3) : List.of(1, 2, 3, 4, 5);
        PutStates.add(env, "evolved", Types.INT, keys, shapes.toArray(Shape[]::new));
    }
}
