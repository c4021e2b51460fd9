package testjobs;

import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.Source;
import org.apache.flink.api.connector.source.lib.NumberSequenceSource;
import org.apache.flink.connector.base.source.hybrid.HybridSource;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/** Jobs whose source is not a KafkaSource, or becomes one only at the end. */
final class OtherScenarios implements Scenarios {
    private static final String HYBRID = "Hybrid Kafka orders";

    @Override
    public Optional<Scenario> named(String name, Place place) {
        return Optional.ofNullable(
                switch (name) {
                    case "other-kinds" -> Scenario.of(
                            1,
                            env -> otherKinds(place, env),
                            Map.of("numbers", 10, "files", 10, "hybrid", 20, "shards", 10));
                    case "hybrid-files" -> Scenario.of(
                            2,
                            env -> hybrid(env, HYBRID, hybrid(place, "many")),
                            Map.of("hybrid", 20));
                    case "hybrid-kafka" -> Scenario.of(
                            2,
                            env -> hybrid(env, HYBRID, hybrid(place, "few")),
                            Map.of("hybrid", 40));
                    default -> null;
                });
    }

    private static void otherKinds(Place place, StreamExecutionEnvironment env) {
        Source<String, ?, ?> files =
                Topology.textFiles(place, "many")
                        .monitorContinuously(Duration.ofMillis(200))
                        .build();
        other(env, new NumberSequenceSource(0, 1_000_000), Types.LONG, "numbers", "numbers");
        other(env, files, Types.STRING, "files", "files");
        hybrid(env, HYBRID, hybrid(place, "few"));
        other(env, new ShardSource(), Types.STRING, "shards", "shards");
        generator().ifPresent(made -> other(env, made, Types.STRING, "generator", "generator"));
    }

    /** Adds a source that reads the lines of a file, and then Kafka. */
    private static Source<String, ?, ?> hybrid(Place place, String directory) {
        KafkaSource<String> kafka =
                KafkaLines.source(place.bootstrapServers(), "hybrid", "orders")
                        .setStartingOffsets(OffsetsInitializer.earliest())
                        .build();
        return HybridSource.builder(Topology.textFiles(place, directory).build())
                .addSource(kafka)
                .build();
    }

    private static void hybrid(
            StreamExecutionEnvironment env, String name, Source<String, ?, ?> source) {
        other(env, source, Types.STRING, "hybrid", name);
    }

    @SuppressWarnings("unchecked")
    private static Optional<Source<String, ?, ?>> generator() {
        try {
            return Parts.find(Supplier.class, "Generator")
                    .map(supplier -> (Source<String, ?, ?>) supplier.get());
        } catch (ReflectiveOperationException broken) {
            throw new IllegalStateException(broken);
        }
    }

    private static <T> void other(
            StreamExecutionEnvironment env,
            Source<T, ?, ?> source,
            TypeInformation<T> type,
            String label,
            String name) {
        env.fromSource(source, WatermarkStrategy.noWatermarks(), name, type)
                .uid(label)
                .map(element -> label + "," + element)
                .returns(Types.STRING)
                .map(Progress.Counter.of(label, 20));
    }
}
