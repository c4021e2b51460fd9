package testjobs;

import java.nio.charset.StandardCharsets;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.connectors.kafka.KafkaDeserializationSchema;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/** Reads records as the lines of {@link KafkaLines}, for a FlinkKafkaConsumer. */
final class LegacyLines implements KafkaDeserializationSchema<String> {
    private static final long serialVersionUID = 1L;

    @Override
    public boolean isEndOfStream(String line) {
        return false;
    }

    @Override
    public String deserialize(ConsumerRecord<byte[], byte[]> record) {
        return KafkaLines.line(record);
    }

    @Override
    public TypeInformation<String> getProducedType() {
        return Types.STRING;
    }
}
