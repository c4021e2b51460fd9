package testjobs;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.operators.StreamingRuntimeContext;
import org.apache.flink.util.Collector;

/** Stores the values of its shapes for each of its keys; element n is for key n. */
final class PutStates<K> extends KeyedProcessFunction<K, Integer, Void> {
    private static final long serialVersionUID = 1L;

    /** Static, so that keys need not be serializable; the tasks share this JVM. */
    private static final Map<String, List<?>> KEYS = new ConcurrentHashMap<>();

    private static final Map<String, List<Shape>> SHAPES = new ConcurrentHashMap<>();

    private final String uid;

    private PutStates(String uid) {
        this.uid = uid;
    }

    static <K> void add(
            StreamExecutionEnvironment env,
            String uid,
            TypeInformation<K> type,
            List<K> keys,
            Shape... shapes) {
        KEYS.put(uid, keys);
        SHAPES.put(uid, List.of(shapes));
        env.fromSource(
                        new Numbers(uid, keys.size()),
                        WatermarkStrategy.noWatermarks(),
                        "numbers of " + uid)
                .uid("numbers of " + uid)
                .setParallelism(1)
                .keyBy(new KeyOf<K>(uid), type)
                .process(new PutStates<K>(uid))
                .returns(Void.class)
                .name(uid)
                .uid(uid);
    }

    @Override
    public void processElement(Integer number, Context context, Collector<Void> out)
            throws Exception {
        String id = ((StreamingRuntimeContext) getRuntimeContext()).getOperatorUniqueID();
        Object key = context.getCurrentKey();
        for (Shape shape : SHAPES.get(uid)) {
            shape.put(new Shape.Current(getRuntimeContext(), context, id, key), number);
        }
    }

    private static final class KeyOf<K> implements KeySelector<Integer, K> {
        private static final long serialVersionUID = 1L;
        private final String uid;

        private KeyOf(String uid) {
            this.uid = uid;
        }

        @Override
        @SuppressWarnings("unchecked")
        public K getKey(Integer number) {
            return (K) KEYS.get(uid).get(number);
        }
    }
}
