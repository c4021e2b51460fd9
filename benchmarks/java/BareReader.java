package bench;

import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.flink.api.common.ExecutionConfig;
import org.apache.flink.connector.kafka.source.split.KafkaPartitionSplit;
import org.apache.flink.connector.kafka.source.split.KafkaPartitionSplitSerializer;
import org.apache.flink.core.fs.CloseableRegistry;
import org.apache.flink.runtime.checkpoint.Checkpoints;
import org.apache.flink.runtime.checkpoint.OperatorState;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.runtime.checkpoint.metadata.CheckpointMetadata;
import org.apache.flink.runtime.state.DefaultOperatorStateBackend;
import org.apache.flink.runtime.state.DefaultOperatorStateBackendBuilder;
import org.apache.flink.runtime.state.OperatorStateHandle;
import org.apache.flink.streaming.api.operators.util.SimpleVersionedListState;
import testjobs.SourceStates;

/**
 * Reads positions with nothing but Flink's own classes: its loader of metadata, its restore of
 * operator state, and the connector's serializer. Argument: a checkpoint directory, or a folder of
 * jobs, whose checkpoints are all read. Prints the number of partitions and the sum of their
 * offsets.
 *
 * <p>It recognizes sources by the name of their state. Unlike `migrate inspect`, it reads only the
 * positions.
 */
public final class BareReader {
    private long partitions;
    private long sum;

    private BareReader() {}

    public static void main(String[] args) throws Exception {
        Path target = Path.of(args[0]);
        BareReader reader = new BareReader();
        if (Files.exists(target.resolve("_metadata"))) {
            reader.read(target);
        } else {
            try (DirectoryStream<Path> jobs = Files.newDirectoryStream(target, Files::isDirectory)) {
                for (Path job : jobs) {
                    reader.read(job.resolve("chk-" + Generator.CHECKPOINT_ID));
                }
            }
        }
        System.out.println(reader.partitions + " " + reader.sum);
    }

    private void read(Path checkpoint) throws Exception {
        CheckpointMetadata metadata;
        Path file = checkpoint.resolve("_metadata");
        try (DataInputStream in =
                new DataInputStream(
                        new BufferedInputStream(Files.newInputStream(file), 1 << 16))) {
            metadata =
                    Checkpoints.loadCheckpointMetadata(
                            in, BareReader.class.getClassLoader(), checkpoint.toUri().toString());
        }
        for (OperatorState operator : metadata.getOperatorStates()) {
            for (OperatorSubtaskState subtask : operator.getStates()) {
                if (!hasReaderState(subtask)) {
                    continue;
                }
                DefaultOperatorStateBackend backend =
                        new DefaultOperatorStateBackendBuilder(
                                        BareReader.class.getClassLoader(),
                                        new ExecutionConfig(),
                                        false,
                                        subtask.getManagedOperatorState(),
                                        new CloseableRegistry())
                                .build();
                for (KafkaPartitionSplit split :
                        new SimpleVersionedListState<>(
                                        backend.getListState(SourceStates.READER_STATE),
                                        new KafkaPartitionSplitSerializer())
                                .get()) {
                    partitions++;
                    sum += split.getStartingOffset();
                }
                backend.dispose();
            }
        }
    }

    private static boolean hasReaderState(OperatorSubtaskState subtask) {
        for (OperatorStateHandle handle : subtask.getManagedOperatorState()) {
            if (handle.getStateNameToPartitionOffsets()
                    .containsKey(SourceStates.READER_STATE.getName())) {
                return true;
            }
        }
        return false;
    }
}
