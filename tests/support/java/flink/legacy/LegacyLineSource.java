package testjobs;

import java.util.List;
import java.util.Properties;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.connectors.kafka.FlinkKafkaConsumer;

/** A FlinkKafkaConsumer that discovers new partitions. */
final class LegacyLineSource implements LineSource {
    @Override
    public DataStream<String> read(StreamExecutionEnvironment env, String servers, String topic) {
        Properties properties = new Properties();
        properties.putAll(KafkaLines.IN_STEP);
        properties.setProperty("bootstrap.servers", servers);
        properties.setProperty("group.id", "legacy");
        properties.setProperty("flink.partition-discovery.interval-millis", "500");
        FlinkKafkaConsumer<String> consumer =
                new FlinkKafkaConsumer<>(List.of(topic), new LegacyLines(), properties);
        consumer.setStartFromEarliest();
        return env.addSource(consumer, "legacy").uid("legacy-source");
    }
}
