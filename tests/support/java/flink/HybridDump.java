package testjobs;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.connector.base.source.hybrid.HybridSourceEnumeratorState;
import org.apache.flink.connector.base.source.hybrid.HybridSourceEnumeratorStateSerializer;
import org.apache.flink.connector.base.source.hybrid.HybridSourceSplit;
import org.apache.flink.connector.base.source.hybrid.HybridSourceSplitSerializer;
import org.apache.flink.connector.kafka.source.split.KafkaPartitionSplitSerializer;
import org.apache.flink.runtime.checkpoint.OperatorState;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;

/**
 * Reads the state of a HybridSource for {@link StateDump}, with Flink's serializers. In these jobs,
 * the first inner source reads files, and the second is a KafkaSource, whose state is also decoded.
 */
final class HybridDump implements Oracle {
    private static final int KAFKA = 1;

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
            List<HybridSourceSplit> splits =
                    StateDump.splits(subtask.getValue(), new HybridSourceSplitSerializer());
            splits.sort(Comparator.comparing(HybridSourceSplit::splitId));
            for (HybridSourceSplit split : splits) {
                Map<String, Object> fields = new LinkedHashMap<>();
                fields.put("subtask", subtask.getKey());
                fields.put("source_index", split.sourceIndex());
                fields.put("split_id", split.splitId());
                fields.put("wrapped_version", split.wrappedSplitSerializerVersion());
                fields.put(
                        "kafka",
                        split.sourceIndex() == KAFKA
                                ? KafkaDump.readerSplit(
                                        subtask.getKey(),
                                        new KafkaPartitionSplitSerializer()
                                                .deserialize(
                                                        split.wrappedSplitSerializerVersion(),
                                                        split.wrappedSplitBytes()))
                                : null);
                told.add(fields);
            }
        }
        return told;
    }

    private static Map<String, Object> enumerator(OperatorState state) throws Exception {
        StateDump.Coordinator coordinator = StateDump.coordinator(state);
        HybridSourceEnumeratorState enumerator =
                new HybridSourceEnumeratorStateSerializer()
                        .deserialize(coordinator.serializerVersion(), coordinator.enumerator());
        int version = enumerator.getWrappedStateSerializerVersion();
        Map<String, Object> told = new LinkedHashMap<>();
        told.put("coordinator_version", coordinator.version());
        told.put("serializer_version", coordinator.serializerVersion());
        told.put("current_source_index", enumerator.getCurrentSourceIndex());
        told.put("wrapped_version", version);
        told.put(
                "kafka",
                enumerator.getCurrentSourceIndex() == KAFKA
                        ? KafkaDump.enumerator(version, enumerator.getWrappedState())
                        : null);
        return told;
    }
}
