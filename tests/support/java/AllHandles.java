import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.core.fs.Path;
import org.apache.flink.runtime.checkpoint.CheckpointProperties;
import org.apache.flink.runtime.checkpoint.CheckpointRetentionPolicy;
import org.apache.flink.runtime.checkpoint.Checkpoints;
import org.apache.flink.runtime.checkpoint.FinishedOperatorSubtaskState;
import org.apache.flink.runtime.checkpoint.MasterState;
import org.apache.flink.runtime.checkpoint.OperatorState;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.runtime.checkpoint.StateObjectCollection;
import org.apache.flink.runtime.checkpoint.channel.InputChannelInfo;
import org.apache.flink.runtime.checkpoint.channel.ResultSubpartitionInfo;
import org.apache.flink.runtime.checkpoint.metadata.CheckpointMetadata;
import org.apache.flink.runtime.checkpoint.metadata.MetadataSerializers;
import org.apache.flink.runtime.jobgraph.OperatorID;
import org.apache.flink.runtime.state.CheckpointedStateScope;
import org.apache.flink.runtime.state.IncrementalRemoteKeyedStateHandle;
import org.apache.flink.runtime.state.InputChannelStateHandle;
import org.apache.flink.runtime.state.KeyGroupRange;
import org.apache.flink.runtime.state.KeyGroupRangeOffsets;
import org.apache.flink.runtime.state.KeyGroupsSavepointStateHandle;
import org.apache.flink.runtime.state.KeyGroupsStateHandle;
import org.apache.flink.runtime.state.KeyedStateHandle;
import org.apache.flink.runtime.state.OperatorStateHandle;
import org.apache.flink.runtime.state.OperatorStateHandle.Mode;
import org.apache.flink.runtime.state.OperatorStateHandle.StateMetaInfo;
import org.apache.flink.runtime.state.OperatorStreamStateHandle;
import org.apache.flink.runtime.state.ResultSubpartitionStateHandle;
import org.apache.flink.runtime.state.StateHandleID;
import org.apache.flink.runtime.state.StreamStateHandle;
import org.apache.flink.runtime.state.changelog.ChangelogStateBackendHandle.ChangelogStateBackendHandleImpl;
import org.apache.flink.runtime.state.changelog.ChangelogStateHandle;
import org.apache.flink.runtime.state.changelog.ChangelogStateHandleStreamImpl;
import org.apache.flink.runtime.state.changelog.SequenceNumber;
import org.apache.flink.runtime.state.changelog.StateChange;
import org.apache.flink.runtime.state.changelog.inmemory.InMemoryChangelogStateHandle;
import org.apache.flink.runtime.state.filesystem.FileStateHandle;
import org.apache.flink.runtime.state.filesystem.RelativeFileStateHandle;
import org.apache.flink.runtime.state.memory.ByteStreamStateHandle;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.ObjectOutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.UUID;

/**
 * Writes a metadata file with Flink's own serializers. The file contains every kind of state handle
 * that this release of Flink can write in the given metadata version.
 *
 * <p>{@code AllHandles metadata VERSION DIRECTORY} writes {@code DIRECTORY/_metadata}, loads the
 * file with Flink, and prints the loaded content as a line of JSON. {@code AllHandles properties}
 * prints the serialized {@code CheckpointProperties} of every kind of checkpoint.
 */
public final class AllHandles {

    private static final String ROOT = "file:/flink/checkpoints/0a1b2c3d4e5f60718293a4b5c6d7e8f9";
    private static final String FILE_MERGING = "org.apache.flink.runtime.state.filemerging.";
    private static final KeyGroupRange KEY_GROUPS = KeyGroupRange.of(4, 6);

    private final int version;
    private final boolean fileMerging =
            RoundTripReflection.exists(FILE_MERGING + "SegmentFileStateHandle");

    private AllHandles(int version) {
        this.version = version;
    }

    public static void main(String[] arguments) throws Exception {
        if (arguments[0].equals("properties")) {
            RoundTripMetadata.print(properties());
        } else {
            int version = Integer.parseInt(arguments[1]);
            new AllHandles(version).write(java.nio.file.Path.of(arguments[2]));
        }
    }

    private void write(java.nio.file.Path directory) throws Exception {
        byte[] bytes = serialized(metadata());
        Files.createDirectories(directory);
        Files.write(directory.resolve("_metadata"), bytes);
        RoundTripMetadata.print(RoundTripMetadata.load(bytes, directory.toString()));
    }

    private byte[] serialized(CheckpointMetadata metadata) throws Exception {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        out.writeInt(Checkpoints.HEADER_MAGIC_NUMBER);
        out.writeInt(version);
        Object serializer = MetadataSerializers.getSerializer(version);
        // Flink no longer writes version 2, but its serializer still supports this version.
        String serialize = version == 2 ? "serializeMetadata" : "serialize";
        RoundTripReflection.call(serializer, serialize, metadata, out);
        return bytes.toByteArray();
    }

    private CheckpointMetadata metadata() throws Exception {
        List<OperatorState> operators = new ArrayList<>();
        operators.add(operatorStates());
        operators.add(keyGroups());
        operators.add(incremental());
        operators.add(changelog());
        if (fileMerging) {
            operators.add(mergedFiles());
        }
        if (version > 2) {
            operators.add(inFlight());
            operators.add(partlyFinished());
            operators.add(finished());
        }
        List<MasterState> masterStates =
                List.of(
                        new MasterState("a hook", utf8("of the checkpoint coordinator"), 3),
                        new MasterState("", new byte[0], -1));
        long checkpointId = 1234567890123L;
        if (version < 4) {
            return new CheckpointMetadata(checkpointId, operators, masterStates);
        }
        CheckpointProperties properties =
                CheckpointProperties.forCheckpoint(
                        CheckpointRetentionPolicy.RETAIN_ON_CANCELLATION);
        return (CheckpointMetadata)
                RoundTripReflection.create(
                        CheckpointMetadata.class.getName(),
                        checkpointId,
                        operators,
                        masterStates,
                        properties);
    }

    // ---- operators ----

    private OperatorState operatorStates() throws Exception {
        String name = "Source: a name with \u0000, \u00e9 and \ud83d\ude00";
        OperatorState operator = operator(1, name, "uid-1");
        if (version > 2) {
            operator.setCoordinatorState(inline("coordinator", "state of a coordinator"));
        }
        // All maps here are sorted, because the content that Flink loads is printed in this order.
        Map<String, StateMetaInfo> states = new TreeMap<>();
        states.put("a list", new StateMetaInfo(new long[] {5, 17, 29}, Mode.SPLIT_DISTRIBUTE));
        states.put("a union", new StateMetaInfo(new long[] {41}, Mode.UNION));
        states.put("a broadcast", new StateMetaInfo(new long[] {53}, Mode.BROADCAST));
        states.put("nothing yet", new StateMetaInfo(new long[0], Mode.SPLIT_DISTRIBUTE));
        operator.putState(
                0,
                OperatorSubtaskState.builder()
                        .setManagedOperatorState(
                                new OperatorStreamStateHandle(
                                        states, inline("operator state", "0123456789")))
                        .setRawOperatorState(
                                new OperatorStreamStateHandle(
                                        Map.of("_default_", states.get("a list")),
                                        file("shared/raw-operator", 100)))
                        .build());
        operator.putState(
                1,
                OperatorSubtaskState.builder()
                        .setManagedOperatorState(
                                new OperatorStreamStateHandle(Map.of(), relative("no-states", 7)))
                        .build());
        operator.putState(2, OperatorSubtaskState.builder().build());
        return operator;
    }

    private OperatorState keyGroups() throws Exception {
        OperatorState operator = operator(2, null, null);
        KeyGroupRangeOffsets offsets =
                new KeyGroupRangeOffsets(KEY_GROUPS, new long[] {0, 1024, 2048});
        KeyGroupsStateHandle full =
                KeyGroupsStateHandle.restore(
                        offsets, relative("full", 4096), new StateHandleID("full-id"));
        operator.putState(0, keyed(full));
        operator.putState(
                1, keyed(new KeyGroupsSavepointStateHandle(offsets, file("savepoint", 5000))));
        operator.putState(
                2,
                OperatorSubtaskState.builder()
                        .setManagedKeyedState(
                                KeyGroupsStateHandle.restore(
                                        offsets, full, new StateHandleID("nested")))
                        .setRawKeyedState(
                                KeyGroupsStateHandle.restore(
                                        offsets,
                                        inline("raw", "keyed state"),
                                        new StateHandleID("raw-id")))
                        .build());
        return operator;
    }

    private OperatorState incremental() throws Exception {
        OperatorState operator = operator(3, "a window", null);
        operator.putState(0, keyed(incrementalHandle()));
        return operator;
    }

    private OperatorState changelog() throws Exception {
        OperatorState operator = operator(4, null, "a changelog");
        InMemoryChangelogStateHandle inMemory =
                InMemoryChangelogStateHandle.restore(
                        List.of(
                                change(-1, "meta data"), change(4, "a change"), change(6, "")),
                        SequenceNumber.of(10),
                        SequenceNumber.of(13),
                        KEY_GROUPS,
                        new StateHandleID("in-memory"));
        ChangelogStateHandle inFiles = changelogFiles();
        KeyGroupsStateHandle full =
                KeyGroupsStateHandle.restore(
                        new KeyGroupRangeOffsets(KEY_GROUPS, new long[] {1, 2, 3}),
                        file("shared/full", 300),
                        new StateHandleID("materialized"));
        List<KeyedStateHandle> materialized = List.of(incrementalHandle(), full);
        List<ChangelogStateHandle> changes = List.of(inMemory, inFiles);
        StateHandleID id = new StateHandleID("changelog");
        // Only the second form of this handle contains the checkpoint id.
        Object handle =
                writesCheckpointIdOfChangelog()
                        ? RoundTripReflection.callStatic(
                                ChangelogStateBackendHandleImpl.class, "restore",
                                materialized, changes, KEY_GROUPS, 21L, 8L, 555L, id)
                        : RoundTripReflection.callStatic(
                                ChangelogStateBackendHandleImpl.class, "restore",
                                materialized, changes, KEY_GROUPS, 8L, 555L, id);
        operator.putState(0, keyed((KeyedStateHandle) handle));
        operator.putState(1, keyed(inMemory));
        operator.putState(2, keyed(inFiles));
        return operator;
    }

    private OperatorState mergedFiles() throws Exception {
        OperatorState operator = operator(5, null, null);
        Object taskOwned = directory("taskowned/job_tm");
        Object shared = directory("shared/op_1_1");
        Map<String, StateMetaInfo> states =
                Map.of("merged", new StateMetaInfo(new long[] {9, 99}, Mode.SPLIT_DISTRIBUTE));
        Object merged =
                RoundTripReflection.create(
                        FILE_MERGING + "FileMergingOperatorStreamStateHandle",
                        taskOwned,
                        shared,
                        states,
                        segment("taskowned/job_tm/merged", 4096, 512));
        Object empty =
                RoundTripReflection.create(
                        FILE_MERGING + "EmptyFileMergingOperatorStreamStateHandle",
                        taskOwned,
                        shared,
                        Map.of(),
                        emptySegment());
        operator.putState(
                0,
                OperatorSubtaskState.builder()
                        .setManagedOperatorState((OperatorStateHandle) merged)
                        .build());
        operator.putState(
                1,
                OperatorSubtaskState.builder()
                        .setManagedOperatorState((OperatorStateHandle) empty)
                        .build());
        return operator;
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private OperatorState inFlight() throws Exception {
        OperatorState operator = operator(6, "unaligned", "unaligned-uid");
        StreamStateHandle buffers = relative("buffers", 1000);
        List input =
                List.of(
                        new InputChannelStateHandle(
                                0, new InputChannelInfo(1, 2), buffers, List.of(0L, 64L), 128),
                        new InputChannelStateHandle(
                                0, new InputChannelInfo(1, 3), buffers, List.of(128L), 72));
        List output =
                List.of(
                        new ResultSubpartitionStateHandle(
                                0, new ResultSubpartitionInfo(3, 4), buffers, List.of(200L), 300));
        OperatorSubtaskState.Builder plain = OperatorSubtaskState.builder();
        plain.setInputChannelState(new StateObjectCollection(input));
        plain.setResultSubpartitionState(new StateObjectCollection(output));
        operator.putState(0, plain.build());
        if (version >= 6) {
            OperatorSubtaskState.Builder merged = OperatorSubtaskState.builder();
            merged.setInputChannelState((StateObjectCollection) merged("Input", input));
            merged.setResultSubpartitionState((StateObjectCollection) merged("Output", output));
            operator.putState(1, merged.build());
        }
        return operator;
    }

    private static Object merged(String direction, List<?> handles) throws Exception {
        return RoundTripReflection.callStatic(
                Class.forName("org.apache.flink.runtime.state.ChannelStateHelper"),
                "merge" + direction + "StateCollection",
                handles);
    }

    private OperatorState partlyFinished() throws Exception {
        OperatorState operator = operator(7, null, null);
        operator.putState(0, FinishedOperatorSubtaskState.INSTANCE);
        operator.putState(1, OperatorSubtaskState.builder().build());
        operator.putState(3, FinishedOperatorSubtaskState.INSTANCE);
        return operator;
    }

    private OperatorState finished() throws Exception {
        return newOperator("FullyFinishedOperatorState", 8, "done", null);
    }

    // ---- handles ----

    private KeyedStateHandle incrementalHandle() throws Exception {
        Map<String, StreamStateHandle> shared = new TreeMap<>();
        shared.put("000011.sst", file("shared/one", 1000));
        shared.put("000012.sst", inline("small", "a small file"));
        Map<String, StreamStateHandle> exclusive = new TreeMap<>();
        exclusive.put("MANIFEST-000004", relative("manifest", 333));
        exclusive.put("CURRENT", inline("current", "MANIFEST-000004"));
        if (fileMerging) {
            shared.put("000013.sst", segment("shared/op_1_1/merged", 0, 2000));
        }
        return (KeyedStateHandle)
                RoundTripReflection.callStatic(
                        IncrementalRemoteKeyedStateHandle.class,
                        "restore",
                        UUID.fromString("00112233-4455-6677-8899-aabbccddeeff"),
                        KEY_GROUPS,
                        20L,
                        localFiles(shared),
                        localFiles(exclusive),
                        relative("meta", 77),
                        1410L,
                        new StateHandleID("incremental"));
    }

    /** Returns files by local path, which are a map until Flink 1.16, and later a list of pairs. */
    private static Object localFiles(Map<String, StreamStateHandle> files) throws Exception {
        String pair =
                "org.apache.flink.runtime.state.IncrementalKeyedStateHandle$HandleAndLocalPath";
        if (RoundTripReflection.exists(pair)) {
            List<Object> pairs = new ArrayList<>();
            for (Map.Entry<String, StreamStateHandle> file : files.entrySet()) {
                pairs.add(RoundTripReflection.create(pair, file.getValue(), file.getKey()));
            }
            return pairs;
        }
        Map<StateHandleID, StreamStateHandle> byId = new LinkedHashMap<>();
        files.forEach((path, handle) -> byId.put(new StateHandleID(path), handle));
        return byId;
    }

    private static ChangelogStateHandle changelogFiles() throws Exception {
        StreamStateHandle file = file("shared/changes", 900);
        List<Tuple2<StreamStateHandle, Long>> streams =
                List.of(Tuple2.of(file, 100L), Tuple2.of(file, 400L));
        StateHandleID id = new StateHandleID("in-files");
        return (ChangelogStateHandle)
                (writesCheckpointIdOfChangelog()
                        ? RoundTripReflection.callStatic(
                                ChangelogStateHandleStreamImpl.class, "restore",
                                streams, KEY_GROUPS, 600L, 250L, "filesystem", id)
                        : RoundTripReflection.callStatic(
                                ChangelogStateHandleStreamImpl.class, "restore",
                                streams, KEY_GROUPS, 600L, 250L, id));
    }

    private static boolean writesCheckpointIdOfChangelog() {
        return Arrays.stream(ChangelogStateBackendHandleImpl.class.getMethods())
                .anyMatch(method -> method.getName().equals("getCheckpointId"));
    }

    private static StateChange change(int keyGroup, String change) throws Exception {
        boolean factories =
                Arrays.stream(StateChange.class.getMethods())
                        .anyMatch(method -> method.getName().equals("ofMetadataChange"));
        if (!factories) {
            return (StateChange)
                    RoundTripReflection.create(
                            StateChange.class.getName(), keyGroup, utf8(change));
        }
        return (StateChange)
                (keyGroup < 0
                        ? RoundTripReflection.callStatic(
                                StateChange.class, "ofMetadataChange", (Object) utf8(change))
                        : RoundTripReflection.callStatic(
                                StateChange.class, "ofDataChange", keyGroup, utf8(change)));
    }

    private static OperatorSubtaskState keyed(KeyedStateHandle handle) {
        return OperatorSubtaskState.builder().setManagedKeyedState(handle).build();
    }

    private static StreamStateHandle segment(String path, long start, long size) throws Exception {
        Object id =
                RoundTripReflection.create(
                        "org.apache.flink.runtime.checkpoint.filemerging.LogicalFile$LogicalFileId",
                        "logical-" + start);
        return (StreamStateHandle)
                RoundTripReflection.create(
                        FILE_MERGING + "SegmentFileStateHandle",
                        new Path(ROOT + "/" + path),
                        start,
                        size,
                        path.startsWith("shared")
                                ? CheckpointedStateScope.SHARED
                                : CheckpointedStateScope.EXCLUSIVE,
                        id);
    }

    private static Object emptySegment() throws Exception {
        return RoundTripReflection.staticField(
                FILE_MERGING + "EmptySegmentFileStateHandle", "INSTANCE");
    }

    private static Object directory(String path) throws Exception {
        return RoundTripReflection.callStatic(
                Class.forName(FILE_MERGING + "DirectoryStreamStateHandle"),
                "of",
                new Path(ROOT + "/" + path));
    }

    private static ByteStreamStateHandle inline(String name, String content) {
        return new ByteStreamStateHandle(name, utf8(content));
    }

    private static FileStateHandle file(String path, long size) {
        return new FileStateHandle(new Path(ROOT + "/" + path), size);
    }

    private static RelativeFileStateHandle relative(String path, long size) {
        return new RelativeFileStateHandle(new Path(ROOT + "/chk-21/" + path), path, size);
    }

    private static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private OperatorState operator(int number, String name, String uid) throws Exception {
        return newOperator("OperatorState", number, name, uid);
    }

    /** Flink 2 introduced names and uids, and only metadata version 5 and later can store them. */
    private OperatorState newOperator(String type, int number, String name, String uid)
            throws Exception {
        String className = "org.apache.flink.runtime.checkpoint." + type;
        OperatorID id = new OperatorID(0x0123456789abcdefL, -number);
        boolean named =
                Arrays.stream(OperatorState.class.getMethods())
                        .anyMatch(method -> method.getName().equals("getOperatorName"));
        return (OperatorState)
                (named
                        ? RoundTripReflection.create(
                                className,
                                version >= 5 ? name : null,
                                version >= 5 ? uid : null,
                                id,
                                4,
                                128)
                        : RoundTripReflection.create(className, id, 4, 128));
    }

    // ---- checkpoint properties ----

    private static Map<String, Object> properties() throws Exception {
        Map<String, CheckpointProperties> kinds = new LinkedHashMap<>();
        for (CheckpointRetentionPolicy policy : CheckpointRetentionPolicy.values()) {
            kinds.put("checkpoint " + policy, CheckpointProperties.forCheckpoint(policy));
        }
        for (SavepointFormatType format : SavepointFormatType.values()) {
            kinds.put("savepoint " + format, CheckpointProperties.forSavepoint(true, format));
            kinds.put(
                    "suspend savepoint " + format,
                    CheckpointProperties.forSyncSavepoint(true, false, format));
            kinds.put(
                    "terminate savepoint " + format,
                    CheckpointProperties.forSyncSavepoint(true, true, format));
        }
        kinds.put("unclaimed snapshot", CheckpointProperties.forUnclaimedSnapshot());
        // Metadata has no properties if it was restored from a version before 4, or made manually.
        kinds.put("none", null);
        Map<String, Object> told = new LinkedHashMap<>();
        for (Map.Entry<String, CheckpointProperties> kind : kinds.entrySet()) {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            new ObjectOutputStream(bytes).writeObject(kind.getValue());
            told.put(
                    kind.getKey(),
                    RoundTripMetadata.fields(
                            "flink_says", Objects.toString(kind.getValue(), null),
                            "hex", RoundTripMetadata.hex(bytes.toByteArray())));
        }
        return told;
    }
}
