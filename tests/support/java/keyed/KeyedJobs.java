package testjobs;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TimeZone;
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
 * <p>Arguments: the directory below which they are written, the names of jobs. Prints one line of
 * JSON per job: where each form of snapshot is, and what is in it. The job is at rest: what one of
 * its snapshots holds, the others hold, too.
 *
 * <p>What is in it is told twice, and must be the same: by {@link KeyedDump}, which has Flink
 * restore the first snapshot, and by {@link Notes}, which the job's functions wrote as they put it
 * in.
 */
public final class KeyedJobs {
    private final Path root;

    private KeyedJobs(Path root) {
        this.root = root;
    }

    public static void main(String[] args) throws Exception {
        TimeZone.setDefault(TimeZone.getTimeZone("UTC"));
        KeyedJobs jobs = new KeyedJobs(Path.of(args[0]));
        for (String name : List.of(args).subList(1, args.length)) {
            System.out.println(new ObjectMapper().writeValueAsString(jobs.run(name)));
        }
    }

    private Map<String, Object> run(String name) throws Exception {
        KeyedJob job = job(name);
        Path directory = root.resolve(name);
        Notes.forget();
        if (job.before() != null) {
            String uri = first(run(name, job.before(), directory.resolve("before"))).toUri().toString();
            job = job.with("execution.savepoint.path", uri, "execution.state-recovery.path", uri);
        }
        Map<Form, Path> snapshots = run(name, job, directory);
        List<Map<String, Object>> operators = KeyedDump.dump(first(snapshots));
        Notes.compareWith(operators);
        Map<String, Object> told = new LinkedHashMap<>();
        told.put("job", name);
        told.put("flink", EnvironmentInformation.getVersion());
        Map<Form, String> places = new LinkedHashMap<>();
        snapshots.forEach((form, place) -> places.put(form, place.toString()));
        told.put("snapshots", places);
        told.put("operators", operators);
        return told;
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
                        LocalFlink.savepointOfRunning(
                                client, target, SavepointFormatType.CANONICAL));
                case NATIVE -> snapshots.put(
                        form,
                        LocalFlink.savepointOfRunning(client, target, SavepointFormatType.NATIVE));
                case RETAINED -> snapshots.put(
                        form, LocalFlink.cancelWithCheckpoint(client, directory));
            }
        }
        if (!snapshots.containsKey(Form.RETAINED)) {
            LocalFlink.cancel(client);
        }
        return snapshots;
    }

    private static KeyedJob job(String name) throws ReflectiveOperationException {
        List<String> tried = new ArrayList<>();
        for (String book : List.of("StateJobs", "WindowJobs", "TableJobs")) {
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
