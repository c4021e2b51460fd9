package bench;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.RunnableFuture;
import org.apache.flink.api.common.ExecutionConfig;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.typeutils.base.array.BytePrimitiveArraySerializer;
import org.apache.flink.connector.kafka.source.enumerator.KafkaSourceEnumState;
import org.apache.flink.connector.kafka.source.enumerator.KafkaSourceEnumStateSerializer;
import org.apache.flink.connector.kafka.source.split.KafkaPartitionSplit;
import org.apache.flink.connector.kafka.source.split.KafkaPartitionSplitSerializer;
import org.apache.flink.core.fs.CloseableRegistry;
import org.apache.flink.runtime.checkpoint.CheckpointOptions;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.runtime.source.coordinator.SourceCoordinatorSerdeUtils;
import org.apache.flink.runtime.state.DefaultOperatorStateBackend;
import org.apache.flink.runtime.state.DefaultOperatorStateBackendBuilder;
import org.apache.flink.runtime.state.OperatorStateHandle;
import org.apache.flink.runtime.state.SnapshotResult;
import org.apache.flink.runtime.state.memory.ByteStreamStateHandle;
import org.apache.flink.runtime.state.memory.MemCheckpointStreamFactory;
import org.apache.flink.streaming.api.operators.util.SimpleVersionedListState;
import org.apache.kafka.common.TopicPartition;

/** What a KafkaSource leaves in a checkpoint: its readers' splits, and its enumerator's state. */
final class SourceStates {
    static final ListStateDescriptor<byte[]> READER_STATE =
            new ListStateDescriptor<>("SourceReaderState", BytePrimitiveArraySerializer.INSTANCE);
    static final ClassLoader CLASSES = SourceStates.class.getClassLoader();

    /** Far above what Flink keeps inline by default, so that nothing goes into a file. */
    private static final int INLINE_BYTES = 1 << 24;

    private SourceStates() {}

    /** The readers of all subtasks, each with the splits that the enumerator would give it. */
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
            readers.add(reader(own));
        }
        return readers;
    }

    /** As {@code SourceCoordinator} writes it: the enumerator keeps where splits once started. */
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
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        Method header =
                SourceCoordinatorSerdeUtils.class.getDeclaredMethod(
                        "writeCoordinatorSerdeVersion", DataOutputStream.class);
        header.setAccessible(true);
        header.invoke(null, out);
        out.writeInt(serializer.getVersion());
        out.writeInt(enumerator.length);
        out.write(enumerator);
        return new ByteStreamStateHandle("coordinator", bytes.toByteArray());
    }

    /** As {@code KafkaSourceEnumerator.getSplitOwner}, which is not public. */
    private static int owner(TopicPartition partition, int readers) {
        int start = ((partition.topic().hashCode() * 31) & 0x7FFFFFFF) % readers;
        return (start + partition.partition()) % readers;
    }

    private static OperatorSubtaskState reader(List<KafkaPartitionSplit> splits) throws Exception {
        DefaultOperatorStateBackend backend =
                new DefaultOperatorStateBackendBuilder(
                                CLASSES,
                                new ExecutionConfig(),
                                false,
                                List.of(),
                                new CloseableRegistry())
                        .build();
        try {
            new SimpleVersionedListState<>(
                            backend.getListState(READER_STATE), new KafkaPartitionSplitSerializer())
                    .update(splits);
            RunnableFuture<SnapshotResult<OperatorStateHandle>> snapshot =
                    backend.snapshot(
                            1,
                            0,
                            new MemCheckpointStreamFactory(INLINE_BYTES),
                            CheckpointOptions.forCheckpointWithDefaultLocation());
            snapshot.run();
            OperatorStateHandle handle = snapshot.get().getJobManagerOwnedSnapshot();
            return OperatorSubtaskState.builder().setManagedOperatorState(handle).build();
        } finally {
            backend.dispose();
        }
    }
}
