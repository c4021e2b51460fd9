import java.nio.file.Files;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.FinalizedVersionRange;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;

/**
 * Creates two empty groups that are not consumer groups: a share group and a streams group. If the
 * broker has disabled one of these kinds, the program enables it.
 *
 * <p>Arguments: bootstrap servers, the share group, the streams group, a topic to create for both.
 */
public final class OtherGroups {
    private static final Duration PATIENCE = Duration.ofMinutes(2);

    private OtherGroups() {}

    public static void main(String[] args) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", args[0]))) {
            admin.createTopics(Set.of(new NewTopic(args[3], 1, (short) 1))).all().get();
            turnOn(admin, "share.version");
            leaveShareGroup(admin, args[0], args[1], args[3]);
            turnOn(admin, "streams.version");
            leaveStreamsGroup(args[0], args[2], args[3]);
        }
    }

    private static void turnOn(Admin admin, String feature) throws Exception {
        FinalizedVersionRange is =
                admin.describeFeatures().featureMetadata().get().finalizedFeatures().get(feature);
        if (is != null && is.maxVersionLevel() >= 1) {
            return;
        }
        FeatureUpdate on = new FeatureUpdate((short) 1, FeatureUpdate.UpgradeType.UPGRADE);
        admin.updateFeatures(Map.of(feature, on), new UpdateFeaturesOptions()).all().get();
    }

    private static void leaveShareGroup(Admin admin, String servers, String group, String topic)
            throws Exception {
        Map<String, Object> config = Map.of("bootstrap.servers", servers, "group.id", group);
        try (KafkaShareConsumer<String, String> consumer =
                new KafkaShareConsumer<>(
                        config, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic));
            long began = System.nanoTime();
            while (admin.listGroups().all().get().stream()
                    .noneMatch(listed -> listed.groupId().equals(group))) {
                checkInTime(began, "the share group is not there");
                consumer.poll(Duration.ofMillis(200));
            }
        }
    }

    private static void leaveStreamsGroup(String servers, String group, String topic)
            throws Exception {
        Properties config = new Properties();
        config.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, servers);
        config.put(StreamsConfig.APPLICATION_ID_CONFIG, group);
        config.put(StreamsConfig.GROUP_PROTOCOL_CONFIG, "streams");
        config.put(
                StreamsConfig.STATE_DIR_CONFIG,
                Files.createTempDirectory("streams-group").toString());
        config.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        config.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(topic).foreach((key, value) -> {});
        try (KafkaStreams streams = new KafkaStreams(builder.build(), config)) {
            streams.start();
            long began = System.nanoTime();
            while (streams.state() != KafkaStreams.State.RUNNING) {
                if (streams.state() == KafkaStreams.State.ERROR) {
                    throw new IllegalStateException("the application has failed");
                }
                checkInTime(began, "the application does not run");
                Thread.sleep(100);
            }
        }
    }

    private static void checkInTime(long began, String what) {
        if (System.nanoTime() - began > PATIENCE.toNanos()) {
            throw new IllegalStateException(what + " after " + PATIENCE);
        }
    }
}
