package testjobs;

import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SimpleStringEncoder;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.connector.file.sink.FileSink;
import org.apache.flink.connector.file.src.FileSource;
import org.apache.flink.connector.file.src.reader.TextLineInputFormat;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.core.fs.Path;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.filesystem.rollingpolicies.OnCheckpointRollingPolicy;

/** The building blocks of the jobs. */
final class Topology {
    /** The prefix of the names of KafkaSources; no other operator's name has this prefix. */
    static final String KAFKA = "Kafka ";

    private Topology() {}

    static SingleOutputStreamOperator<String> earliest(
            Place place, StreamExecutionEnvironment env, String... topics) {
        String name = KAFKA + String.join(", ", topics);
        return source(place, env, name, "golden", OffsetsInitializer.earliest(), topics);
    }

    static SingleOutputStreamOperator<String> source(
            Place place,
            StreamExecutionEnvironment env,
            String name,
            String group,
            OffsetsInitializer start,
            String... topics) {
        return env.fromSource(
                KafkaLines.source(place.bootstrapServers(), group, topics)
                        .setStartingOffsets(start)
                        .build(),
                WatermarkStrategy.noWatermarks(),
                name);
    }

    /** Counts lines by partition, and passes on at most two hundred lines per second. */
    static SingleOutputStreamOperator<String> count(DataStream<String> lines, String prefix) {
        return lines.map(Progress.Counter.ofPartitions(prefix, 5));
    }

    static void keyedCount(DataStream<String> lines) {
        lines.map(line -> Tuple2.of(Progress.partitionOf(line), 1L))
                .returns(Types.TUPLE(Types.STRING, Types.LONG))
                .keyBy(pair -> pair.f0)
                .sum(1);
    }

    static FileSource.FileSourceBuilder<String> textFiles(Place place, String directory) {
        return FileSource.forRecordStreamFormat(
                new TextLineInputFormat(), new Path(place.input().resolve(directory).toUri()));
    }

    static FileSink<String> fileSink(Place place) {
        return FileSink.forRowFormat(
                        new Path(place.root().resolve("sink").toUri()),
                        new SimpleStringEncoder<String>())
                .withRollingPolicy(OnCheckpointRollingPolicy.build())
                .build();
    }
}
