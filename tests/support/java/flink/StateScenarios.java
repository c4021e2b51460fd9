package testjobs;

import static testjobs.Topology.KAFKA;
import static testjobs.Topology.count;
import static testjobs.Topology.earliest;
import static testjobs.Topology.keyedCount;

import java.util.Map;
import java.util.Optional;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/** Jobs that read Kafka, with every place where Flink can store their state. */
final class StateScenarios implements Scenarios {
    private static final Map<String, Integer> ORDERS = Map.of("orders:0", 12, "orders:1", 14);

    @Override
    public Optional<Scenario> named(String name, Place place) {
        return Optional.ofNullable(
                switch (name) {
                    case "retained-files" -> Scenario.of(
                                    3,
                                    env -> count(earliest(place, env, "payments"), ""),
                                    Map.of("payments:0", 8, "payments:1", 10))
                            .withStateInFiles();
                    case "unaligned" -> unaligned(
                            place,
                            Map.of(
                                    "orders:0", 12,
                                    "orders:1", 80,
                                    "payments:0", 30,
                                    "payments:1", 80));
                    case "unaligned-recovery" -> unaligned(place, Map.of("slow", 1))
                            .with(
                                    "execution.checkpointing.during-recovery.enabled", "true",
                                    "execution.checkpointing.unaligned"
                                            + ".recover-output-on-downstream.enabled",
                                    "true")
                            .after(named("unaligned", place).get());
                    case "compressed" -> wide(place).withStateInFiles();
                    case "compressed-inline" -> wide(place);
                    case "file-merging" -> merged(place);
                    case "file-merging-across" -> merged(place)
                            .with(
                                    "execution.checkpointing.file-merging.across-checkpoint-boundary",
                                    "true");
                    case "rocksdb-incremental" -> counted(place, 2, ORDERS)
                            .withStateInFiles()
                            .with(
                                    "state.backend.type", "rocksdb",
                                    // RocksDB's OPTIONS file contains this path.
                                    "state.backend.rocksdb.localdir",
                                    place.root().resolve("rocksdb").toString(),
                                    "state.backend.incremental", "true",
                                    "execution.checkpointing.incremental", "true");
                    case "changelog" -> changelog(place, name, "30 s");
                    case "changelog-materialized" -> changelog(place, name, "1 s");
                    case "max-parallelism" -> Scenario.of(
                                    2,
                                    env -> count(earliest(place, env, "orders").uid("orders"), ""),
                                    ORDERS)
                            .with("pipeline.max-parallelism", "32768");
                    case "rescaled-up" -> counted(place, 3, further())
                            .after(counted(place, 1, ORDERS));
                    case "rescaled-down" -> counted(place, 1, further())
                            .after(counted(place, 3, ORDERS));
                    default -> null;
                });
    }

    /** Returns the counts for a second job, after a first job has processed {@link #ORDERS}. */
    private static Map<String, Integer> further() {
        return Map.of("orders:1", 8);
    }

    private static Scenario counted(Place place, int parallelism, Map<String, Integer> required) {
        return Scenario.of(
                parallelism,
                env ->
                        keyedCount(
                                count(earliest(place, env, "orders").uid("orders"), "")
                                        .uid("count")),
                required);
    }

    private static Scenario wide(Place place) {
        return Scenario.of(
                        2,
                        env -> count(earliest(place, env, "wide"), ""),
                        Map.of("wide:12", 8, "wide:39", 8))
                .with("execution.checkpointing.snapshot-compression", "true");
    }

    private static Scenario merged(Place place) {
        return Scenario.of(
                        2,
                        env -> keyedCount(count(earliest(place, env, "orders", "payments"), "")),
                        KafkaScenarios.MIDWAY)
                .withStateInFiles()
                .with("execution.checkpointing.file-merging.enabled", "true");
    }

    private static Scenario unaligned(Place place, Map<String, Integer> required) {
        return Scenario.of(2, env -> backpressured(place, env), required)
                .with(
                        "execution.checkpointing.unaligned", "true",
                        "execution.checkpointing.unaligned.enabled", "true");
    }

    /** Returns a job with the changelog backend, which materializes the state periodically. */
    private static Scenario changelog(Place place, String name, String materialization) {
        // Flink adds the job's id, so the log is next to the job's checkpoints.
        String log = place.root().resolve(name).toUri().toString();
        return counted(place, 2, ORDERS)
                .with(
                        "state.backend.changelog.enabled", "true",
                        "state.changelog.enabled", "true",
                        "state.backend.changelog.storage", "filesystem",
                        "state.changelog.storage", "filesystem",
                        "dstl.dfs.base-path", log,
                        "state.changelog.dstl.dfs.base-path", log,
                        "state.backend.changelog.periodic-materialize.interval", materialization,
                        "state.changelog.periodic-materialize.interval", materialization);
    }

    /** The source finishes while nearly all of its records wait in front of a slow operator. */
    private static void backpressured(Place place, StreamExecutionEnvironment env) {
        env.fromSource(
                        KafkaLines.source(
                                        place.bootstrapServers(), "unaligned", "orders", "payments")
                                .setStartingOffsets(OffsetsInitializer.earliest())
                                .build(),
                        WatermarkStrategy.noWatermarks(),
                        KAFKA + "orders, payments")
                .uid("orders-and-payments")
                .map(Progress.Counter.ofPartitions("", 0))
                .rebalance()
                .map(Progress.Counter.of("slow", 60))
                .name("slow")
                .uid("slow");
    }
}
