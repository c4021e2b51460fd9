package testjobs;

import java.io.ByteArrayOutputStream;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.DayOfWeek;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.Month;
import java.time.OffsetDateTime;
import java.time.OffsetTime;
import java.time.ZoneOffset;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Date;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.Hashtable;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.LinkedList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.Stack;
import java.util.TimeZone;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import java.util.Vector;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.generic.GenericRecordBuilder;
import org.apache.flink.api.common.serialization.SerializerConfigImpl;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshot;
import org.apache.flink.api.common.typeutils.base.*;
import org.apache.flink.api.common.typeutils.base.array.*;
import org.apache.flink.api.java.tuple.Tuple0;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.typeutils.EitherTypeInfo;
import org.apache.flink.api.java.typeutils.GenericTypeInfo;
import org.apache.flink.api.java.typeutils.runtime.NullableSerializer;
import org.apache.flink.api.java.typeutils.runtime.Tuple0Serializer;
import org.apache.flink.api.java.typeutils.runtime.kryo.KryoSerializer;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.memory.DataOutputViewStreamWrapper;
import org.apache.flink.formats.avro.typeutils.AvroSerializer;
import org.apache.flink.formats.avro.typeutils.GenericRecordAvroTypeInfo;
import org.apache.flink.runtime.state.KeyGroupRangeAssignment;
import org.apache.flink.runtime.state.SerializedCompositeKeyBuilder;
import org.apache.flink.runtime.state.VoidNamespace;
import org.apache.flink.runtime.state.VoidNamespaceSerializer;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.streaming.api.windowing.windows.GlobalWindow;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.api.dataview.ListView;
import org.apache.flink.table.api.dataview.MapView;
import org.apache.flink.table.catalog.ObjectIdentifier;
import org.apache.flink.table.data.DecimalData;
import org.apache.flink.table.data.GenericArrayData;
import org.apache.flink.table.data.GenericMapData;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RawValueData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.data.TimestampData;
import org.apache.flink.table.dataview.ListViewSerializer;
import org.apache.flink.table.dataview.MapViewSerializer;
import org.apache.flink.table.dataview.NullAwareMapSerializer;
import org.apache.flink.table.runtime.operators.window.CountWindow;
import org.apache.flink.table.runtime.typeutils.*;
import org.apache.flink.table.runtime.util.WindowKey;
import org.apache.flink.table.types.logical.*;
import org.apache.flink.types.*;

/**
 * Prints, for each of Flink's serializers, its snapshot, a serialized value, and the JSON form of
 * the value. A value that can be a key is also printed as the key of a canonical savepoint, with
 * the namespace "ns".
 */
public final class Serializers {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final HexFormat HEX = HexFormat.of();
    private static final int MAX_PARALLELISM = 128;
    private static final String TYPES = "org.apache.flink.api.common.typeutils.";
    private static final String LINKED =
            "org.apache.flink.table.runtime.sequencedmultisetstate.linked.";

    private static final List<Map<String, Object>> WRITTEN = new ArrayList<>();

    private Serializers() {}

    /** Prints a JSON array. */
    public static void main(String[] args) throws Exception {
        TimeZone.setDefault(TimeZone.getTimeZone("UTC"));
        scalars();
        arrays();
        composites();
        sql();
        sqlRows();
        onlySince2();
        avro();
        kryo();
        System.out.println(JSON.writeValueAsString(WRITTEN));
    }

    private static <T> void add(String name, TypeSerializer<T> serializer, T value)
            throws Exception {
        put(name, serializer, value, Told.of(value, serializer), -1);
    }

    private static <T> void add(String name, TypeSerializer<T> serializer, T value, String told)
            throws Exception {
        put(name, serializer, value, JSON.readValue(told, Object.class), -1);
    }

    private static <T> void key(String name, TypeSerializer<T> serializer, T value)
            throws Exception {
        put(name, serializer, value, Told.of(value, serializer), groupOf(value));
    }

    private static <T> void key(String name, TypeSerializer<T> serializer, T value, String told)
            throws Exception {
        put(name, serializer, value, JSON.readValue(told, Object.class), groupOf(value));
    }

    private static int groupOf(Object key) {
        return KeyGroupRangeAssignment.assignToKeyGroup(key, MAX_PARALLELISM);
    }

    /** Adds a key whose hash code does not follow from its bytes, so any key group is possible. */
    private static <T> void anyKey(String name, TypeSerializer<T> serializer, T value, String told)
            throws Exception {
        put(name, serializer, value, JSON.readValue(told, Object.class), 5);
    }

    /** Adds a value; {@code keyGroup} is negative if the value is not a key. */
    private static <T> void put(
            String name, TypeSerializer<T> serializer, T value, Object told, int keyGroup)
            throws Exception {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("name", name);
        line.put("snapshot", hex(out -> TypeSerializerSnapshot.writeVersionedSnapshot(
                out, serializer.snapshotConfiguration())));
        line.put("value", hex(out -> serializer.serialize(value, out)));
        line.put("told", told);
        if (keyGroup >= 0) {
            SerializedCompositeKeyBuilder<T> builder =
                    new SerializedCompositeKeyBuilder<>(serializer, 1, 32);
            builder.setKeyAndKeyGroup(value, keyGroup);
            line.put("key_group", keyGroup);
            line.put("key", HEX.formatHex(
                    builder.buildCompositeKeyNamespace("ns", StringSerializer.INSTANCE)));
        }
        WRITTEN.add(line);
    }

    private interface Writes {
        void to(DataOutputViewStreamWrapper out) throws Exception;
    }

    private static String hex(Writes writes) throws Exception {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        writes.to(new DataOutputViewStreamWrapper(bytes));
        return HEX.formatHex(bytes.toByteArray());
    }

    /** Creates an object of a class that is not public, or whose package depends on the version. */
    @SuppressWarnings("unchecked")
    private static <T> T make(String className, Object... arguments) throws Exception {
        for (Constructor<?> made : Class.forName(className).getDeclaredConstructors()) {
            if (made.getParameterCount() == arguments.length) {
                try {
                    made.setAccessible(true);
                    return (T) made.newInstance(arguments);
                } catch (IllegalArgumentException other) {
                    continue;
                } catch (InvocationTargetException error) {
                    throw new AssertionError(error);
                }
            }
        }
        throw new IllegalArgumentException(className);
    }

    private static void scalars() throws Exception {
        key("boolean", BooleanSerializer.INSTANCE, true);
        key("boolean", BooleanSerializer.INSTANCE, false);
        key("byte", ByteSerializer.INSTANCE, (byte) -2);
        key("short", ShortSerializer.INSTANCE, (short) -300);
        key("int", IntSerializer.INSTANCE, -70_000);
        key("long", LongSerializer.INSTANCE, -5_000_000_000L);
        key("long", LongSerializer.INSTANCE, 1L << 40 | 5);
        key("float", FloatSerializer.INSTANCE, -1.5f);
        key("float", FloatSerializer.INSTANCE, Float.NaN);
        key("double", DoubleSerializer.INSTANCE, -0.1);
        key("double", DoubleSerializer.INSTANCE, Double.NaN);
        key("double", DoubleSerializer.INSTANCE, Double.NEGATIVE_INFINITY);
        add("float", FloatSerializer.INSTANCE, Float.POSITIVE_INFINITY);
        key("char", CharSerializer.INSTANCE, '\u20ac');
        add("char", CharSerializer.INSTANCE, '\ud800', "\"\ufffd\"");
        add("char", CharSerializer.INSTANCE, '\udfff', "\"\ufffd\"");
        key("char", CharSerializer.INSTANCE, '\ue000');
        key("char", CharSerializer.INSTANCE, '\ud7ff');
        key("string", StringSerializer.INSTANCE, "");
        key("string", StringSerializer.INSTANCE, "a,b");
        key("string", StringSerializer.INSTANCE, "\u007f\u0080\u3fff\u4000\uffff\ud83d\ude00");
        key("string", StringSerializer.INSTANCE, "x".repeat(126));
        key("string", StringSerializer.INSTANCE, "x".repeat(127));
        key("string", StringSerializer.INSTANCE, "x".repeat(16_384));
        key("string", StringSerializer.INSTANCE, "\u00e9".repeat(200));
        add("string", StringSerializer.INSTANCE, "\ud800", "\"\ufffd\"");
        add("string", StringSerializer.INSTANCE, null);
        key("big integer", BigIntSerializer.INSTANCE, BigInteger.ZERO);
        key("big integer", BigIntSerializer.INSTANCE, BigInteger.ONE);
        key("big integer", BigIntSerializer.INSTANCE, BigInteger.TEN);
        key("big integer", BigIntSerializer.INSTANCE, new BigInteger("-12345678901234567890123"));
        key("big integer", BigIntSerializer.INSTANCE, BigInteger.TWO.pow(32));
        key("big integer", BigIntSerializer.INSTANCE, BigInteger.valueOf(-128));
        add("big integer", BigIntSerializer.INSTANCE, null);
        key("big decimal", BigDecSerializer.INSTANCE, new BigDecimal("-0.050"));
        key("big decimal", BigDecSerializer.INSTANCE, BigDecimal.ZERO);
        key("big decimal", BigDecSerializer.INSTANCE, BigDecimal.TEN);
        key("big decimal", BigDecSerializer.INSTANCE, new BigDecimal("123456789012.5"));
        key("big decimal", BigDecSerializer.INSTANCE, new BigDecimal("9223372036854775807"));
        key("big decimal", BigDecSerializer.INSTANCE, new BigDecimal("9223372036854775808"));
        key("big decimal", BigDecSerializer.INSTANCE, new BigDecimal("-12345678901234567890.123"));
        add("big decimal", BigDecSerializer.INSTANCE, null);
        key("date", DateSerializer.INSTANCE, new Date(-1_700_000_000_123L));
        add("date", DateSerializer.INSTANCE, null);
        key("sql date", SqlDateSerializer.INSTANCE, java.sql.Date.valueOf("1969-12-30"));
        add("sql date", SqlDateSerializer.INSTANCE, null);
        key("sql time", SqlTimeSerializer.INSTANCE, java.sql.Time.valueOf("23:02:03"));
        add("sql time", SqlTimeSerializer.INSTANCE, null);
        java.sql.Timestamp stamp = new java.sql.Timestamp(-1_700_000_000_123L);
        stamp.setNanos(877_654_321);
        key("sql timestamp", SqlTimestampSerializer.INSTANCE, stamp);
        add("sql timestamp", SqlTimestampSerializer.INSTANCE, null);
        key("instant", InstantSerializer.INSTANCE, Instant.ofEpochSecond(-5_000_000_000L, 7));
        key("instant", InstantSerializer.INSTANCE, Instant.MAX);
        key("instant", InstantSerializer.INSTANCE, Instant.MIN);
        add("instant", InstantSerializer.INSTANCE, null);
        key("local date", LocalDateSerializer.INSTANCE, LocalDate.of(-4_000, 12, 31));
        key("local date", LocalDateSerializer.INSTANCE, LocalDate.MAX);
        key("local date", LocalDateSerializer.INSTANCE, LocalDate.MIN);
        add("local date", LocalDateSerializer.INSTANCE, null);
        key("local time", LocalTimeSerializer.INSTANCE, LocalTime.MAX);
        key("local time", LocalTimeSerializer.INSTANCE, LocalTime.MIDNIGHT);
        key("local time", LocalTimeSerializer.INSTANCE, LocalTime.of(13, 4, 5, 600));
        add("local time", LocalTimeSerializer.INSTANCE, null);
        key("local date-time", LocalDateTimeSerializer.INSTANCE, LocalDateTime.of(2024, 2, 29, 23, 59, 58, 9));
        add("local date-time", LocalDateTimeSerializer.INSTANCE, null);
        add("void", VoidSerializer.INSTANCE, null);
        add("null", org.apache.flink.table.dataview.NullSerializer.INSTANCE, null);
        add("void namespace", VoidNamespaceSerializer.INSTANCE, VoidNamespace.INSTANCE, "null");
        anyKey("global window", new GlobalWindow.Serializer(), GlobalWindow.get(), "null");
        anyKey("time window", new TimeWindow.Serializer(), new TimeWindow(-5L, 5_000_000_000L), "{\"start\": -5, \"end\": 5000000000}");
        add(
                "time window of SQL",
                new org.apache.flink.table.runtime.operators.window.TimeWindow.Serializer(),
                new org.apache.flink.table.runtime.operators.window.TimeWindow(-5L, 7L));
        anyKey("count window", new CountWindow.Serializer(), new CountWindow(-3L), "{\"id\": -3}");
        // Flink's mutable value types (LongValue and so on), which serialize themselves.
        key("boolean value", BooleanValueSerializer.INSTANCE, new BooleanValue(true), "true");
        key("byte value", ByteValueSerializer.INSTANCE, new ByteValue((byte) -1), "-1");
        key("char value", CharValueSerializer.INSTANCE, new CharValue('c'), "\"c\"");
        key("double value", DoubleValueSerializer.INSTANCE, new DoubleValue(0.5), "0.5");
        key("float value", FloatValueSerializer.INSTANCE, new FloatValue(0.5f), "0.5");
        key("int value", IntValueSerializer.INSTANCE, new IntValue(-1), "-1");
        key("long value", LongValueSerializer.INSTANCE, new LongValue(-1L), "-1");
        key("null value", NullValueSerializer.INSTANCE, NullValue.getInstance(), "null");
        key("short value", ShortValueSerializer.INSTANCE, new ShortValue((short) -1), "-1");
        key("string value", StringValueSerializer.INSTANCE, new StringValue("x".repeat(130)), "\"" + "x".repeat(130) + "\"");
        key("string value", StringValueSerializer.INSTANCE, new StringValue("\u20ac"), "\"\u20ac\"");
        anyKey("enum", new EnumSerializer<>(Things.Color.class), Things.Color.BLUE, "\"BLUE\"");
        key("tuple0", Tuple0Serializer.INSTANCE, Tuple0.INSTANCE, "{}");
    }

    private static void arrays() throws Exception {
        add("boolean[]", BooleanPrimitiveArraySerializer.INSTANCE, new boolean[] {true, false});
        add("byte[]", BytePrimitiveArraySerializer.INSTANCE, new byte[] {1, -1, 44});
        add("byte[]", BytePrimitiveArraySerializer.INSTANCE, new byte[0]);
        add("char[]", CharPrimitiveArraySerializer.INSTANCE, new char[] {'a', '\u20ac'});
        add("double[]", DoublePrimitiveArraySerializer.INSTANCE, new double[] {0.5, -1});
        add("float[]", FloatPrimitiveArraySerializer.INSTANCE, new float[] {0.5f, -1});
        add("int[]", IntPrimitiveArraySerializer.INSTANCE, new int[] {1, -1});
        add("long[]", LongPrimitiveArraySerializer.INSTANCE, new long[] {1, -1});
        add("short[]", ShortPrimitiveArraySerializer.INSTANCE, new short[] {1, -1});
        add("String[]", StringArraySerializer.INSTANCE, new String[] {"a", null, ""});
        add(
                "Integer[]",
                new GenericArraySerializer<>(Integer.class, IntSerializer.INSTANCE),
                new Integer[] {1, null, 3});
    }

    private static <T> TypeSerializer<T> of(TypeInformation<T> type) {
        return type.createSerializer(new SerializerConfigImpl());
    }

    private static void composites() throws Exception {
        TypeSerializer<Tuple2<Integer, String>> mixed = of(Types.TUPLE(Types.INT, Types.STRING));
        key("tuple", mixed, Tuple2.of(-1, "a"));
        key("tuple", mixed, Tuple2.of(7, ""));
        key("tuple of a fixed length", of(Types.TUPLE(Types.LONG, Types.SHORT)), Tuple2.of(1L << 33, (short) 2));
        key(
                "tuple of tuples",
                of(Types.TUPLE(Types.TUPLE(Types.BYTE, Types.CHAR), Types.BIG_DEC)),
                Tuple2.of(Tuple2.of((byte) 3, 'd'), new BigDecimal("2.50")));
        EitherTypeInfo<String, Long> either = new EitherTypeInfo<>(Types.STRING, Types.LONG);
        key("either", of(either), Either.Left("l"));
        key("either", of(either), Either.Right(-9L));
        TypeSerializer<Row> row = of(Types.ROW(
                Types.INT, Types.STRING, Types.INT, Types.INT, Types.INT, Types.INT, Types.LONG));
        add("row", row, Row.of(1, null, 3, 4, null, 6, null));
        add("row", row, Row.of(null, "b", null, null, 5, null, 7L));
        Row deleted = Row.of("gone", 2);
        deleted.setKind(RowKind.DELETE);
        add("row that was deleted", of(Types.ROW(Types.STRING, Types.INT)), deleted);
        add("list", of(Types.LIST(Types.STRING)), List.of("a", ""));
        add("list", of(Types.LIST(Types.STRING)), List.of());
        add("map", of(Types.MAP(Types.STRING, Types.LONG)), ordered("a", 1L, "b", null));
        add("map", of(Types.MAP(Types.INT, Types.BOOLEAN)), ordered(1, true, -2, false));
        add(
                "tagged union",
                Serializers.<TypeSerializer<Object>>make(
                        "org.apache.flink.streaming.api.datastream.CoGroupedStreams$UnionSerializer",
                        IntSerializer.INSTANCE,
                        StringSerializer.INSTANCE),
                tagged("one", 5),
                "{\"one\": 5, \"two\": null}");
        add(
                "tagged union",
                Serializers.<TypeSerializer<Object>>make(
                        "org.apache.flink.streaming.api.datastream.CoGroupedStreams$UnionSerializer",
                        IntSerializer.INSTANCE,
                        StringSerializer.INSTANCE),
                tagged("two", "t"),
                "{\"one\": null, \"two\": \"t\"}");
        TypeSerializer<Long> nullable = NullableSerializer.wrap(LongSerializer.INSTANCE, false);
        TypeSerializer<Long> padded = NullableSerializer.wrap(LongSerializer.INSTANCE, true);
        add("nullable", nullable, null);
        anyKey("nullable", nullable, 4L, "4");
        add("nullable, padded", padded, null);
        anyKey("nullable, padded", padded, 4L, "4");
        add("list of nullable, padded", new ListSerializer<>(padded), Arrays.asList(1L, null, 3L));
        add("pojo", of(Types.POJO(Things.Address.class)), new Things.Address("Elm", null));
        add("pojo", of(Types.POJO(Things.Address.class)), null, "null");
    }

    private static Object tagged(String one, Object value) throws Exception {
        Class<?> type;
        try {
            type = Class.forName("org.apache.flink.util.TaggedUnion");
        } catch (ClassNotFoundException before2) {
            type = Class.forName("org.apache.flink.streaming.api.datastream.CoGroupedStreams$TaggedUnion");
        }
        return type.getMethod(one, Object.class).invoke(null, value);
    }

    private static <K, V> Map<K, V> ordered(K one, V first, K other, V second) {
        Map<K, V> map = new LinkedHashMap<>();
        map.put(one, first);
        map.put(other, second);
        return map;
    }

    private static void sql() throws Exception {
        anyKey("StringData", StringDataSerializer.INSTANCE, StringData.fromString("h\u00e9"), "\"h\u00e9\"");
        TypeSerializer<DecimalData> small = new DecimalDataSerializer(18, 3);
        anyKey("DecimalData", small, DecimalData.fromBigDecimal(new BigDecimal("-1234.567"), 18, 3), "\"-1234.567\"");
        TypeSerializer<DecimalData> large = new DecimalDataSerializer(19, 3);
        anyKey("DecimalData", large, DecimalData.fromBigDecimal(new BigDecimal("-1234567890123456.789"), 19, 3), "\"-1234567890123456.789\"");
        LocalDateTime time = LocalDateTime.of(1969, 12, 31, 23, 59, 58, 123_000_000);
        anyKey("TimestampData", new TimestampDataSerializer(3), TimestampData.fromLocalDateTime(time), "\"" + time + "\"");
        anyKey("TimestampData", new TimestampDataSerializer(4), TimestampData.fromLocalDateTime(time.plusNanos(456_700)), "\"" + time.plusNanos(456_700) + "\"");
        add("TimestampData", new TimestampDataSerializer(9), TimestampData.fromEpochMillis(-1, 999_999));
        add(
                "ArrayData",
                new ArrayDataSerializer(new BigIntType()),
                new GenericArrayData(new Long[] {1L, null, -3L}));
        add(
                "MapData",
                new MapDataSerializer(new IntType(), VarCharType.STRING_TYPE),
                new GenericMapData(ordered(1, StringData.fromString("one"), 2, null)));
        add("NullAwareMap", new NullAwareMapSerializer<>(StringSerializer.INSTANCE, LongSerializer.INSTANCE), ordered("a", null, null, 5L));
        ListView<Long> list = new ListView<>();
        list.setList(List.of(1L, 2L));
        add("ListView", new ListViewSerializer<>(new ListSerializer<>(LongSerializer.INSTANCE)), list, "[1, 2]");
        MapView<String, Long> map = new MapView<>();
        map.setMap(new HashMap<>(Map.of("a", 1L)));
        add("MapView", new MapViewSerializer<>(new MapSerializer<>(StringSerializer.INSTANCE, LongSerializer.INSTANCE)), map, "{\"a\": 1}");
        LinkedList<Integer> linked = new LinkedList<>(Arrays.asList(1, null, 3, null, null, 6, 7, 8, null, 10));
        add("LinkedList", new LinkedListSerializer<>(IntSerializer.INSTANCE), linked);
        add("LinkedList without nulls", new LinkedListSerializer<>(IntSerializer.INSTANCE, false), new LinkedList<>(List.of(1, 2)));
        add("External", ExternalSerializer.of(DataTypes.INT()), 5, "5");
        add("External", ExternalSerializer.of(DataTypes.ARRAY(DataTypes.INT())), new Integer[] {5, null}, "[5, null]");
        add("RawValue", new RawValueDataSerializer<>(LongSerializer.INSTANCE), RawValueData.fromObject(258L), "\"0000000000000102\"");
        GenericRowData one = GenericRowData.of(7L);
        RowDataSerializer ofOne = new RowDataSerializer(new BigIntType());
        add("WindowKey", new WindowKeySerializer(ofOne), new WindowKey(-2L, one), "{\"window\": -2, \"key\": {\"f0\": 7}}");
        add("BinaryRow", new BinaryRowDataSerializer(1), ofOne.toBinaryRow(one), "\"00000000000000000700000000000000\"");
        TreeMap<Integer, String> sorted = new TreeMap<>(Map.of(1, "a", 2, "b"));
        add("SortedMap", new SortedMapSerializer<>(new RowDataComparator(), IntSerializer.INSTANCE, StringSerializer.INSTANCE), sorted);
    }

    /** A comparator that is serializable, like the comparators that a planner generates. */
    private static final class RowDataComparator
            implements java.util.Comparator<Integer>, java.io.Serializable {
        private static final long serialVersionUID = 1L;

        @Override
        public int compare(Integer one, Integer other) {
            return one.compareTo(other);
        }
    }

    private static void sqlRows() throws Exception {
        StructuredType parent =
                StructuredType.newBuilder(ObjectIdentifier.of("c", "d", "parent"))
                        .attributes(List.of(new StructuredType.StructuredAttribute("first", new IntType())))
                        .setFinal(false)
                        .build();
        StructuredType child =
                StructuredType.newBuilder(ObjectIdentifier.of("c", "d", "child"))
                        .attributes(List.of(new StructuredType.StructuredAttribute("second", VarCharType.STRING_TYPE)))
                        .superType(parent)
                        .build();
        DistinctType distinct =
                DistinctType.newBuilder(ObjectIdentifier.of("c", "d", "money"), new DecimalType(10, 2)).build();
        LogicalType[] types = {
            new BooleanType(), new TinyIntType(), new SmallIntType(), new IntType(),
            new BigIntType(), new FloatType(), new DoubleType(), new CharType(2),
            VarCharType.STRING_TYPE, new BinaryType(2), new VarBinaryType(20), new DateType(),
            new TimeType(3), new YearMonthIntervalType(YearMonthIntervalType.YearMonthResolution.YEAR_TO_MONTH),
            new DayTimeIntervalType(DayTimeIntervalType.DayTimeResolution.DAY_TO_SECOND),
            new TimestampType(3), new TimestampType(9), new LocalZonedTimestampType(3),
            new LocalZonedTimestampType(6), new DecimalType(18, 2), new DecimalType(38, 10),
            new RawType<>(Long.class, LongSerializer.INSTANCE), distinct, child,
            new MultisetType(VarCharType.STRING_TYPE),
            RowType.of(new LogicalType[] {new IntType(), VarCharType.STRING_TYPE}, new String[] {"a", "b"}),
            RowType.of(new LogicalType[] {}, new String[] {}),
            new MapType(new TinyIntType(), new ArrayType(new SmallIntType())),
        };
        RowDataSerializer serializer = new RowDataSerializer(types);
        // Generated code writes a value of a distinct type as its source type.
        LogicalType[] written = types.clone();
        written[Arrays.asList(types).indexOf(distinct)] = new DecimalType(10, 2);
        RowDataSerializer writer = new RowDataSerializer(written);
        GenericRowData full = GenericRowData.of(
                true, (byte) -1, (short) -2, -3,
                -4L, 0.5f, -0.25, StringData.fromString("ab"),
                StringData.fromString("1234567"), new byte[] {1, 2}, new byte[] {1, 2, 3, 4, 5, 6, 7, 8}, -1,
                86_399_999, 14,
                -86_400_001L,
                TimestampData.fromEpochMillis(-1), TimestampData.fromEpochMillis(-1, 999_999),
                TimestampData.fromEpochMillis(1), TimestampData.fromEpochMillis(1, 2_000),
                DecimalData.fromBigDecimal(new BigDecimal("-1.25"), 18, 2),
                DecimalData.fromBigDecimal(new BigDecimal("-12345678901234567890.0123456789"), 38, 10),
                RawValueData.fromObject(1L), DecimalData.fromBigDecimal(new BigDecimal("2.50"), 10, 2),
                GenericRowData.of(5, StringData.fromString("longer than a slot")),
                new GenericMapData(Map.of(StringData.fromString("twice"), 2)),
                GenericRowData.of(1, StringData.fromString("")),
                new GenericRowData(0),
                new GenericMapData(Map.of((byte) 1, new GenericArrayData(new Short[] {1, null, -3}))));
        key(
                "row of every type of SQL's",
                serializer,
                writer.toBinaryRow(full).copy(),
                "{\"f0\": true, \"f1\": -1, \"f2\": -2, \"f3\": -3, \"f4\": -4, \"f5\": 0.5, \"f6\": -0.25,"
                        + " \"f7\": \"ab\", \"f8\": \"1234567\", \"f9\": \"0102\", \"f10\": \"0102030405060708\","
                        + " \"f11\": \"1969-12-31\", \"f12\": \"23:59:59.999\", \"f13\": 14, \"f14\": -86400001,"
                        + " \"f15\": \"1969-12-31T23:59:59.999\","
                        + " \"f16\": \"1969-12-31T23:59:59.999999999\", \"f17\": \"1970-01-01T00:00:00.001Z\","
                        + " \"f18\": \"1970-01-01T00:00:00.001002Z\", \"f19\": \"-1.25\","
                        + " \"f20\": \"-12345678901234567890.0123456789\", \"f21\": \"0000000000000001\","
                        + " \"f22\": \"2.50\", \"f23\": {\"first\": 5, \"second\": \"longer than a slot\"},"
                        + " \"f24\": {\"twice\": 2}, \"f25\": {\"a\": 1, \"b\": \"\"}, \"f26\": {},"
                        + " \"f27\": [{\"key\": 1, \"value\": [1, null, -3]}]}");
        GenericRowData nothing = new GenericRowData(types.length);
        StringBuilder nulls = new StringBuilder();
        for (int i = 0; i < types.length; i++) {
            nulls.append(i == 0 ? "{" : ", ").append("\"f" + i + "\": null");
        }
        key("row of nulls", serializer, writer.toBinaryRow(nothing).copy(), nulls + "}");
        LogicalType[] elements = {
            new BooleanType(), new TinyIntType(), new SmallIntType(), new IntType(), new FloatType(),
            new DateType(), new TimeType(0),
            new YearMonthIntervalType(YearMonthIntervalType.YearMonthResolution.MONTH),
            new DoubleType(), new DecimalType(20, 1), new TimestampType(3), new TimestampType(6),
            VarCharType.STRING_TYPE, new ArrayType(new IntType()),
        };
        Object[] two = {
            new Boolean[] {null, true}, new Byte[] {null, 1}, new Short[] {null, -1}, new Integer[] {null, -1},
            new Float[] {null, 0.5f}, new Integer[] {null, 0}, new Integer[] {null, 1_000},
            new Integer[] {null, 3}, new Double[] {null, 0.5},
            new DecimalData[] {null, DecimalData.fromBigDecimal(new BigDecimal("-2.5"), 20, 1)},
            new TimestampData[] {null, TimestampData.fromEpochMillis(1)},
            new TimestampData[] {null, TimestampData.fromEpochMillis(1, 1_000)},
            new StringData[] {null, StringData.fromString("longer than a slot")},
            new GenericArrayData[] {null, new GenericArrayData(new int[] {1, 2})},
        };
        String[] told = {
            "true", "1", "-1", "-1", "0.5", "\"1970-01-01\"", "\"00:00:01\"", "3", "0.5", "\"-2.5\"",
            "\"1970-01-01T00:00:00.001\"", "\"1970-01-01T00:00:00.001001\"", "\"longer than a slot\"", "[1, 2]",
        };
        for (int i = 0; i < elements.length; i++) {
            add(
                    "ArrayData of " + elements[i],
                    new ArrayDataSerializer(elements[i]),
                    new GenericArrayData((Object[]) two[i]),
                    "[null, " + told[i] + "]");
        }
        Integer[] many = new Integer[33];
        Arrays.fill(many, 1);
        many[0] = null;
        many[32] = null;
        add(
                "ArrayData of 33",
                new ArrayDataSerializer(new IntType()),
                new GenericArrayData(many),
                "[null, " + "1, ".repeat(31) + "null]");
    }

    /** Adds serializers that Flink 1.20 does not have. */
    private static void onlySince2() throws Exception {
        try {
            Class.forName(LINKED + "NodeSerializer");
        } catch (ClassNotFoundException before) {
            return;
        }
        add("MetaSqnInfo", Serializers.<TypeSerializer<Object>>make(LINKED + "MetaSqnInfoSerializer"), make(LINKED + "MetaSqnInfo", 9L, 2L), "{\"highSqn\": 9, \"size\": 2}");
        add("RowSqnInfo", Serializers.<TypeSerializer<Object>>make(LINKED + "RowSqnInfoSerializer"), make(LINKED + "RowSqnInfo", 3L, 4L), "{\"firstSqn\": 3, \"lastSqn\": 4}");
        RowDataSerializer row = new RowDataSerializer(new BigIntType());
        Object node = make(LINKED + "Node", row.toBinaryRow(GenericRowData.of(7L)).copy(), 1L, null, 2L, null, 4L);
        add(
                "Node",
                Serializers.<TypeSerializer<Object>>make(LINKED + "NodeSerializer", row),
                node,
                "{\"row\": {\"f0\": 7}, \"sqn\": 1, \"prevSqn\": null, \"nextSqn\": 2, \"nextSqnForRecord\": null, \"timestamp\": 4}");
        add("set", Serializers.<TypeSerializer<Object>>make(TYPES + "base.SetSerializer", IntSerializer.INSTANCE), new HashSet<>(Arrays.asList(null, 1, 2)));
        add(
                "TtlAware",
                Serializers.<TypeSerializer<Object>>make(
                        "org.apache.flink.runtime.state.ttl.TtlAwareSerializer", IntSerializer.INSTANCE, false),
                5,
                "5");
    }

    private static void avro() throws Exception {
        Schema schema = new Schema.Parser().parse(
                "{\"type\": \"record\", \"name\": \"Every\", \"namespace\": \"of\", \"fields\": ["
                        + field("date", "int", "date") + field("time_millis", "int", "time-millis")
                        + field("time_micros", "long", "time-micros")
                        + field("stamp_millis", "long", "timestamp-millis")
                        + field("stamp_micros", "long", "timestamp-micros")
                        + field("local_millis", "long", "local-timestamp-millis")
                        + field("local_micros", "long", "local-timestamp-micros")
                        + field("not_for_int", "int", "timestamp-millis")
                        + field("unknown", "string", "uuid")
                        + "{\"name\": \"price\", \"type\": {\"type\": \"bytes\", \"logicalType\": \"decimal\", \"precision\": 9, \"scale\": 2}},"
                        + "{\"name\": \"fixed\", \"type\": {\"type\": \"fixed\", \"name\": \"Amount\", \"size\": 3, \"logicalType\": \"decimal\", \"precision\": 6, \"scale\": 1}},"
                        + "{\"name\": \"again\", \"type\": \"of.Amount\"},"
                        + "{\"name\": \"hash\", \"type\": {\"type\": \"fixed\", \"name\": \"Hash\", \"namespace\": \"other\", \"size\": 2}},"
                        + "{\"name\": \"flag\", \"type\": \"boolean\"}, {\"name\": \"real\", \"type\": \"float\"},"
                        + "{\"name\": \"wide\", \"type\": \"double\"}, {\"name\": \"raw\", \"type\": \"bytes\"},"
                        + "{\"name\": \"suit\", \"type\": {\"type\": \"enum\", \"name\": \"Suit\", \"symbols\": [\"HEARTS\", \"SPADES\"]}},"
                        + "{\"name\": \"longs\", \"type\": {\"type\": \"array\", \"items\": \"long\"}},"
                        + "{\"name\": \"nothings\", \"type\": {\"type\": \"array\", \"items\": \"null\"}},"
                        + "{\"name\": \"counts\", \"type\": {\"type\": \"map\", \"values\": \"int\"}},"
                        + "{\"name\": \"any\", \"type\": [\"null\", \"int\", \"string\"]},"
                        + "{\"name\": \"next\", \"type\": [\"null\", \"Every\"]}]}");
        GenericRecordBuilder record = new GenericRecordBuilder(schema)
                .set("date", -1).set("time_millis", 86_399_999).set("time_micros", 86_399_999_999L)
                .set("stamp_millis", -1L).set("stamp_micros", -1L)
                .set("local_millis", -1L).set("local_micros", -1L).set("not_for_int", 5)
                .set("unknown", "a text").set("price", java.nio.ByteBuffer.wrap(new byte[] {-1, 6}))
                .set("fixed", new GenericData.Fixed(schema.getField("fixed").schema(), new byte[] {0, 1, 0}))
                .set("again", new GenericData.Fixed(schema.getField("fixed").schema(), new byte[] {-1, -1, -1}))
                .set("hash", new GenericData.Fixed(schema.getField("hash").schema(), new byte[] {1, 2}))
                .set("flag", true).set("real", 0.5f).set("wide", -0.25)
                .set("raw", java.nio.ByteBuffer.wrap(new byte[] {1, -1}))
                .set("suit", new GenericData.EnumSymbol(schema.getField("suit").schema(), "SPADES"))
                .set("longs", Collections.nCopies(200, 7L)).set("nothings", Arrays.asList(null, null))
                .set("counts", ordered("a", 1, "b", -2)).set("any", "t").set("next", null);
        GenericRecord last = record.build();
        GenericRecord first = record.set("any", null).set("counts", Map.of()).set("longs", List.of()).set("nothings", List.of()).set("next", last).build();
        String every =
                "{\"date\": \"1969-12-31\", \"time_millis\": \"23:59:59.999\", \"time_micros\": \"23:59:59.999999\","
                        + " \"stamp_millis\": \"1969-12-31T23:59:59.999Z\", \"stamp_micros\": \"1969-12-31T23:59:59.999999Z\","
                        + " \"local_millis\": \"1969-12-31T23:59:59.999\", \"local_micros\": \"1969-12-31T23:59:59.999999\","
                        + " \"not_for_int\": 5, \"unknown\": \"a text\", \"price\": \"-2.50\", \"fixed\": \"25.6\","
                        + " \"again\": \"-0.1\", \"hash\": \"0102\", \"flag\": true, \"real\": 0.5, \"wide\": -0.25,"
                        + " \"raw\": \"01ff\", \"suit\": \"SPADES\",";
        String end = every + "\"longs\": [" + "7, ".repeat(199) + "7], \"nothings\": [null, null],"
                + " \"counts\": {\"a\": 1, \"b\": -2}, \"any\": \"t\", \"next\": null}";
        add("Avro", new GenericRecordAvroTypeInfo(schema).createSerializer(new SerializerConfigImpl()), last, end);
        add(
                "Avro",
                new GenericRecordAvroTypeInfo(schema).createSerializer(new SerializerConfigImpl()),
                first,
                every + "\"longs\": [], \"nothings\": [], \"counts\": {}, \"any\": null, \"next\": " + end + "}");
    }

    private static String field(String name, String type, String logical) {
        return "{\"name\": \"" + name + "\", \"type\": {\"type\": \"" + type + "\", \"logicalType\": \"" + logical + "\"}},";
    }

    private static final UUID ID = UUID.fromString("01234567-89ab-cdef-fedc-ba9876543210");

    private static void kryo() throws Exception {
        TypeSerializer<Object> any = of(new GenericTypeInfo<>(Object.class));
        Object[] values = {
            "", "a", "text", "h\u00e9 \u65e5\ud83d\ude00", "x".repeat(300), "\u00e9".repeat(70),
            0, -1, 63, 64, -65, 8_192, 1_048_576, 134_217_728, Integer.MAX_VALUE, Integer.MIN_VALUE,
            0L, -1L, 1L << 20, 1L << 27, 1L << 34, 1L << 41, 1L << 48, 1L << 55, Long.MAX_VALUE, Long.MIN_VALUE,
            (short) -300, (byte) -128, (byte) 127, true, false, 0.5f, -0.1, 'c', '\u20ac',
            new BigInteger("-12345678901234567890"), BigInteger.ZERO,
            new BigDecimal("-12.50"), new BigDecimal("1E+3"),
            new Date(1_700_000_000_123L), new Date(-1L),
            new java.sql.Date(86_400_000L), java.sql.Time.valueOf("01:02:03"),
            java.sql.Timestamp.from(Instant.ofEpochSecond(1_700_000_000L, 123_456_789)),
            java.sql.Timestamp.from(Instant.ofEpochSecond(-5L, 7)),
            LocalDate.of(2024, 2, 29), LocalDate.of(-44, 3, 15), LocalDate.MAX,
            LocalTime.MIDNIGHT, LocalTime.of(5, 0), LocalTime.of(5, 6), LocalTime.of(5, 6, 7),
            LocalTime.of(5, 6, 7, 8), LocalTime.of(0, 0, 0, 999_999_999), LocalTime.of(0, 0, 1),
            LocalDateTime.of(2024, 2, 29, 23, 59, 1), Instant.ofEpochSecond(5, 6), Instant.ofEpochSecond(-5, 999_999_999),
            new ArrayList<>(), new ArrayList<>(List.of("a")), new ArrayList<>(Arrays.asList("a", null, "b")),
            new ArrayList<>(Arrays.asList(null, null, null)), new ArrayList<>(Arrays.asList(1, null, 3)),
            new ArrayList<>(Arrays.asList(1L, "two", null, 3, true)), new ArrayList<>(List.of(1, 2, 3)),
            new ArrayList<>(Collections.nCopies(70, 5)),
            new ArrayList<>(List.of(new ArrayList<>(List.of(1)), new ArrayList<>(List.of("b")))),
            new LinkedList<>(List.of(1)), new Vector<>(List.of(1)), stack(), new ArrayDeque<>(List.of(1)),
            new HashSet<>(List.of(1)), new LinkedHashSet<>(List.of(2, 1)), new CopyOnWriteArrayList<>(List.of(1)),
            new TreeSet<>(List.of(1, 2)), new TreeSet<>(),
            new HashMap<>(), new HashMap<>(Map.of("a", 1L)), ordered("b", null, "a", 2), ordered(1, 2, 3, 4),
            new Hashtable<>(Map.of("a", 1)), new ConcurrentHashMap<>(Map.of("a", 1)), new TreeMap<>(Map.of("a", 1, "b", 2)),
            Collections.emptyList(), Collections.emptySet(), Collections.emptyMap(),
            Collections.singletonList(1), Collections.singleton("a"), Collections.singletonMap("a", 1),
            ID, new ArrayList<>(List.of(ID, new UUID(-1, Long.MIN_VALUE))), new ArrayList<>(Arrays.asList(ID, null)),
            Duration.ZERO, Duration.ofSeconds(-5, 7), Duration.ofMillis(-500), Duration.ofMillis(-60_500), Duration.ofHours(-50),
            Duration.ofSeconds(Long.MAX_VALUE, 1), Duration.ofSeconds(3_661, 120_000_000), Duration.ofMinutes(90),
            OffsetDateTime.of(2024, 2, 29, 23, 59, 1, 5, ZoneOffset.ofHoursMinutes(5, 30)),
            OffsetDateTime.of(-44, 3, 15, 0, 0, 0, 0, ZoneOffset.ofTotalSeconds(-3_723)),
            OffsetTime.of(1, 2, 3, 4, ZoneOffset.UTC), ZoneOffset.UTC, ZoneOffset.ofHours(-18), ZoneOffset.MAX,
            DayOfWeek.SUNDAY, Month.JANUARY, TimeUnit.DAYS, new ArrayList<>(Arrays.asList(TimeUnit.DAYS, null, TimeUnit.DAYS)),
            new ArrayList<>(List.of(TimeUnit.DAYS, 1, TimeUnit.DAYS)),
            List.of(), List.of(1), List.of(1, "b"), List.of("a", "b", "c"), List.of(1, "b", 2L), List.of(1, 2, 3, 4).subList(1, 3),
            List.of(ID, ID), Set.of(), Set.of(1), Map.of(), Map.of("a", 1),
            Collections.unmodifiableList(new ArrayList<>(Arrays.asList(1, null))), Collections.unmodifiableList(new LinkedList<>(List.of("a"))),
            Collections.unmodifiableSet(new HashSet<>(List.of(1))), Collections.unmodifiableCollection(new ArrayList<>(List.of(1))),
            Collections.unmodifiableMap(new HashMap<>(Map.of("a", 1))), Collections.unmodifiableSortedSet(new TreeSet<>(List.of(1))),
            Collections.unmodifiableSortedMap(new TreeMap<>(Map.of(1, 2))),
            Arrays.asList(1, "two", null), Arrays.asList("a", "b"), Arrays.asList(ID, ID),
            new int[] {1, -1, 1_000}, new int[0], new long[] {1, Long.MIN_VALUE}, new byte[] {1, -1}, new short[] {1, -300},
            new double[] {0.5, -0.1}, new float[] {0.5f}, new boolean[] {true, false}, new char[] {'a', '\u20ac'},
            new String[] {"a", null, "\u00e9"}, new Integer[] {1, null}, new Long[] {5L}, new Object[] {1, "b", null, ID},
        };
        for (Object value : values) {
            add("Kryo " + value.getClass().getSimpleName(), any, value);
        }
        add("Kryo StringBuilder", any, new StringBuilder("built"), "\"built\"");
        add("Kryo StringBuffer", any, new StringBuffer("buffered"), "\"buffered\"");
        String same = new String("same");
        Date day = new Date(0);
        add("Kryo references", any, new ArrayList<>(Arrays.asList(day, same, day, same, new ArrayList<>(List.of(day)), 1L)));
        add("Kryo class names again", any, new ArrayList<>(Arrays.asList(new LinkedList<>(List.of(1)), new Vector<>(List.of(2)), new LinkedList<>(List.of(3)), new Vector<>(List.of("4")))));
        add("Kryo of its own class", of(new GenericTypeInfo<>(LocalDate.class)), LocalDate.of(1, 1, 1));
        ownClass(ID);
        ownClass(Duration.ofSeconds(-5, 7));
        ownClass(OffsetDateTime.of(2024, 2, 29, 23, 59, 1, 5, ZoneOffset.ofHours(-8)));
        ownClass(TimeUnit.DAYS);
        ownClass(List.of(1, 2, 3));
        ownClass(new ArrayList<>(List.of(ID)));
        ownClass(new long[] {1, -1});
        Configuration configuration = new Configuration();
        configuration.setString(
                "pipeline.serialization-config",
                "[java.util.LinkedList: {type: kryo}, java.util.Vector: {type: kryo}]");
        SerializerConfigImpl config = new SerializerConfigImpl();
        config.configure(configuration, Serializers.class.getClassLoader());
        Vector<Object> nested = new Vector<>(List.of(new LinkedList<>(List.of(1))));
        add("Kryo registered", new KryoSerializer<>(Object.class, config), nested);
        // A class that Flink itself registers keeps its id, even if the job registers it too.
        add("Kryo registered", new KryoSerializer<>(Serializers.<Object>anyClass(ID), config), nested);
    }

    private static <T> void ownClass(T value) throws Exception {
        String name = "Kryo of its own class " + value.getClass().getSimpleName();
        add(name, of(new GenericTypeInfo<>(Serializers.<T>anyClass(value))), value);
    }

    @SuppressWarnings("unchecked")
    private static <T> Class<T> anyClass(Object value) {
        return (Class<T>) value.getClass();
    }

    private static Stack<Integer> stack() {
        Stack<Integer> stack = new Stack<>();
        stack.push(1);
        stack.push(2);
        return stack;
    }
}
