package testjobs;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.flink.api.connector.source.Boundedness;
import org.apache.flink.api.connector.source.ReaderOutput;
import org.apache.flink.api.connector.source.Source;
import org.apache.flink.api.connector.source.SourceReader;
import org.apache.flink.api.connector.source.SourceReaderContext;
import org.apache.flink.api.connector.source.SourceSplit;
import org.apache.flink.api.connector.source.SplitEnumerator;
import org.apache.flink.api.connector.source.SplitEnumeratorContext;
import org.apache.flink.core.io.InputStatus;
import org.apache.flink.core.io.SimpleVersionedSerializer;

/**
 * A source of the numbers from 0 up to a count (exclusive). The source never ends, because the end
 * of the input would fire windows and timers. After a restore, it resumes at its position.
 *
 * <p>The fields are static, because the tasks of a local mini-cluster share this JVM with the main
 * program.
 */
final class Numbers implements Source<Integer, Numbers.Next, Boolean> {
    private static final long serialVersionUID = 1L;
    private static final Set<String> UNDONE = ConcurrentHashMap.newKeySet();

    private final String name;
    private final int count;

    Numbers(String name, int count) {
        this.name = name;
        this.count = count;
        UNDONE.add(name);
    }

    static void forget() {
        UNDONE.clear();
    }

    /** Returns whether all of the job's sources have emitted all of their numbers. */
    static boolean allTold() {
        return UNDONE.isEmpty();
    }

    record Next(int number) implements SourceSplit {
        @Override
        public String splitId() {
            return "numbers";
        }
    }

    @Override
    public Boundedness getBoundedness() {
        return Boundedness.CONTINUOUS_UNBOUNDED;
    }

    @Override
    public SourceReader<Integer, Next> createReader(SourceReaderContext context) {
        return new Reader();
    }

    @Override
    public SplitEnumerator<Next, Boolean> createEnumerator(SplitEnumeratorContext<Next> context) {
        return new Enumerator(context, false);
    }

    @Override
    public SplitEnumerator<Next, Boolean> restoreEnumerator(
            SplitEnumeratorContext<Next> context, Boolean assigned) {
        return new Enumerator(context, assigned);
    }

    @Override
    public SimpleVersionedSerializer<Next> getSplitSerializer() {
        return new IntegerBytes<>() {

            @Override
            int toInteger(Next next) {
                return next.number();
            }

            @Override
            Next ofInteger(int number) {
                return new Next(number);
            }
        };
    }

    @Override
    public SimpleVersionedSerializer<Boolean> getEnumeratorCheckpointSerializer() {
        return new IntegerBytes<>() {

            @Override
            int toInteger(Boolean assigned) {
                return assigned ? 1 : 0;
            }

            @Override
            Boolean ofInteger(int number) {
                return number == 1;
            }
        };
    }

    private final class Reader implements SourceReader<Integer, Next> {
        private int next = -1;
        private final CompletableFuture<Void> assigned = new CompletableFuture<>();

        @Override
        public void start() {}

        @Override
        public InputStatus pollNext(ReaderOutput<Integer> output) {
            if (next >= 0 && next < count) {
                output.collect(next++);
                return InputStatus.MORE_AVAILABLE;
            }
            if (next >= count) {
                UNDONE.remove(name);
            }
            return InputStatus.NOTHING_AVAILABLE;
        }

        @Override
        public List<Next> snapshotState(long checkpointId) {
            return next < 0 ? List.of() : List.of(new Next(next));
        }

        @Override
        public CompletableFuture<Void> isAvailable() {
            boolean done = next >= count;
            return done ? new CompletableFuture<>() : assigned;
        }

        @Override
        public void addSplits(List<Next> splits) {
            next = splits.get(0).number();
            assigned.complete(null);
        }

        @Override
        public void notifyNoMoreSplits() {}

        @Override
        public void close() {}
    }

    private static final class Enumerator implements SplitEnumerator<Next, Boolean> {
        private final SplitEnumeratorContext<Next> context;
        private boolean assigned;

        private Enumerator(SplitEnumeratorContext<Next> context, boolean assigned) {
            this.context = context;
            this.assigned = assigned;
        }

        @Override
        public void start() {}

        @Override
        public void handleSplitRequest(int subtask, String host) {}

        @Override
        public void addSplitsBack(List<Next> splits, int subtask) {}

        @Override
        public void addReader(int subtask) {
            if (!assigned) {
                context.assignSplit(new Next(0), subtask);
                assigned = true;
            }
        }

        @Override
        public Boolean snapshotState(long checkpointId) {
            return assigned;
        }

        @Override
        public void close() {}
    }

    private abstract static class IntegerBytes<T> implements SimpleVersionedSerializer<T> {
        abstract int toInteger(T value);

        abstract T ofInteger(int number);

        @Override
        public int getVersion() {
            return 0;
        }

        @Override
        public byte[] serialize(T value) {
            return ByteBuffer.allocate(4).putInt(toInteger(value)).array();
        }

        @Override
        public T deserialize(int version, byte[] bytes) {
            return ofInteger(ByteBuffer.wrap(bytes).getInt());
        }
    }
}
