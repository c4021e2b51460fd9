package testjobs;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.ExecutionConfig;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.runtime.checkpoint.OperatorState;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.streaming.connectors.kafka.FlinkKafkaConsumerBase;
import org.apache.flink.streaming.connectors.kafka.internals.KafkaTopicPartition;

/**
 * Reads the state of a FlinkKafkaConsumer for {@link StateDump}, with Flink's Kryo: the number that
 * each subtask stored for each partition.
 */
final class LegacyDump implements Oracle {
    private static final String STATE = "topic-partition-offset-states";

    @Override
    public List<Object> dump(OperatorState state, Map<Integer, OperatorSubtaskState> subtasks)
            throws Exception {
        ListStateDescriptor<Tuple2<KafkaTopicPartition, Long>> descriptor =
                new ListStateDescriptor<>(STATE, serializer());
        List<Object> told = new ArrayList<>();
        for (Map.Entry<Integer, OperatorSubtaskState> subtask : subtasks.entrySet()) {
            List<Tuple2<KafkaTopicPartition, Long>> offsets =
                    StateDump.restored(
                            subtask.getValue(), backend -> backend.getUnionListState(descriptor));
            offsets.sort(
                    Comparator.comparing(
                            offset -> offset.f0, new KafkaTopicPartition.Comparator()));
            for (Tuple2<KafkaTopicPartition, Long> offset : offsets) {
                Map<String, Object> fields = new LinkedHashMap<>();
                fields.put("subtask", subtask.getKey());
                fields.put("topic", offset.f0.getTopic());
                fields.put("partition", offset.f0.getPartition());
                fields.put("stored_offset", offset.f1);
                told.add(fields);
            }
        }
        return told;
    }

    /** Returns the consumer's own serializer; the method that creates it is package-private. */
    @SuppressWarnings("unchecked")
    private static TypeSerializer<Tuple2<KafkaTopicPartition, Long>> serializer()
            throws ReflectiveOperationException {
        Method create =
                FlinkKafkaConsumerBase.class.getDeclaredMethod(
                        "createStateSerializer", ExecutionConfig.class);
        create.setAccessible(true);
        return (TypeSerializer<Tuple2<KafkaTopicPartition, Long>>)
                create.invoke(null, new ExecutionConfig());
    }
}
