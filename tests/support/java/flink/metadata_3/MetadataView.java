package testjobs;

import org.apache.flink.runtime.checkpoint.CheckpointProperties;
import org.apache.flink.runtime.checkpoint.OperatorState;
import org.apache.flink.runtime.checkpoint.metadata.CheckpointMetadata;

/** The metadata other than state, for the Flink versions that write metadata 3: nothing. */
final class MetadataView {
    private MetadataView() {}

    static String name(OperatorState state) {
        return null;
    }

    static String uid(OperatorState state) {
        return null;
    }

    static CheckpointProperties properties(CheckpointMetadata metadata) {
        return null;
    }
}
