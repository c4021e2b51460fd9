package testjobs;

import java.io.IOException;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.typeutils.base.array.BytePrimitiveArraySerializer;
import org.apache.flink.core.io.SimpleVersionedSerializer;
import org.apache.flink.metrics.groups.OperatorMetricGroup;
import org.apache.flink.runtime.checkpoint.OperatorState;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.runtime.metrics.groups.UnregisteredMetricGroups;
import org.apache.flink.streaming.api.operators.util.SimpleVersionedListState;
import org.apache.flink.streaming.runtime.operators.sink.committables.CommittableCollectorSerializer;

/**
 * Reads the state of a KafkaSink's writers and committers for {@link StateDump}, with the
 * connector's serializers, which are not public. The state contains the prefixes of the writers'
 * transactional ids, and the transactions that the committers still have to commit.
 */
final class SinkDump implements Oracle {
    private static final String SINK = "org.apache.flink.connector.kafka.sink.";

    @Override
    public Map<String, Object> dump(
            OperatorState state, Map<Integer, OperatorSubtaskState> subtasks) throws Exception {
        List<Object> writers = new ArrayList<>();
        List<Object> transactions = new ArrayList<>();
        for (Map.Entry<Integer, OperatorSubtaskState> subtask : subtasks.entrySet()) {
            for (Object writer :
                    elements(
                            subtask.getValue(),
                            "writer_raw_states",
                            serializer("KafkaWriterStateSerializer"))) {
                Map<String, Object> fields = new LinkedHashMap<>();
                fields.put("subtask", subtask.getKey());
                fields.put("prefix", get(writer, "getTransactionalIdPrefix"));
                fields.put("precommitted", precommitted(writer));
                writers.add(fields);
            }
            List<Object> committables = new ArrayList<>();
            elements(
                    subtask.getValue(),
                    "streaming_committer_raw_states",
                    collector(
                            new Noting(serializer("KafkaCommittableSerializer"), committables),
                            subtask.getKey(),
                            state.getParallelism()));
            for (Object committable : committables) {
                Map<String, Object> fields = new LinkedHashMap<>();
                fields.put("subtask", subtask.getKey());
                fields.put("transactional_id", get(committable, "getTransactionalId"));
                fields.put("producer_id", get(committable, "getProducerId"));
                fields.put("epoch", get(committable, "getEpoch"));
                transactions.add(fields);
            }
        }
        Map<String, Object> told = new LinkedHashMap<>();
        told.put("writers", writers);
        told.put("transactions", transactions);
        return told;
    }

    /** Returns the ids of open transactions, which connectors store since 4.0. */
    private static List<Object> precommitted(Object writer) throws ReflectiveOperationException {
        List<Object> ids = new ArrayList<>();
        for (Method method : writer.getClass().getMethods()) {
            if (method.getName().equals("getPrecommittedTransactionalIds")) {
                for (Object transaction : (Iterable<?>) method.invoke(writer)) {
                    ids.add(get(transaction, "getTransactionalId"));
                }
            }
        }
        return ids;
    }

    private static <T> List<T> elements(
            OperatorSubtaskState subtask, String name, SimpleVersionedSerializer<T> serializer)
            throws Exception {
        ListStateDescriptor<byte[]> descriptor =
                new ListStateDescriptor<>(name, BytePrimitiveArraySerializer.INSTANCE);
        return StateDump.restored(
                subtask,
                backend ->
                        new SimpleVersionedListState<>(
                                backend.getListState(descriptor), serializer));
    }

    /** Returns the serializer; since Flink 1.19, it also requires a metric group. */
    private static SimpleVersionedSerializer<Object> collector(
            SimpleVersionedSerializer<Object> committables, int subtask, int parallelism)
            throws ReflectiveOperationException {
        List<Object> arguments = new ArrayList<>(List.of(committables, subtask, parallelism));
        Constructor<?> constructor = CommittableCollectorSerializer.class.getConstructors()[0];
        if (constructor.getParameterCount() > arguments.size()) {
            arguments.add(
                    Class.forName(
                                    "org.apache.flink.runtime.metrics.groups"
                                            + ".InternalSinkCommitterMetricGroup")
                            .getMethod("wrap", OperatorMetricGroup.class)
                            .invoke(
                                    null,
                                    UnregisteredMetricGroups
                                            .createUnregisteredOperatorMetricGroup()));
        }
        return cast(constructor.newInstance(arguments.toArray()));
    }

    private static SimpleVersionedSerializer<Object> serializer(String name)
            throws ReflectiveOperationException {
        Constructor<?> constructor = Class.forName(SINK + name).getDeclaredConstructor();
        constructor.setAccessible(true);
        return cast(constructor.newInstance());
    }

    private static Object get(Object object, String getter) throws ReflectiveOperationException {
        Method method = object.getClass().getMethod(getter);
        method.setAccessible(true);
        return method.invoke(object);
    }

    @SuppressWarnings("unchecked")
    private static SimpleVersionedSerializer<Object> cast(Object serializer) {
        return (SimpleVersionedSerializer<Object>) serializer;
    }

    /** Records the deserialized values, because the collector does not return them. */
    private static final class Noting implements SimpleVersionedSerializer<Object> {
        private final SimpleVersionedSerializer<Object> serializer;
        private final List<Object> noted;

        private Noting(SimpleVersionedSerializer<Object> serializer, List<Object> noted) {
            this.serializer = serializer;
            this.noted = noted;
        }

        @Override
        public int getVersion() {
            return serializer.getVersion();
        }

        @Override
        public byte[] serialize(Object committable) throws IOException {
            return serializer.serialize(committable);
        }

        @Override
        public Object deserialize(int version, byte[] bytes) throws IOException {
            Object committable = serializer.deserialize(version, bytes);
            noted.add(committable);
            return committable;
        }
    }
}
