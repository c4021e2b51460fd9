package testjobs;

import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeutils.base.LongSerializer;
import org.apache.flink.api.common.typeutils.base.StringSerializer;
import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;

/**
 * An operator that stores state in its own namespaces, whose serialized length varies. A canonical
 * key therefore also contains the lengths of the key and the namespace.
 */
final class NamespaceOperator extends AbstractStreamOperator<Void>
        implements OneInputStreamOperator<Integer, Void> {
    private static final long serialVersionUID = 1L;

    @Override
    public void processElement(StreamRecord<Integer> element) throws Exception {
        int number = element.getValue();
        for (String namespace : new String[] {"", "n" + number, "x".repeat(200)}) {
            getPartitionedState(
                            namespace,
                            StringSerializer.INSTANCE,
                            new ValueStateDescriptor<>("value", LongSerializer.INSTANCE))
                    .update((long) number + namespace.length());
            getPartitionedState(
                            namespace,
                            StringSerializer.INSTANCE,
                            new MapStateDescriptor<>(
                                    "map", StringSerializer.INSTANCE, LongSerializer.INSTANCE))
                    .put("key " + number, (long) number);
        }
    }
}
