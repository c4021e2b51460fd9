package testjobs;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TimeZone;
import java.util.concurrent.ExecutionException;
import java.util.stream.Stream;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.runtime.util.EnvironmentInformation;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import testjobs.KeyedJob.Form;

/**
 * Runs the jobs whose snapshots are the golden files of keyed state, one after the other.
 *
 * <p>Arguments: the directory for the snapshots, and the names of jobs. The program prints a line
 * of JSON for each job, with the path of each form of snapshot, and their content. The job is at
 * rest when the snapshots are taken, so all of them have the same content.
 *
 * <p>The content comes from {@link KeyedDump}, which restores the first snapshot with Flink. It
 * must be equal to the {@link Notes}, in which the job's functions recorded the values that they
 * stored. For a failed job, the line contains only {@code failed}, with the stack trace.
 */
public final class KeyedJobs {
    private static final int PATIENCE = 30;
    private static Path root;

    private KeyedJobs() {}

    /** Returns the directory for the snapshots. */
    static Path root() {
        return root;
    }

    public static void main(String[] args) throws Exception {
        TimeZone.setDefault(TimeZone.getTimeZone("UTC"));
        root = Path.of(args[0]);
        for (String name : List.of(args).subList(1, args.length)) {
            Map<String, Object> told;
            try {
                told = run(name);
            } catch (Exception failure) {
                StringWriter trace = new StringWriter();
                failure.printStackTrace(new PrintWriter(trace));
                told = Map.of("job", name, "failed", trace.toString());
            }
            System.out.println(new ObjectMapper().writeValueAsString(told));
        }
        // After an error, the job may still be running.
        System.exit(0);
    }

    private static Map<String, Object> run(String name) throws Exception {
        KeyedJob job = job(name);
        Path directory = root.resolve(name);
        Notes.forget();
        Path first = null;
        if (job.before() != null) {
            first = first(run(name, job.before(), directory.resolve("before")));
        } else if (job.restored() != null) {
            Path parent = root.resolve(job.restored()).resolve("canonical");
            try (Stream<Path> savepoints = Files.list(parent)) {
                first = savepoints.findFirst().orElseThrow();
            }
        }
        if (first != null) {
            job = restoring(job, first);
        }
        KeyedJob.Oracle oracle = job.oracle();
        Path dumped = null;
        if (oracle != null && !oracle.goesOn()) {
            dumped = first(run(name, oracle.job(), directory.resolve("oracle")));
            Notes.forget();
        }
        Map<Form, Path> snapshots = run(name, job, directory);
        if (oracle == null) {
            dumped = first(snapshots);
        } else if (oracle.goesOn()) {
            KeyedJob restored = restoring(oracle.job(), first(snapshots));
            dumped = first(run(name, restored, directory.resolve("oracle")));
        }
        List<Map<String, Object>> operators = KeyedDump.dump(dumped);
        Notes.compareWith(operators, job.restored() != null);
        Notes.addAccesses(operators);
        Map<String, Object> told = new LinkedHashMap<>();
        told.put("job", name);
        told.put("flink", EnvironmentInformation.getVersion());
        Map<Form, String> places = new LinkedHashMap<>();
        snapshots.forEach((form, place) -> places.put(form, place.toString()));
        told.put("snapshots", places);
        told.put("operators", operators);
        return told;
    }

    private static KeyedJob restoring(KeyedJob job, Path snapshot) {
        String uri = snapshot.toUri().toString();
        return job.with("execution.savepoint.path", uri, "execution.state-recovery.path", uri);
    }

    private static Path first(Map<Form, Path> snapshots) {
        return snapshots.values().iterator().next();
    }

    private static Map<Form, Path> run(String name, KeyedJob job, Path directory)
            throws Exception {
        Configuration conf = LocalFlink.configuration(directory);
        job.options().forEach(conf::setString);
        StreamExecutionEnvironment env =
                StreamExecutionEnvironment.createLocalEnvironment(job.parallelism(), conf);
        env.setMaxParallelism(job.maxParallelism());
        Numbers.forget();
        job.topology().accept(env);
        JobClient client = env.executeAsync(name);
        LocalFlink.await(
                client,
                "the end of its input",
                () -> Numbers.allTold() ? Optional.of(true) : Optional.empty());
        Map<Form, Path> snapshots = new LinkedHashMap<>();
        for (Form form : job.forms()) {
            Path target = directory.resolve(form.name().toLowerCase());
            switch (form) {
                case CANONICAL -> snapshots.put(
                        form,
                        savepoint(client, target, SavepointFormatType.CANONICAL));
                case NATIVE -> snapshots.put(
                        form, savepoint(client, target, SavepointFormatType.NATIVE));
                case RETAINED -> snapshots.put(
                        form, LocalFlink.cancelWithCheckpoint(client, directory));
            }
        }
        if (!snapshots.containsKey(Form.RETAINED)) {
            LocalFlink.cancel(client);
        }
        return snapshots;
    }

    /** Takes a savepoint; retries if the job has read all input before all of its tasks run. */
    private static Path savepoint(JobClient job, Path target, SavepointFormatType format)
            throws Exception {
        for (int attempt = 0; ; attempt++) {
            try {
                return LocalFlink.savepointOfRunning(job, target, format);
            } catch (ExecutionException failure) {
                boolean early = failure.toString().contains("Not all required tasks");
                if (!early || attempt == PATIENCE) {
                    throw failure;
                }
                Thread.sleep(1_000);
            }
        }
    }

    private static KeyedJob job(String name) throws ReflectiveOperationException {
        List<String> tried = new ArrayList<>();
        for (String book : List.of("StateJobs", "TypeJobs", "WindowJobs", "TableJobs", "AsyncJobs")) {
            Optional<KeyedJobBook> found = Parts.find(KeyedJobBook.class, book);
            KeyedJob job = found.map(jobs -> jobs.named(name)).orElse(null);
            if (job != null) {
                return job;
            }
            tried.add(book);
        }
        throw new IllegalArgumentException("no job " + name + " in " + tried);
    }
}
