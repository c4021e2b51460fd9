package testjobs;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.flink.api.common.ExecutionConfig;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.typeutils.base.array.BytePrimitiveArraySerializer;
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
 * Prints the content of checkpoints, as Flink's own classes read it: Flink's loader reads the
 * metadata, Flink's operator state backend restores the state, and the connector's serializers
 * deserialize it. All numbers are printed as stored.
 *
 * <p>Arguments: {@code <checkpoint directory>=<kind>:<operator id>,...}. The kinds are listed
 * below. They are arguments, because a checkpoint does not contain them. The program prints a JSON
 * array with an element for each argument.
 */
public final class StateDump {
    static final String KAFKA_SOURCES = "kafka_sources";

    /** The readers of the other kinds; the output of each is under the first word of its kind. */
    private static final Map<String, String> ORACLES =
            Map.of(
                    "dynamic_sources", "DynamicDump",
                    "hybrid_sources", "HybridDump",
                    "legacy_sources", "LegacyDump",
                    "sink_operators", "SinkDump",
                    "async_operators", "AsyncDump",
                    "file_operators", "FileDump");

    private static final ListStateDescriptor<byte[]> READER_STATE =
            new ListStateDescriptor<>("SourceReaderState", BytePrimitiveArraySerializer.INSTANCE);
    static final ClassLoader CLASSES = StateDump.class.getClassLoader();

    private StateDump() {}

    public static void main(String[] args) throws Exception {
        List<Object> dumps = new ArrayList<>();
        for (String arg : args) {
            int equals = arg.lastIndexOf('=');
            Path checkpoint = Path.of(arg.substring(0, equals));
            Map<String, String> kinds = new HashMap<>();
            for (String operator : arg.substring(equals + 1).split(",")) {
                String[] parts = operator.split(":");
                if (parts.length == 2) {
                    kinds.put(parts[1], parts[0]);
                }
            }
            dumps.add(dump(checkpoint, kinds));
        }
        System.out.println(new ObjectMapper().writeValueAsString(dumps));
    }

    /** {@code kinds} maps operator ids to kinds, for the operators from Kafka's connector. */
    static Map<String, Object> dump(Path checkpoint, Map<String, String> kinds) throws Exception {
        Path file = checkpoint.resolve("_metadata");
        CheckpointMetadata metadata = load(checkpoint);
        Map<String, Object> dump = new LinkedHashMap<>();
        dump.put("checkpoint_id", metadata.getCheckpointId());
        dump.put("metadata_version", version(file));
        dump.put("checkpoint_type", type(MetadataView.properties(metadata)));
        List<Object> operators = new ArrayList<>();
        List<OperatorState> states = new ArrayList<>(metadata.getOperatorStates());
        states.sort(Comparator.comparing(state -> state.getOperatorID().toHexString()));
        for (OperatorState state : states) {
            operators.add(operator(state, kinds.get(state.getOperatorID().toHexString())));
        }
        dump.put("operators", operators);
        return dump;
    }

    /** Returns the ids of the operators that have one of these states. */
    static Set<String> holdersOf(Path checkpoint, Set<String> stateNames) throws Exception {
        Set<String> ids = new TreeSet<>();
        for (OperatorState state : load(checkpoint).getOperatorStates()) {
            for (OperatorSubtaskState subtask : state.getStates()) {
                for (OperatorStateHandle handle : subtask.getManagedOperatorState()) {
                    Set<String> held = handle.getStateNameToPartitionOffsets().keySet();
                    if (!Collections.disjoint(held, stateNames)) {
                        ids.add(state.getOperatorID().toHexString());
                    }
                }
            }
        }
        return ids;
    }

    private static CheckpointMetadata load(Path checkpoint) throws IOException {
        Path file = checkpoint.resolve("_metadata");
        try (DataInputStream in = new DataInputStream(Files.newInputStream(file))) {
            return Checkpoints.loadCheckpointMetadata(in, CLASSES, checkpoint.toUri().toString());
        }
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

    private static Map<String, Object> operator(OperatorState state, String kind)
            throws Exception {
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
        told.put("name", MetadataView.name(state));
        told.put("uid", MetadataView.uid(state));
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
        boolean kafka = KAFKA_SOURCES.equals(kind);
        told.put("reader_splits", kafka ? KafkaDump.readerSplits(subtasks) : null);
        told.put("enumerator", kafka ? KafkaDump.enumerator(state) : null);
        if (kind != null && !kafka) {
            Oracle oracle = Parts.find(Oracle.class, ORACLES.get(kind)).orElseThrow();
            told.put(kind.substring(0, kind.indexOf('_')), oracle.dump(state, subtasks));
        }
        return told;
    }

    /** Returns the splits of a reader's subtask. */
    static <T> List<T> splits(OperatorSubtaskState subtask, SimpleVersionedSerializer<T> serializer)
            throws Exception {
        return restored(
                subtask,
                backend ->
                        new SimpleVersionedListState<>(
                                backend.getListState(READER_STATE), serializer));
    }

    /** Restores a subtask's operator state as its operator would; returns a list's elements. */
    static <T> List<T> restored(OperatorSubtaskState subtask, StateOf<T> list) throws Exception {
        List<T> elements = new ArrayList<>();
        DefaultOperatorStateBackend backend =
                new DefaultOperatorStateBackendBuilder(
                                CLASSES,
                                new ExecutionConfig(),
                                false,
                                subtask.getManagedOperatorState(),
                                new CloseableRegistry())
                        .build();
        try {
            list.in(backend).get().forEach(elements::add);
        } finally {
            backend.dispose();
        }
        return elements;
    }

    /** Returns a list state of an operator state backend. */
    interface StateOf<T> {
        ListState<T> in(DefaultOperatorStateBackend backend) throws Exception;
    }

    /** A source's coordinator state; the bytes have the format of the enumerator's serializer. */
    record Coordinator(int version, int serializerVersion, byte[] enumerator) {}

    static Coordinator coordinator(OperatorState state) throws Exception {
        byte[] bytes = state.getCoordinatorState().getData();
        DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes));
        int version = (int) coordinatorSerde("readAndVerifyCoordinatorSerdeVersion", in);
        int serializerVersion = in.readInt();
        byte[] enumerator = (byte[]) coordinatorSerde("readBytes", in, in.readInt());
        return new Coordinator(version, serializerVersion, enumerator);
    }

    /** Reads a checkpoint as SourceCoordinator does; its methods are package-private. */
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
