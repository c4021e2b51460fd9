package testjobs;

import static testjobs.Topology.KAFKA;
import static testjobs.Topology.count;
import static testjobs.Topology.earliest;
import static testjobs.Topology.keyedCount;
import static testjobs.Topology.source;

import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.regex.Pattern;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.sink.KafkaSinkBuilder;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.kafka.clients.consumer.OffsetResetStrategy;
import org.apache.kafka.common.TopicPartition;

/** Jobs with every setup and every end of a KafkaSource, and jobs with a KafkaSink. */
final class KafkaScenarios implements Scenarios {
    /** Stops in the middle of orders-1, payments-0, and payments-1, and at the end of orders-0. */
    static final Map<String, Integer> MIDWAY =
            Map.of("orders:0", 12, "orders:1", 14, "payments:0", 8, "payments:1", 10);

    /** The timestamp of the twenty-first record of the topic "timed". */
    static final long TIMED = 1_000_000_020_000L;

    @Override
    public Optional<Scenario> named(String name, Place place) {
        return Optional.ofNullable(
                switch (name) {
                    case "retained" -> ordersAndPayments(place);
                    case "savepoint" -> ordersAndPayments(place).ending(Finish.SAVEPOINT);
                    case "native-savepoint" -> ordersAndPayments(place)
                            .ending(Finish.NATIVE_SAVEPOINT);
                    case "stop" -> ordersAndPayments(place).ending(Finish.STOP);
                    case "drain" -> ordersAndPayments(place).ending(Finish.DRAIN);
                    case "bounded" -> bounded(place, 1);
                    case "bounded-subtask-finished" -> bounded(place, 2);
                    case "source-finished" -> Scenario.of(
                            1,
                            env -> {
                                count(boundedPayments(place, env, 18, 20), "");
                                count(earliest(place, env, "orders"), "");
                            },
                            Map.of("payments:0", 8, "payments:1", 20, "orders:1", 30));
                    case "two-sources" -> Scenario.of(
                            2,
                            env -> twoSources(place, env),
                            Map.of("eu/orders:1", 14, "us/orders:1", 6));
                    case "starting-offsets" -> Scenario.of(
                            1,
                            env -> startingOffsets(place, env),
                            Map.of("committed/orders:0", 8, "committed/orders:1", 10));
                    case "pattern" -> Scenario.of(2, env -> pattern(place, env), MIDWAY);
                    case "numeric-starts" -> Scenario.of(
                            1,
                            env -> numericStarts(place, env),
                            Map.of("timestamp/timed:0", 6, "specific/orders:1", 10));
                    case "kafka-sink" -> Scenario.of(
                            2, env -> kafkaSink(place, env), Map.of("orders:1", 20));
                    default -> null;
                });
    }

    private static Scenario ordersAndPayments(Place place) {
        return Scenario.of(
                2,
                env ->
                        count(
                                        earliest(place, env, "orders", "payments")
                                                .uid("orders-and-payments"),
                                        "")
                                .sinkTo(Topology.fileSink(place))
                                .uid("file-sink"),
                MIDWAY);
    }

    /** Reads payments-0 from its log start (10) to 18, while payments-1 is still being read. */
    private static Scenario bounded(Place place, int parallelism) {
        return Scenario.of(
                parallelism,
                env -> count(boundedPayments(place, env, 18, 80), ""),
                Map.of("payments:0", 8, "payments:1", 20));
    }

    private static SingleOutputStreamOperator<String> boundedPayments(
            Place place, StreamExecutionEnvironment env, long stop0, long stop1) {
        OffsetsInitializer stops =
                OffsetsInitializer.offsets(
                        Map.of(
                                new TopicPartition("payments", 0), stop0,
                                new TopicPartition("payments", 1), stop1));
        return env.fromSource(
                        KafkaLines.source(place.bootstrapServers(), "bounded", "payments")
                                .setStartingOffsets(OffsetsInitializer.earliest())
                                .setBounded(stops)
                                .build(),
                        WatermarkStrategy.noWatermarks(),
                        KAFKA + "payments, bounded")
                .uid("payments-bounded");
    }

    private static void twoSources(Place place, StreamExecutionEnvironment env) {
        keyedCount(
                count(
                        source(
                                        place,
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
                                        place,
                                        env,
                                        KAFKA + "orders of us",
                                        "us",
                                        offsetsOfOrders(),
                                        "orders")
                                .uid("orders-us"),
                        "us/"));
    }

    private static OffsetsInitializer offsetsOfOrders() {
        return OffsetsInitializer.offsets(
                Map.of(
                        new TopicPartition("orders", 0), 4L,
                        new TopicPartition("orders", 1), 40L));
    }

    /** Adds sources with markers; if no record of a partition has been read, its marker remains. */
    private static void startingOffsets(Place place, StreamExecutionEnvironment env) {
        count(
                source(
                                place,
                                env,
                                KAFKA + "from committed",
                                "golden-committed",
                                OffsetsInitializer.committedOffsets(OffsetResetStrategy.EARLIEST),
                                "orders",
                                "idle")
                        .uid("committed"),
                "committed/");
        count(
                source(
                                place,
                                env,
                                KAFKA + "from latest",
                                "latest",
                                OffsetsInitializer.latest(),
                                "idle")
                        .uid("latest"),
                "latest/");
    }

    /** Adds sources with numeric starts; timed-1 has no newer record, and orders-2 no offset. */
    private static void numericStarts(Place place, StreamExecutionEnvironment env) {
        count(
                source(
                                place,
                                env,
                                KAFKA + "from a timestamp",
                                "timestamp",
                                OffsetsInitializer.timestamp(TIMED),
                                "timed")
                        .uid("timestamp"),
                "timestamp/");
        count(
                source(
                                place,
                                env,
                                KAFKA + "from specific offsets",
                                "specific",
                                offsetsOfOrders(),
                                "orders")
                        .uid("specific"),
                "specific/");
    }

    private static void pattern(Place place, StreamExecutionEnvironment env) {
        count(
                env.fromSource(
                                KafkaLines.source(place.bootstrapServers(), "pattern")
                                        .setTopicPattern(Pattern.compile("(orders|pay.*)"))
                                        .setStartingOffsets(OffsetsInitializer.earliest())
                                        .build(),
                                WatermarkStrategy.noWatermarks(),
                                KAFKA + "orders and pay*")
                        .uid("pattern"),
                "");
    }

    /** Adds a KafkaSink; a retained checkpoint contains the transactions to commit after it. */
    private static void kafkaSink(Place place, StreamExecutionEnvironment env) {
        Properties producer = new Properties();
        producer.setProperty("transaction.timeout.ms", "600000");
        KafkaSinkBuilder<String> sink =
                KafkaSink.<String>builder()
                        .setBootstrapServers(place.bootstrapServers())
                        .setRecordSerializer(
                                KafkaRecordSerializationSchema.builder()
                                        .setTopic("copies")
                                        .setValueSerializationSchema(new SimpleStringSchema())
                                        .build())
                        .setTransactionalIdPrefix("golden-copies")
                        .setKafkaProducerConfig(producer);
        count(earliest(place, env, "orders").uid("orders"), "")
                .sinkTo(ExactlyOnce.of(sink).build())
                .uid("kafka-sink");
    }
}
