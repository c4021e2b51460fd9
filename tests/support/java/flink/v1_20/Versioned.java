package testjobs;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.Source;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.connector.kafka.dynamic.metadata.ClusterMetadata;
import org.apache.flink.connector.kafka.source.enumerator.KafkaSourceEnumState;
import org.apache.flink.connector.kafka.source.enumerator.TopicPartitionAndAssignmentStatus;
import org.apache.flink.runtime.checkpoint.CheckpointProperties;
import org.apache.flink.runtime.checkpoint.OperatorState;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.runtime.checkpoint.metadata.CheckpointMetadata;
import org.apache.kafka.common.TopicPartition;

/** What Flink 1.20 and its connector name differently, or lack. */
final class Versioned {
    private Versioned() {}

    static String name(OperatorState state) {
        return null;
    }

    static String uid(OperatorState state) {
        return null;
    }

    static CheckpointProperties properties(CheckpointMetadata metadata) {
        return metadata.getCheckpointProperties();
    }

    static EnumeratorView enumerator(KafkaSourceEnumState state) {
        List<EnumeratorView.Split> splits =
                state.partitions().stream()
                        .map(Versioned::split)
                        .collect(Collectors.toList());
        return new EnumeratorView(state.initialDiscoveryFinished(), splits);
    }

    private static EnumeratorView.Split split(TopicPartitionAndAssignmentStatus partition) {
        TopicPartition name = partition.topicPartition();
        // By its stored code: this version's name for 1 is UNASSIGNED_INITIAL.
        boolean assigned = partition.assignmentStatus().getStatusCode() == 0;
        return new EnumeratorView.Split(
                name.topic(), name.partition(), assigned ? "ASSIGNED" : "UNASSIGNED", null, null);
    }

    static Optional<Source<String, ?, ?>> dataGenerator() {
        return Optional.of(
                new DataGeneratorSource<>(
                        number -> "generated," + number,
                        1_000_000,
                        RateLimiterStrategy.perSecond(50),
                        Types.STRING));
    }

    static Source<String, ?, ?> dynamicSource(String east, String west, String... topics) {
        return TwoClusters.source(east, west, topics);
    }

    static Map<String, Object> dynamicDump(
            OperatorState state, Map<Integer, OperatorSubtaskState> subtasks) throws Exception {
        return DynamicDump.dump(state, subtasks);
    }

    /** This version keeps nothing but the topics and the bootstrap servers. */
    static ClusterMetadata cluster(String cluster, String topic, Properties properties) {
        return new ClusterMetadata(Set.of(topic), properties);
    }
}
