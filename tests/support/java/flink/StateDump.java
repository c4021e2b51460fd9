package testjobs;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.flink.api.common.ExecutionConfig;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.typeutils.base.array.BytePrimitiveArraySerializer;
import org.apache.flink.connector.kafka.source.enumerator.KafkaSourceEnumStateSerializer;
import org.apache.flink.connector.kafka.source.split.KafkaPartitionSplit;
import org.apache.flink.connector.kafka.source.split.KafkaPartitionSplitSerializer;
import org.apache.flink.core.fs.CloseableRegistry;
import org.apache.flink.core.io.SimpleVersionedSerializer;
import org.apache.flink.runtime.checkpoint.CheckpointProperties;
import org.apache.flink.runtime.checkpoint.Checkpoints;
import org.apache.flink.runtime.checkpoint.OperatorState;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.runtime.checkpoint.SavepointType;
import org.apache.flink.runtime.checkpoint.SnapshotType;
import org.apache.flink.runtime.checkpoint.metadata.CheckpointMetadata;
import org.apache.flink.runtime.source.coordinator.SourceCoordinatorSerdeUtils;
import org.apache.flink.runtime.state.DefaultOperatorStateBackend;
import org.apache.flink.runtime.state.DefaultOperatorStateBackendBuilder;
import org.apache.flink.runtime.state.OperatorStateHandle;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.streaming.api.operators.util.SimpleVersionedListState;

/**
 * Tells what checkpoints hold, in Flink's own words: read by its loader, restored by its operator
 * state backend, deserialized by the connector's own serializers. All numbers are as stored.
 *
 * <p>Arguments: {@code <checkpoint directory>=<sources>/<dynamic sources>}..., where these are the
 * ids of the operators that are KafkaSources and DynamicKafkaSources (comma-separated): a checkpoint
 * itself does not tell. Prints a JSON array, one element per argument.
 */
public final class StateDump {
    private static final ListStateDescriptor<byte[]> READER_STATE =
            new ListStateDescriptor<>("SourceReaderState", BytePrimitiveArraySerializer.INSTANCE);
    private static final ClassLoader CLASSES = StateDump.class.getClassLoader();

    private StateDump() {}

    public static void main(String[] args) throws Exception {
        List<Object> dumps = new ArrayList<>();
        for (String arg : args) {
            int equals = arg.lastIndexOf('=');
            Path checkpoint = Path.of(arg.substring(0, equals));
            String[] sources = arg.substring(equals + 1).split("/", -1);
            dumps.add(
                    dump(
                            checkpoint,
                            Set.of(sources[0].split(",")),
                            Set.of(sources[1].split(","))));
        }
        System.out.println(new ObjectMapper().writeValueAsString(dumps));
    }

    static Map<String, Object> dump(
            Path checkpoint, Set<String> kafkaSources, Set<String> dynamicSources)
            throws Exception {
        Path file = checkpoint.resolve("_metadata");
        CheckpointMetadata metadata;
        try (DataInputStream in = new DataInputStream(Files.newInputStream(file))) {
            metadata =
                    Checkpoints.loadCheckpointMetadata(in, CLASSES, checkpoint.toUri().toString());
        }
        Map<String, Object> dump = new LinkedHashMap<>();
        dump.put("checkpoint_id", metadata.getCheckpointId());
        dump.put("metadata_version", version(file));
        dump.put("checkpoint_type", type(Versioned.properties(metadata)));
        List<Object> operators = new ArrayList<>();
        List<OperatorState> states = new ArrayList<>(metadata.getOperatorStates());
        states.sort(Comparator.comparing(state -> state.getOperatorID().toHexString()));
        for (OperatorState state : states) {
            String id = state.getOperatorID().toHexString();
            operators.add(operator(state, kafkaSources.contains(id), dynamicSources.contains(id)));
        }
        dump.put("operators", operators);
        return dump;
    }

    private static int version(Path file) throws IOException {
        try (DataInputStream in = new DataInputStream(Files.newInputStream(file))) {
            in.readInt();
            return in.readInt();
        }
    }

    private static Map<String, Object> type(CheckpointProperties properties) {
        if (properties == null) {
            return null;
        }
        SnapshotType type = properties.getCheckpointType();
        Map<String, Object> told = new LinkedHashMap<>();
        told.put("class", type.getClass().getName());
        told.put("name", type.getName());
        told.put("savepoint", type.isSavepoint());
        if (type instanceof SavepointType) {
            SavepointType savepoint = (SavepointType) type;
            told.put("format", savepoint.getFormatType().name());
            told.put("post_checkpoint_action", savepoint.getPostCheckpointAction().name());
            told.put("drain", savepoint.shouldDrain());
        }
        return told;
    }

    private static Map<String, Object> operator(
            OperatorState state, boolean kafka, boolean dynamic) throws Exception {
        Map<Integer, OperatorSubtaskState> subtasks =
                state.isFullyFinished() ? Map.of() : new TreeMap<>(state.getSubtaskStates());
        Set<String> names = new TreeSet<>();
        long operatorBytes = 0;
        long keyedBytes = 0;
        long inFlightBytes = 0;
        List<Integer> finished = new ArrayList<>();
        for (Map.Entry<Integer, OperatorSubtaskState> entry : subtasks.entrySet()) {
            OperatorSubtaskState subtask = entry.getValue();
            if (subtask.isFinished()) {
                finished.add(entry.getKey());
            }
            for (OperatorStateHandle handle : subtask.getManagedOperatorState()) {
                names.addAll(handle.getStateNameToPartitionOffsets().keySet());
            }
            for (OperatorStateHandle handle : subtask.getRawOperatorState()) {
                names.addAll(handle.getStateNameToPartitionOffsets().keySet());
            }
            operatorBytes +=
                    subtask.getManagedOperatorState().getStateSize()
                            + subtask.getRawOperatorState().getStateSize();
            keyedBytes +=
                    subtask.getManagedKeyedState().getStateSize()
                            + subtask.getRawKeyedState().getStateSize();
            inFlightBytes +=
                    subtask.getInputChannelState().getStateSize()
                            + subtask.getResultSubpartitionState().getStateSize();
        }
        Map<String, Object> told = new LinkedHashMap<>();
        told.put("operator_id", state.getOperatorID().toHexString());
        told.put("name", Versioned.name(state));
        told.put("uid", Versioned.uid(state));
        told.put("parallelism", state.getParallelism());
        told.put("max_parallelism", state.getMaxParallelism());
        told.put("finished", state.isFullyFinished());
        told.put("subtasks", List.copyOf(subtasks.keySet()));
        told.put("finished_subtasks", finished);
        told.put("state_names", List.copyOf(names));
        told.put(
                "coordinator_state_bytes",
                state.getCoordinatorState() == null
                        ? null
                        : state.getCoordinatorState().getStateSize());
        told.put("operator_state_bytes", operatorBytes);
        told.put("keyed_state_bytes", keyedBytes);
        told.put("in_flight_bytes", inFlightBytes);
        told.put("reader_splits", kafka ? readerSplits(subtasks) : null);
        told.put("enumerator", kafka ? enumerator(state) : null);
        if (dynamic) {
            told.put("dynamic", Versioned.dynamicDump(state, subtasks));
        }
        return told;
    }

    private static List<Object> readerSplits(Map<Integer, OperatorSubtaskState> subtasks)
            throws Exception {
        List<Object> told = new ArrayList<>();
        for (Map.Entry<Integer, OperatorSubtaskState> subtask : subtasks.entrySet()) {
            List<KafkaPartitionSplit> splits =
                    splits(subtask.getValue(), new KafkaPartitionSplitSerializer());
            splits.sort(
                    Comparator.comparing(KafkaPartitionSplit::getTopic)
                            .thenComparing(KafkaPartitionSplit::getPartition));
            for (KafkaPartitionSplit split : splits) {
                told.add(readerSplit(subtask.getKey(), split));
            }
        }
        return told;
    }

    static Map<String, Object> readerSplit(int subtask, KafkaPartitionSplit split) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("subtask", subtask);
        fields.put("topic", split.getTopic());
        fields.put("partition", split.getPartition());
        fields.put("starting_offset", split.getStartingOffset());
        fields.put("stopping_offset", stoppingOffset(split));
        return fields;
    }

    /** Restores the operator state of a subtask as its SourceOperator would. */
    static <T> List<T> splits(OperatorSubtaskState subtask, SimpleVersionedSerializer<T> serializer)
            throws Exception {
        List<T> splits = new ArrayList<>();
        DefaultOperatorStateBackend backend =
                new DefaultOperatorStateBackendBuilder(
                                CLASSES,
                                new ExecutionConfig(),
                                false,
                                subtask.getManagedOperatorState(),
                                new CloseableRegistry())
                        .build();
        try {
            new SimpleVersionedListState<>(backend.getListState(READER_STATE), serializer)
                    .get()
                    .forEach(splits::add);
        } finally {
            backend.dispose();
        }
        return splits;
    }

    /** The stored number; its getter shows the marker for "none" as an empty Optional. */
    static long stoppingOffset(KafkaPartitionSplit split) {
        return split.getStoppingOffset().orElse(KafkaPartitionSplit.NO_STOPPING_OFFSET);
    }

    private static Map<String, Object> enumerator(OperatorState state) throws Exception {
        if (state.getCoordinatorState() == null) {
            return null;
        }
        Coordinator coordinator = coordinator(state);
        EnumeratorView view =
                Versioned.enumerator(
                        new KafkaSourceEnumStateSerializer()
                                .deserialize(
                                        coordinator.serializerVersion(), coordinator.enumerator()));
        Map<String, Object> told = new LinkedHashMap<>();
        told.put("coordinator_version", coordinator.version());
        told.put("serializer_version", coordinator.serializerVersion());
        told.putAll(enumerator(view));
        return told;
    }

    static Map<String, Object> enumerator(EnumeratorView view) {
        List<EnumeratorView.Split> splits = new ArrayList<>(view.splits());
        splits.sort(
                Comparator.comparing(EnumeratorView.Split::topic)
                        .thenComparing(EnumeratorView.Split::partition));
        List<Object> toldSplits = new ArrayList<>();
        for (EnumeratorView.Split split : splits) {
            Map<String, Object> fields = new LinkedHashMap<>();
            fields.put("topic", split.topic());
            fields.put("partition", split.partition());
            fields.put("status", split.status());
            fields.put("starting_offset", split.startingOffset());
            fields.put("stopping_offset", split.stoppingOffset());
            toldSplits.add(fields);
        }
        Map<String, Object> told = new LinkedHashMap<>();
        told.put("initial_discovery_finished", view.initialDiscoveryFinished());
        told.put("splits", toldSplits);
        return told;
    }

    /** A source's coordinator state; the enumerator's bytes are its own serializer's. */
    record Coordinator(int version, int serializerVersion, byte[] enumerator) {}

    static Coordinator coordinator(OperatorState state) throws Exception {
        byte[] bytes = state.getCoordinatorState().getData();
        DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes));
        int version = (int) coordinatorSerde("readAndVerifyCoordinatorSerdeVersion", in);
        int serializerVersion = in.readInt();
        byte[] enumerator = (byte[]) coordinatorSerde("readBytes", in, in.readInt());
        return new Coordinator(version, serializerVersion, enumerator);
    }

    /** How SourceCoordinator reads its checkpoint; the methods are package-private. */
    private static Object coordinatorSerde(String name, Object... arguments) throws Exception {
        for (Method method : SourceCoordinatorSerdeUtils.class.getDeclaredMethods()) {
            if (method.getName().equals(name)) {
                method.setAccessible(true);
                return method.invoke(null, arguments);
            }
        }
        throw new NoSuchMethodException(name);
    }
}
