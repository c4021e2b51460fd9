package testjobs;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SimpleStringEncoder;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.Source;
import org.apache.flink.api.connector.source.lib.NumberSequenceSource;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.base.source.hybrid.HybridSource;
import org.apache.flink.connector.file.sink.FileSink;
import org.apache.flink.connector.file.src.FileSource;
import org.apache.flink.connector.file.src.reader.TextLineInputFormat;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.runtime.jobgraph.JobVertex;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.filesystem.rollingpolicies.OnCheckpointRollingPolicy;
import org.apache.kafka.clients.consumer.OffsetResetStrategy;
import org.apache.kafka.common.TopicPartition;

/**
 * The jobs whose checkpoints are the golden files: one scenario after the other, on the topics and
 * files that {@code tests/golden/generate.py} has laid out.
 *
 * <p>Arguments: bootstrap servers, those of a second cluster (empty without one), checkpoint root,
 * input directory, scenarios. Prints one line of JSON per scenario: the checkpoint's path, the
 * operator ids of its KafkaSources and of its DynamicKafkaSources, what {@link StateDump} says of
 * it.
 */
public final class GoldenJobs {
    private enum Finish {
        CANCEL_RETAINING_CHECKPOINT,
        SAVEPOINT,
        NATIVE_SAVEPOINT,
        STOP,
        DRAIN
    }

    private record Scenario(
            int parallelism,
            Map<String, String> options,
            Consumer<StreamExecutionEnvironment> topology,
            Map<String, Integer> required,
            Finish finish) {}

    /** Every state in a file of its own, under the option's old and new name. */
    private static final Map<String, String> STATE_IN_FILES =
            Map.of(
                    "state.storage.fs.memory-threshold", "0 b",
                    "execution.checkpointing.data-inline-threshold", "0 b");

    /** In the middle of orders-1, payments-0 and payments-1; orders-0 at its end, -2 empty. */
    private static final Map<String, Integer> MIDWAY =
            Map.of("orders:0", 12, "orders:1", 14, "payments:0", 8, "payments:1", 10);

    /** The names of KafkaSources begin so; nothing else's does. */
    private static final String KAFKA = "Kafka ";

    /** The names of DynamicKafkaSources begin so; nothing else's does. */
    private static final String DYNAMIC = "Dynamic Kafka ";

    private final String bootstrapServers;
    private final String secondServers;
    private final Path root;
    private final Path input;

    private GoldenJobs(String bootstrapServers, String secondServers, Path root, Path input) {
        this.bootstrapServers = bootstrapServers;
        this.secondServers = secondServers;
        this.root = root;
        this.input = input;
    }

    public static void main(String[] args) throws Exception {
        GoldenJobs jobs = new GoldenJobs(args[0], args[1], Path.of(args[2]), Path.of(args[3]));
        for (String name : List.of(args).subList(4, args.length)) {
            System.out.println(new ObjectMapper().writeValueAsString(jobs.run(name)));
        }
    }

    private Map<String, Object> run(String name) throws Exception {
        Scenario scenario = scenario(name);
        Path directory = root.resolve(name);
        Progress.require(scenario.required());
        List<String> kafkaSources = sources(KAFKA, environment(scenario, directory));
        List<String> dynamicSources = sources(DYNAMIC, environment(scenario, directory));
        JobClient job = environment(scenario, directory).executeAsync(name);
        LocalFlink.awaitProgress(job);
        Path checkpoint =
                switch (scenario.finish()) {
                    case CANCEL_RETAINING_CHECKPOINT -> LocalFlink.cancelWithCheckpoint(
                            job, directory);
                    case SAVEPOINT -> LocalFlink.savepoint(
                            job, directory, SavepointFormatType.CANONICAL);
                    case NATIVE_SAVEPOINT -> LocalFlink.savepoint(
                            job, directory, SavepointFormatType.NATIVE);
                    case STOP -> LocalFlink.stopWithSavepoint(job, directory, false);
                    case DRAIN -> LocalFlink.stopWithSavepoint(job, directory, true);
                };
        Map<String, Object> told = new LinkedHashMap<>();
        told.put("scenario", name);
        told.put("checkpoint", checkpoint.toString());
        told.put("kafka_sources", kafkaSources);
        told.put("dynamic_sources", dynamicSources);
        told.put(
                "dump",
                StateDump.dump(
                        checkpoint, Set.copyOf(kafkaSources), Set.copyOf(dynamicSources)));
        return told;
    }

    private static StreamExecutionEnvironment environment(Scenario scenario, Path directory) {
        Configuration conf = LocalFlink.configuration(directory);
        scenario.options().forEach(conf::setString);
        StreamExecutionEnvironment env =
                StreamExecutionEnvironment.createLocalEnvironment(scenario.parallelism(), conf);
        scenario.topology().accept(env);
        return env;
    }

    /** A source heads its chain, so its operator id is that of the vertex. */
    private static List<String> sources(String prefix, StreamExecutionEnvironment env) {
        List<String> ids = new ArrayList<>();
        for (JobVertex vertex : env.getStreamGraph().getJobGraph().getVertices()) {
            if (vertex.getName().startsWith("Source: " + prefix)) {
                ids.add(vertex.getID().toHexString());
            }
        }
        return ids;
    }

    private Scenario scenario(String name) {
        return switch (name) {
            case "retained" -> ordersAndPayments(Finish.CANCEL_RETAINING_CHECKPOINT);
            case "savepoint" -> ordersAndPayments(Finish.SAVEPOINT);
            case "native-savepoint" -> ordersAndPayments(Finish.NATIVE_SAVEPOINT);
            case "stop" -> ordersAndPayments(Finish.STOP);
            case "drain" -> ordersAndPayments(Finish.DRAIN);
            case "retained-files" -> new Scenario(
                    3,
                    STATE_IN_FILES,
                    env -> count(earliest(env, "payments"), ""),
                    Map.of("payments:0", 8, "payments:1", 10),
                    Finish.CANCEL_RETAINING_CHECKPOINT);
            case "unaligned" -> new Scenario(
                    2,
                    Map.of(
                            "execution.checkpointing.unaligned", "true",
                            "execution.checkpointing.unaligned.enabled", "true"),
                    this::backpressured,
                    Map.of("orders:0", 12, "orders:1", 80, "payments:0", 30, "payments:1", 80),
                    Finish.CANCEL_RETAINING_CHECKPOINT);
            case "compressed" -> new Scenario(
                    2,
                    with(STATE_IN_FILES, "execution.checkpointing.snapshot-compression", "true"),
                    env -> count(earliest(env, "wide"), ""),
                    Map.of("wide:12", 8, "wide:39", 8),
                    Finish.CANCEL_RETAINING_CHECKPOINT);
            case "file-merging" -> new Scenario(
                    2,
                    with(STATE_IN_FILES, "execution.checkpointing.file-merging.enabled", "true"),
                    env -> keyedCount(count(earliest(env, "orders", "payments"), "")),
                    MIDWAY,
                    Finish.CANCEL_RETAINING_CHECKPOINT);
            case "bounded" -> bounded(1);
            case "bounded-subtask-finished" -> bounded(2);
            case "source-finished" -> new Scenario(
                    1,
                    Map.of(),
                    env -> {
                        count(boundedPayments(env, 18, 20), "");
                        count(earliest(env, "orders"), "");
                    },
                    Map.of("payments:0", 8, "payments:1", 20, "orders:1", 30),
                    Finish.CANCEL_RETAINING_CHECKPOINT);
            case "two-sources" -> new Scenario(
                    2,
                    Map.of(),
                    this::twoSources,
                    Map.of("eu/orders:1", 14, "us/orders:1", 6),
                    Finish.CANCEL_RETAINING_CHECKPOINT);
            case "other-kinds" -> new Scenario(
                    1,
                    Map.of(),
                    this::otherKinds,
                    Map.of("numbers", 10, "files", 10, "hybrid", 20),
                    Finish.CANCEL_RETAINING_CHECKPOINT);
            case "dynamic" -> new Scenario(
                    2,
                    Map.of(),
                    this::dynamic,
                    Map.of(
                            "east/orders:0", 12,
                            "east/orders:1", 14,
                            "east/payments:0", 8,
                            "west/orders:0", 20,
                            "west/orders:1", 10),
                    Finish.CANCEL_RETAINING_CHECKPOINT);
            case "rocksdb-incremental" -> new Scenario(
                    2,
                    with(
                            STATE_IN_FILES,
                            "state.backend.type",
                            "rocksdb",
                            // Its OPTIONS file tells it.
                            "state.backend.rocksdb.localdir",
                            root.resolve("rocksdb").toString(),
                            "state.backend.incremental",
                            "true",
                            "execution.checkpointing.incremental",
                            "true"),
                    env -> keyedCount(count(earliest(env, "orders"), "")),
                    Map.of("orders:0", 12, "orders:1", 14),
                    Finish.CANCEL_RETAINING_CHECKPOINT);
            case "starting-offsets" -> new Scenario(
                    1,
                    Map.of(),
                    this::startingOffsets,
                    Map.of("committed/orders:0", 8, "committed/orders:1", 10),
                    Finish.CANCEL_RETAINING_CHECKPOINT);
            default -> throw new IllegalArgumentException("no scenario " + name);
        };
    }

    private Scenario ordersAndPayments(Finish finish) {
        return new Scenario(
                2,
                Map.of(),
                env ->
                        count(earliest(env, "orders", "payments").uid("orders-and-payments"), "")
                                .sinkTo(fileSink())
                                .uid("file-sink"),
                MIDWAY,
                finish);
    }

    /** payments-0 (from its log start, 10) ends at 18, while payments-1 is still being read. */
    private Scenario bounded(int parallelism) {
        return new Scenario(
                parallelism,
                Map.of(),
                env -> count(boundedPayments(env, 18, 80), ""),
                Map.of("payments:0", 8, "payments:1", 20),
                Finish.CANCEL_RETAINING_CHECKPOINT);
    }

    /** The source is done while nearly all of its records wait before a slow operator. */
    private void backpressured(StreamExecutionEnvironment env) {
        env.fromSource(
                        KafkaLines.source(bootstrapServers, "unaligned", "orders", "payments")
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

    private void twoSources(StreamExecutionEnvironment env) {
        keyedCount(
                count(
                        source(
                                env,
                                KAFKA + "orders of eu",
                                "eu",
                                OffsetsInitializer.earliest(),
                                "orders")
                                .uid("orders-eu"),
                        "eu/"));
        keyedCount(
                count(
                        source(
                                env,
                                KAFKA + "orders of us",
                                "us",
                                OffsetsInitializer.offsets(
                                        Map.of(
                                                new TopicPartition("orders", 0), 4L,
                                                new TopicPartition("orders", 1), 40L)),
                                "orders")
                                .uid("orders-us"),
                        "us/"));
    }

    private void otherKinds(StreamExecutionEnvironment env) {
        Source<String, ?, ?> files =
                textFiles("many").monitorContinuously(Duration.ofMillis(200)).build();
        KafkaSource<String> kafka =
                KafkaLines.source(bootstrapServers, "hybrid", "orders")
                        .setStartingOffsets(OffsetsInitializer.earliest())
                        .build();
        // Three lines of the file, then Kafka.
        Source<String, ?, ?> hybrid =
                HybridSource.builder(textFiles("few").build()).addSource(kafka).build();
        other(env, new NumberSequenceSource(0, 1_000_000), Types.LONG, "numbers");
        other(env, files, Types.STRING, "files");
        other(env, hybrid, Types.STRING, "hybrid");
        Versioned.dataGenerator()
                .ifPresent(generator -> other(env, generator, Types.STRING, "generator"));
    }

    /** One source, two clusters with topics of the same names; values tell a record's cluster. */
    private void dynamic(StreamExecutionEnvironment env) {
        DataStream<String> lines =
                env.fromSource(
                                Versioned.dynamicSource(
                                        bootstrapServers, secondServers, "orders", "payments"),
                                WatermarkStrategy.noWatermarks(),
                                DYNAMIC + "orders, payments",
                                Types.STRING)
                        .uid("orders-and-payments-of-two-clusters");
        count(lines.filter(line -> !line.contains(",west-")), "east/");
        count(lines.filter(line -> line.contains(",west-")), "west/");
    }

    /** Markers stay where no record has been read. */
    private void startingOffsets(StreamExecutionEnvironment env) {
        count(
                source(
                                env,
                                KAFKA + "from committed",
                                "golden-committed",
                                OffsetsInitializer.committedOffsets(OffsetResetStrategy.EARLIEST),
                                "orders",
                                "idle")
                        .uid("committed"),
                "committed/");
        count(
                source(env, KAFKA + "from latest", "latest", OffsetsInitializer.latest(), "idle")
                        .uid("latest"),
                "latest/");
    }

    private SingleOutputStreamOperator<String> earliest(
            StreamExecutionEnvironment env, String... topics) {
        String name = KAFKA + String.join(", ", topics);
        return source(env, name, "golden", OffsetsInitializer.earliest(), topics);
    }

    private SingleOutputStreamOperator<String> boundedPayments(
            StreamExecutionEnvironment env, long stop0, long stop1) {
        OffsetsInitializer stops =
                OffsetsInitializer.offsets(
                        Map.of(
                                new TopicPartition("payments", 0), stop0,
                                new TopicPartition("payments", 1), stop1));
        return env.fromSource(
                        KafkaLines.source(bootstrapServers, "bounded", "payments")
                                .setStartingOffsets(OffsetsInitializer.earliest())
                                .setBounded(stops)
                                .build(),
                        WatermarkStrategy.noWatermarks(),
                        KAFKA + "payments, bounded")
                .uid("payments-bounded");
    }

    private SingleOutputStreamOperator<String> source(
            StreamExecutionEnvironment env,
            String name,
            String group,
            OffsetsInitializer start,
            String... topics) {
        return env.fromSource(
                KafkaLines.source(bootstrapServers, group, topics)
                        .setStartingOffsets(start)
                        .build(),
                WatermarkStrategy.noWatermarks(),
                name);
    }

    private static <T> void other(
            StreamExecutionEnvironment env,
            Source<T, ?, ?> source,
            TypeInformation<T> type,
            String label) {
        env.fromSource(source, WatermarkStrategy.noWatermarks(), label, type)
                .uid(label)
                .map(element -> label + "," + element)
                .returns(Types.STRING)
                .map(Progress.Counter.of(label, 20));
    }

    private FileSource.FileSourceBuilder<String> textFiles(String directory) {
        return FileSource.forRecordStreamFormat(
                new TextLineInputFormat(),
                new org.apache.flink.core.fs.Path(input.resolve(directory).toUri()));
    }

    private static SingleOutputStreamOperator<String> count(
            DataStream<String> lines, String prefix) {
        return lines.map(Progress.Counter.ofPartitions(prefix, 5));
    }

    private static void keyedCount(DataStream<String> lines) {
        lines.map(line -> Tuple2.of(KafkaLines.partitionOf(line), 1L))
                .returns(Types.TUPLE(Types.STRING, Types.LONG))
                .keyBy(pair -> pair.f0)
                .sum(1);
    }

    private FileSink<String> fileSink() {
        return FileSink.forRowFormat(
                        new org.apache.flink.core.fs.Path(root.resolve("sink").toUri()),
                        new SimpleStringEncoder<String>())
                .withRollingPolicy(OnCheckpointRollingPolicy.build())
                .build();
    }

    private static Map<String, String> with(Map<String, String> options, String... pairs) {
        Map<String, String> more = new LinkedHashMap<>(options);
        for (int i = 0; i < pairs.length; i += 2) {
            more.put(pairs[i], pairs[i + 1]);
        }
        return more;
    }
}
