package testjobs;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.SchemaBuilder;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.specific.SpecificRecordBase;

/** An Avro record as Avro's compiler would generate it, and a generic one of a larger schema. */
public class AvroThing extends SpecificRecordBase {
    private static final long serialVersionUID = 1L;

    public static final Schema SCHEMA$ =
            SchemaBuilder.record("AvroThing")
                    .namespace("testjobs")
                    .fields()
                    .requiredString("name")
                    .optionalLong("count")
                    .endRecord();

    public CharSequence name;
    public Long count;

    public AvroThing() {}

    AvroThing(String name, Long count) {
        this.name = name;
        this.count = count;
    }

    @Override
    public Schema getSchema() {
        return SCHEMA$;
    }

    @Override
    public Object get(int field) {
        return field == 0 ? name : count;
    }

    @Override
    public void put(int field, Object value) {
        if (field == 0) {
            name = (CharSequence) value;
        } else {
            count = (Long) value;
        }
    }

    private static final Schema SUIT =
            SchemaBuilder.enumeration("Suit").namespace("testjobs").symbols("HEARTS", "SPADES");
    private static final Schema HASH =
            SchemaBuilder.fixed("Hash").namespace("testjobs").size(4);

    static final Schema GENERIC =
            SchemaBuilder.record("Generic")
                    .namespace("testjobs")
                    .fields()
                    .requiredInt("i")
                    .requiredLong("l")
                    .requiredFloat("f")
                    .requiredDouble("d")
                    .requiredBoolean("flag")
                    .requiredString("text")
                    .requiredBytes("bytes")
                    .optionalString("maybe")
                    .name("suit").type(SUIT).noDefault()
                    .name("hash").type(HASH).noDefault()
                    .name("items").type().array().items().stringType().noDefault()
                    .name("counts").type().map().values().longType().noDefault()
                    .name("thing").type(SCHEMA$).noDefault()
                    .endRecord();

    static GenericRecord generic(int n) {
        GenericRecord thing = new GenericData.Record(SCHEMA$);
        thing.put("name", "thing \u20ac");
        thing.put("count", n == 0 ? null : 7L);
        GenericRecord record = new GenericData.Record(GENERIC);
        record.put("i", -n - 1);
        record.put("l", Long.MIN_VALUE + n);
        record.put("f", 0.5f);
        record.put("d", -0.1);
        record.put("flag", n == 0);
        record.put("text", n == 0 ? "" : "text \u65e5");
        record.put("bytes", ByteBuffer.wrap(new byte[] {0, (byte) -n}));
        record.put("maybe", n == 0 ? null : "there");
        record.put("suit", new GenericData.EnumSymbol(SUIT, n == 0 ? "HEARTS" : "SPADES"));
        record.put("hash", new GenericData.Fixed(HASH, new byte[] {1, 2, 3, (byte) 255}));
        record.put("items", n == 0 ? List.of() : List.of("one", "two"));
        record.put("counts", n == 0 ? Map.of() : Map.of("some", 3L));
        record.put("thing", thing);
        return record;
    }
}
