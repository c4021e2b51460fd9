package testjobs;

import java.util.Properties;
import java.util.Set;
import org.apache.flink.connector.kafka.dynamic.metadata.ClusterMetadata;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;

/** The clusters of a stream, for connectors that also store offsets initializers; one has one. */
final class Clusters {
    private Clusters() {}

    static ClusterMetadata cluster(String cluster, String topic, Properties properties) {
        return cluster.equals("east")
                ? new ClusterMetadata(
                        Set.of(topic), properties, OffsetsInitializer.earliest(), null)
                : new ClusterMetadata(Set.of(topic), properties);
    }
}
