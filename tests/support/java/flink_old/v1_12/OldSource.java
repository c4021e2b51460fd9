package testjobs;

import java.nio.charset.StandardCharsets;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializer;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.Collector;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/** The source for Flink 1.12.0: the first KafkaSource, whose enumerator stores splits by reader. */
final class OldSource {
    private OldSource() {}

    static SingleOutputStreamOperator<String> of(
            StreamExecutionEnvironment env, String servers, String[] topics) {
        return env.fromSource(
                KafkaSource.<String>builder()
                        .setBootstrapServers(servers)
                        .setGroupId("old")
                        .setTopics(topics)
                        .setStartingOffsets(OffsetsInitializer.earliest())
                        .setProperty("max.partition.fetch.bytes", "1")
                        .setProperty("fetch.max.bytes", "1")
                        .setDeserializer(new Values())
                        .build(),
                WatermarkStrategy.noWatermarks(),
                "orders",
                Types.STRING);
    }

    private static final class Values implements KafkaRecordDeserializer<String> {
        private static final long serialVersionUID = 1L;

        @Override
        public void deserialize(
                ConsumerRecord<byte[], byte[]> record, Collector<String> collector) {
            collector.collect(new String(record.value(), StandardCharsets.UTF_8));
        }

        @Override
        public TypeInformation<String> getProducedType() {
            return Types.STRING;
        }
    }
}
