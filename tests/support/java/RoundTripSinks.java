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
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.apache.flink.core.io.SimpleVersionedSerializer;
import org.apache.flink.metrics.Counter;
import org.apache.flink.metrics.SimpleCounter;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.streaming.runtime.operators.sink.committables.CommittableCollectorSerializer;

/**
 * What Flink's own classes find in the state of a KafkaSink. In the connector's package, whose
 * serializers are not public; what differs between releases is called by reflection.
 *
 * <p>Argument: a file of lines {@code writer <hex>} or {@code committer <hex>}, each an element of
 * that list state. Prints a line of JSON for each.
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
                    parts[0].equals("writer") ? writer(version, state) : committer(version, state);
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

    private static Object committer(int version, byte[] state) throws Exception {
        Constructor<?> constructor = CommittableCollectorSerializer.class.getConstructors()[0];
        List<Object> arguments = new ArrayList<>(List.of(new KafkaCommittableSerializer(), 0, 1));
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
                    KafkaCommittable committable = (KafkaCommittable) call(request, "getCommittable");
                    requests.add(
                            Map.of(
                                    "transactional_id", committable.getTransactionalId(),
                                    "producer_id", committable.getProducerId(),
                                    "epoch", committable.getEpoch(),
                                    "state", call(request, "getState").toString()));
                }
            }
        }
        return requests;
    }

    /** A group of metrics that takes them all and keeps none. */
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

    /** A method without parameters, of the class or one above it, whoever may call it. */
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
