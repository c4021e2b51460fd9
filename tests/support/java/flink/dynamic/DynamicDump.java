package testjobs;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.flink.connector.kafka.dynamic.metadata.ClusterMetadata;
import org.apache.flink.connector.kafka.dynamic.metadata.KafkaStream;
import org.apache.flink.connector.kafka.dynamic.source.enumerator.DynamicKafkaSourceEnumState;
import org.apache.flink.connector.kafka.dynamic.source.enumerator.DynamicKafkaSourceEnumStateSerializer;
import org.apache.flink.connector.kafka.dynamic.source.split.DynamicKafkaSourceSplit;
import org.apache.flink.connector.kafka.dynamic.source.split.DynamicKafkaSourceSplitSerializer;
import org.apache.flink.connector.kafka.source.enumerator.KafkaSourceEnumState;
import org.apache.flink.runtime.checkpoint.OperatorState;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;

/** Reads the state of a DynamicKafkaSource for {@link StateDump}, with its own serializers. */
final class DynamicDump implements Oracle {
    @Override
    public Map<String, Object> dump(
            OperatorState state, Map<Integer, OperatorSubtaskState> subtasks) throws Exception {
        Map<String, Object> told = new LinkedHashMap<>();
        told.put("reader_splits", readerSplits(subtasks));
        told.put("enumerator", enumerator(state));
        return told;
    }

    private static List<Object> readerSplits(Map<Integer, OperatorSubtaskState> subtasks)
            throws Exception {
        List<Object> told = new ArrayList<>();
        for (Map.Entry<Integer, OperatorSubtaskState> subtask : subtasks.entrySet()) {
            List<DynamicKafkaSourceSplit> splits =
                    StateDump.splits(subtask.getValue(), new DynamicKafkaSourceSplitSerializer());
            splits.sort(Comparator.comparing(DynamicKafkaSourceSplit::splitId));
            for (DynamicKafkaSourceSplit split : splits) {
                Map<String, Object> fields = new LinkedHashMap<>();
                fields.put("cluster", split.getKafkaClusterId());
                fields.putAll(
                        KafkaDump.readerSplit(subtask.getKey(), split.getKafkaPartitionSplit()));
                told.add(fields);
            }
        }
        return told;
    }

    private static Map<String, Object> enumerator(OperatorState state) throws Exception {
        StateDump.Coordinator coordinator = StateDump.coordinator(state);
        DynamicKafkaSourceEnumState enumerator =
                new DynamicKafkaSourceEnumStateSerializer()
                        .deserialize(coordinator.serializerVersion(), coordinator.enumerator());
        Map<String, Object> streams = new TreeMap<>();
        for (KafkaStream stream : enumerator.getKafkaStreams()) {
            Map<String, Object> clusters = new TreeMap<>();
            stream.getClusterMetadataMap()
                    .forEach((cluster, metadata) -> clusters.put(cluster, cluster(metadata)));
            streams.put(stream.getStreamId(), clusters);
        }
        Map<String, Object> clusters = new TreeMap<>();
        for (Map.Entry<String, KafkaSourceEnumState> cluster :
                enumerator.getClusterEnumeratorStates().entrySet()) {
            clusters.put(
                    cluster.getKey(),
                    KafkaDump.enumerator(Enumerators.view(cluster.getValue())));
        }
        Map<String, Object> told = new LinkedHashMap<>();
        told.put("coordinator_version", coordinator.version());
        told.put("serializer_version", coordinator.serializerVersion());
        told.put("streams", streams);
        told.put("clusters", clusters);
        return told;
    }

    private static Map<String, Object> cluster(ClusterMetadata metadata) {
        Map<String, Object> told = new LinkedHashMap<>();
        told.put("topics", new TreeSet<>(metadata.getTopics()));
        told.put("bootstrap_servers", metadata.getProperties().getProperty("bootstrap.servers"));
        return told;
    }
}
