package testjobs;

import java.io.IOException;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.flink.connector.kafka.source.enumerator.KafkaSourceEnumState;
import org.apache.flink.connector.kafka.source.enumerator.KafkaSourceEnumStateSerializer;
import org.apache.flink.connector.kafka.source.enumerator.TopicPartitionAndAssignmentStatus;
import org.apache.flink.connector.kafka.source.split.KafkaPartitionSplit;
import org.apache.kafka.common.TopicPartition;

/** Reads the enumerator's state with the connectors that write its version 2. */
final class Enumerators {
    /** An arbitrary starting offset, because this version does not store starting offsets. */
    static final long MIGRATED = KafkaPartitionSplit.EARLIEST_OFFSET;

    private Enumerators() {}

    static EnumeratorView view(int version, byte[] bytes) throws IOException {
        return view(new KafkaSourceEnumStateSerializer().deserialize(version, bytes));
    }

    static EnumeratorView view(KafkaSourceEnumState state) {
        List<EnumeratorView.Split> splits =
                state.partitions().stream().map(Enumerators::split).collect(Collectors.toList());
        return new EnumeratorView(state.initialDiscoveryFinished(), splits);
    }

    private static EnumeratorView.Split split(TopicPartitionAndAssignmentStatus partition) {
        TopicPartition name = partition.topicPartition();
        // Compare the stored code, because these versions use the name UNASSIGNED_INITIAL for 1.
        boolean assigned = partition.assignmentStatus().getStatusCode() == 0;
        return new EnumeratorView.Split(
                name.topic(), name.partition(), assigned ? "ASSIGNED" : "UNASSIGNED", null, null);
    }

    static KafkaSourceEnumState state(
            Collection<KafkaPartitionSplit> assigned, Collection<KafkaPartitionSplit> unassigned) {
        return new KafkaSourceEnumState(partitions(assigned), partitions(unassigned), false);
    }

    private static Set<TopicPartition> partitions(Collection<KafkaPartitionSplit> splits) {
        return splits.stream()
                .map(KafkaPartitionSplit::getTopicPartition)
                .collect(Collectors.toSet());
    }
}
