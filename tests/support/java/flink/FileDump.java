package testjobs;

import java.lang.reflect.Method;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.typeutils.base.array.BytePrimitiveArraySerializer;
import org.apache.flink.connector.file.sink.writer.FileWriterBucketState;
import org.apache.flink.core.io.SimpleVersionedSerializer;
import org.apache.flink.runtime.checkpoint.OperatorState;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.streaming.api.operators.util.SimpleVersionedListState;

/**
 * Reads the state of a FileSink's writer for {@link StateDump}, with the sink's own serializer: the
 * buckets, and whether each bucket has an in-progress file.
 */
final class FileDump implements Oracle {
    static final String WRITER = "writer_raw_states";

    @Override
    public Map<String, Object> dump(
            OperatorState state, Map<Integer, OperatorSubtaskState> subtasks) throws Exception {
        Place anywhere = new Place("", "", Path.of("/flink"), Path.of("/flink"));
        SimpleVersionedSerializer<FileWriterBucketState> serializer =
                AsyncScenarios.rows(anywhere, "any").getWriterStateSerializer();
        ListStateDescriptor<byte[]> descriptor =
                new ListStateDescriptor<>(WRITER, BytePrimitiveArraySerializer.INSTANCE);
        List<Object> buckets = new ArrayList<>();
        for (OperatorSubtaskState subtask : subtasks.values()) {
            for (FileWriterBucketState bucket :
                    StateDump.restored(
                            subtask,
                            backend ->
                                    new SimpleVersionedListState<>(
                                            backend.getListState(descriptor), serializer))) {
                Map<String, Object> fields = new LinkedHashMap<>();
                fields.put("path", String.valueOf(get(bucket, "getBucketPath")));
                fields.put("in_progress", get(bucket, "hasInProgressFileRecoverable"));
                buckets.add(fields);
            }
        }
        return Map.of("buckets", buckets);
    }

    /** Calls a getter, which is not public. */
    private static Object get(FileWriterBucketState bucket, String getter)
            throws ReflectiveOperationException {
        Method method = FileWriterBucketState.class.getDeclaredMethod(getter);
        method.setAccessible(true);
        return method.invoke(bucket);
    }
}
