package testjobs;

import java.io.IOException;
import java.util.Collection;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.flink.connector.kafka.source.enumerator.KafkaSourceEnumState;
import org.apache.flink.connector.kafka.source.enumerator.KafkaSourceEnumStateSerializer;
import org.apache.flink.connector.kafka.source.split.KafkaPartitionSplit;

/** Reads the enumerator's state of the connectors that write version 3 of it. */
final class Enumerators {
    /** What reading an older version's state makes of a start that it did not keep. */
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
