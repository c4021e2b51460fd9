package testjobs;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.apache.flink.runtime.state.StateSnapshotContext;
import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;

/**
 * Passes elements on. If a directory is set, ends the process as soon as the directory contains a
 * complete savepoint, before the operators of its chain are notified of the savepoint.
 *
 * <p>After the snapshot of its state, the operator blocks the task's thread, which would run the
 * commits, until {@code _metadata} is written. Writing this file does not require the thread.
 */
final class DiesAfterTheSavepoint extends AbstractStreamOperator<String>
        implements OneInputStreamOperator<String, String> {
    static final int EXIT_CODE = 42;

    private static final long serialVersionUID = 1L;
    private final String savepoints;

    DiesAfterTheSavepoint(String savepoints) {
        this.savepoints = savepoints;
    }

    @Override
    public void processElement(StreamRecord<String> element) {
        output.collect(element);
    }

    @Override
    public void snapshotState(StateSnapshotContext context) throws Exception {
        super.snapshotState(context);
        if (savepoints != null) {
            getContainingTask()
                    .getMailboxExecutorFactory()
                    .createExecutor(0)
                    .execute(this::dieOnceItIsComplete, "die once the savepoint is complete");
        }
    }

    private void dieOnceItIsComplete() throws Exception {
        while (!isComplete()) {
            Thread.sleep(1);
        }
        Runtime.getRuntime().halt(EXIT_CODE);
    }

    private boolean isComplete() throws IOException {
        try (Stream<Path> entries = Files.list(Path.of(savepoints))) {
            return entries.anyMatch(entry -> Files.exists(entry.resolve("_metadata")));
        }
    }
}
