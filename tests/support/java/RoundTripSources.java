import org.apache.flink.api.common.state.ListState;
import org.apache.flink.connector.kafka.source.enumerator.KafkaSourceEnumState;
import org.apache.flink.connector.kafka.source.enumerator.KafkaSourceEnumStateSerializer;
import org.apache.flink.connector.kafka.source.split.KafkaPartitionSplit;
import org.apache.flink.connector.kafka.source.split.KafkaPartitionSplitSerializer;
import org.apache.flink.core.fs.CloseableRegistry;
import org.apache.flink.core.io.SimpleVersionedSerialization;
import org.apache.flink.runtime.checkpoint.Checkpoints;
import org.apache.flink.runtime.checkpoint.OperatorState;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.runtime.checkpoint.metadata.CheckpointMetadata;
import org.apache.flink.runtime.source.coordinator.SourceCoordinator;
import org.apache.flink.runtime.state.BackendWritableBroadcastState;
import org.apache.flink.runtime.state.OperatorStateHandle;
import org.apache.flink.runtime.state.OperatorStateRestoreOperation;
import org.apache.flink.runtime.state.PartitionableListState;

import org.apache.kafka.common.TopicPartition;
import sun.misc.Unsafe;

import java.io.DataInputStream;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Restores the Kafka sources of checkpoints with Flink and its Kafka connector, and prints the
 * operator state and the splits of every subtask, and the enumerator's state.
 *
 * <p>Argument: a file whose lines each contain a checkpoint directory and the operator ids of its
 * Kafka sources, separated by tabs. The program prints a line of JSON for each of these lines.
 */
public final class RoundTripSources {

    private static final String READER_STATE = "SourceReaderState";
    private static final KafkaPartitionSplitSerializer SPLITS = new KafkaPartitionSplitSerializer();

    private RoundTripSources() {}

    public static void main(String[] arguments) throws Exception {
        for (String line : Files.readAllLines(Path.of(arguments[0]))) {
            List<String> fields = List.of(line.split("\t"));
            RoundTripMetadata.print(
                    restore(fields.get(0), fields.subList(1, fields.size())));
        }
    }

    private static Object restore(String directory, Collection<String> operatorIds)
            throws Exception {
        CheckpointMetadata metadata;
        try (InputStream in = Files.newInputStream(Path.of(directory, "_metadata"))) {
            metadata =
                    Checkpoints.loadCheckpointMetadata(
                            new DataInputStream(in),
                            RoundTripSources.class.getClassLoader(),
                            directory);
        }
        Map<String, Object> sources = new TreeMap<>();
        for (OperatorState operator : metadata.getOperatorStates()) {
            String id = operator.getOperatorID().toHexString();
            if (operatorIds.contains(id)) {
                sources.put(id, source(operator));
            }
        }
        return sources;
    }

    private static Object source(OperatorState operator) throws Exception {
        Map<Integer, Object> subtasks = new TreeMap<>();
        for (Map.Entry<Integer, OperatorSubtaskState> entry :
                operator.getSubtaskStates().entrySet()) {
            for (OperatorStateHandle handle : entry.getValue().getManagedOperatorState()) {
                subtasks.put(entry.getKey(), restored(handle));
            }
        }
        Object enumerator =
                operator.getCoordinatorState() == null
                        ? null
                        : enumerator(operator.getCoordinatorState().getData());
        return RoundTripMetadata.fields("subtasks", subtasks, "enumerator", enumerator);
    }

    /** Restores a handle's states as the operator's state backend would. */
    private static Object restored(OperatorStateHandle handle) throws Exception {
        Map<String, PartitionableListState<?>> lists = new TreeMap<>();
        Map<String, BackendWritableBroadcastState<?, ?>> broadcasts = new TreeMap<>();
        new OperatorStateRestoreOperation(
                        new CloseableRegistry(),
                        RoundTripSources.class.getClassLoader(),
                        lists,
                        broadcasts,
                        List.of(handle))
                .restore();
        Map<String, Object> toldLists = new TreeMap<>();
        for (Map.Entry<String, PartitionableListState<?>> state : lists.entrySet()) {
            toldLists.put(
                    state.getKey(),
                    RoundTripMetadata.each(
                            elements(state.getValue()), RoundTripMetadata::hex));
        }
        Map<String, Object> toldBroadcasts = new TreeMap<>();
        for (Map.Entry<String, BackendWritableBroadcastState<?, ?>> state : broadcasts.entrySet()) {
            List<Object> entries = new ArrayList<>();
            for (Map.Entry<?, ?> entry : state.getValue().entries()) {
                entries.add(
                        List.of(
                                RoundTripMetadata.hex((byte[]) entry.getKey()),
                                RoundTripMetadata.hex((byte[]) entry.getValue())));
            }
            toldBroadcasts.put(state.getKey(), entries);
        }
        Object splits =
                lists.containsKey(READER_STATE)
                        ? RoundTripMetadata.each(
                                elements(lists.get(READER_STATE)), RoundTripSources::readerSplit)
                        : null;
        return RoundTripMetadata.fields(
                "list_states", toldLists, "broadcast_states", toldBroadcasts, "splits", splits);
    }

    @SuppressWarnings("unchecked")
    private static Iterable<byte[]> elements(ListState<?> state) throws Exception {
        return (Iterable<byte[]>) state.get();
    }

    private static Object readerSplit(byte[] element) throws Exception {
        return split(SimpleVersionedSerialization.readVersionAndDeSerialize(SPLITS, element));
    }

    private static Object split(KafkaPartitionSplit split) throws Exception {
        // Read the field, because the getter hides markers and, in Flink 1.15, also 0.
        Object stoppingOffset =
                RoundTripReflection.field(KafkaPartitionSplit.class, split, "stoppingOffset");
        return List.of(
                split.getTopic(), split.getPartition(), split.getStartingOffset(), stoppingOffset);
    }

    /** Reads coordinator state with the same method that restores a source's coordinator. */
    private static Object enumerator(byte[] coordinatorState) throws Exception {
        Unsafe unsafe = (Unsafe) RoundTripReflection.field(Unsafe.class, null, "theUnsafe");
        Object coordinator = unsafe.allocateInstance(SourceCoordinator.class);
        RoundTripReflection.setField(
                SourceCoordinator.class,
                coordinator,
                "enumCheckpointSerializer",
                new KafkaSourceEnumStateSerializer());
        KafkaSourceEnumState state =
                (KafkaSourceEnumState)
                        RoundTripReflection.call(
                                coordinator, "deserializeCheckpoint", (Object) coordinatorState);
        return RoundTripMetadata.fields(
                "splits", enumeratorSplits(state),
                "initial_discovery_finished",
                        RoundTripReflection.has(state, "initialDiscoveryFinished")
                                ? RoundTripReflection.call(state, "initialDiscoveryFinished")
                                : null);
    }

    /** Returns splits with a topic, a partition, and the other fields that this release stores. */
    private static List<Object> enumeratorSplits(KafkaSourceEnumState state) throws Exception {
        if (RoundTripReflection.has(state, "splits")) {
            return RoundTripMetadata.each(
                    (Collection<?>) RoundTripReflection.call(state, "splits"),
                    entry ->
                            RoundTripMetadata.fields(
                                    "split",
                                    split(
                                            (KafkaPartitionSplit)
                                                    RoundTripReflection.call(entry, "split")),
                                    "status", status(entry)));
        }
        if (RoundTripReflection.has(state, "partitions")) {
            return RoundTripMetadata.each(
                    (Collection<?>) RoundTripReflection.call(state, "partitions"),
                    entry ->
                            RoundTripMetadata.fields(
                                    "split",
                                    topicPartition(
                                            (TopicPartition)
                                                    RoundTripReflection.call(
                                                            entry, "topicPartition")),
                                    "status", status(entry)));
        }
        return RoundTripMetadata.each(
                (Collection<?>) RoundTripReflection.call(state, "assignedPartitions"),
                partition ->
                        RoundTripMetadata.fields(
                                "split", topicPartition((TopicPartition) partition),
                                "status", null));
    }

    private static Object status(Object entry) throws Exception {
        Object status = RoundTripReflection.call(entry, "assignmentStatus");
        return RoundTripReflection.call(status, "getStatusCode");
    }

    private static Object topicPartition(TopicPartition partition) {
        return List.of(partition.topic(), partition.partition());
    }
}
