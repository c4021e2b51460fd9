import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Turns share groups on and leaves one behind, without members.
 *
 * <p>Arguments: bootstrap servers, the group, a topic to make for it.
 */
public final class ShareGroups {
    private ShareGroups() {}

    public static void main(String[] args) throws Exception {
        Map<String, Object> config = Map.of("bootstrap.servers", args[0], "group.id", args[1]);
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", args[0]))) {
            FeatureUpdate on = new FeatureUpdate((short) 1, FeatureUpdate.UpgradeType.UPGRADE);
            admin.updateFeatures(Map.of("share.version", on), new UpdateFeaturesOptions())
                    .all()
                    .get();
            admin.createTopics(Set.of(new NewTopic(args[2], 1, (short) 1))).all().get();
            try (KafkaShareConsumer<String, String> consumer =
                    new KafkaShareConsumer<>(
                            config, new StringDeserializer(), new StringDeserializer())) {
                consumer.subscribe(List.of(args[2]));
                while (admin.listGroups().all().get().isEmpty()) {
                    consumer.poll(Duration.ofMillis(200));
                }
            }
        }
    }
}
