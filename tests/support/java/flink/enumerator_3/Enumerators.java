package testjobs;

import java.io.IOException;
import java.util.Collection;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.flink.connector.kafka.source.enumerator.KafkaSourceEnumState;
import org.apache.flink.connector.kafka.source.enumerator.KafkaSourceEnumStateSerializer;
import org.apache.flink.connector.kafka.source.split.KafkaPartitionSplit;

/** Reads the enumerator's state with the connectors that write its version 3. */
final class Enumerators {
    /** The starting offset that is used for state of an older version, which does not store it. */
    static final long MIGRATED = KafkaPartitionSplit.MIGRATED;

    private Enumerators() {}

    static EnumeratorView view(int version, byte[] bytes) throws IOException {
        return view(new KafkaSourceEnumStateSerializer().deserialize(version, bytes));
    }

    static EnumeratorView view(KafkaSourceEnumState state) {
        List<EnumeratorView.Split> splits =
                state.splits().stream()
                        .map(
                                split ->
                                        new EnumeratorView.Split(
                                                split.split().getTopic(),
                                                split.split().getPartition(),
                                                split.assignmentStatus().name(),
                                                split.split().getStartingOffset(),
                                                KafkaDump.stoppingOffset(split.split())))
                        .collect(Collectors.toList());
        return new EnumeratorView(state.initialDiscoveryFinished(), splits);
    }

    static KafkaSourceEnumState state(
            Collection<KafkaPartitionSplit> assigned, Collection<KafkaPartitionSplit> unassigned) {
        return new KafkaSourceEnumState(assigned, unassigned, false);
    }
}
