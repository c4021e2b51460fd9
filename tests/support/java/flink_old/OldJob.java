package testjobs;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.runtime.jobgraph.JobVertex;
import org.apache.flink.runtime.state.filesystem.FsStateBackend;
import org.apache.flink.streaming.api.environment.CheckpointConfig.ExternalizedCheckpointCleanup;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/**
 * A job for Flink versions whose layouts {@code migrate} still reads, but no supported version
 * writes. The job reads Kafka from the earliest offsets, and leaves a retained checkpoint.
 *
 * <p>Arguments: bootstrap servers, checkpoint directory, the number of records to process first,
 * topics. Prints the operator id of the source and the path of the checkpoint.
 */
public final class OldJob {
    private static final int PARALLELISM = 2;
    private static final AtomicInteger PROCESSED = new AtomicInteger();

    private OldJob() {}

    public static void main(String[] args) throws Exception {
        Path directory = Path.of(args[1]);
        int wanted = Integer.parseInt(args[2]);
        String[] topics = new String[args.length - 3];
        System.arraycopy(args, 3, topics, 0, topics.length);
        String source = "";
        for (JobVertex vertex :
                environment(args[0], directory, topics, wanted)
                        .getStreamGraph("old")
                        .getJobGraph()
                        .getVertices()) {
            if (vertex.getName().startsWith("Source: ")) {
                source = vertex.getID().toString();
            }
        }
        JobClient job = environment(args[0], directory, topics, wanted).executeAsync("old");
        Path jobDirectory = directory.resolve(job.getJobID().toString());
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(90);
        Optional<Path> before = Optional.empty();
        while (true) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException("processed " + PROCESSED + " of " + wanted);
            }
            Thread.sleep(50);
            if (PROCESSED.get() < wanted) {
                continue;
            }
            Optional<Path> newest = newest(jobDirectory);
            if (before.isEmpty()) {
                before = newest;
            } else if (number(newest.get()) >= number(before.get()) + 2) {
                break;
            }
        }
        job.cancel().get(30, TimeUnit.SECONDS);
        Thread.sleep(1000);
        System.out.println(source + " " + newest(jobDirectory).get());
        System.exit(0);
    }

    private static StreamExecutionEnvironment environment(
            String servers, Path directory, String[] topics, int wanted) {
        Configuration conf = new Configuration();
        conf.setString("rest.bind-address", "127.0.0.1");
        conf.setString("rest.address", "127.0.0.1");
        conf.setString("rest.bind-port", "0");
        conf.setString("taskmanager.memory.network.min", "32 mb");
        conf.setString("taskmanager.memory.network.max", "32 mb");
        conf.setString("taskmanager.memory.managed.size", "64 mb");
        StreamExecutionEnvironment env =
                StreamExecutionEnvironment.createLocalEnvironment(PARALLELISM, conf);
        env.enableCheckpointing(200);
        env.getCheckpointConfig()
                .enableExternalizedCheckpoints(
                        ExternalizedCheckpointCleanup.RETAIN_ON_CANCELLATION);
        env.setStateBackend(new FsStateBackend(directory.toUri()));
        OldSource.of(env, servers, topics).uid("orders").map(new Slowly(wanted)).uid("slowly");
        return env;
    }

    private static Optional<Path> newest(Path jobDirectory) throws IOException {
        if (!Files.isDirectory(jobDirectory)) {
            return Optional.empty();
        }
        try (Stream<Path> entries = Files.list(jobDirectory)) {
            return entries.filter(entry -> Files.exists(entry.resolve("_metadata")))
                    .max(Comparator.comparingLong(OldJob::number));
        }
    }

    private static long number(Path checkpoint) {
        return Long.parseLong(checkpoint.getFileName().toString().substring("chk-".length()));
    }

    /** Slows the job down almost to a stop once it has processed enough records. */
    private static final class Slowly implements MapFunction<String, String> {
        private static final long serialVersionUID = 1L;
        private final int wanted;

        private Slowly(int wanted) {
            this.wanted = wanted;
        }

        @Override
        public String map(String value) throws InterruptedException {
            Thread.sleep(PROCESSED.incrementAndGet() < wanted ? 5 : 250);
            return value;
        }
    }
}
