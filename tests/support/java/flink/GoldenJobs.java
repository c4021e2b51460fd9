package testjobs;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.runtime.jobgraph.JobVertex;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/**
 * Runs the jobs whose checkpoints are the golden files, one scenario after the other, with the
 * topics and files that {@code tests/golden/generate.py} has created.
 *
 * <p>Arguments: bootstrap servers, the bootstrap servers of a second cluster (or empty), checkpoint
 * root, input directory, scenarios. The program prints a line of JSON for each scenario, with the
 * path of the checkpoint, the ids of the operators by kind, and the output of {@link StateDump}.
 */
public final class GoldenJobs {
    private static final List<String> BOOKS =
            List.of(
                    "KafkaScenarios",
                    "StateScenarios",
                    "OtherScenarios",
                    "AsyncScenarios",
                    "DynamicScenarios",
                    "LegacyScenarios",
                    "TableScenarios");

    /** The kinds of sources, by the prefix of their names, which no other operators have. */
    private static final Map<String, String> KINDS =
            new TreeMap<>(
                    Map.of(
                            "Kafka ", StateDump.KAFKA_SOURCES,
                            "Dynamic Kafka ", "dynamic_sources",
                            "Hybrid Kafka ", "hybrid_sources",
                            "Legacy Kafka ", "legacy_sources"));

    /** The names of the states of a sink's writer and committer. */
    private static final String[] SINK_STATES = {
        "writer_raw_states", "streaming_committer_raw_states"
    };

    private final Place place;

    private GoldenJobs(Place place) {
        this.place = place;
    }

    public static void main(String[] args) throws Exception {
        Place place = new Place(args[0], args[1], Path.of(args[2]), Path.of(args[3]));
        GoldenJobs jobs = new GoldenJobs(place);
        for (String name : List.of(args).subList(4, args.length)) {
            System.out.println(new ObjectMapper().writeValueAsString(jobs.run(name)));
        }
    }

    private Map<String, Object> run(String name) throws Exception {
        Scenario scenario = scenario(name);
        Path directory = place.root().resolve(name);
        if (scenario.before() != null) {
            Path first = run(name, scenario.before(), directory);
            scenario =
                    scenario.with(
                            "execution.savepoint.path", first.toUri().toString(),
                            "execution.state-recovery.path", first.toUri().toString());
        }
        Map<String, List<String>> operators = operators(environment(scenario, directory));
        Path checkpoint = run(name, scenario, directory);
        if (name.equals("kafka-sink")) {
            operators.put("sink_operators", holdersOf(checkpoint, SINK_STATES));
        }
        if (name.startsWith("async-io")) {
            operators.put("async_operators", holdersOf(checkpoint, AsyncDump.QUEUE));
            operators.put("file_operators", holdersOf(checkpoint, FileDump.WRITER));
        }
        Map<String, String> kinds = new HashMap<>();
        operators.forEach((kind, ids) -> ids.forEach(id -> kinds.put(id, kind)));
        Map<String, Object> told = new LinkedHashMap<>();
        told.put("scenario", name);
        told.put("checkpoint", checkpoint.toString());
        told.put("operators", operators);
        told.put("dump", StateDump.dump(checkpoint, kinds));
        return told;
    }

    /** Runs a job, ends it, and returns the checkpoint or savepoint that it leaves. */
    private static Path run(String name, Scenario scenario, Path directory) throws Exception {
        Progress.require(scenario.required());
        JobClient job = environment(scenario, directory).executeAsync(name);
        LocalFlink.awaitProgress(job);
        return switch (scenario.finish()) {
            case CANCEL_RETAINING_CHECKPOINT -> LocalFlink.cancelWithCheckpoint(job, directory);
            case SAVEPOINT -> LocalFlink.savepoint(job, directory, SavepointFormatType.CANONICAL);
            case NATIVE_SAVEPOINT -> LocalFlink.savepoint(
                    job, directory, SavepointFormatType.NATIVE);
            case STOP -> LocalFlink.stopWithSavepoint(job, directory, false);
            case DRAIN -> LocalFlink.stopWithSavepoint(job, directory, true);
        };
    }

    private static StreamExecutionEnvironment environment(Scenario scenario, Path directory) {
        Configuration conf = LocalFlink.configuration(directory);
        scenario.options().forEach(conf::setString);
        StreamExecutionEnvironment env =
                StreamExecutionEnvironment.createLocalEnvironment(scenario.parallelism(), conf);
        scenario.topology().accept(env);
        return env;
    }

    /** Returns operator ids; a source is the head of its chain, so its id is the vertex's id. */
    private static Map<String, List<String>> operators(StreamExecutionEnvironment env) {
        Map<String, List<String>> ids = new TreeMap<>();
        for (JobVertex vertex : env.getStreamGraph().getJobGraph().getVertices()) {
            KINDS.forEach(
                    (prefix, kind) -> {
                        List<String> ofKind = ids.computeIfAbsent(kind, any -> new ArrayList<>());
                        if (vertex.getName().startsWith("Source: " + prefix)) {
                            ofKind.add(vertex.getID().toHexString());
                        }
                    });
        }
        return ids;
    }

    private static List<String> holdersOf(Path checkpoint, String... states) throws Exception {
        return List.copyOf(StateDump.holdersOf(checkpoint, Set.of(states)));
    }

    private Scenario scenario(String name) throws ReflectiveOperationException {
        for (String book : BOOKS) {
            Optional<Scenario> found =
                    Parts.find(Scenarios.class, book).flatMap(it -> it.named(name, place));
            if (found.isPresent()) {
                return found.get();
            }
        }
        throw new IllegalArgumentException("no scenario " + name);
    }
}
