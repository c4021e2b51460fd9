package testjobs;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.lang.reflect.Method;
import java.util.List;
import java.util.concurrent.RunnableFuture;
import org.apache.flink.api.common.ExecutionConfig;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.typeutils.base.array.BytePrimitiveArraySerializer;
import org.apache.flink.core.fs.CloseableRegistry;
import org.apache.flink.core.io.SimpleVersionedSerializer;
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

/** What a source leaves in a checkpoint, written as Flink does: of readers, and an enumerator. */
public final class SourceStates {
    public static final ListStateDescriptor<byte[]> READER_STATE =
            new ListStateDescriptor<>("SourceReaderState", BytePrimitiveArraySerializer.INSTANCE);

    /** Far above what Flink keeps inline by default, so that nothing goes into a file. */
    private static final int INLINE_BYTES = 1 << 24;

    private SourceStates() {}

    /** As {@code SourceCoordinator} writes it around what the enumerator's serializer made. */
    public static ByteStreamStateHandle enumerator(int version, byte[] serialized)
            throws Exception {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        Method header =
                SourceCoordinatorSerdeUtils.class.getDeclaredMethod(
                        "writeCoordinatorSerdeVersion", DataOutputStream.class);
        header.setAccessible(true);
        header.invoke(null, out);
        out.writeInt(version);
        out.writeInt(serialized.length);
        out.write(serialized);
        return new ByteStreamStateHandle("coordinator", bytes.toByteArray());
    }

    /** As {@code SourceOperator} keeps the splits of its reader. */
    public static <T> OperatorSubtaskState reader(
            SimpleVersionedSerializer<T> serializer, List<T> splits) throws Exception {
        DefaultOperatorStateBackend backend =
                new DefaultOperatorStateBackendBuilder(
                                SourceStates.class.getClassLoader(),
                                new ExecutionConfig(),
                                false,
                                List.of(),
                                new CloseableRegistry())
                        .build();
        try {
            new SimpleVersionedListState<>(backend.getListState(READER_STATE), serializer)
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
