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
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.runtime.checkpoint.CheckpointProperties;
import org.apache.flink.runtime.checkpoint.OperatorState;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.runtime.checkpoint.metadata.CheckpointMetadata;

/** What Flink 2.2 and its connector name differently. */
final class Versioned {
    private Versioned() {}

    static String name(OperatorState state) {
        return state.getOperatorName().orElse(null);
    }

    static String uid(OperatorState state) {
        return state.getOperatorUid().orElse(null);
    }

    static CheckpointProperties properties(CheckpointMetadata metadata) {
        return metadata.getCheckpointProperties();
    }

    static EnumeratorView enumerator(KafkaSourceEnumState state) {
        List<EnumeratorView.Split> splits =
                state.splits().stream()
                        .map(
                                split ->
                                        new EnumeratorView.Split(
                                                split.split().getTopic(),
                                                split.split().getPartition(),
                                                split.assignmentStatus().name(),
                                                split.split().getStartingOffset(),
                                                StateDump.stoppingOffset(split.split())))
                        .collect(Collectors.toList());
        return new EnumeratorView(state.initialDiscoveryFinished(), splits);
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

    /** This version can keep offsets initializers: the one cluster has one, the other has none. */
    static ClusterMetadata cluster(String cluster, String topic, Properties properties) {
        return cluster.equals("east")
                ? new ClusterMetadata(
                        Set.of(topic), properties, OffsetsInitializer.earliest(), null)
                : new ClusterMetadata(Set.of(topic), properties);
    }
}
