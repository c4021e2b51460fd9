package testjobs;

import org.apache.flink.runtime.checkpoint.CheckpointProperties;
import org.apache.flink.runtime.checkpoint.OperatorState;
import org.apache.flink.runtime.checkpoint.metadata.CheckpointMetadata;
import org.apache.flink.runtime.jobgraph.OperatorID;

/** The metadata other than state, for the Flink versions that write metadata 4. */
final class MetadataView {
    private MetadataView() {}

    static String name(OperatorState state) {
        return null;
    }

    static String uid(OperatorState state) {
        return null;
    }

    static CheckpointProperties properties(CheckpointMetadata metadata) {
        return metadata.getCheckpointProperties();
    }

    static OperatorState operator(OperatorID id, int parallelism) {
        return new OperatorState(id, parallelism, 128);
    }
}
