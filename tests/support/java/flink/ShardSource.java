package testjobs;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
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
 * A source whose splits are shards of a stream, in a layout like the splits of a Kinesis source:
 * the names of the stream and the shard, and then the position. They start like Kafka splits.
 */
final class ShardSource implements Source<String, ShardSource.Shard, List<ShardSource.Shard>> {
    private static final long serialVersionUID = 1L;
    private static final int SHARDS = 2;

    /** {@code sequenceNumber} is from the last record that was read, or empty. */
    record Shard(String stream, String shardId, String sequenceNumber) implements SourceSplit {
        @Override
        public String splitId() {
            return shardId;
        }
    }

    @Override
    public Boundedness getBoundedness() {
        return Boundedness.CONTINUOUS_UNBOUNDED;
    }

    @Override
    public SourceReader<String, Shard> createReader(SourceReaderContext context) {
        return new Reader();
    }

    @Override
    public SplitEnumerator<Shard, List<Shard>> createEnumerator(
            SplitEnumeratorContext<Shard> context) {
        return new Enumerator(context);
    }

    @Override
    public SplitEnumerator<Shard, List<Shard>> restoreEnumerator(
            SplitEnumeratorContext<Shard> context, List<Shard> assigned) {
        return new Enumerator(context);
    }

    @Override
    public SimpleVersionedSerializer<Shard> getSplitSerializer() {
        return new ShardSerializer();
    }

    @Override
    public SimpleVersionedSerializer<List<Shard>> getEnumeratorCheckpointSerializer() {
        return new ShardsSerializer();
    }

    private static final class Reader implements SourceReader<String, Shard> {
        private final List<Shard> shards = new ArrayList<>();
        private long read;

        @Override
        public void start() {}

        @Override
        public InputStatus pollNext(ReaderOutput<String> output) {
            if (!shards.isEmpty()) {
                Shard shard = shards.remove(0);
                String number = String.format("4961%052d", ++read);
                output.collect(shard.shardId() + "," + number);
                shards.add(new Shard(shard.stream(), shard.shardId(), number));
            }
            return InputStatus.MORE_AVAILABLE;
        }

        @Override
        public List<Shard> snapshotState(long checkpointId) {
            return List.copyOf(shards);
        }

        @Override
        public CompletableFuture<Void> isAvailable() {
            return CompletableFuture.completedFuture(null);
        }

        @Override
        public void addSplits(List<Shard> splits) {
            shards.addAll(splits);
        }

        @Override
        public void notifyNoMoreSplits() {}

        @Override
        public void close() {}
    }

    private static final class Enumerator implements SplitEnumerator<Shard, List<Shard>> {
        private final SplitEnumeratorContext<Shard> context;
        private final List<Shard> assigned = new ArrayList<>();

        private Enumerator(SplitEnumeratorContext<Shard> context) {
            this.context = context;
        }

        @Override
        public void start() {}

        @Override
        public void handleSplitRequest(int subtask, String host) {}

        @Override
        public void addSplitsBack(List<Shard> splits, int subtask) {}

        @Override
        public void addReader(int subtask) {
            String stream = "arn:aws:kinesis:eu-west-1:000000000000:stream/orders";
            for (int n = assigned.size(); n < SHARDS; n++) {
                Shard shard = new Shard(stream, String.format("shardId-%012d", n), "");
                context.assignSplit(shard, subtask);
                assigned.add(shard);
            }
        }

        @Override
        public List<Shard> snapshotState(long checkpointId) {
            return assigned;
        }

        @Override
        public void close() {}
    }

    private static void write(Shard shard, DataOutputStream out) throws IOException {
        boolean begun = !shard.sequenceNumber().isEmpty();
        out.writeUTF(shard.stream());
        out.writeUTF(shard.shardId());
        out.writeUTF(begun ? "AFTER_SEQUENCE_NUMBER" : "TRIM_HORIZON");
        out.writeBoolean(begun);
        if (begun) {
            out.writeUTF(shard.sequenceNumber());
        }
    }

    private static Shard read(DataInputStream in) throws IOException {
        String stream = in.readUTF();
        String shardId = in.readUTF();
        in.readUTF();
        return new Shard(stream, shardId, in.readBoolean() ? in.readUTF() : "");
    }

    private static final class ShardSerializer implements SimpleVersionedSerializer<Shard> {
        @Override
        public int getVersion() {
            return 0;
        }

        @Override
        public byte[] serialize(Shard shard) throws IOException {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            write(shard, new DataOutputStream(bytes));
            return bytes.toByteArray();
        }

        @Override
        public Shard deserialize(int version, byte[] bytes) throws IOException {
            return read(new DataInputStream(new ByteArrayInputStream(bytes)));
        }
    }

    private static final class ShardsSerializer implements SimpleVersionedSerializer<List<Shard>> {
        @Override
        public int getVersion() {
            return 1;
        }

        @Override
        public byte[] serialize(List<Shard> shards) throws IOException {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            DataOutputStream out = new DataOutputStream(bytes);
            out.writeInt(shards.size());
            for (Shard shard : shards) {
                write(shard, out);
            }
            return bytes.toByteArray();
        }

        @Override
        public List<Shard> deserialize(int version, byte[] bytes) throws IOException {
            DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes));
            List<Shard> shards = new ArrayList<>();
            for (int left = in.readInt(); left > 0; left--) {
                shards.add(read(in));
            }
            return shards;
        }
    }
}
