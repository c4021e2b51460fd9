package testjobs;

import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/**
 * A second KafkaSource, specified as {@code host:port/topic}. A topic with the same name may exist
 * on the first cluster. The lines of this source start with {@code second-}.
 */
final class SecondLineSource implements LineSource {
    @Override
    public DataStream<String> read(StreamExecutionEnvironment env, String servers, String topic) {
        String[] place = topic.split("/");
        return env.fromSource(
                        KafkaLines.source(place[0], "second", place[1])
                                .setStartingOffsets(OffsetsInitializer.earliest())
                                .build(),
                        WatermarkStrategy.noWatermarks(),
                        "second")
                .uid("second-source")
                .map(line -> "second-" + line);
    }
}
