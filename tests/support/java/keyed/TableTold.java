package testjobs;

import java.time.LocalDate;
import java.time.LocalTime;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.table.data.ArrayData;
import org.apache.flink.table.data.DecimalData;
import org.apache.flink.table.data.MapData;
import org.apache.flink.table.data.RawValueData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.data.TimestampData;
import org.apache.flink.table.runtime.operators.window.CountWindow;
import org.apache.flink.table.runtime.operators.window.TimeWindow;
import org.apache.flink.table.runtime.typeutils.ArrayDataSerializer;
import org.apache.flink.table.runtime.typeutils.MapDataSerializer;
import org.apache.flink.table.runtime.typeutils.RowDataSerializer;
import org.apache.flink.table.types.logical.ArrayType;
import org.apache.flink.table.types.logical.IntType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.MapType;
import org.apache.flink.table.types.logical.MultisetType;
import org.apache.flink.table.types.logical.RawType;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.table.types.logical.StructuredType;
import org.apache.flink.table.types.logical.StructuredType.StructuredAttribute;

/** Converts SQL values to JSON. The objects contain no types, so the serializer supplies them. */
final class TableTold {
    private TableTold() {}

    /** Returns the JSON form of a value; empty if it is not an SQL value. */
    static Optional<Object> of(Object value, TypeSerializer<?> serializer) {
        if (value instanceof RowData row && serializer instanceof RowDataSerializer) {
            LogicalType[] types = Inside.of(serializer.getClass(), serializer, "types");
            Map<String, Object> fields = new LinkedHashMap<>();
            for (int i = 0; i < types.length; i++) {
                fields.put("f" + i, of(get(row, i, types[i]), types[i]));
            }
            return Optional.of(fields);
        }
        if (value instanceof ArrayData array && serializer instanceof ArrayDataSerializer) {
            return Optional.of(array(array, Inside.of(serializer.getClass(), serializer, "eleType")));
        }
        if (value instanceof MapData map && serializer instanceof MapDataSerializer) {
            return Optional.of(
                    map(map, Inside.of(serializer.getClass(), serializer, "keyType"), Inside.of(serializer.getClass(), serializer, "valueType")));
        }
        if (value instanceof StringData || value instanceof DecimalData) {
            return Optional.of(value.toString());
        }
        if (value instanceof TimestampData stamp) {
            return Optional.of(stamp.toLocalDateTime().toString());
        }
        if (value instanceof TimeWindow window) {
            return Optional.of(Told.struct("start", window.getStart(), "end", window.getEnd()));
        }
        return value instanceof CountWindow window
                ? Optional.of(Map.of("id", window.getId()))
                : Optional.empty();
    }

    private static Object get(RowData row, int place, LogicalType type) {
        return RowData.createFieldGetter(type.copy(true), place).getFieldOrNull(row);
    }

    private static Object of(Object value, LogicalType type) {
        if (value == null || value instanceof Boolean) {
            return value;
        }
        return switch (type.getTypeRoot()) {
            case TINYINT, SMALLINT, INTEGER, BIGINT, INTERVAL_YEAR_MONTH, INTERVAL_DAY_TIME -> value;
            case FLOAT, DOUBLE -> ((Number) value).doubleValue();
            case CHAR, VARCHAR -> value.toString();
            case DECIMAL -> ((DecimalData) value).toBigDecimal().toPlainString();
            case BINARY, VARBINARY -> HexFormat.of().formatHex((byte[]) value);
            case DATE -> LocalDate.ofEpochDay((int) value).toString();
            case TIME_WITHOUT_TIME_ZONE -> LocalTime.ofNanoOfDay((int) value * 1_000_000L)
                    .toString();
            case TIMESTAMP_WITHOUT_TIME_ZONE -> ((TimestampData) value)
                    .toLocalDateTime()
                    .toString();
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE -> ((TimestampData) value).toInstant().toString();
            case ROW -> row(
                    (RowData) value, ((RowType) type).getFieldNames(), type.getChildren());
            case STRUCTURED_TYPE -> row(
                    (RowData) value,
                    ((StructuredType) type)
                            .getAttributes().stream().map(StructuredAttribute::getName).toList(),
                    type.getChildren());
            // A Java object with a serializer of its own, as bytes.
            case RAW -> raw((RawValueData<?>) value, ((RawType<?>) type).getTypeSerializer());
            case ARRAY -> array((ArrayData) value, ((ArrayType) type).getElementType());
            case MAP -> map(
                    (MapData) value, ((MapType) type).getKeyType(), ((MapType) type).getValueType());
            case MULTISET -> map(
                    (MapData) value, ((MultisetType) type).getElementType(), new IntType(false));
            default -> throw new IllegalArgumentException(type.asSummaryString());
        };
    }

    private static Object row(RowData row, List<String> names, List<LogicalType> types) {
        Map<String, Object> fields = new LinkedHashMap<>();
        for (int i = 0; i < types.size(); i++) {
            LogicalType of = types.get(i);
            fields.put(names.get(i), of(get(row, i, of), of));
        }
        return fields;
    }

    @SuppressWarnings("unchecked")
    private static <T> String raw(RawValueData<?> value, TypeSerializer<T> serializer) {
        return HexFormat.of().formatHex(((RawValueData<T>) value).toBytes(serializer));
    }

    private static List<Object> array(ArrayData array, LogicalType type) {
        ArrayData.ElementGetter getter = ArrayData.createElementGetter(type.copy(true));
        List<Object> items = new ArrayList<>();
        for (int i = 0; i < array.size(); i++) {
            items.add(of(getter.getElementOrNull(array, i), type));
        }
        return items;
    }

    private static Object map(MapData map, LogicalType keyType, LogicalType valueType) {
        List<Object> keys = array(map.keyArray(), keyType);
        List<Object> values = array(map.valueArray(), valueType);
        Map<Object, Object> entries = new LinkedHashMap<>();
        for (int i = 0; i < keys.size(); i++) {
            entries.put(keys.get(i), values.get(i));
        }
        return Told.entries(entries);
    }
}
