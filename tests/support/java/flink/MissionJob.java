package testjobs;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SimpleStringEncoder;
import org.apache.flink.connector.file.sink.FileSink;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.filesystem.rollingpolicies.OnCheckpointRollingPolicy;

/**
 * A job like a user's: it reads Kafka from the earliest offset, and writes every processed record
 * to an exactly-once file sink. After enough records, it is stopped with a savepoint.
 *
 * <p>Arguments: bootstrap servers, group, topics (comma-separated), required counts
 * ({@code topic:partition=count,...}), parallelism, checkpoint directory, savepoint directory, sink
 * directory, drain. The program prints the path of the savepoint.
 */
public final class MissionJob {
    private MissionJob() {}

    public static void main(String[] args) throws Exception {
        String bootstrapServers = args[0];
        String group = args[1];
        String[] topics = args[2].split(",");
        Progress.require(counts(args[3]));
        int parallelism = Integer.parseInt(args[4]);
        Path checkpoints = Path.of(args[5]);
        Path savepoints = Path.of(args[6]);
        Path sink = Path.of(args[7]);
        boolean drain = Boolean.parseBoolean(args[8]);

        StreamExecutionEnvironment env =
                StreamExecutionEnvironment.createLocalEnvironment(
                        parallelism, LocalFlink.configuration(checkpoints));
        env.fromSource(
                        KafkaLines.source(bootstrapServers, group, topics)
                                .setStartingOffsets(OffsetsInitializer.earliest())
                                .build(),
                        WatermarkStrategy.noWatermarks(),
                        "kafka")
                .uid("kafka-source")
                .map(Progress.Counter.ofPartitions("", 5))
                .uid("process")
                .sinkTo(
                        FileSink.forRowFormat(
                                        new org.apache.flink.core.fs.Path(sink.toUri()),
                                        new SimpleStringEncoder<String>())
                                // Only with this policy, every checkpoint commits all records.
                                .withRollingPolicy(OnCheckpointRollingPolicy.build())
                                .build())
                .uid("file-sink");
        JobClient job = env.executeAsync("mission");
        LocalFlink.awaitProgress(job);
        System.out.println(LocalFlink.stopWithSavepoint(job, savepoints, drain));
    }

    private static Map<String, Integer> counts(String argument) {
        Map<String, Integer> counts = new HashMap<>();
        for (String pair : argument.split(",")) {
            String[] sides = pair.split("=");
            counts.put(sides[0], Integer.parseInt(sides[1]));
        }
        return counts;
    }
}
