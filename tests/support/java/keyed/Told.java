package testjobs;

import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.lang.reflect.RecordComponent;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.temporal.Temporal;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.UUID;
import org.apache.avro.generic.GenericEnumSymbol;
import org.apache.avro.generic.GenericFixed;
import org.apache.avro.generic.IndexedRecord;
import org.apache.avro.util.Utf8;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.common.typeutils.base.ListSerializer;
import org.apache.flink.api.common.typeutils.base.MapSerializer;
import org.apache.flink.api.java.tuple.Tuple;
import org.apache.flink.api.java.typeutils.PojoTypeInfo;
import org.apache.flink.api.java.typeutils.runtime.PojoSerializer;
import org.apache.flink.api.java.typeutils.runtime.TupleSerializer;
import org.apache.flink.api.java.typeutils.runtime.kryo.KryoSerializer;
import org.apache.flink.runtime.state.VoidNamespace;
import org.apache.flink.runtime.state.ttl.TtlStateFactory.TtlSerializer;
import org.apache.flink.runtime.state.ttl.TtlValue;
import org.apache.flink.streaming.api.windowing.windows.GlobalWindow;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.table.runtime.typeutils.SortedMapSerializer;
import org.apache.flink.types.Either;
import org.apache.flink.types.Row;

/**
 * Converts a Java object that Flink has restored to the JSON form in which {@code migrate state
 * --format json} prints the value.
 */
final class Told {
    private static final HexFormat HEX = HexFormat.of();

    private Told() {}

    /** The value's class is one whose bytes only Kryo and the class itself can read. */
    static final class Unreadable extends Exception {
        private static final long serialVersionUID = 1L;

        Unreadable(String className) {
            super(className);
        }
    }

    /** An entry of a map state. */
    record MapEntry(Object key, Object value, TypeSerializer<?> serializer) {}

    static List<MapEntry> mapEntries(Object map, TypeSerializer<?> serializer) throws Unreadable {
        MapSerializer<?, ?> of = (MapSerializer<?, ?>) serializer;
        List<MapEntry> entries = new ArrayList<>();
        for (Map.Entry<?, ?> entry : ((Map<?, ?>) map).entrySet()) {
            Object key = of(entry.getKey(), of.getKeySerializer());
            entries.add(new MapEntry(key, entry.getValue(), of.getValueSerializer()));
        }
        return entries;
    }

    /** Adds a value and, if the state has a time to live, the time of the last access. */
    static void put(Map<String, Object> line, Object value, TypeSerializer<?> serializer)
            throws Unreadable {
        if (value instanceof TtlValue<?> ttl) {
            line.put("value", of(ttl.getUserValue(), valueOf(serializer)));
            line.put("last_access", ttl.getLastAccessTimestamp());
        } else if (value instanceof List<?> list && serializer instanceof ListSerializer<?> of) {
            TypeSerializer<?> element = of.getElementSerializer();
            boolean ttl = element instanceof TtlSerializer;
            List<Object> elements = new ArrayList<>();
            List<Object> accesses = new ArrayList<>();
            for (Object item : list) {
                Object user = ttl ? ((TtlValue<?>) item).getUserValue() : item;
                elements.add(of(user, ttl ? valueOf(element) : element));
                accesses.add(ttl ? ((TtlValue<?>) item).getLastAccessTimestamp() : null);
            }
            line.put("value", elements);
            if (ttl) {
                line.put("last_access", accesses);
            }
        } else {
            line.put("value", of(value, serializer));
        }
    }

    private static TypeSerializer<?> valueOf(TypeSerializer<?> serializer) {
        TypeSerializer<?>[] accessAndValue =
                Inside.of(TtlSerializer.class, serializer, "fieldSerializers");
        return accessAndValue[1];
    }

    static Optional<Object> namespace(Object namespace) throws Unreadable {
        boolean none = namespace instanceof VoidNamespace || namespace instanceof GlobalWindow;
        return none ? Optional.empty() : Optional.of(of(namespace, null));
    }

    /** Returns the JSON form of a value; {@code serializer} is null if the object is sufficient. */
    static Object of(Object value, TypeSerializer<?> serializer) throws Unreadable {
        if (serializer instanceof KryoSerializer && value.getClass().getName().startsWith("testjobs")) {
            throw new Unreadable(value.getClass().getName());
        }
        Optional<Object> row = TableTold.of(value, serializer);
        if (row.isPresent()) {
            return row.get();
        }
        if (value == null
                || value instanceof Boolean
                || value instanceof String
                || value instanceof Byte
                || value instanceof Short
                || value instanceof Integer
                || value instanceof Long) {
            return value;
        }
        if (value instanceof Float || value instanceof Double) {
            double number = ((Number) value).doubleValue();
            return Double.isFinite(number) ? (Object) number : String.valueOf(number);
        }
        if (value instanceof BigDecimal decimal) {
            return decimal.toPlainString();
        }
        if (value instanceof Character || value instanceof BigInteger || value instanceof Temporal) {
            return value.toString();
        }
        if (value instanceof UUID || value instanceof Duration || value instanceof ZoneOffset) {
            return value.toString();
        }
        if (value instanceof java.util.Date) {
            return date((java.util.Date) value);
        }
        if (value instanceof Enum<?> constant) {
            return constant.name();
        }
        if (value instanceof TimeWindow window) {
            return struct("start", window.getStart(), "end", window.getEnd());
        }
        return container(value, serializer);
    }

    private static Object date(java.util.Date date) {
        if (date instanceof java.sql.Date day) {
            return day.toLocalDate().toString();
        }
        return date instanceof java.sql.Time time
                ? time.toLocalTime().toString()
                : Instant.ofEpochMilli(date.getTime())
                        .plusNanos(
                                date instanceof java.sql.Timestamp stamp
                                        ? stamp.getNanos() % 1_000_000
                                        : 0)
                        .toString();
    }

    private static Object container(Object value, TypeSerializer<?> serializer)
            throws Unreadable {
        if (value instanceof Tuple tuple) {
            TypeSerializer<?>[] of =
                    serializer instanceof TupleSerializer<?> fields
                            ? fields.getFieldSerializers()
                            : new TypeSerializer<?>[tuple.getArity()];
            Map<String, Object> fields = new LinkedHashMap<>();
            for (int i = 0; i < tuple.getArity(); i++) {
                fields.put("f" + i, of(tuple.getField(i), of[i]));
            }
            return fields;
        }
        if (value instanceof Row row) {
            Map<String, Object> fields = new LinkedHashMap<>();
            for (int i = 0; i < row.getArity(); i++) {
                fields.put("f" + i, of(row.getField(i), null));
            }
            return fields;
        }
        if (value instanceof Either<?, ?> either) {
            Object left = either.isLeft() ? of(either.left(), null) : null;
            return struct("left", left, "right", either.isLeft() ? null : of(either.right(), null));
        }
        if (value instanceof Collection<?> items) {
            TypeSerializer<?> of =
                    serializer instanceof ListSerializer<?> list
                            ? list.getElementSerializer()
                            : null;
            List<Object> told = new ArrayList<>();
            for (Object item : items) {
                told.add(of(item, of));
            }
            return told;
        }
        if (value instanceof Map<?, ?> map && serializer instanceof SortedMapSerializer<?, ?> of) {
            Map<Object, Object> told = new LinkedHashMap<>();
            for (Map.Entry<?, ?> entry : map.entrySet()) {
                Object key = of(entry.getKey(), of.getKeySerializer());
                told.put(key, of(entry.getValue(), of.getValueSerializer()));
            }
            return entries(told);
        }
        if (value instanceof Map<?, ?> map) {
            MapSerializer<?, ?> of =
                    serializer instanceof MapSerializer<?, ?> entries ? entries : null;
            Map<Object, Object> told = new LinkedHashMap<>();
            for (Map.Entry<?, ?> entry : map.entrySet()) {
                told.put(
                        of(entry.getKey(), of == null ? null : of.getKeySerializer()),
                        of(entry.getValue(), of == null ? null : of.getValueSerializer()));
            }
            return entries(told);
        }
        if (serializer instanceof PojoSerializer<?> pojo) {
            Field[] fields = Inside.of(PojoSerializer.class, pojo, "fields");
            // A field that was removed from the class has a serializer, but its Field is null.
            if (Arrays.asList(fields).contains(null)) {
                return pojo(value, Arrays.stream(fields).filter(Objects::nonNull).toList());
            }
        }
        return value.getClass().isArray() ? array(value) : record(value);
    }

    /** Returns an object if all keys are strings, or else a list of keys and values. */
    static Object entries(Map<Object, Object> told) {
        if (told.keySet().stream().allMatch(String.class::isInstance)) {
            return told;
        }
        List<Object> entries = new ArrayList<>();
        told.forEach((key, value) -> entries.add(struct("key", key, "value", value)));
        return entries;
    }

    private static Object array(Object array) throws Unreadable {
        if (array instanceof byte[] bytes) {
            return HEX.formatHex(bytes);
        }
        List<Object> told = new ArrayList<>();
        for (int i = 0; i < java.lang.reflect.Array.getLength(array); i++) {
            told.add(of(java.lang.reflect.Array.get(array, i), null));
        }
        return told;
    }

    private static Object pojo(Object value, List<Field> fields) throws Unreadable {
        Map<String, Object> told = new LinkedHashMap<>();
        for (Field field : fields) {
            told.put(field.getName(), of(Inside.of(value.getClass(), value, field.getName()), null));
        }
        return told;
    }

    private static Object record(Object value) throws Unreadable {
        if (value instanceof Utf8 || value instanceof GenericEnumSymbol<?>) {
            return value.toString();
        }
        if (value instanceof ByteBuffer buffer) {
            byte[] bytes = new byte[buffer.remaining()];
            buffer.duplicate().get(bytes);
            return HEX.formatHex(bytes);
        }
        if (value instanceof GenericFixed fixed) {
            return HEX.formatHex(fixed.bytes());
        }
        if (value instanceof StreamRecord<?> element) {
            // The contents of a window with an evictor.
            Object timestamp = element.hasTimestamp() ? element.getTimestamp() : null;
            return struct("timestamp", timestamp, "value", of(element.getValue(), null));
        }
        if (value.getClass().getSimpleName().equals("BufferEntry")) {
            // The state of an interval join.
            return struct(
                    "hasBeenJoined",
                    Inside.of(value.getClass(), value, "hasBeenJoined"),
                    "element",
                    of(Inside.of(value.getClass(), value, "element"), null));
        }
        Map<String, Object> told = new LinkedHashMap<>();
        try {
            if (value instanceof IndexedRecord avro) {
                for (org.apache.avro.Schema.Field field : avro.getSchema().getFields()) {
                    told.put(field.name(), of(avro.get(field.pos()), null));
                }
            } else if (value instanceof Record) {
                for (RecordComponent part : value.getClass().getRecordComponents()) {
                    part.getAccessor().setAccessible(true);
                    told.put(part.getName(), of(part.getAccessor().invoke(value), null));
                }
            } else if (TypeInformation.of(value.getClass()) instanceof PojoTypeInfo) {
                for (Class<?> type = value.getClass(); type != Object.class; type = type.getSuperclass()) {
                    for (Field field : type.getDeclaredFields()) {
                        if (!Modifier.isStatic(field.getModifiers())) {
                            field.setAccessible(true);
                            told.put(field.getName(), of(field.get(value), null));
                        }
                    }
                }
            } else {
                throw new Unreadable(value.getClass().getName());
            }
        } catch (ReflectiveOperationException impossible) {
            throw new AssertionError(impossible);
        }
        return told;
    }

    static Map<String, Object> struct(String one, Object first, String other, Object second) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put(one, first);
        fields.put(other, second);
        return fields;
    }
}
