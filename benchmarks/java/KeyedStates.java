package bench;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.UUID;
import org.apache.flink.core.fs.Path;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.runtime.state.IncrementalKeyedStateHandle.HandleAndLocalPath;
import org.apache.flink.runtime.state.IncrementalRemoteKeyedStateHandle;
import org.apache.flink.runtime.state.KeyGroupRangeAssignment;
import org.apache.flink.runtime.state.StateHandleID;
import org.apache.flink.runtime.state.StreamStateHandle;
import org.apache.flink.runtime.state.filesystem.FileStateHandle;
import org.apache.flink.runtime.state.filesystem.RelativeFileStateHandle;

/**
 * The keyed state of an operator as {@code RocksIncrementalSnapshotStrategy} writes it. There are
 * only the handles, without the files, because no reader of positions reads the files.
 *
 * <p>A subtask has the same files as in a real checkpoint (tests/golden/2.2): table files, and its
 * own manifest, options and CURRENT, all in the job's shared directory. The meta state is in the
 * checkpoint's directory.
 */
final class KeyedStates {
    /** The number of private files: a manifest, options and CURRENT. */
    private static final int PRIVATE_FILES = 3;

    private final Random random;
    private final String root;
    private final long checkpointId;
    private final int files;

    /** {@code files} is the number of table files and private files of a subtask. */
    KeyedStates(Random random, String jobId, long checkpointId, int files) {
        this.random = random;
        this.root = "file:/flink/checkpoints/" + jobId;
        this.checkpointId = checkpointId;
        this.files = files;
    }

    OperatorSubtaskState subtask(int subtask, int parallelism, int maxParallelism) {
        // RocksDB numbers its files consecutively: a new database has small numbers, an old one has
        // seven digits.
        int number = 10 + (int) Math.pow(10, random.nextDouble() * 6.2);
        List<HandleAndLocalPath> tables = new ArrayList<>();
        long added = 0;
        for (int i = PRIVATE_FILES; i < files; i++) {
            long size = 1000 + (long) Math.pow(10, random.nextDouble() * 7.8);
            if (random.nextInt(4) == 0) {
                added += size;
            }
            tables.add(file(String.format("%06d.sst", number), size));
            number += 1 + random.nextInt(9);
        }
        // A directory is listed in no particular order.
        Collections.shuffle(tables, random);
        List<HandleAndLocalPath> own =
                List.of(
                        file(String.format("MANIFEST-%06d", number), 400 + random.nextInt(9000)),
                        file(String.format("OPTIONS-%06d", number + 2), 11942),
                        file("CURRENT", 16));
        String metaName = uuid().toString();
        StreamStateHandle meta =
                new RelativeFileStateHandle(
                        new Path(root + "/chk-" + checkpointId + "/" + metaName), metaName, 1205);
        return OperatorSubtaskState.builder()
                .setManagedKeyedState(
                        IncrementalRemoteKeyedStateHandle.restore(
                                uuid(),
                                KeyGroupRangeAssignment.computeKeyGroupRangeForOperatorIndex(
                                        maxParallelism, parallelism, subtask),
                                checkpointId,
                                tables,
                                own,
                                meta,
                                added,
                                new StateHandleID(uuid().toString())))
                .build();
    }

    private HandleAndLocalPath file(String localName, long size) {
        Path path = new Path(root + "/shared/" + uuid());
        return HandleAndLocalPath.of(new FileStateHandle(path, size), localName);
    }

    private UUID uuid() {
        return new UUID(
                random.nextLong() & ~0xF000L | 0x4000L,
                random.nextLong() & ~(3L << 62) | 1L << 63);
    }
}
