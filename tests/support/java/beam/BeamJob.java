package testjobs;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.apache.beam.runners.flink.FlinkPipelineOptions;
import org.apache.beam.runners.flink.FlinkRunner;
import org.apache.beam.sdk.Pipeline;
import org.apache.beam.sdk.io.kafka.KafkaIO;
import org.apache.beam.sdk.io.kafka.KafkaRecord;
import org.apache.beam.sdk.options.ExperimentalOptions;
import org.apache.beam.sdk.options.PipelineOptionsFactory;
import org.apache.beam.sdk.transforms.DoFn;
import org.apache.beam.sdk.transforms.ParDo;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * A Beam pipeline on Flink that reads Kafka. Beam's own state contains its positions.
 *
 * <p>Arguments: bootstrap servers, checkpoint directory, the number of records to process first, the
 * experiment that selects how Beam reads Kafka, and the topics. The program prints a dash and the
 * path of the last checkpoint, which is retained after the pipeline ends.
 */
public final class BeamJob {
    private static final AtomicInteger PROCESSED = new AtomicInteger();

    private BeamJob() {}

    public static void main(String[] args) throws Exception {
        Path directory = Path.of(args[1]);
        int wanted = Integer.parseInt(args[2]);
        Pipeline pipeline = Pipeline.create(options(directory, args[3]));
        pipeline.apply(
                        KafkaIO.<String, String>read()
                                .withBootstrapServers(args[0])
                                .withTopics(List.of(args).subList(4, args.length))
                                .withKeyDeserializer(StringDeserializer.class)
                                .withValueDeserializer(StringDeserializer.class)
                                .withConsumerConfigUpdates(
                                        Map.of(
                                                "auto.offset.reset", "earliest",
                                                "max.partition.fetch.bytes", "1",
                                                "fetch.max.bytes", "1")))
                .apply(ParDo.of(new Slowly(wanted)));
        Thread running = new Thread(pipeline::run, "pipeline");
        running.setDaemon(true);
        running.start();
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(120);
        long before = -1;
        while (true) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException("processed " + PROCESSED + " of " + wanted);
            }
            Thread.sleep(50);
            Optional<Path> newest = newest(directory);
            if (PROCESSED.get() < wanted || newest.isEmpty()) {
                continue;
            }
            if (before < 0) {
                before = number(newest.get());
            } else if (number(newest.get()) >= before + 2) {
                break;
            }
        }
        // If the JVM exits, the checkpoints of its job are retained.
        System.out.println("- " + newest(directory).get());
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private static FlinkPipelineOptions options(Path directory, String experiment)
            throws IOException {
        Path conf = Files.createDirectories(directory.resolve("conf"));
        Files.write(
                conf.resolve("flink-conf.yaml"),
                List.of(
                        "state.checkpoints.dir: " + directory.toUri(),
                        "execution.checkpointing.interval: 500 ms",
                        "execution.checkpointing.externalized-checkpoint-retention:"
                                + " RETAIN_ON_CANCELLATION",
                        "rest.address: 127.0.0.1",
                        "rest.bind-address: 127.0.0.1",
                        "rest.bind-port: 0",
                        "taskmanager.memory.network.min: 32 mb",
                        "taskmanager.memory.network.max: 32 mb",
                        "taskmanager.memory.managed.size: 64 mb"));
        FlinkPipelineOptions options = PipelineOptionsFactory.as(FlinkPipelineOptions.class);
        options.setRunner(FlinkRunner.class);
        options.setStreaming(true);
        options.setFlinkMaster("[local]");
        options.setFlinkConfDir(conf.toString());
        options.setParallelism(2);
        options.setCheckpointingInterval(500L);
        // Beam's KafkaIO as an UnboundedSource (use_deprecated_read), or as a DoFn (use_sdf_read).
        options.as(ExperimentalOptions.class).setExperiments(List.of(experiment));
        return options;
    }

    /** Returns the newest checkpoint of the only job that has written to the directory. */
    private static Optional<Path> newest(Path directory) throws IOException {
        try (Stream<Path> files = Files.walk(directory, 2)) {
            return files.filter(file -> file.getFileName().toString().startsWith("chk-"))
                    .filter(chk -> Files.exists(chk.resolve("_metadata")))
                    .max(Comparator.comparingLong(BeamJob::number));
        } catch (UncheckedIOException deletedMeanwhile) {
            return Optional.empty();
        }
    }

    private static long number(Path checkpoint) {
        return Long.parseLong(checkpoint.getFileName().toString().substring("chk-".length()));
    }

    /** Slows the job down almost to a stop once it has processed enough records. */
    private static final class Slowly extends DoFn<KafkaRecord<String, String>, Void> {
        private static final long serialVersionUID = 1L;
        private final int wanted;

        private Slowly(int wanted) {
            this.wanted = wanted;
        }

        @ProcessElement
        public void process() throws InterruptedException {
            Thread.sleep(PROCESSED.incrementAndGet() < wanted ? 5 : 250);
        }
    }
}
