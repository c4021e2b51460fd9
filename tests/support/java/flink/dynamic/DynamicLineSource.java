package testjobs;

import java.util.Map;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/** A DynamicKafkaSource that reads one cluster. */
final class DynamicLineSource implements LineSource {
    @Override
    public DataStream<String> read(StreamExecutionEnvironment env, String servers, String topic) {
        return env.fromSource(
                        TwoClusters.source(Map.of("east", servers), topic),
                        WatermarkStrategy.noWatermarks(),
                        "dynamic",
                        Types.STRING)
                .uid("dynamic-source");
    }
}
