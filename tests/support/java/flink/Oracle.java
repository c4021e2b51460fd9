package testjobs;

import java.util.Map;
import org.apache.flink.runtime.checkpoint.OperatorState;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;

/** Reads the state of an operator of one kind, with the classes that wrote the state. */
interface Oracle {
    Object dump(OperatorState state, Map<Integer, OperatorSubtaskState> subtasks) throws Exception;
}
