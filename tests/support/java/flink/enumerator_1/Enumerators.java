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

/** Reads the enumerator's state of the connectors that write version 1 of it. */
final class Enumerators {
    private Enumerators() {}

    /** Of version 0 the connector keeps the partitions alone; this tells the splits too. */
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
