package testjobs;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.flink.connector.base.source.utils.SerdeUtils;
import org.apache.flink.connector.kafka.source.enumerator.KafkaSourceEnumState;
import org.apache.flink.connector.kafka.source.enumerator.KafkaSourceEnumStateSerializer;
import org.apache.flink.connector.kafka.source.split.KafkaPartitionSplit;
import org.apache.flink.connector.kafka.source.split.KafkaPartitionSplitSerializer;

/** Reads the enumerator's state with the connectors that write its version 1. */
final class Enumerators {
    private Enumerators() {}

    /** Also returns the splits of version 0, of which the connector keeps only the partitions. */
    static EnumeratorView view(int version, byte[] bytes) throws IOException {
        if (version > 0) {
            return view(new KafkaSourceEnumStateSerializer().deserialize(version, bytes));
        }
        Map<Integer, List<KafkaPartitionSplit>> assignments =
                SerdeUtils.deserializeSplitAssignments(
                        bytes, new KafkaPartitionSplitSerializer(), ArrayList::new);
        return new EnumeratorView(
                null,
                assignments.values().stream()
                        .flatMap(List::stream)
                        .map(
                                split ->
                                        new EnumeratorView.Split(
                                                split.getTopic(),
                                                split.getPartition(),
                                                null,
                                                split.getStartingOffset(),
                                                KafkaDump.stoppingOffset(split)))
                        .collect(Collectors.toList()));
    }

    private static EnumeratorView view(KafkaSourceEnumState state) {
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
}
