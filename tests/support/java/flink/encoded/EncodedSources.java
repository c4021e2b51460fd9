package testjobs;

import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.flink.connector.kafka.dynamic.metadata.KafkaStream;
import org.apache.flink.connector.kafka.dynamic.source.enumerator.DynamicKafkaSourceEnumState;
import org.apache.flink.connector.kafka.dynamic.source.enumerator.DynamicKafkaSourceEnumStateSerializer;
import org.apache.flink.connector.kafka.dynamic.source.split.DynamicKafkaSourceSplit;
import org.apache.flink.connector.kafka.dynamic.source.split.DynamicKafkaSourceSplitSerializer;
import org.apache.flink.connector.kafka.source.enumerator.KafkaSourceEnumState;
import org.apache.flink.connector.kafka.source.enumerator.KafkaSourceEnumStateSerializer;
import org.apache.flink.connector.kafka.source.split.KafkaPartitionSplit;
import org.apache.flink.connector.kafka.source.split.KafkaPartitionSplitSerializer;
import org.apache.flink.core.io.SimpleVersionedSerializer;
import org.apache.flink.runtime.checkpoint.CheckpointProperties;
import org.apache.flink.runtime.checkpoint.CheckpointRetentionPolicy;
import org.apache.flink.runtime.checkpoint.Checkpoints;
import org.apache.flink.runtime.checkpoint.OperatorState;
import org.apache.flink.runtime.checkpoint.metadata.CheckpointMetadata;
import org.apache.flink.runtime.jobgraph.OperatorID;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.kafka.common.TopicPartition;

/**
 * Writes states of Kafka sources that no test job can produce. As in a job, the connector's
 * serializers, Flink's operator state backend, and Flink's metadata serializer write them.
 *
 * <p>Arguments: a directory, and the name of a state. {@code unassigned} has splits that wait for a
 * reader, before the initial discovery has finished. {@code removed-cluster} is a
 * DynamicKafkaSource with a cluster that the metadata service no longer lists. The output is the
 * same as the output of {@link GoldenJobs} for a job.
 */
public final class EncodedSources {
    private static final OperatorID ID = new OperatorID(0x0123456789abcdefL, 1);
    private static final int PARALLELISM = 2;

    private EncodedSources() {}

    public static void main(String[] args) throws Exception {
        Path directory = Path.of(args[0]);
        boolean dynamic = args[1].equals("removed-cluster");
        OperatorState operator = dynamic ? removedCluster() : unassigned();
        CheckpointProperties properties =
                CheckpointProperties.forCheckpoint(
                        CheckpointRetentionPolicy.RETAIN_ON_CANCELLATION);
        Files.createDirectories(directory);
        try (OutputStream out = Files.newOutputStream(directory.resolve("_metadata"))) {
            Checkpoints.storeCheckpointMetadata(
                    new CheckpointMetadata(7, List.of(operator), List.of(), properties), out);
        }
        String kind = dynamic ? "dynamic_sources" : StateDump.KAFKA_SOURCES;
        Map<String, Object> told =
                Map.of(
                        "operators", Map.of(kind, List.of(ID.toHexString())),
                        "dump", StateDump.dump(directory, Map.of(ID.toHexString(), kind)));
        System.out.println(new ObjectMapper().writeValueAsString(told));
    }

    private static OperatorState unassigned() throws Exception {
        KafkaSourceEnumStateSerializer serializer = new KafkaSourceEnumStateSerializer();
        List<KafkaPartitionSplit> waiting =
                List.of(
                        split("orders", 1, KafkaPartitionSplit.EARLIEST_OFFSET),
                        split("orders", 2, 40),
                        split("orders", 3, KafkaPartitionSplit.COMMITTED_OFFSET),
                        split("orders", 4, Enumerators.MIGRATED));
        KafkaSourceEnumState state =
                Enumerators.state(
                        List.of(split("orders", 0, KafkaPartitionSplit.EARLIEST_OFFSET)), waiting);
        return operator(
                serializer.getVersion(),
                serializer.serialize(state),
                new KafkaPartitionSplitSerializer(),
                List.of(split("orders", 0, 12)));
    }

    private static OperatorState removedCluster() throws Exception {
        Properties properties = new Properties();
        properties.setProperty("bootstrap.servers", "east.example:9092");
        KafkaStream stream =
                new KafkaStream(
                        "orders", Map.of("east", Clusters.cluster("east", "orders", properties)));
        Map<String, KafkaSourceEnumState> clusters = new HashMap<>();
        for (String cluster : Set.of("east", "west")) {
            clusters.put(
                    cluster,
                    Enumerators.state(
                            List.of(split("orders", 0, KafkaPartitionSplit.EARLIEST_OFFSET)),
                            List.of(split("orders", 1, KafkaPartitionSplit.EARLIEST_OFFSET))));
        }
        DynamicKafkaSourceEnumStateSerializer serializer =
                new DynamicKafkaSourceEnumStateSerializer();
        return operator(
                serializer.getVersion(),
                serializer.serialize(new DynamicKafkaSourceEnumState(Set.of(stream), clusters)),
                new DynamicKafkaSourceSplitSerializer(),
                List.of(
                        new DynamicKafkaSourceSplit("east", split("orders", 0, 12)),
                        new DynamicKafkaSourceSplit("west", split("orders", 0, 20))));
    }

    private static KafkaPartitionSplit split(String topic, int partition, long start) {
        return new KafkaPartitionSplit(new TopicPartition(topic, partition), start);
    }

    /** Returns a source whose only reader with splits is subtask 1. */
    private static <T> OperatorState operator(
            int version,
            byte[] enumerator,
            SimpleVersionedSerializer<T> serializer,
            List<T> splits)
            throws Exception {
        OperatorState operator = MetadataView.operator(ID, PARALLELISM);
        operator.setCoordinatorState(SourceStates.enumerator(version, enumerator));
        operator.putState(0, SourceStates.reader(serializer, List.of()));
        operator.putState(1, SourceStates.reader(serializer, splits));
        return operator;
    }
}
