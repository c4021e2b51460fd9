package testjobs;

import java.util.Properties;
import java.util.Set;
import org.apache.flink.connector.kafka.dynamic.metadata.ClusterMetadata;

/** The clusters of a stream, for connectors that store only topics and properties of clusters. */
final class Clusters {
    private Clusters() {}

    static ClusterMetadata cluster(String cluster, String topic, Properties properties) {
        return new ClusterMetadata(Set.of(topic), properties);
    }
}
