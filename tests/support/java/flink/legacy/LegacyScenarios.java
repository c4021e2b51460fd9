package testjobs;

import static testjobs.Topology.count;
import static testjobs.Topology.keyedCount;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.source.SourceFunction;
import org.apache.flink.streaming.connectors.kafka.FlinkKafkaConsumer;
import org.apache.flink.streaming.connectors.kafka.internals.KafkaTopicPartition;

/** Jobs with the FlinkKafkaConsumer of the connectors before 4.0. */
final class LegacyScenarios implements Scenarios {
    /** Topic names of the minimum and the maximum length that Kafka allows. */
    private static final String[] NAMES = {"x", "long-" + "n".repeat(244)};

    @Override
    public Optional<Scenario> named(String name, Place place) {
        return Optional.ofNullable(
                switch (name) {
                    case "legacy" -> Scenario.of(
                            2,
                            env ->
                                    keyedCount(
                                            count(
                                                    read(
                                                            env,
                                                            earliest(
                                                                    place,
                                                                    "orders",
                                                                    "payments",
                                                                    "idle"),
                                                            "earliest"),
                                                    "")),
                            KafkaScenarios.MIDWAY);
                    case "legacy-names" -> Scenario.of(
                            1,
                            env -> count(read(env, earliest(place, NAMES), "names"), ""),
                            Map.of("x:0", 3, NAMES[1] + ":0", 3));
                    case "legacy-starts" -> Scenario.of(
                            1,
                            env -> starts(place, env),
                            Map.of(
                                    "group/orders:1", 6,
                                    "specific/orders:1", 6,
                                    "timestamp/timed:0", 4));
                    case "legacy-not-started" -> Scenario.of(
                            1, env -> notStarted(place, env), Map.of());
                    case "legacy-rescaled" -> oneAndMore(place, 3, 10)
                            .after(oneAndMore(place, 1, 10));
                    case "legacy-stop" -> seldom(oneAndMore(place, 1, 40)).ending(Finish.STOP);
                    case "legacy-drain" -> seldom(oneAndMore(place, 1, 40)).ending(Finish.DRAIN);
                    default -> null;
                });
    }

    private static Scenario oneAndMore(Place place, int parallelism, int required) {
        return Scenario.of(
                parallelism,
                env -> count(read(env, earliest(place, "orders"), "earliest"), ""),
                Map.of("orders:1", required));
    }

    /** Checkpoints are rare, so the job reads many records between the last one and its stop. */
    private static Scenario seldom(Scenario scenario) {
        return scenario.with("execution.checkpointing.interval", "400 ms");
    }

    private static SingleOutputStreamOperator<String> read(
            StreamExecutionEnvironment env, FlinkKafkaConsumer<String> consumer, String label) {
        return env.addSource(consumer, "Legacy Kafka " + label).uid("legacy-" + label);
    }

    private static FlinkKafkaConsumer<String> earliest(Place place, String... topics) {
        FlinkKafkaConsumer<String> consumer = consumer(place, "legacy", topics);
        consumer.setStartFromEarliest();
        return consumer;
    }

    private static void starts(Place place, StreamExecutionEnvironment env) {
        FlinkKafkaConsumer<String> group = consumer(place, "golden-committed", "orders", "idle");
        group.setStartFromGroupOffsets();
        count(read(env, group, "group"), "group/");
        FlinkKafkaConsumer<String> latest = consumer(place, "legacy", "orders", "idle");
        latest.setStartFromLatest();
        count(read(env, latest, "latest"), "latest/");
        FlinkKafkaConsumer<String> timestamp = consumer(place, "legacy", "timed");
        timestamp.setStartFromTimestamp(KafkaScenarios.TIMED);
        count(read(env, timestamp, "timestamp"), "timestamp/");
        FlinkKafkaConsumer<String> specific = consumer(place, "legacy", "orders");
        specific.setStartFromSpecificOffsets(offsetsOfOrders());
        count(read(env, specific, "specific"), "specific/");
    }

    /** Adds consumers that never read, so that the checkpoint contains their start markers. */
    private static void notStarted(Place place, StreamExecutionEnvironment env) {
        FlinkKafkaConsumer<String> earliest = waiting(place, "orders");
        earliest.setStartFromEarliest();
        count(read(env, earliest, "earliest"), "");
        FlinkKafkaConsumer<String> latest = waiting(place, "orders");
        latest.setStartFromLatest();
        count(read(env, latest, "latest"), "");
        FlinkKafkaConsumer<String> group = waiting(place, "orders");
        group.setStartFromGroupOffsets();
        count(read(env, group, "group"), "");
        FlinkKafkaConsumer<String> specific = waiting(place, "orders");
        specific.setStartFromSpecificOffsets(offsetsOfOrders());
        count(read(env, specific, "specific"), "");
    }

    private static Map<KafkaTopicPartition, Long> offsetsOfOrders() {
        return Map.of(
                new KafkaTopicPartition("orders", 0), 4L,
                new KafkaTopicPartition("orders", 1), 40L);
    }

    private static FlinkKafkaConsumer<String> consumer(
            Place place, String group, String... topics) {
        return new FlinkKafkaConsumer<>(
                List.of(topics), new LegacyLines(), properties(place, group));
    }

    private static FlinkKafkaConsumer<String> waiting(Place place, String topic) {
        return new Waiting(List.of(topic), properties(place, "legacy"));
    }

    private static Properties properties(Place place, String group) {
        Properties properties = new Properties();
        properties.putAll(KafkaLines.IN_STEP);
        properties.setProperty("bootstrap.servers", place.bootstrapServers());
        properties.setProperty("group.id", group);
        return properties;
    }

    /** Never reads after it is opened, as if the checkpoint were taken immediately afterward. */
    private static final class Waiting extends FlinkKafkaConsumer<String> {
        private static final long serialVersionUID = 1L;
        private volatile boolean waiting = true;

        private Waiting(List<String> topics, Properties properties) {
            super(topics, new LegacyLines(), properties);
        }

        @Override
        public void run(SourceFunction.SourceContext<String> context) throws Exception {
            while (waiting) {
                Thread.sleep(20);
            }
        }

        @Override
        public void cancel() {
            waiting = false;
            super.cancel();
        }
    }
}
