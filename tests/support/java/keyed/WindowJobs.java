package testjobs;

import static testjobs.KeyedJob.Form.CANONICAL;
import static testjobs.KeyedJob.Form.NATIVE;

import org.apache.flink.api.common.eventtime.Watermark;
import org.apache.flink.api.common.eventtime.WatermarkGenerator;
import org.apache.flink.api.common.eventtime.WatermarkOutput;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.functions.ReduceFunction;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.KeyedStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.co.ProcessJoinFunction;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.EventTimeSessionWindows;
import org.apache.flink.streaming.api.windowing.assigners.SlidingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.Window;
import org.apache.flink.util.Collector;

/** Jobs with the windows and joins of the DataStream API. */
final class WindowJobs implements KeyedJobBook {
    private static final long START = 1_700_000_000_000L;

    @Override
    public KeyedJob named(String name) {
        return name.equals("windows")
                ? KeyedJob.of(WindowJobs::windows, CANONICAL, NATIVE).in(1, 16)
                : null;
    }

    /** Adds windows over (key, time, value) events; all windows are still open at the snapshot. */
    private static void windows(StreamExecutionEnvironment env) {
        events(env, "tumbling").window(TumblingEventTimeWindows.of(Span.seconds(10)))
                .reduce(new Sum())
                .uid("tumbling");
        events(env, "sliding")
                .window(SlidingEventTimeWindows.of(Span.seconds(20), Span.seconds(10)))
                .aggregate(new Count())
                .uid("sliding");
        sessions(env);
        events(env, "session-lists")
                .window(EventTimeSessionWindows.withGap(Span.seconds(5)))
                .process(new Nothing<>())
                .uid("session-lists");
        events(env, "late")
                .window(TumblingEventTimeWindows.of(Span.seconds(2)))
                .allowedLateness(Span.seconds(3600))
                .process(new Nothing<>())
                .uid("late");
        events(env, "counted").countWindow(4).reduce(new Sum()).uid("counted");
        events(env, "evicted").countWindow(3, 2).process(new Nothing<>()).uid("evicted");
        events(env, "left")
                .intervalJoin(events(env, "right"))
                .between(Span.seconds(-2), Span.seconds(600))
                .process(new NoPair())
                .uid("interval-join");
    }

    static void sessions(StreamExecutionEnvironment env) {
        events(env, "sessions")
                .window(EventTimeSessionWindows.withGap(Span.seconds(5)))
                .reduce(new Sum())
                .uid("sessions");
    }

    private static KeyedStream<Tuple3<String, Long, Long>, String> events(
            StreamExecutionEnvironment env, String name) {
        DataStream<Integer> numbers =
                env.fromSource(
                                new Numbers(name, 12),
                                WatermarkStrategy.noWatermarks(),
                                "numbers of " + name)
                        .uid("numbers of " + name);
        return numbers.map(n -> Tuple3.of("key-" + n % 3, START + n * n * 700L, (long) n))
                .returns(Types.TUPLE(Types.STRING, Types.LONG, Types.LONG))
                .uid("events of " + name)
                .assignTimestampsAndWatermarks(
                        WatermarkStrategy.<Tuple3<String, Long, Long>>forGenerator(
                                        context -> new AfterEachEvent<>())
                                .withTimestampAssigner((event, before) -> event.f1))
                .uid("times of " + name)
                .keyBy(event -> event.f0);
    }

    /** Emits, after each event, a watermark that is eight seconds behind this event. */
    static final class AfterEachEvent<T> implements WatermarkGenerator<T> {
        @Override
        public void onEvent(T event, long time, WatermarkOutput output) {
            output.emitWatermark(new Watermark(time - 8_000));
        }

        @Override
        public void onPeriodicEmit(WatermarkOutput output) {}
    }

    private static final class Sum implements ReduceFunction<Tuple3<String, Long, Long>> {
        private static final long serialVersionUID = 1L;

        @Override
        public Tuple3<String, Long, Long> reduce(
                Tuple3<String, Long, Long> one, Tuple3<String, Long, Long> other) {
            return Tuple3.of(one.f0, other.f1, one.f2 + other.f2);
        }
    }

    private static final class Count
            implements AggregateFunction<Tuple3<String, Long, Long>, Long, Long> {
        private static final long serialVersionUID = 1L;

        @Override
        public Long createAccumulator() {
            return 0L;
        }

        @Override
        public Long add(Tuple3<String, Long, Long> event, Long count) {
            return count + 1;
        }

        @Override
        public Long getResult(Long count) {
            return count;
        }

        @Override
        public Long merge(Long one, Long other) {
            return one + other;
        }
    }

    private static final class Nothing<W extends Window>
            extends ProcessWindowFunction<Tuple3<String, Long, Long>, Void, String, W> {
        private static final long serialVersionUID = 1L;

        @Override
        public void process(
                String key,
                Context context,
                Iterable<Tuple3<String, Long, Long>> events,
                Collector<Void> out) {}
    }

    private static final class NoPair
            extends ProcessJoinFunction<
                    Tuple3<String, Long, Long>, Tuple3<String, Long, Long>, Void> {
        private static final long serialVersionUID = 1L;

        @Override
        public void processElement(
                Tuple3<String, Long, Long> left,
                Tuple3<String, Long, Long> right,
                Context context,
                Collector<Void> out) {}
    }
}
