package testjobs;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.typeutils.base.StringSerializer;
import org.apache.flink.runtime.checkpoint.OperatorState;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.streaming.runtime.streamrecord.StreamElement;
import org.apache.flink.streaming.runtime.streamrecord.StreamElementSerializer;

/** Reads the state of an AsyncWaitOperator for {@link StateDump}: the lines in its queue. */
final class AsyncDump implements Oracle {
    static final String QUEUE = "_async_wait_operator_state_";

    @Override
    public Map<String, Object> dump(
            OperatorState state, Map<Integer, OperatorSubtaskState> subtasks) throws Exception {
        List<Object> waiting = new ArrayList<>();
        for (OperatorSubtaskState subtask : subtasks.values()) {
            ListStateDescriptor<StreamElement> queue =
                    new ListStateDescriptor<>(
                            QUEUE, new StreamElementSerializer<>(StringSerializer.INSTANCE));
            for (StreamElement element :
                    StateDump.restored(subtask, backend -> backend.getListState(queue))) {
                waiting.add(element.isRecord() ? element.asRecord().getValue() : null);
            }
        }
        return Map.of("waiting", waiting);
    }
}
