package bench;

import java.io.BufferedOutputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.apache.flink.connector.kafka.source.split.KafkaPartitionSplit;
import org.apache.flink.runtime.checkpoint.CheckpointProperties;
import org.apache.flink.runtime.checkpoint.CheckpointRetentionPolicy;
import org.apache.flink.runtime.checkpoint.Checkpoints;
import org.apache.flink.runtime.checkpoint.OperatorState;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.runtime.checkpoint.metadata.CheckpointMetadata;
import org.apache.flink.state.api.OperatorIdentifier;
import org.apache.kafka.common.TopicPartition;

/**
 * Writes the checkpoints of the benchmarks with Flink's and the connector's own serializers, as a
 * job manager does, but for jobs that are too large to run on one machine.
 *
 * <p>Each argument is a kind of job: {@code sources:FOLDER:PARTITIONS:PARALLELISM}, {@code
 * handles:FOLDER:OPERATORS:PARALLELISM:FILES} or {@code everyday:FOLDER:JOBS}. The folder gets a
 * file {@code <job id>/chk-42/_metadata} for each job. The same arguments give the same numbers.
 */
public final class Generator {
    static final long CHECKPOINT_ID = 42;
    private static final int PARTITIONS_PER_TOPIC = 100;

    private final Random random;
    private final String jobId;
    private final List<OperatorState> operators = new ArrayList<>();

    private Generator(long seed) {
        random = new Random(seed);
        jobId = String.format("%016x%016x", random.nextLong(), random.nextLong());
    }

    public static void main(String[] args) throws Exception {
        for (String arg : args) {
            String[] parts = arg.split(":");
            Path folder = Path.of(parts[1]);
            int[] numbers = new int[parts.length - 2];
            for (int i = 0; i < numbers.length; i++) {
                numbers[i] = Integer.parseInt(parts[i + 2]);
            }
            switch (parts[0]) {
                case "sources" -> sources(numbers[0], numbers[1]).write(folder);
                case "handles" -> handles(numbers[0], numbers[1], numbers[2]).write(folder);
                case "everyday" -> {
                    for (int job = 0; job < numbers[0]; job++) {
                        everyday(job).write(folder);
                    }
                }
                default -> throw new IllegalArgumentException(arg);
            }
        }
    }

    /** Returns a job with one source of many partitions, as a topic pattern subscribes to them. */
    private static Generator sources(int partitions, int parallelism) throws Exception {
        Generator job = new Generator(partitions);
        List<KafkaPartitionSplit> splits = new ArrayList<>(partitions);
        for (int i = 0; i < partitions; i++) {
            String topic = String.format("shop.orders.%04d", i / PARTITIONS_PER_TOPIC);
            splits.add(job.split(topic, i % PARTITIONS_PER_TOPIC));
        }
        job.source("Source: orders", "orders-source", splits, parallelism);
        return job;
    }

    /** Returns a job with a RocksDB for each subtask, whose checkpoints are incremental. */
    private static Generator handles(int operators, int parallelism, int files) throws Exception {
        Generator job = new Generator(operators + (long) parallelism * files);
        job.source("Source: orders", "orders-source", job.topic("orders", 64), 64);
        for (int i = 0; i < operators; i++) {
            job.keyed("Join " + i, "join-" + i, parallelism, files);
        }
        return job;
    }

    /** Returns a typical job: two sources, keyed state, an operator without state, a sink. */
    private static Generator everyday(int seed) throws Exception {
        Generator job = new Generator(seed);
        String suffix = seed == 0 ? "" : "-" + seed;
        job.source("Source: orders", "orders", job.topic("orders" + suffix, 12), 4);
        job.source("Source: payments", "payments", job.topic("payments" + suffix, 6), 4);
        job.keyed("Join orders with payments", "join", 4, 6);
        job.stateless("Format", "format", 4);
        job.stateless("invoices: Writer", "invoices", 4);
        return job;
    }

    private List<KafkaPartitionSplit> topic(String name, int partitions) {
        List<KafkaPartitionSplit> splits = new ArrayList<>(partitions);
        for (int partition = 0; partition < partitions; partition++) {
            splits.add(split(name, partition));
        }
        return splits;
    }

    private KafkaPartitionSplit split(String topic, int partition) {
        long nextOffset = random.nextLong(1_000_000_000_000L);
        return new KafkaPartitionSplit(new TopicPartition(topic, partition), nextOffset);
    }

    private void source(String name, String uid, List<KafkaPartitionSplit> splits, int parallelism)
            throws Exception {
        OperatorState operator = operator(name, uid, parallelism);
        operator.setCoordinatorState(KafkaSourceStates.enumerator(splits));
        List<OperatorSubtaskState> readers = KafkaSourceStates.readers(splits, parallelism);
        for (int subtask = 0; subtask < parallelism; subtask++) {
            operator.putState(subtask, readers.get(subtask));
        }
        operators.add(operator);
    }

    private void keyed(String name, String uid, int parallelism, int files) {
        OperatorState operator = operator(name, uid, parallelism);
        KeyedStates states = new KeyedStates(random, jobId, CHECKPOINT_ID, files);
        for (int subtask = 0; subtask < parallelism; subtask++) {
            operator.putState(
                    subtask, states.subtask(subtask, parallelism, operator.getMaxParallelism()));
        }
        operators.add(operator);
    }

    private void stateless(String name, String uid, int parallelism) {
        OperatorState operator = operator(name, uid, parallelism);
        for (int subtask = 0; subtask < parallelism; subtask++) {
            operator.putState(subtask, OperatorSubtaskState.builder().build());
        }
        operators.add(operator);
    }

    private static OperatorState operator(String name, String uid, int parallelism) {
        // Flink's default: 1.5 times the parallelism, rounded up to a power of two; at least 128.
        int minimum = parallelism + parallelism / 2;
        int maxParallelism = Math.max(128, Integer.highestOneBit(Math.max(1, minimum - 1)) << 1);
        return new OperatorState(
                name,
                uid,
                OperatorIdentifier.forUid(uid).getOperatorId(),
                parallelism,
                Math.min(maxParallelism, 1 << 15));
    }

    private void write(Path folder) throws Exception {
        CheckpointProperties properties =
                CheckpointProperties.forCheckpoint(
                        CheckpointRetentionPolicy.RETAIN_ON_CANCELLATION);
        CheckpointMetadata metadata =
                new CheckpointMetadata(CHECKPOINT_ID, operators, List.of(), properties);
        Path directory =
                Files.createDirectories(folder.resolve(jobId).resolve("chk-" + CHECKPOINT_ID));
        Path stage = directory.resolve("_metadata.half");
        try (OutputStream out =
                new BufferedOutputStream(Files.newOutputStream(stage), 1 << 20)) {
            Checkpoints.storeCheckpointMetadata(metadata, out);
        }
        Files.move(stage, directory.resolve("_metadata"), StandardCopyOption.REPLACE_EXISTING);
    }
}
