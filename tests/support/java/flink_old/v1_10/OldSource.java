package testjobs;

import java.util.Arrays;
import java.util.Properties;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.connectors.kafka.FlinkKafkaConsumer;

/** The source for Flink 1.10, which can read Kafka only with a FlinkKafkaConsumer. */
final class OldSource {
    private OldSource() {}

    static SingleOutputStreamOperator<String> of(
            StreamExecutionEnvironment env, String servers, String[] topics) {
        Properties properties = new Properties();
        properties.setProperty("bootstrap.servers", servers);
        properties.setProperty("group.id", "old");
        properties.setProperty("max.partition.fetch.bytes", "1");
        properties.setProperty("fetch.max.bytes", "1");
        FlinkKafkaConsumer<String> consumer =
                new FlinkKafkaConsumer<>(
                        Arrays.asList(topics), new SimpleStringSchema(), properties);
        consumer.setStartFromEarliest();
        return env.addSource(consumer);
    }
}
