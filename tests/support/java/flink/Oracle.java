package testjobs;

import java.util.Map;
import org.apache.flink.runtime.checkpoint.OperatorState;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;

/** Tells what an operator of one kind holds, by the classes that wrote it. */
interface Oracle {
    Object dump(OperatorState state, Map<Integer, OperatorSubtaskState> subtasks) throws Exception;
}
