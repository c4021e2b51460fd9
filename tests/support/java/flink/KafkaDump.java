package testjobs;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.connector.kafka.source.split.KafkaPartitionSplit;
import org.apache.flink.connector.kafka.source.split.KafkaPartitionSplitSerializer;
import org.apache.flink.runtime.checkpoint.OperatorState;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;

/** Reads the state of a KafkaSource for {@link StateDump}, with the connector's serializers. */
final class KafkaDump {
    private KafkaDump() {}

    static List<Object> readerSplits(Map<Integer, OperatorSubtaskState> subtasks)
            throws Exception {
        List<Object> told = new ArrayList<>();
        for (Map.Entry<Integer, OperatorSubtaskState> subtask : subtasks.entrySet()) {
            List<KafkaPartitionSplit> splits =
                    StateDump.splits(subtask.getValue(), new KafkaPartitionSplitSerializer());
            splits.sort(
                    Comparator.comparing(KafkaPartitionSplit::getTopic)
                            .thenComparing(KafkaPartitionSplit::getPartition));
            for (KafkaPartitionSplit split : splits) {
                told.add(readerSplit(subtask.getKey(), split));
            }
        }
        return told;
    }

    static Map<String, Object> readerSplit(int subtask, KafkaPartitionSplit split) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("subtask", subtask);
        fields.put("topic", split.getTopic());
        fields.put("partition", split.getPartition());
        fields.put("starting_offset", split.getStartingOffset());
        fields.put("stopping_offset", stoppingOffset(split));
        return fields;
    }

    /** Returns the stored number, because the getter returns the marker for "none" as empty. */
    static long stoppingOffset(KafkaPartitionSplit split) {
        return split.getStoppingOffset().orElse(KafkaPartitionSplit.NO_STOPPING_OFFSET);
    }

    static Map<String, Object> enumerator(OperatorState state) throws Exception {
        if (state.getCoordinatorState() == null) {
            return null;
        }
        StateDump.Coordinator coordinator = StateDump.coordinator(state);
        Map<String, Object> told = new LinkedHashMap<>();
        told.put("coordinator_version", coordinator.version());
        told.put("serializer_version", coordinator.serializerVersion());
        told.putAll(enumerator(coordinator.serializerVersion(), coordinator.enumerator()));
        return told;
    }

    static Map<String, Object> enumerator(int version, byte[] bytes) throws Exception {
        return enumerator(Enumerators.view(version, bytes));
    }

    static Map<String, Object> enumerator(EnumeratorView view) {
        List<EnumeratorView.Split> splits = new ArrayList<>(view.splits());
        splits.sort(
                Comparator.comparing(EnumeratorView.Split::topic)
                        .thenComparing(EnumeratorView.Split::partition));
        List<Object> toldSplits = new ArrayList<>();
        for (EnumeratorView.Split split : splits) {
            Map<String, Object> fields = new LinkedHashMap<>();
            fields.put("topic", split.topic());
            fields.put("partition", split.partition());
            fields.put("status", split.status());
            fields.put("starting_offset", split.startingOffset());
            fields.put("stopping_offset", split.stoppingOffset());
            toldSplits.add(fields);
        }
        Map<String, Object> told = new LinkedHashMap<>();
        told.put("initial_discovery_finished", view.initialDiscoveryFinished());
        told.put("splits", toldSplits);
        return told;
    }
}
