package testjobs;

import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.KafkaSourceBuilder;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.util.Collector;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/** Reads Kafka records as lines {@code topic,partition,offset,value}. */
final class KafkaLines implements KafkaRecordDeserializationSchema<String> {
    private static final long serialVersionUID = 1L;

    /** Settings for one small batch per fetch, so that a source reads all partitions evenly. */
    static final Map<String, String> IN_STEP =
            Map.of(
                    "max.partition.fetch.bytes", "1",
                    "fetch.max.bytes", "1",
                    "partition.discovery.interval.ms", "500");

    private KafkaLines() {}

    static KafkaRecordDeserializationSchema<String> deserializer() {
        return new KafkaLines();
    }

    /** Returns a builder of a source that reads all partitions evenly. */
    static KafkaSourceBuilder<String> source(
            String bootstrapServers, String group, String... topics) {
        KafkaSourceBuilder<String> builder =
                KafkaSource.<String>builder()
                        .setBootstrapServers(bootstrapServers)
                        .setGroupId(group)
                        .setDeserializer(deserializer());
        if (topics.length > 0) {
            builder.setTopics(topics);
        }
        IN_STEP.forEach(builder::setProperty);
        return builder;
    }

    static String line(ConsumerRecord<byte[], byte[]> record) {
        return String.join(
                ",",
                record.topic(),
                Integer.toString(record.partition()),
                Long.toString(record.offset()),
                new String(record.value(), StandardCharsets.UTF_8));
    }

    @Override
    public void deserialize(ConsumerRecord<byte[], byte[]> record, Collector<String> out) {
        out.collect(line(record));
    }

    @Override
    public TypeInformation<String> getProducedType() {
        return Types.STRING;
    }
}
