package testjobs;

import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Comparator;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.core.execution.SavepointFormatType;

/** The local mini-cluster for all jobs; options are set under their names in all versions. */
final class LocalFlink {
    private static final Duration PATIENCE = Duration.ofSeconds(90);

    private LocalFlink() {}

    /** Returns settings for aligned, exactly-once checkpoints every 200 ms, which are retained. */
    static Configuration configuration(Path checkpointRoot) {
        Configuration conf = new Configuration();
        String root = checkpointRoot.toUri().toString();
        conf.setString("state.checkpoints.dir", root);
        conf.setString("execution.checkpointing.dir", root);
        conf.setString("execution.checkpointing.interval", "200 ms");
        conf.setString(
                "execution.checkpointing.externalized-checkpoint-retention",
                "RETAIN_ON_CANCELLATION");
        conf.setString("restart-strategy", "none");
        conf.setString("restart-strategy.type", "none");
        for (String side : new String[] {"rest", "jobmanager", "taskmanager"}) {
            conf.setString(side + ".bind-host", "127.0.0.1");
            conf.setString(side + ".bind-address", "127.0.0.1");
        }
        conf.setString("rest.address", "127.0.0.1");
        conf.setString("rest.bind-port", "0");
        conf.setString("taskmanager.memory.network.min", "32 mb");
        conf.setString("taskmanager.memory.network.max", "32 mb");
        conf.setString("taskmanager.memory.managed.size", "64 mb");
        return conf;
    }

    /** Waits until the running job has processed the records that {@link Progress} requires. */
    static void awaitProgress(JobClient job) throws Exception {
        await(job, "its progress", () -> Progress.reached() ? Optional.of(true) : Optional.empty());
    }

    /** Cancels a job, and returns its retained checkpoint, which started after this call. */
    static Path cancelWithCheckpoint(JobClient job, Path checkpointRoot) throws Exception {
        Path jobDirectory = checkpointRoot.resolve(job.getJobID().toHexString());
        long now = newestCheckpoint(jobDirectory).map(LocalFlink::number).orElse(0L);
        // The next checkpoint may already have started. If a task has reached the end of its input,
        // the task is finished only after one more checkpoint. Later checkpoints are complete.
        await(
                job,
                "its next checkpoint",
                () -> newestCheckpoint(jobDirectory).filter(chk -> number(chk) >= now + 4));
        cancel(job);
        return newestCheckpoint(jobDirectory).orElseThrow();
    }

    /** Returns a retained checkpoint that started after this call; the job keeps running. */
    static Path nextCheckpoint(JobClient job, Path checkpointRoot) throws Exception {
        Path jobDirectory = checkpointRoot.resolve(job.getJobID().toHexString());
        long now = newestCheckpoint(jobDirectory).map(LocalFlink::number).orElse(0L);
        return await(
                job,
                "its next checkpoint",
                () -> newestCheckpoint(jobDirectory).filter(chk -> number(chk) >= now + 2));
    }

    /** Waits until the checkpoint with this number, or a later one, is complete. */
    static void awaitCheckpoint(JobClient job, Path checkpointRoot, long number) throws Exception {
        Path jobDirectory = checkpointRoot.resolve(job.getJobID().toHexString());
        await(
                job,
                "checkpoint " + number,
                () -> newestCheckpoint(jobDirectory).filter(chk -> number(chk) >= number));
    }

    static Path savepoint(JobClient job, Path directory, SavepointFormatType format)
            throws Exception {
        Path savepoint = savepointOfRunning(job, directory, format);
        cancel(job);
        return savepoint;
    }

    /** Takes a savepoint of a job that keeps running. */
    static Path savepointOfRunning(JobClient job, Path directory, SavepointFormatType format)
            throws Exception {
        return pathOf(patiently(job, job.triggerSavepoint(directory.toUri().toString(), format)));
    }

    /** Stops a job with a canonical savepoint; {@code drain} also emits MAX_WATERMARK. */
    static Path stopWithSavepoint(JobClient job, Path directory, boolean drain) throws Exception {
        String uri =
                patiently(
                        job,
                        job.stopWithSavepoint(
                                drain,
                                directory.toUri().toString(),
                                SavepointFormatType.CANONICAL));
        await(job, "its end", () -> ended(job) ? Optional.of(true) : Optional.empty());
        return pathOf(uri);
    }

    static void cancel(JobClient job) throws Exception {
        job.cancel().get(PATIENCE.toSeconds(), TimeUnit.SECONDS);
        try {
            job.getJobExecutionResult().get(PATIENCE.toSeconds(), TimeUnit.SECONDS);
        } catch (ExecutionException cancelled) {
            // Waiting for a cancelled job throws this exception, because the job has no result.
        }
    }

    private static <T> T patiently(JobClient job, CompletableFuture<T> future)
            throws Exception {
        return await(
                job,
                "its savepoint",
                () -> future.isDone() ? Optional.of(future.get()) : Optional.empty());
    }

    static <T> T await(JobClient job, String what, Callable<Optional<T>> question)
            throws Exception {
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        while (true) {
            Optional<T> answer = question.call();
            if (answer.isPresent()) {
                return answer.get();
            }
            if (ended(job)) {
                job.getJobExecutionResult().get(1, TimeUnit.SECONDS);
                answer = question.call();
                if (answer.isPresent()) {
                    return answer.get();
                }
                throw new IllegalStateException("the job ended before " + what);
            }
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException(
                        "the job did not come to " + what + ": " + Progress.describe());
            }
            Thread.sleep(20);
        }
    }

    private static boolean ended(JobClient job) {
        try {
            return job.getJobStatus().get(10, TimeUnit.SECONDS).isGloballyTerminalState();
        } catch (Exception clusterIsGone) {
            // The mini-cluster of a single job shuts down together with the job.
            return true;
        }
    }

    private static Optional<Path> newestCheckpoint(Path jobDirectory) throws IOException {
        if (!Files.isDirectory(jobDirectory)) {
            return Optional.empty();
        }
        try (Stream<Path> entries = Files.list(jobDirectory)) {
            return entries.filter(entry -> entry.getFileName().toString().startsWith("chk-"))
                    .filter(entry -> Files.exists(entry.resolve("_metadata")))
                    .max(Comparator.comparingLong(LocalFlink::number));
        }
    }

    private static long number(Path checkpoint) {
        return Long.parseLong(checkpoint.getFileName().toString().substring("chk-".length()));
    }

    private static Path pathOf(String uri) {
        return Path.of(URI.create(uri).getPath());
    }
}
