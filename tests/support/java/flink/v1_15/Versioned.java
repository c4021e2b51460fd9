package testjobs;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;
import org.apache.flink.api.connector.source.Source;
import org.apache.flink.connector.kafka.source.enumerator.KafkaSourceEnumState;
import org.apache.flink.runtime.checkpoint.CheckpointProperties;
import org.apache.flink.runtime.checkpoint.OperatorState;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.runtime.checkpoint.metadata.CheckpointMetadata;

/** What Flink 1.15 and its connector name differently, or lack. */
final class Versioned {
    private Versioned() {}

    static String name(OperatorState state) {
        return null;
    }

    static String uid(OperatorState state) {
        return null;
    }

    static CheckpointProperties properties(CheckpointMetadata metadata) {
        return null;
    }

    static EnumeratorView enumerator(KafkaSourceEnumState state) {
        List<EnumeratorView.Split> splits =
                state.assignedPartitions().stream()
                        .map(
                                partition ->
                                        new EnumeratorView.Split(
                                                partition.topic(),
                                                partition.partition(),
                                                null,
                                                null,
                                                null))
                        .collect(Collectors.toList());
        return new EnumeratorView(null, splits);
    }

    static Optional<Source<String, ?, ?>> dataGenerator() {
        return Optional.empty();
    }

    static Source<String, ?, ?> dynamicSource(String east, String west, String... topics) {
        throw new UnsupportedOperationException("this connector has no DynamicKafkaSource");
    }

    static Map<String, Object> dynamicDump(
            OperatorState state, Map<Integer, OperatorSubtaskState> subtasks) {
        throw new UnsupportedOperationException("this connector has no DynamicKafkaSource");
    }
}
