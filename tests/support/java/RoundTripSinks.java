package org.apache.flink.connector.kafka.sink;

import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.apache.flink.connector.file.sink.FileSinkCommittableSerializer;
import org.apache.flink.core.io.SimpleVersionedSerializer;
import org.apache.flink.metrics.Counter;
import org.apache.flink.metrics.SimpleCounter;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.streaming.api.functions.sink.filesystem.InProgressFileWriter;
import org.apache.flink.streaming.runtime.operators.sink.committables.CommittableCollectorSerializer;

/**
 * Decodes the state of a KafkaSink, and of a FileSink's committer, with Flink's own classes. This
 * class is in the connector's package, because the connector's serializers are not public. Methods
 * that differ between releases are called by reflection.
 *
 * <p>Argument: a file of lines {@code writer <hex>}, {@code committer <hex>}, or {@code files
 * <hex>}, each with an element of the list state. The program prints a line of JSON for each
 * element.
 */
public final class RoundTripSinks {
    private RoundTripSinks() {}

    public static void main(String[] args) throws Exception {
        for (String line : Files.readAllLines(Path.of(args[0]))) {
            String[] parts = line.split(" ");
            ByteBuffer element = ByteBuffer.wrap(HexFormat.of().parseHex(parts[1]));
            int version = element.getInt();
            byte[] state = new byte[element.getInt()];
            element.get(state);
            Object told =
                    switch (parts[0]) {
                        case "writer" -> writer(version, state);
                        case "committer" ->
                                committer(version, state, new KafkaCommittableSerializer());
                        default -> committer(version, state, files());
                    };
            System.out.println(new ObjectMapper().writeValueAsString(told));
        }
    }

    private static Object writer(int version, byte[] state) throws Exception {
        KafkaWriterState read = new KafkaWriterStateSerializer().deserialize(version, state);
        List<Object> underWay = new ArrayList<>();
        if (has(read, "getPrecommittedTransactionalIds")) {
            for (Object one : (Collection<?>) call(read, "getPrecommittedTransactionalIds")) {
                underWay.add(call(one, "getTransactionalId"));
            }
        }
        return Map.of("prefix", read.getTransactionalIdPrefix(), "under_way", underWay);
    }

    private static Object committer(
            int version, byte[] state, SimpleVersionedSerializer<?> committables)
            throws Exception {
        Constructor<?> constructor = CommittableCollectorSerializer.class.getConstructors()[0];
        List<Object> arguments = new ArrayList<>(List.of(committables, 0, 1));
        if (constructor.getParameterCount() > arguments.size()) {
            arguments.add(deaf(constructor.getParameterTypes()[arguments.size()]));
        }
        Object collector =
                ((SimpleVersionedSerializer<?>) constructor.newInstance(arguments.toArray()))
                        .deserialize(version, state);
        List<Object> requests = new ArrayList<>();
        for (Object checkpoint : (Collection<?>) call(collector, "getCheckpointCommittables")) {
            for (Object subtask :
                    (Collection<?>) call(checkpoint, "getSubtaskCommittableManagers")) {
                for (Object request : (Collection<?>) call(subtask, "getRequests")) {
                    Map<String, Object> fields = fields(call(request, "getCommittable"));
                    fields.put("state", call(request, "getState").toString());
                    requests.add(fields);
                }
            }
        }
        return requests;
    }

    private static Map<String, Object> fields(Object committable) throws Exception {
        Map<String, Object> fields = new HashMap<>();
        if (committable instanceof KafkaCommittable) {
            KafkaCommittable kafka = (KafkaCommittable) committable;
            fields.put("transactional_id", kafka.getTransactionalId());
            fields.put("producer_id", kafka.getProducerId());
            fields.put("epoch", kafka.getEpoch());
        } else {
            fields.put("bucket_id", call(committable, "getBucketId"));
            fields.put("has_pending_file", call(committable, "hasPendingFile"));
        }
        return fields;
    }

    /** Returns a serializer that accepts any bytes, because they depend on the file system. */
    private static SimpleVersionedSerializer<?> files() {
        return new FileSinkCommittableSerializer(
                cast(new AnyBytes(InProgressFileWriter.PendingFileRecoverable.class)),
                cast(new AnyBytes(InProgressFileWriter.InProgressFileRecoverable.class)));
    }

    @SuppressWarnings("unchecked")
    private static <T> SimpleVersionedSerializer<T> cast(SimpleVersionedSerializer<?> serializer) {
        return (SimpleVersionedSerializer<T>) serializer;
    }

    private static final class AnyBytes implements SimpleVersionedSerializer<Object> {
        private final Class<?> type;

        private AnyBytes(Class<?> type) {
            this.type = type;
        }

        @Override
        public int getVersion() {
            return 1;
        }

        @Override
        public byte[] serialize(Object file) {
            throw new UnsupportedOperationException();
        }

        @Override
        public Object deserialize(int version, byte[] bytes) {
            return Proxy.newProxyInstance(
                    type.getClassLoader(), new Class<?>[] {type}, (self, method, args) -> null);
        }
    }

    /** Returns a metric group that accepts all metrics, and stores none. */
    private static Object deaf(Class<?> metrics) {
        return Proxy.newProxyInstance(
                metrics.getClassLoader(),
                new Class<?>[] {metrics},
                (self, method, args) ->
                        method.getReturnType() == Counter.class ? new SimpleCounter() : null);
    }

    private static boolean has(Object object, String method) {
        return Arrays.stream(object.getClass().getMethods())
                .anyMatch(each -> each.getName().equals(method));
    }

    /** Returns a method without parameters of a class or a superclass, even if it is private. */
    private static Object call(Object object, String name) throws Exception {
        for (Class<?> type = object.getClass(); type != null; type = type.getSuperclass()) {
            for (Method method : type.getDeclaredMethods()) {
                if (method.getName().equals(name) && method.getParameterCount() == 0) {
                    method.setAccessible(true);
                    return method.invoke(object);
                }
            }
        }
        throw new NoSuchMethodException(name);
    }
}
