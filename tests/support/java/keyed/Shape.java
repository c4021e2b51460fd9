package testjobs;

import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.functions.ReduceFunction;
import org.apache.flink.api.common.functions.RuntimeContext;
import org.apache.flink.api.common.state.AggregatingStateDescriptor;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.ReducingState;
import org.apache.flink.api.common.state.ReducingStateDescriptor;
import org.apache.flink.api.common.state.StateDescriptor;
import org.apache.flink.api.common.state.StateTtlConfig;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;

/** A state of {@link PutStates}, and its value for the key with a given number. */
final class Shape {
    /** Stores the value for the current key. */
    private interface Put {
        void put(Current current, int number) throws Exception;
    }

    /** An element that is being processed. */
    record Current(
            RuntimeContext context,
            KeyedProcessFunction<?, ?, ?>.Context timers,
            String operatorId,
            Object key) {
        private void note(StateDescriptor<?, ?> state, Object mapKey, Object value)
                throws Exception {
            Notes.put(operatorId, state.getName(), key, mapKey, value);
        }
    }

    private final StateDescriptor<?, ?> state;
    private final Put put;

    private Shape(StateDescriptor<?, ?> state, Put put) {
        this.state = state;
        this.put = put;
    }

    void put(Current current, int number) throws Exception {
        put.put(current, number);
    }

    /** Adds a time to live of an hour, and returns this shape. */
    Shape lasting() {
        state.enableTimeToLive(StateTtlConfig.newBuilder(Span.hours(1)).build());
        return this;
    }

    @SafeVarargs
    static <T> Shape value(String name, TypeInformation<T> type, T... samples) {
        return value(new ValueStateDescriptor<>(name, type), List.of(samples));
    }

    @SafeVarargs
    static <T> Shape value(String name, TypeSerializer<T> type, T... samples) {
        return value(new ValueStateDescriptor<>(name, type), List.of(samples));
    }

    private static <T> Shape value(ValueStateDescriptor<T> state, List<T> samples) {
        return new Shape(state, (current, number) -> {
            T sample = samples.get(number % samples.size());
            current.context().getState(state).update(sample);
            current.note(state, null, sample);
        });
    }

    @SafeVarargs
    static <T> Shape list(String name, TypeInformation<T> type, List<T>... samples) {
        ListStateDescriptor<T> state = new ListStateDescriptor<>(name, type);
        return new Shape(state, (current, number) -> {
            List<T> sample = samples[number % samples.length];
            for (T item : sample) {
                current.context().getListState(state).add(item);
            }
            if (!sample.isEmpty()) {
                current.note(state, null, sample);
            }
        });
    }

    @SafeVarargs
    static <K, V> Shape map(
            String name, TypeInformation<K> keys, TypeInformation<V> values, Map<K, V>... samples) {
        return map(new MapStateDescriptor<>(name, keys, values), List.of(samples));
    }

    @SafeVarargs
    static <K, V> Shape map(
            String name, TypeSerializer<K> keys, TypeSerializer<V> values, Map<K, V>... samples) {
        return map(new MapStateDescriptor<>(name, keys, values), List.of(samples));
    }

    private static <K, V> Shape map(MapStateDescriptor<K, V> state, List<Map<K, V>> samples) {
        return new Shape(state, (current, number) -> {
            MapState<K, V> map = current.context().getMapState(state);
            for (Map.Entry<K, V> entry : samples.get(number % samples.size()).entrySet()) {
                map.put(entry.getKey(), entry.getValue());
                current.note(state, entry.getKey(), entry.getValue());
            }
        });
    }

    @SafeVarargs
    static <T> Shape reducing(
            String name, ReduceFunction<T> reduce, TypeInformation<T> type, List<T>... samples) {
        ReducingStateDescriptor<T> state = new ReducingStateDescriptor<>(name, reduce, type);
        return new Shape(state, (current, number) -> {
            ReducingState<T> reducing = current.context().getReducingState(state);
            for (T item : samples[number % samples.length]) {
                reducing.add(item);
            }
            current.note(state, null, reducing.get());
        });
    }

    /** Returns an aggregating state; a list of inputs results in the accumulator at its index. */
    static <IN, ACC> Shape aggregating(
            String name,
            AggregateFunction<IN, ACC, ?> aggregate,
            TypeInformation<ACC> type,
            List<List<IN>> inputs,
            List<ACC> accumulators) {
        AggregatingStateDescriptor<IN, ACC, ?> state =
                new AggregatingStateDescriptor<>(name, aggregate, type);
        return new Shape(state, (current, number) -> {
            for (IN item : inputs.get(number % inputs.size())) {
                current.context().getAggregatingState(state).add(item);
            }
            current.note(state, null, accumulators.get(number % inputs.size()));
        });
    }

    /** Returns timers in event time or processing time that are far in the future. */
    static Shape timers(boolean eventTime, long... samples) {
        return new Shape(null, (current, number) -> {
            KeyedProcessFunction<?, ?, ?>.Context timers = current.timers();
            String kind = eventTime ? "event" : "processing";
            for (int i = 0; i <= number % samples.length; i++) {
                long time = samples[i];
                if (eventTime) {
                    timers.timerService().registerEventTimeTimer(time);
                } else {
                    timers.timerService().registerProcessingTimeTimer(time);
                }
                String name = "_timer_state/" + kind + "_user-timers";
                Notes.put(current.operatorId(), name, current.key(), time, time);
            }
        });
    }
}
