package testjobs;

import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/** A kind of source that reads a topic from its start, as the lines of {@link KafkaLines}. */
interface LineSource {
    DataStream<String> read(StreamExecutionEnvironment env, String servers, String topic)
            throws Exception;
}
