package testjobs;

import static testjobs.KeyedJob.Form.NATIVE;
import static testjobs.KeyedJob.Form.RETAINED;

import java.util.ArrayList;
import java.util.List;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.StateTtlConfig;
import org.apache.flink.api.common.state.v2.AggregatingState;
import org.apache.flink.api.common.state.v2.AggregatingStateDescriptor;
import org.apache.flink.api.common.state.v2.ListState;
import org.apache.flink.api.common.state.v2.ListStateDescriptor;
import org.apache.flink.api.common.state.v2.MapState;
import org.apache.flink.api.common.state.v2.MapStateDescriptor;
import org.apache.flink.api.common.state.v2.ReducingState;
import org.apache.flink.api.common.state.v2.ReducingStateDescriptor;
import org.apache.flink.api.common.state.v2.StateDescriptor;
import org.apache.flink.api.common.state.v2.StateFuture;
import org.apache.flink.api.common.state.v2.StateIterator;
import org.apache.flink.api.common.state.v2.ValueState;
import org.apache.flink.api.common.state.v2.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.runtime.state.ttl.AbstractTtlDecorator;
import org.apache.flink.runtime.state.ttl.TtlValue;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.operators.StreamingRuntimeContext;
import org.apache.flink.util.Collector;

/** Jobs with the asynchronous state API (State V2) of Flink 2.0 and later. */
final class AsyncJobs implements KeyedJobBook {
    private static final List<String> KEYS = List.of("", "a", "h\u00e9llo", "\ud83d\ude00", "key-5", "key-6");

    @Override
    public KeyedJob named(String name) {
        KeyedJob states = KeyedJob.of(AsyncJobs::states, NATIVE).in(1, 16);
        KeyedJob retained =
                KeyedJob.of(AsyncJobs::states, RETAINED).in(1, 16).toldBy(states, false);
        return switch (name) {
            case "async" -> states;
            case "async-rocksdb" -> retained.with(StateJobs.ROCKSDB).with(StateJobs.INCREMENTAL);
            case "async-forst" -> retained.with(StateJobs.FORST);
            default -> null;
        };
    }

    private static void states(StreamExecutionEnvironment env) {
        env.fromSource(
                        new Numbers("numbers", 2 * KEYS.size()),
                        WatermarkStrategy.noWatermarks(),
                        "numbers")
                .uid("numbers")
                .setParallelism(1)
                .keyBy(number -> KEYS.get(number % KEYS.size()), Types.STRING)
                .enableAsyncState()
                .process(new Put())
                .returns(Types.VOID)
                .uid("async");
    }

    /** Writes its states for each key, and then reads all of them. */
    private static final class Put extends KeyedProcessFunction<String, Integer, Void> {
        private static final long serialVersionUID = 1L;
        private transient ValueState<Long> value;
        private transient ListState<String> list;
        private transient MapState<String, Long> map;
        private transient ReducingState<Long> reducing;
        private transient AggregatingState<Double, Double> aggregating;
        private transient ValueState<String> lastingValue;
        private transient ListState<Integer> lastingList;
        private transient MapState<Integer, String> lastingMap;

        @Override
        public void open(OpenContext open) throws Exception {
            var context = getRuntimeContext();
            value = context.getState(new ValueStateDescriptor<>("value", Types.LONG));
            list = context.getListState(new ListStateDescriptor<>("list", Types.STRING));
            map = context.getMapState(new MapStateDescriptor<>("map", Types.STRING, Types.LONG));
            reducing =
                    context.getReducingState(
                            new ReducingStateDescriptor<>("reducing", Long::sum, Types.LONG));
            aggregating =
                    context.getAggregatingState(
                            new AggregatingStateDescriptor<>(
                                    "aggregating",
                                    new StateJobs.Mean(),
                                    Types.TUPLE(Types.LONG, Types.DOUBLE)));
            lastingValue =
                    context.getState(
                            withTtl(new ValueStateDescriptor<>("lasting-value", Types.STRING)));
            lastingList =
                    context.getListState(
                            withTtl(new ListStateDescriptor<>("lasting-list", Types.INT)));
            lastingMap =
                    context.getMapState(
                            withTtl(
                                    new MapStateDescriptor<>(
                                            "lasting-map", Types.INT, Types.STRING)));
        }

        private static <T extends StateDescriptor<?>> T withTtl(T descriptor) {
            descriptor.enableTimeToLive(StateTtlConfig.newBuilder(Span.hours(1)).build());
            return descriptor;
        }

        @Override
        public void processElement(Integer number, Context context, Collector<Void> out)
                throws Exception {
            if (number < KEYS.size()) {
                put(number);
                context.timerService().registerEventTimeTimer(timer(number));
                context.timerService().registerProcessingTimeTimer(7_258_118_400_000L);
            } else {
                read(number - KEYS.size(), context.getCurrentKey());
            }
        }

        private void put(int number) {
            long n = number;
            String text = "t," + number;
            value.asyncUpdate(n - 2);
            list.asyncAddAll(List.of(text, ",", ""));
            map.asyncPut("a", n);
            map.asyncPut("", -n);
            // Wait for each addition. If two additions ran at the same time, both would start from
            // the same old value, and one of them would be lost.
            reducing.asyncAdd(n).thenCompose(done -> reducing.asyncAdd(40L));
            aggregating.asyncAdd(1.5).thenCompose(done -> aggregating.asyncAdd((double) n));
            lastingValue.asyncUpdate(text);
            lastingList.asyncAddAll(List.of(number, -1));
            lastingMap.asyncPut(number, text);
        }

        /** Records the values that the backend itself returns. */
        private void read(int number, String key) throws Exception {
            value.asyncValue().thenAccept(read -> note(key, "value", null, read));
            elements(list.asyncGet()).thenAccept(read -> note(key, "list", null, read));
            for (String mapKey : List.of("a", "")) {
                map.asyncGet(mapKey).thenAccept(read -> note(key, "map", mapKey, read));
            }
            reducing.asyncGet().thenAccept(read -> note(key, "reducing", null, read));
            ValueState<Object> ofValue = lasting(lastingValue);
            ListState<Object> ofList = lasting(lastingList);
            MapState<Integer, Object> ofMap = lasting(lastingMap);
            ofValue.asyncValue()
                    .thenAccept(read -> noteLasting(key, "lasting-value", null, List.of(read)));
            elements(ofList.asyncGet())
                    .thenAccept(read -> noteLasting(key, "lasting-list", null, read));
            ofMap.asyncGet(number)
                    .thenAccept(read -> noteLasting(key, "lasting-map", number, List.of(read)));
            note(key, "_timer_state/event_user-timers", timer(number), timer(number));
        }

        private static long timer(int number) {
            return 4_102_444_800_000L + number;
        }

        private static <T> StateFuture<List<T>> elements(StateFuture<StateIterator<T>> state) {
            List<T> elements = new ArrayList<>();
            return state.thenCompose(read -> read.onNext((T element) -> {
                        elements.add(element);
                    }))
                    .thenApply(done -> elements);
        }

        /**
         * Returns the state inside a state with a time to live. It contains each value with the
         * time of its last access. In Flink 2.2.0, only ForSt supports this with the asynchronous
         * API.
         */
        @SuppressWarnings("unchecked")
        private static <S> S lasting(Object state) {
            return state instanceof AbstractTtlDecorator<?>
                    ? Inside.of(state.getClass(), state, "original")
                    : (S) state;
        }

        private void noteLasting(String key, String state, Object mapKey, List<?> read)
                throws Exception {
            List<Object> values = new ArrayList<>();
            List<Long> times = new ArrayList<>();
            for (Object each : read) {
                if (each instanceof TtlValue<?> ttl) {
                    times.add(ttl.getLastAccessTimestamp());
                    values.add(ttl.getUserValue());
                } else {
                    values.add(each);
                }
            }
            boolean list = state.equals("lasting-list");
            note(key, state, mapKey, list ? values : values.get(0));
            if (!times.isEmpty()) {
                Notes.accessed(operatorId(), state, key, mapKey, list ? times : times.get(0));
            }
        }

        private void note(String key, String state, Object mapKey, Object value) throws Exception {
            Notes.put(operatorId(), state, key, mapKey, value);
        }

        private String operatorId() {
            return ((StreamingRuntimeContext) getRuntimeContext()).getOperatorUniqueID();
        }
    }
}
