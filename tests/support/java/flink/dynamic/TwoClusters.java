package testjobs;

import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.flink.api.connector.source.Source;
import org.apache.flink.connector.kafka.dynamic.metadata.ClusterMetadata;
import org.apache.flink.connector.kafka.dynamic.metadata.KafkaMetadataService;
import org.apache.flink.connector.kafka.dynamic.metadata.KafkaStream;
import org.apache.flink.connector.kafka.dynamic.source.DynamicKafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;

/** Streams on the clusters {@code east} and {@code west}; a stream is a topic on each cluster. */
final class TwoClusters implements KafkaMetadataService {
    private static final long serialVersionUID = 1L;

    /** The bootstrap servers, by cluster id. */
    private final Map<String, String> clusters;

    private TwoClusters(Map<String, String> clusters) {
        this.clusters = clusters;
    }

    /** Reads all partitions evenly, from the earliest offsets. */
    static Source<String, ?, ?> source(String east, String west, String... topics) {
        return source(Map.of("east", east, "west", west), topics);
    }

    /** Reads in the same way from these clusters, which are bootstrap servers by cluster id. */
    static Source<String, ?, ?> source(Map<String, String> clusters, String... topics) {
        Properties properties = new Properties();
        KafkaLines.IN_STEP.forEach(properties::setProperty);
        return DynamicKafkaSource.<String>builder()
                .setKafkaMetadataService(new TwoClusters(clusters))
                .setStreamIds(Set.of(topics))
                .setStartingOffsets(OffsetsInitializer.earliest())
                .setDeserializer(KafkaLines.deserializer())
                .setGroupId("dynamic")
                .setProperties(properties)
                .build();
    }

    @Override
    public Set<KafkaStream> getAllStreams() {
        throw new UnsupportedOperationException("streams are subscribed to by name here");
    }

    @Override
    public Map<String, KafkaStream> describeStreams(Collection<String> streamIds) {
        Map<String, KafkaStream> streams = new HashMap<>();
        for (String topic : streamIds) {
            Map<String, ClusterMetadata> metadata = new HashMap<>();
            clusters.forEach(
                    (cluster, servers) -> {
                        Properties properties = new Properties();
                        properties.setProperty("bootstrap.servers", servers);
                        metadata.put(cluster, Clusters.cluster(cluster, topic, properties));
                    });
            streams.put(topic, new KafkaStream(topic, metadata));
        }
        return streams;
    }

    @Override
    public boolean isClusterActive(String kafkaClusterId) {
        return clusters.containsKey(kafkaClusterId);
    }

    @Override
    public void close() {}
}
