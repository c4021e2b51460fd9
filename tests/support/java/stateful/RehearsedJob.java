package testjobs;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.serialization.SimpleStringEncoder;
import org.apache.flink.api.common.state.StateTtlConfig;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.api.java.tuple.Tuple4;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.file.sink.FileSink;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.sink.filesystem.rollingpolicies.OnCheckpointRollingPolicy;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.EventTimeSessionWindows;
import org.apache.flink.streaming.api.windowing.assigners.SlidingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;

/**
 * A stateful job over lines {@code name,amount,id,millis}, in which an amount may be empty. The job
 * counts the lines and sums the amounts by name, except for lines with a negative amount, which it
 * writes to the sink. It also passes on ids that are new within an hour, and counts lines by name
 * and window.
 *
 * <p>Arguments: bootstrap servers, topic, the minimum number of records in each of the two
 * partitions before the first snapshot, the number of additional records before the second one,
 * {@code savepoint} or {@code checkpoint}, checkpoint directory, savepoint directory, and sink
 * directory. The program prints the paths of both snapshots, and keeps running until standard input
 * ends.
 */
public final class RehearsedJob {
    private static final long NONE = Long.MIN_VALUE;

    private RehearsedJob() {}

    public static void main(String[] args) throws Exception {
        String topic = args[1];
        require(topic, args[2]);
        Path checkpoints = Path.of(args[5]);
        Configuration conf = LocalFlink.configuration(checkpoints);
        // The job keeps running until its tests end.
        conf.setString("execution.checkpointing.interval", "1 s");
        conf.setString("pipeline.auto-watermark-interval", "20 ms");
        conf.setString("state.checkpoints.num-retained", "100000");
        conf.setString("execution.checkpointing.num-retained", "100000");
        StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment(2, conf);
        DataStream<Tuple4<String, Long, String, Long>> events =
                env.fromSource(
                                KafkaLines.source(args[0], "rehearsed", topic)
                                        .setStartingOffsets(OffsetsInitializer.earliest())
                                        .build(),
                                WatermarkStrategy.noWatermarks(),
                                "kafka")
                        .uid("kafka-source")
                        .map(Progress.Counter.ofPartitions("", 1))
                        .uid("progress")
                        .map(RehearsedJob::event)
                        .returns(Types.TUPLE(Types.STRING, Types.LONG, Types.STRING, Types.LONG))
                        .uid("events")
                        .assignTimestampsAndWatermarks(
                                WatermarkStrategy
                                        .<Tuple4<String, Long, String, Long>>forBoundedOutOfOrderness(
                                                Duration.ofSeconds(2))
                                        .withTimestampAssigner((event, before) -> event.f3))
                        .uid("times");
        events.filter(event -> event.f1 == NONE || event.f1 >= 0)
                .uid("orders")
                .keyBy(event -> event.f0)
                .process(new Totals())
                .uid("totals");
        events.keyBy(event -> event.f0).process(new Open()).uid("open");
        events.filter(event -> event.f1 != NONE)
                .uid("priced")
                .keyBy(event -> event.f0)
                .process(new Prices())
                .uid("prices");
        DataStream<String> refunds =
                events.filter(event -> event.f1 != NONE && event.f1 < 0)
                        .uid("refunds")
                        .map(event -> String.join(",", "refund", event.f0, event.f1.toString()))
                        .uid("refund-lines");
        DataStream<String> seen =
                events.keyBy(event -> event.f2).process(new Unseen()).uid("seen");
        DataStream<String> windows =
                events.keyBy(event -> event.f0)
                        .window(TumblingEventTimeWindows.of(Span.seconds(10)))
                        .aggregate(new CountAndSum(), new Line("window"))
                        .uid("windows");
        DataStream<String> hops =
                events.keyBy(event -> event.f0)
                        .window(SlidingEventTimeWindows.of(Span.seconds(10), Span.seconds(5)))
                        .aggregate(new CountAndSum(), new Line("hop"))
                        .uid("hops");
        DataStream<String> sessions =
                events.keyBy(event -> event.f0)
                        .window(EventTimeSessionWindows.withGap(Span.seconds(3)))
                        .aggregate(new CountAndSum(), new Line("session"))
                        .uid("sessions");
        seen.union(refunds, windows, hops, sessions)
                .sinkTo(
                        FileSink.forRowFormat(
                                        new org.apache.flink.core.fs.Path(Path.of(args[7]).toUri()),
                                        new SimpleStringEncoder<String>())
                                .withRollingPolicy(OnCheckpointRollingPolicy.build())
                                .build())
                .uid("file-sink");
        JobClient job = env.executeAsync("rehearsed");
        boolean savepoints = args[4].equals("savepoint");
        LocalFlink.awaitProgress(job);
        System.out.println(snapshot(job, savepoints, checkpoints, Path.of(args[6])));
        require(topic, args[3]);
        LocalFlink.awaitProgress(job);
        System.out.println(snapshot(job, savepoints, checkpoints, Path.of(args[6])));
        System.out.flush();
        while (System.in.read() >= 0) {}
        LocalFlink.cancel(job);
    }

    private static void require(String topic, String records) {
        int atLeast = Integer.parseInt(records);
        Progress.require(Map.of(topic + ":0", atLeast, topic + ":1", atLeast));
    }

    private static Path snapshot(
            JobClient job, boolean savepoint, Path checkpoints, Path savepoints) throws Exception {
        return savepoint
                ? LocalFlink.savepointOfRunning(job, savepoints, SavepointFormatType.CANONICAL)
                : LocalFlink.nextCheckpoint(job, checkpoints);
    }

    private static Tuple4<String, Long, String, Long> event(String line) {
        String[] fields = line.split(",");
        return Tuple4.of(
                fields[3],
                fields[4].isEmpty() ? NONE : Long.parseLong(fields[4]),
                fields[5],
                Long.parseLong(fields[6]));
    }

    private static final class Totals
            extends KeyedProcessFunction<String, Tuple4<String, Long, String, Long>, Void> {
        private static final long serialVersionUID = 1L;

        @Override
        public void processElement(
                Tuple4<String, Long, String, Long> event, Context context, Collector<Void> out)
                throws Exception {
            ValueState<Tuple3<Long, Long, Long>> total =
                    getRuntimeContext()
                            .getState(
                                    new ValueStateDescriptor<>(
                                            "total",
                                            Types.TUPLE(Types.LONG, Types.LONG, Types.LONG)));
            Tuple3<Long, Long, Long> before = total.value();
            if (before == null) {
                before = Tuple3.of(0L, 0L, 0L);
            }
            boolean has = event.f1 != NONE;
            total.update(
                    Tuple3.of(
                            before.f0 + 1,
                            before.f1 + (has ? 1 : 0),
                            before.f2 + (has ? event.f1 : 0)));
        }
    }

    /** Counts the records of a name since its last negative amount, which clears the count. */
    private static final class Open
            extends KeyedProcessFunction<String, Tuple4<String, Long, String, Long>, Void> {
        private static final long serialVersionUID = 1L;

        @Override
        public void processElement(
                Tuple4<String, Long, String, Long> event, Context context, Collector<Void> out)
                throws Exception {
            ValueStateDescriptor<Long> state = new ValueStateDescriptor<>("open", Types.LONG);
            state.enableTimeToLive(StateTtlConfig.newBuilder(Span.ofLife(604800)).build());
            ValueState<Long> open = getRuntimeContext().getState(state);
            if (event.f1 != NONE && event.f1 < 0) {
                open.clear();
            } else {
                open.update(open.value() == null ? 1L : open.value() + 1);
            }
        }
    }

    /** The number of amounts, and the sum of a tenth of each, as a floating-point number. */
    private static final class Prices
            extends KeyedProcessFunction<String, Tuple4<String, Long, String, Long>, Void> {
        private static final long serialVersionUID = 1L;

        @Override
        public void processElement(
                Tuple4<String, Long, String, Long> event, Context context, Collector<Void> out)
                throws Exception {
            ValueState<Tuple2<Long, Double>> state =
                    getRuntimeContext()
                            .getState(
                                    new ValueStateDescriptor<>(
                                            "price", Types.TUPLE(Types.LONG, Types.DOUBLE)));
            Tuple2<Long, Double> before = state.value();
            if (before == null) {
                before = Tuple2.of(0L, 0.0);
            }
            state.update(Tuple2.of(before.f0 + 1, before.f1 + event.f1 * 0.1));
        }
    }

    private static final class Unseen
            extends KeyedProcessFunction<String, Tuple4<String, Long, String, Long>, String> {
        private static final long serialVersionUID = 1L;

        @Override
        public void processElement(
                Tuple4<String, Long, String, Long> event, Context context, Collector<String> out)
                throws Exception {
            ValueStateDescriptor<Boolean> state =
                    new ValueStateDescriptor<>("seen", Types.BOOLEAN);
            state.enableTimeToLive(StateTtlConfig.newBuilder(Span.ofLife(3600)).build());
            ValueState<Boolean> seen = getRuntimeContext().getState(state);
            if (seen.value() == null) {
                seen.update(true);
                out.collect("seen," + event.f2);
            }
        }
    }

    /** The number of records, and the sum of their amounts. */
    private static final class CountAndSum
            implements AggregateFunction<
                    Tuple4<String, Long, String, Long>, Tuple2<Long, Long>, Tuple2<Long, Long>> {
        private static final long serialVersionUID = 1L;

        @Override
        public Tuple2<Long, Long> createAccumulator() {
            return Tuple2.of(0L, 0L);
        }

        @Override
        public Tuple2<Long, Long> add(
                Tuple4<String, Long, String, Long> event, Tuple2<Long, Long> total) {
            return Tuple2.of(total.f0 + 1, total.f1 + (event.f1 == NONE ? 0 : event.f1));
        }

        @Override
        public Tuple2<Long, Long> getResult(Tuple2<Long, Long> total) {
            return total;
        }

        @Override
        public Tuple2<Long, Long> merge(Tuple2<Long, Long> one, Tuple2<Long, Long> other) {
            return Tuple2.of(one.f0 + other.f0, one.f1 + other.f1);
        }
    }

    /** Formats a fired window as a line. */
    private static final class Line
            extends ProcessWindowFunction<Tuple2<Long, Long>, String, String, TimeWindow> {
        private static final long serialVersionUID = 1L;
        private final String kind;

        private Line(String kind) {
            this.kind = kind;
        }

        @Override
        public void process(
                String name,
                Context context,
                Iterable<Tuple2<Long, Long>> totals,
                Collector<String> out) {
            Tuple2<Long, Long> total = totals.iterator().next();
            out.collect(
                    String.join(
                            ",",
                            kind,
                            name,
                            Long.toString(context.window().getStart()),
                            Long.toString(context.window().getEnd()),
                            total.f0.toString(),
                            total.f1.toString()));
        }
    }
}
