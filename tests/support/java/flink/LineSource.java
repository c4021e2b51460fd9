package testjobs;

import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/** A kind of source that reads one topic as the lines of {@link KafkaLines}, from its start. */
interface LineSource {
    DataStream<String> read(StreamExecutionEnvironment env, String servers, String topic)
            throws Exception;
}
