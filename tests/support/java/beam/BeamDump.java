package testjobs;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.beam.runners.core.construction.SerializablePipelineOptions;
import org.apache.beam.runners.flink.translation.types.CoderTypeSerializer;
import org.apache.beam.runners.flink.translation.wrappers.streaming.io.source.FlinkSourceSplit;
import org.apache.beam.sdk.coders.Coder;
import org.apache.beam.sdk.coders.KvCoder;
import org.apache.beam.sdk.coders.SerializableCoder;
import org.apache.beam.sdk.extensions.avro.coders.AvroCoder;
import org.apache.beam.sdk.io.UnboundedSource;
import org.apache.beam.sdk.io.kafka.KafkaCheckpointMark;
import org.apache.beam.sdk.options.PipelineOptionsFactory;
import org.apache.beam.sdk.values.KV;
import org.apache.flink.api.common.ExecutionConfig;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.typeutils.base.array.BytePrimitiveArraySerializer;
import org.apache.flink.core.fs.CloseableRegistry;
import org.apache.flink.runtime.checkpoint.Checkpoints;
import org.apache.flink.runtime.checkpoint.OperatorState;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.runtime.checkpoint.metadata.CheckpointMetadata;
import org.apache.flink.runtime.state.DefaultOperatorStateBackend;
import org.apache.flink.runtime.state.DefaultOperatorStateBackendBuilder;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.streaming.api.operators.util.SimpleVersionedListState;

/**
 * Prints the KafkaCheckpointMarks in a checkpoint. Flink's operator state backend restores them,
 * and the coders of Beam's Flink runner and of KafkaIO deserialize them.
 *
 * <p>Argument: a checkpoint directory. The output is JSON with the partitions of the marks, by
 * operator id.
 */
public final class BeamDump {
    private static final ClassLoader CLASSES = BeamDump.class.getClassLoader();
    private static final ListStateDescriptor<byte[]> READER_STATE =
            new ListStateDescriptor<>("SourceReaderState", BytePrimitiveArraySerializer.INSTANCE);

    private BeamDump() {}

    public static void main(String[] args) throws Exception {
        Path checkpoint = Path.of(args[0]);
        CheckpointMetadata metadata;
        try (DataInputStream in =
                new DataInputStream(Files.newInputStream(checkpoint.resolve("_metadata")))) {
            metadata =
                    Checkpoints.loadCheckpointMetadata(in, CLASSES, checkpoint.toUri().toString());
        }
        Map<String, Object> told = new TreeMap<>();
        for (OperatorState state : metadata.getOperatorStates()) {
            List<Object> partitions = new ArrayList<>();
            for (Map.Entry<Integer, OperatorSubtaskState> subtask :
                    new TreeMap<>(state.getSubtaskStates()).entrySet()) {
                for (KafkaCheckpointMark mark : marks(subtask.getValue())) {
                    for (KafkaCheckpointMark.PartitionMark one : mark.getPartitions()) {
                        Map<String, Object> fields = new LinkedHashMap<>();
                        fields.put("subtask", subtask.getKey());
                        fields.put("topic", one.getTopic());
                        fields.put("partition", one.getPartition());
                        fields.put("next_offset", one.getNextOffset());
                        fields.put("watermark", one.getWatermarkMillis());
                        partitions.add(fields);
                    }
                }
            }
            if (!partitions.isEmpty()) {
                told.put(state.getOperatorID().toHexString(), partitions);
            }
        }
        System.out.println(new ObjectMapper().writeValueAsString(told));
    }

    private static List<KafkaCheckpointMark> marks(OperatorSubtaskState subtask) throws Exception {
        List<KafkaCheckpointMark> marks = new ArrayList<>();
        DefaultOperatorStateBackend backend =
                new DefaultOperatorStateBackendBuilder(
                                CLASSES,
                                new ExecutionConfig(),
                                false,
                                subtask.getManagedOperatorState(),
                                new CloseableRegistry())
                        .build();
        try {
            if (backend.getRegisteredStateNames().contains(READER_STATE.getName())) {
                SimpleVersionedListState<FlinkSourceSplit<Object>> splits =
                        new SimpleVersionedListState<>(
                                backend.getListState(READER_STATE), FlinkSourceSplit.serializer());
                for (FlinkSourceSplit<Object> split : splits.get()) {
                    if (split.getBeamSplitSource() instanceof UnboundedSource) {
                        Coder<?> coder =
                                ((UnboundedSource<?, ?>) split.getBeamSplitSource())
                                        .getCheckpointMarkCoder();
                        byte[] mark = split.getSplitState();
                        add(coder.decode(new ByteArrayInputStream(mark)), marks);
                    }
                }
            }
            String wrapper = DefaultOperatorStateBackend.DEFAULT_OPERATOR_STATE_NAME;
            if (backend.getRegisteredStateNames().contains(wrapper)) {
                for (KV<UnboundedSource, KafkaCheckpointMark> one :
                        backend.getListState(new ListStateDescriptor<>(wrapper, wrapped())).get()) {
                    add(one.getValue(), marks);
                }
            }
        } finally {
            backend.dispose();
        }
        return marks;
    }

    /** Returns the serializer with which an UnboundedSourceWrapper stores sources and marks. */
    private static CoderTypeSerializer<KV<UnboundedSource, KafkaCheckpointMark>> wrapped() {
        return new CoderTypeSerializer<>(
                KvCoder.of(
                        SerializableCoder.of(UnboundedSource.class),
                        AvroCoder.of(KafkaCheckpointMark.class)),
                new SerializablePipelineOptions(PipelineOptionsFactory.create()));
    }

    private static void add(Object mark, List<KafkaCheckpointMark> marks) {
        if (mark instanceof KafkaCheckpointMark) {
            marks.add((KafkaCheckpointMark) mark);
        }
    }
}
