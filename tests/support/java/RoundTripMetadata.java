import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.runtime.checkpoint.Checkpoints;
import org.apache.flink.runtime.checkpoint.MasterState;
import org.apache.flink.runtime.checkpoint.OperatorState;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.runtime.checkpoint.StateObjectCollection;
import org.apache.flink.runtime.checkpoint.channel.InputChannelInfo;
import org.apache.flink.runtime.checkpoint.channel.ResultSubpartitionInfo;
import org.apache.flink.runtime.checkpoint.metadata.CheckpointMetadata;
import org.apache.flink.runtime.state.AbstractChannelStateHandle;
import org.apache.flink.runtime.state.IncrementalRemoteKeyedStateHandle;
import org.apache.flink.runtime.state.KeyGroupRange;
import org.apache.flink.runtime.state.KeyGroupsSavepointStateHandle;
import org.apache.flink.runtime.state.KeyGroupsStateHandle;
import org.apache.flink.runtime.state.KeyedStateHandle;
import org.apache.flink.runtime.state.OperatorStateHandle;
import org.apache.flink.runtime.state.StateObject;
import org.apache.flink.runtime.state.StreamStateHandle;
import org.apache.flink.runtime.state.changelog.ChangelogStateBackendHandle;
import org.apache.flink.runtime.state.changelog.ChangelogStateHandleStreamImpl;
import org.apache.flink.runtime.state.changelog.StateChange;
import org.apache.flink.runtime.state.changelog.inmemory.InMemoryChangelogStateHandle;
import org.apache.flink.runtime.state.filesystem.FileStateHandle;
import org.apache.flink.runtime.state.filesystem.RelativeFileStateHandle;
import org.apache.flink.runtime.state.memory.ByteStreamStateHandle;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.core.JsonGenerator;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

/**
 * Loads {@code _metadata} files with Flink, and prints their content. The kinds and the fields have
 * the names of the classes and the fields in tests/support/encoder.
 *
 * <p>Arguments: a file of records (each an {@code int} length and the bytes of a metadata file),
 * and the checkpoint directory against which relative handles are resolved. The program prints a
 * line of JSON for each record.
 */
public final class RoundTripMetadata {

    private static final ObjectMapper JSON =
            new ObjectMapper()
                    .configure(JsonGenerator.Feature.ESCAPE_NON_ASCII, true);

    private RoundTripMetadata() {}

    public static void main(String[] arguments) throws Exception {
        byte[] records = Files.readAllBytes(Path.of(arguments[0]));
        DataInputStream in = new DataInputStream(new ByteArrayInputStream(records));
        while (in.available() > 0) {
            byte[] record = new byte[in.readInt()];
            in.readFully(record);
            print(load(record, arguments[1]));
        }
    }

    static void print(Object value) throws Exception {
        System.out.println(JSON.writeValueAsString(value));
    }

    /** Loads a metadata file as a restore would, and returns its complete content. */
    static Map<String, Object> load(byte[] bytes, String pointer) throws Exception {
        ByteArrayInputStream in = new ByteArrayInputStream(bytes);
        CheckpointMetadata metadata;
        try {
            metadata =
                    Checkpoints.loadCheckpointMetadata(
                            new DataInputStream(in),
                            RoundTripMetadata.class.getClassLoader(),
                            pointer);
        } catch (Exception refused) {
            return Map.of("refused", refused.toString());
        }
        Map<String, Object> told = describe(metadata);
        told.put("unread_bytes", in.available());
        return told;
    }

    static Map<String, Object> describe(CheckpointMetadata metadata) throws Exception {
        Map<String, Object> told = new LinkedHashMap<>();
        told.put("checkpoint_id", metadata.getCheckpointId());
        told.put("master_states", each(metadata.getMasterStates(), RoundTripMetadata::masterState));
        told.put("operators", each(metadata.getOperatorStates(), RoundTripMetadata::operator));
        told.put("properties", properties(metadata));
        return told;
    }

    private static Object masterState(MasterState state) {
        return fields(
                "version", state.version(), "name", state.name(), "data", hex(state.bytes()));
    }

    private static String properties(CheckpointMetadata metadata) throws Exception {
        if (!RoundTripReflection.has(metadata, "getCheckpointProperties")) {
            return null;
        }
        Object properties = RoundTripReflection.call(metadata, "getCheckpointProperties");
        return properties == null ? null : properties.toString();
    }

    private static Object operator(OperatorState state) throws Exception {
        Map<Integer, Object> subtasks = new TreeMap<>();
        for (Map.Entry<Integer, OperatorSubtaskState> entry : state.getSubtaskStates().entrySet()) {
            subtasks.put(entry.getKey(), subtask(entry.getKey(), entry.getValue()));
        }
        return fields(
                "operator_id", state.getOperatorID().toHexString(),
                "parallelism", state.getParallelism(),
                "max_parallelism", state.getMaxParallelism(),
                "name", optional(state, "getOperatorName"),
                "uid", optional(state, "getOperatorUid"),
                "coordinator", stream(state.getCoordinatorState()),
                "finished", state.isFullyFinished(),
                "subtasks", new ArrayList<>(subtasks.values()),
                "state_size", state.getStateSize());
    }

    private static Object optional(OperatorState state, String getter) throws Exception {
        return RoundTripReflection.has(state, getter)
                ? ((Optional<?>) RoundTripReflection.call(state, getter)).orElse(null)
                : null;
    }

    private static Object subtask(int index, OperatorSubtaskState state) throws Exception {
        return fields(
                "index", index,
                "finished", state.isFinished(),
                "managed_operator", operatorHandle(only(state.getManagedOperatorState())),
                "raw_operator", operatorHandle(only(state.getRawOperatorState())),
                "managed_keyed", keyed(only(state.getManagedKeyedState())),
                "raw_keyed", keyed(only(state.getRawKeyedState())),
                "input_channels", each(state.getInputChannelState(), RoundTripMetadata::channel),
                "result_subpartitions",
                        each(state.getResultSubpartitionState(), RoundTripMetadata::channel),
                "operator_state_size",
                        state.getManagedOperatorState().getStateSize()
                                + state.getRawOperatorState().getStateSize(),
                "keyed_state_size",
                        state.getManagedKeyedState().getStateSize()
                                + state.getRawKeyedState().getStateSize(),
                "in_flight_size",
                        state.getInputChannelState().getStateSize()
                                + state.getResultSubpartitionState().getStateSize());
    }

    private static <T extends StateObject> T only(StateObjectCollection<T> states) {
        return states.isEmpty() ? null : states.iterator().next();
    }

    // ---- handles ----

    private static Object stream(StreamStateHandle handle) throws Exception {
        if (handle == null) {
            return null;
        }
        if (handle instanceof ByteStreamStateHandle bytes) {
            return kind(
                    "ByteStreamHandle",
                    "name", bytes.getHandleName(),
                    "data", hex(bytes.getData()));
        }
        if (handle instanceof RelativeFileStateHandle file) {
            return kind(
                    "RelativeFileHandle",
                    "path", file.getRelativePath(),
                    "size", file.getStateSize());
        }
        if (handle instanceof FileStateHandle file) {
            return kind(
                    "FileHandle",
                    "uri", file.getFilePath().toString(),
                    "size", file.getStateSize());
        }
        if (handle instanceof KeyGroupsStateHandle groups) {
            return kind(
                    "StreamKeyGroupsHandle",
                    "first_key_group", groups.getKeyGroupRange().getStartKeyGroup(),
                    "offsets", offsets(groups),
                    "delegate", stream(groups.getDelegateStateHandle()));
        }
        return switch (handle.getClass().getSimpleName()) {
            case "EmptySegmentFileStateHandle" -> kind("EmptySegmentHandle");
            case "SegmentFileStateHandle" -> kind(
                    "SegmentHandle",
                    "uri", RoundTripReflection.call(handle, "getFilePath").toString(),
                    "start", RoundTripReflection.call(handle, "getStartPos"),
                    "size", handle.getStateSize(),
                    "scope", ((Enum<?>) RoundTripReflection.call(handle, "getScope")).ordinal(),
                    "logical_file_id", key(RoundTripReflection.call(handle, "getLogicalFileId")));
            default -> throw new IllegalStateException("no stream handle: " + handle.getClass());
        };
    }

    private static Object operatorHandle(OperatorStateHandle handle) throws Exception {
        if (handle == null) {
            return null;
        }
        Map<String, Object> states = new TreeMap<>();
        handle.getStateNameToPartitionOffsets()
                .forEach(
                        (name, state) ->
                                states.put(
                                        name,
                                        fields(
                                                "name", name,
                                                "mode", state.getDistributionMode().ordinal(),
                                                "offsets", state.getOffsets())));
        Object delegate = stream(handle.getDelegateStateHandle());
        if (!RoundTripReflection.has(handle, "getTaskOwnedDirHandle")) {
            return kind("PartitionableHandle", "states", states, "delegate", delegate);
        }
        return kind(
                "FileMergingOperatorHandle",
                "states", states,
                "task_owned_directory", directory(handle, "getTaskOwnedDirHandle"),
                "shared_directory", directory(handle, "getSharedDirHandle"),
                "empty", handle.getClass().getSimpleName().startsWith("Empty"),
                "delegate", delegate);
    }

    private static String directory(OperatorStateHandle handle, String getter) throws Exception {
        Object directory = RoundTripReflection.call(handle, getter);
        return RoundTripReflection.call(directory, "getDirectory").toString();
    }

    private static Object keyed(KeyedStateHandle handle) throws Exception {
        if (handle == null) {
            return null;
        }
        KeyGroupRange range = handle.getKeyGroupRange();
        if (handle instanceof KeyGroupsStateHandle groups) {
            boolean savepoint = handle instanceof KeyGroupsSavepointStateHandle;
            return kind(
                    "KeyGroupsHandle",
                    "first_key_group", range.getStartKeyGroup(),
                    "offsets", offsets(groups),
                    "delegate", stream(groups.getDelegateStateHandle()),
                    "handle_id", savepoint ? null : key(handle.getStateHandleId()),
                    "savepoint", savepoint);
        }
        if (handle instanceof IncrementalRemoteKeyedStateHandle incremental) {
            String getMeta =
                    RoundTripReflection.has(handle, "getMetaDataStateHandle")
                            ? "getMetaDataStateHandle"
                            : "getMetaStateHandle";
            return kind(
                    "IncrementalHandle",
                    "checkpoint_id", incremental.getCheckpointId(),
                    "backend_id", incremental.getBackendIdentifier().toString(),
                    "first_key_group", range.getStartKeyGroup(),
                    "key_groups", range.getNumberOfKeyGroups(),
                    "checkpointed_size", handle.getCheckpointedSize(),
                    "meta", stream((StreamStateHandle) RoundTripReflection.call(handle, getMeta)),
                    "shared", files(RoundTripReflection.call(handle, "getSharedState")),
                    "private", files(RoundTripReflection.call(handle, "getPrivateState")),
                    "handle_id", key(handle.getStateHandleId()));
        }
        if (handle instanceof ChangelogStateBackendHandle changelog) {
            return kind(
                    "ChangelogHandle",
                    "first_key_group", range.getStartKeyGroup(),
                    "key_groups", range.getNumberOfKeyGroups(),
                    "checkpointed_size", handle.getCheckpointedSize(),
                    "materialized",
                            each(changelog.getMaterializedStateHandles(), RoundTripMetadata::keyed),
                    "non_materialized",
                            each(
                                    changelog.getNonMaterializedStateHandles(),
                                    RoundTripMetadata::keyed),
                    "materialization_id", changelog.getMaterializationID(),
                    "checkpoint_id", getterOrNull(handle, "getCheckpointId"),
                    "handle_id", key(handle.getStateHandleId()));
        }
        if (handle instanceof InMemoryChangelogStateHandle changes) {
            return kind(
                    "ChangelogBytesHandle",
                    "first_key_group", range.getStartKeyGroup(),
                    "key_groups", range.getNumberOfKeyGroups(),
                    "sequence_from", changes.getFrom(),
                    "sequence_to", changes.getTo(),
                    "changes", each(changes.getChanges(), RoundTripMetadata::change),
                    "handle_id", key(handle.getStateHandleId()));
        }
        if (handle instanceof ChangelogStateHandleStreamImpl changes) {
            return kind(
                    "ChangelogFilesHandle",
                    "first_key_group", range.getStartKeyGroup(),
                    "key_groups", range.getNumberOfKeyGroups(),
                    "streams", each(changes.getHandlesAndOffsets(), RoundTripMetadata::located),
                    "size", handle.getStateSize(),
                    "checkpointed_size", handle.getCheckpointedSize(),
                    "handle_id", key(handle.getStateHandleId()),
                    "storage_id", getterOrNull(handle, "getStorageIdentifier"));
        }
        throw new IllegalStateException("no keyed handle: " + handle.getClass());
    }

    private static Object change(StateChange change) {
        return List.of(change.getKeyGroup(), hex(change.getChange()));
    }

    private static Object located(Tuple2<StreamStateHandle, Long> located) throws Exception {
        return List.of(located.f1, stream(located.f0));
    }

    private static Object channel(StateObject handle) throws Exception {
        if (handle instanceof AbstractChannelStateHandle<?> channel) {
            return kind(
                    "ChannelHandle",
                    "subtask", channel.getSubtaskIndex(),
                    "channel", channelIndexes(channel.getInfo()),
                    "offsets", channel.getOffsets(),
                    "size", channel.getStateSize(),
                    "delegate", stream(channel.getDelegate()));
        }
        return kind(
                "MergedChannelHandle",
                "subtask", RoundTripReflection.call(handle, "getSubtaskIndex"),
                "size", handle.getStateSize(),
                "delegate",
                        stream((StreamStateHandle) RoundTripReflection.call(handle, "getDelegate")),
                "serialized_channel_offsets",
                        hex((byte[])
                                RoundTripReflection.call(handle, "getSerializedChannelOffsets")));
    }

    private static List<Integer> channelIndexes(Object info) {
        if (info instanceof InputChannelInfo input) {
            return List.of(input.getGateIdx(), input.getInputChannelIdx());
        }
        ResultSubpartitionInfo output = (ResultSubpartitionInfo) info;
        return List.of(output.getPartitionIdx(), output.getSubPartitionIdx());
    }

    private static List<Long> offsets(KeyGroupsStateHandle handle) {
        List<Long> offsets = new ArrayList<>();
        handle.getKeyGroupRange()
                .forEach(keyGroup -> offsets.add(handle.getOffsetForKeyGroup(keyGroup)));
        return offsets;
    }

    /** Returns files by local path, which are a map until Flink 1.16, and later a list of pairs. */
    private static Map<String, Object> files(Object files) throws Exception {
        Map<String, Object> told = new TreeMap<>();
        if (files instanceof Map<?, ?> map) {
            for (Map.Entry<?, ?> file : map.entrySet()) {
                told.put(key(file.getKey()), stream((StreamStateHandle) file.getValue()));
            }
            return told;
        }
        for (Object file : (Collection<?>) files) {
            Object handle = RoundTripReflection.call(file, "getHandle");
            told.put(
                    (String) RoundTripReflection.call(file, "getLocalPath"),
                    stream((StreamStateHandle) handle));
        }
        return told;
    }

    private static String key(Object id) throws Exception {
        return (String) RoundTripReflection.call(id, "getKeyString");
    }

    private static Object getterOrNull(Object target, String getter) throws Exception {
        return RoundTripReflection.has(target, getter)
                ? RoundTripReflection.call(target, getter)
                : null;
    }

    // ---- building blocks ----

    interface Description<T> {
        Object of(T value) throws Exception;
    }

    static <T> List<Object> each(Iterable<? extends T> values, Description<T> description)
            throws Exception {
        List<Object> told = new ArrayList<>();
        for (T value : values) {
            told.add(description.of(value));
        }
        return told;
    }

    /** Returns a map; the arguments are names and values, in turn. */
    static Map<String, Object> fields(Object... namesAndValues) {
        Map<String, Object> told = new LinkedHashMap<>();
        for (int i = 0; i < namesAndValues.length; i += 2) {
            told.put((String) namesAndValues[i], namesAndValues[i + 1]);
        }
        return told;
    }

    static Map<String, Object> kind(String kind, Object... namesAndValues) {
        Map<String, Object> told = fields(namesAndValues);
        told.put("kind", kind);
        return told;
    }

    static String hex(byte[] bytes) {
        return HexFormat.of().formatHex(bytes);
    }
}
