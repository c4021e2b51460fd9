package bench;

import java.util.ArrayList;
import java.util.List;
import org.apache.flink.connector.kafka.source.enumerator.KafkaSourceEnumState;
import org.apache.flink.connector.kafka.source.enumerator.KafkaSourceEnumStateSerializer;
import org.apache.flink.connector.kafka.source.split.KafkaPartitionSplit;
import org.apache.flink.connector.kafka.source.split.KafkaPartitionSplitSerializer;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.runtime.state.memory.ByteStreamStateHandle;
import org.apache.kafka.common.TopicPartition;
import testjobs.SourceStates;

/** The state of a KafkaSource in a checkpoint: its readers' splits and its enumerator's state. */
final class KafkaSourceStates {
    private KafkaSourceStates() {}

    /** Returns the states of all subtasks, with the splits that the enumerator assigns to each. */
    static List<OperatorSubtaskState> readers(List<KafkaPartitionSplit> splits, int parallelism)
            throws Exception {
        List<List<KafkaPartitionSplit>> assigned = new ArrayList<>();
        for (int subtask = 0; subtask < parallelism; subtask++) {
            assigned.add(new ArrayList<>());
        }
        for (KafkaPartitionSplit split : splits) {
            assigned.get(owner(split.getTopicPartition(), parallelism)).add(split);
        }
        List<OperatorSubtaskState> readers = new ArrayList<>();
        for (List<KafkaPartitionSplit> own : assigned) {
            readers.add(SourceStates.reader(new KafkaPartitionSplitSerializer(), own));
        }
        return readers;
    }

    /**
     * Returns the coordinator's state as {@code SourceCoordinator} writes it. The enumerator keeps
     * the offsets at which the splits started.
     */
    static ByteStreamStateHandle enumerator(List<KafkaPartitionSplit> splits) throws Exception {
        List<KafkaPartitionSplit> starts = new ArrayList<>(splits.size());
        for (KafkaPartitionSplit split : splits) {
            starts.add(
                    new KafkaPartitionSplit(
                            split.getTopicPartition(), KafkaPartitionSplit.EARLIEST_OFFSET));
        }
        KafkaSourceEnumStateSerializer serializer = new KafkaSourceEnumStateSerializer();
        byte[] enumerator =
                serializer.serialize(new KafkaSourceEnumState(starts, List.of(), true));
        return SourceStates.enumerator(serializer.getVersion(), enumerator);
    }

    /** Copies {@code KafkaSourceEnumerator.getSplitOwner}, which is not public. */
    private static int owner(TopicPartition partition, int readers) {
        int start = ((partition.topic().hashCode() * 31) & 0x7FFFFFFF) % readers;
        return (start + partition.partition()) % readers;
    }
}
