package testjobs;

import java.util.Properties;
import java.util.Set;
import org.apache.flink.connector.kafka.dynamic.metadata.ClusterMetadata;

/** Clusters of a stream, where the connector keeps only topics and properties of them. */
final class Clusters {
    private Clusters() {}

    static ClusterMetadata cluster(String cluster, String topic, Properties properties) {
        return new ClusterMetadata(Set.of(topic), properties);
    }
}
