package testjobs;

import org.apache.flink.runtime.checkpoint.CheckpointProperties;
import org.apache.flink.runtime.checkpoint.OperatorState;
import org.apache.flink.runtime.checkpoint.metadata.CheckpointMetadata;
import org.apache.flink.runtime.jobgraph.OperatorID;

/** The metadata other than state, for the Flink versions that write metadata 5 or 6. */
final class MetadataView {
    private MetadataView() {}

    static String name(OperatorState state) {
        return state.getOperatorName().orElse(null);
    }

    static String uid(OperatorState state) {
        return state.getOperatorUid().orElse(null);
    }

    static CheckpointProperties properties(CheckpointMetadata metadata) {
        return metadata.getCheckpointProperties();
    }

    static OperatorState operator(OperatorID id, int parallelism) {
        return new OperatorState("Source: encoded", "encoded", id, parallelism, 128);
    }
}
