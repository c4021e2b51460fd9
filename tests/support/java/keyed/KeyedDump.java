package testjobs;

import java.io.DataInputStream;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TimeZone;
import java.util.TreeMap;
import org.apache.flink.api.common.ExecutionConfig;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.core.fs.CloseableRegistry;
import org.apache.flink.core.fs.FSDataInputStream;
import org.apache.flink.core.memory.DataInputViewStreamWrapper;
import org.apache.flink.runtime.checkpoint.Checkpoints;
import org.apache.flink.runtime.checkpoint.OperatorState;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.runtime.state.KeyGroupRange;
import org.apache.flink.runtime.state.KeyGroupRangeAssignment;
import org.apache.flink.runtime.state.KeyGroupsStateHandle;
import org.apache.flink.runtime.state.KeyedBackendSerializationProxy;
import org.apache.flink.runtime.state.KeyedStateHandle;
import org.apache.flink.runtime.state.LocalRecoveryConfig;
import org.apache.flink.runtime.state.StateEntry;
import org.apache.flink.runtime.state.StreamCompressionDecorator;
import org.apache.flink.runtime.state.UncompressedStreamCompressionDecorator;
import org.apache.flink.runtime.state.heap.HeapKeyedStateBackend;
import org.apache.flink.runtime.state.heap.HeapKeyedStateBackendBuilder;
import org.apache.flink.runtime.state.heap.HeapPriorityQueueSetFactory;
import org.apache.flink.runtime.state.heap.HeapPriorityQueueSnapshotRestoreWrapper;
import org.apache.flink.runtime.state.heap.StateTable;
import org.apache.flink.runtime.state.metrics.LatencyTrackingStateConfig;
import org.apache.flink.runtime.state.ttl.TtlTimeProvider;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.streaming.api.operators.InternalTimer;

/**
 * Prints every entry of the keyed state in a checkpoint, as Flink's heap backend restores it. The
 * heap backend restores canonical savepoints, and its own checkpoints.
 */
public final class KeyedDump {
    private static final ClassLoader CLASSES = KeyedDump.class.getClassLoader();

    private KeyedDump() {}

    /** Prints a JSON array with an element for each argument, which is a checkpoint directory. */
    public static void main(String[] args) throws Exception {
        TimeZone.setDefault(TimeZone.getTimeZone("UTC"));
        List<Object> dumps = new ArrayList<>();
        for (String checkpoint : args) {
            dumps.add(dump(Path.of(checkpoint)));
        }
        System.out.println(new ObjectMapper().writeValueAsString(dumps));
    }

    /** Returns a map for each operator with keyed state, in the order of operator ids. */
    static List<Map<String, Object>> dump(Path checkpoint) throws Exception {
        List<OperatorState> operators;
        Path file = checkpoint.resolve("_metadata");
        try (DataInputStream in = new DataInputStream(Files.newInputStream(file))) {
            String pointer = checkpoint.toUri().toString();
            operators =
                    new ArrayList<>(
                            Checkpoints.loadCheckpointMetadata(in, CLASSES, pointer)
                                    .getOperatorStates());
        }
        operators.sort(Comparator.comparing(state -> state.getOperatorID().toHexString()));
        List<Map<String, Object>> told = new ArrayList<>();
        for (OperatorState operator : operators) {
            Map<String, KeyedState> states = new TreeMap<>();
            for (OperatorSubtaskState subtask : operator.getStates()) {
                for (KeyedStateHandle handle : subtask.getManagedKeyedState()) {
                    restore((KeyGroupsStateHandle) handle, operator.getMaxParallelism(), states);
                }
            }
            if (!states.isEmpty()) {
                Map<String, Object> of = new LinkedHashMap<>();
                of.put("operator_id", operator.getOperatorID().toHexString());
                of.put("name", MetadataView.name(operator));
                of.put("uid", MetadataView.uid(operator));
                of.put("states", states.values().stream().map(KeyedState::told).toList());
                told.add(of);
            }
        }
        return told;
    }

    /** {@code unreadable} is a class whose bytes only the job's own code can read, or null. */
    private static final class KeyedState {
        private final String name;
        private final String kind;
        private final List<Map<String, Object>> entries = new ArrayList<>();
        private String unreadable;

        private KeyedState(String name, String kind) {
            this.name = name;
            this.kind = kind;
        }

        private Map<String, Object> told() {
            Map<String, Object> told = new LinkedHashMap<>();
            told.put("state", name);
            told.put("kind", kind);
            if (unreadable == null) {
                told.put("entries", entries);
            } else {
                told.put("unreadable", unreadable);
            }
            return told;
        }
    }

    private static void restore(
            KeyGroupsStateHandle handle, int maxParallelism, Map<String, KeyedState> states)
            throws Exception {
        HeapKeyedStateBackend<Object> backend = restored(handle, maxParallelism);
        try {
            Map<String, StateTable<Object, ?, ?>> tables =
                    Inside.of(HeapKeyedStateBackend.class, backend, "registeredKVStates");
            for (Map.Entry<String, StateTable<Object, ?, ?>> table : tables.entrySet()) {
                String kind = table.getValue().getMetaInfo().getStateType().name().toLowerCase();
                KeyedState state =
                        states.computeIfAbsent(
                                table.getKey(), name -> new KeyedState(name, kind));
                tell(table.getValue(), maxParallelism, state);
            }
            Object queues = Inside.of(HeapKeyedStateBackend.class, backend, "priorityQueuesManager");
            Map<String, HeapPriorityQueueSnapshotRestoreWrapper<?>> wrappers =
                    Inside.of(queues.getClass(), queues, "registeredPQStates");
            for (Map.Entry<String, HeapPriorityQueueSnapshotRestoreWrapper<?>> queue :
                    wrappers.entrySet()) {
                KeyedState state =
                        states.computeIfAbsent(
                                queue.getKey(), name -> new KeyedState(name, "timers"));
                tell(queue.getValue(), backend.getKeySerializer(), maxParallelism, state);
            }
        } finally {
            backend.dispose();
        }
    }

    private static <N, V> void tell(
            StateTable<Object, N, V> table, int maxParallelism, KeyedState state)
            throws Exception {
        TypeSerializer<V> serializer = table.getStateSerializer();
        TypeSerializer<?> keySerializer = table.getKeySerializer();
        for (StateEntry<Object, N, V> entry : table) {
            Map<String, Object> head = new LinkedHashMap<>();
            Object key = entry.getKey();
            head.put("key_group", KeyGroupRangeAssignment.assignToKeyGroup(key, maxParallelism));
            try {
                head.put("key", Told.of(key, keySerializer));
                Told.namespace(entry.getNamespace()).ifPresent(it -> head.put("namespace", it));
                if (state.kind.equals("map")) {
                    for (Told.MapEntry each : Told.mapEntries(entry.getState(), serializer)) {
                        Map<String, Object> line = new LinkedHashMap<>(head);
                        line.put("map_key", each.key());
                        Told.put(line, each.value(), each.serializer());
                        state.entries.add(line);
                    }
                } else {
                    Told.put(head, entry.getState(), serializer);
                    state.entries.add(head);
                }
            } catch (Told.Unreadable unreadable) {
                state.unreadable = unreadable.getMessage();
            }
        }
    }

    private static void tell(
            HeapPriorityQueueSnapshotRestoreWrapper<?> queue,
            TypeSerializer<?> keySerializer,
            int maxParallelism,
            KeyedState state)
            throws Exception {
        for (Iterator<?> timers = queue.getPriorityQueue().iterator(); timers.hasNext(); ) {
            InternalTimer<?, ?> timer = (InternalTimer<?, ?>) timers.next();
            Map<String, Object> line = new LinkedHashMap<>();
            Object key = timer.getKey();
            line.put("key_group", KeyGroupRangeAssignment.assignToKeyGroup(key, maxParallelism));
            line.put("key", Told.of(key, keySerializer));
            Told.namespace(timer.getNamespace()).ifPresent(it -> line.put("namespace", it));
            line.put("value", timer.getTimestamp());
            state.entries.add(line);
        }
    }

    /** In later versions, the backend's builder has more arguments, each of a different type. */
    private static HeapKeyedStateBackend<Object> restored(
            KeyGroupsStateHandle handle, int maxParallelism) throws Exception {
        KeyGroupRange range = handle.getKeyGroupRange();
        Map<Class<?>, Object> arguments = new LinkedHashMap<>();
        arguments.put(TypeSerializer.class, keySerializer(handle));
        arguments.put(ClassLoader.class, CLASSES);
        arguments.put(int.class, maxParallelism);
        arguments.put(KeyGroupRange.class, range);
        arguments.put(ExecutionConfig.class, new ExecutionConfig());
        arguments.put(TtlTimeProvider.class, TtlTimeProvider.DEFAULT);
        arguments.put(LatencyTrackingStateConfig.class, LatencyTrackingStateConfig.disabled());
        arguments.put(java.util.Collection.class, List.of(handle));
        arguments.put(
                StreamCompressionDecorator.class, UncompressedStreamCompressionDecorator.INSTANCE);
        arguments.put(LocalRecoveryConfig.class, noLocalRecovery());
        arguments.put(
                HeapPriorityQueueSetFactory.class,
                new HeapPriorityQueueSetFactory(range, maxParallelism, 16));
        arguments.put(boolean.class, false);
        arguments.put(CloseableRegistry.class, new CloseableRegistry());
        Constructor<?> constructor = HeapKeyedStateBackendBuilder.class.getConstructors()[0];
        Class<?>[] types = constructor.getParameterTypes();
        Object[] values = new Object[types.length];
        for (int i = 0; i < types.length; i++) {
            Object value = arguments.get(types[i]);
            boolean tracking = types[i].getSimpleName().equals("SizeTrackingStateConfig");
            values[i] = tracking ? types[i].getMethod("disabled").invoke(null) : value;
        }
        @SuppressWarnings("unchecked")
        HeapKeyedStateBackendBuilder<Object> builder =
                (HeapKeyedStateBackendBuilder<Object>) constructor.newInstance(values);
        return builder.build();
    }

    private static TypeSerializer<?> keySerializer(KeyGroupsStateHandle handle) throws Exception {
        KeyedBackendSerializationProxy<Object> proxy = new KeyedBackendSerializationProxy<>(CLASSES);
        try (FSDataInputStream in = handle.openInputStream()) {
            proxy.read(new DataInputViewStreamWrapper(in));
        }
        return proxy.getKeySerializerSnapshot().restoreSerializer();
    }

    private static LocalRecoveryConfig noLocalRecovery() throws Exception {
        for (Field field : LocalRecoveryConfig.class.getFields()) {
            if (field.getName().equals("BACKUP_AND_RECOVERY_DISABLED")) {
                return (LocalRecoveryConfig) field.get(null);
            }
        }
        Object[] nothing = {null};
        Constructor<?> constructor = LocalRecoveryConfig.class.getConstructors()[0];
        return (LocalRecoveryConfig) constructor.newInstance(nothing);
    }
}
