package testjobs;

import java.nio.file.Path;
import java.time.Duration;
import java.time.ZoneId;
import java.util.Map;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.serialization.SimpleStringEncoder;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.tuple.Tuple4;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.file.sink.FileSink;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.sink.filesystem.rollingpolicies.OnCheckpointRollingPolicy;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.EventTimeSessionWindows;
import org.apache.flink.streaming.api.windowing.assigners.SlidingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.util.Collector;

/**
 * A stateful job like a user's, over lines {@code user,amount,id,millis}. The job counts the lines
 * and sums the amounts by user, passes on ids that it has not seen, and counts by user and window.
 * Two SQL queries compute some of these results too. The job is stopped with a savepoint in the
 * middle of its input.
 *
 * <p>Arguments: bootstrap servers, topic, the minimum number of records to process in each of the
 * two partitions, checkpoint directory, savepoint directory, sink directory. The program prints the
 * path of the savepoint.
 */
public final class StatefulJob {
    private StatefulJob() {}

    public static void main(String[] args) throws Exception {
        String topic = args[1];
        int records = Integer.parseInt(args[2]);
        Progress.require(Map.of(topic + ":0", records, topic + ":1", records));
        Configuration conf = LocalFlink.configuration(Path.of(args[3]));
        conf.setString("pipeline.auto-watermark-interval", "20 ms");
        StreamExecutionEnvironment env =
                StreamExecutionEnvironment.createLocalEnvironment(2, conf);
        DataStream<Tuple4<Long, Long, String, Long>> events =
                env.fromSource(
                                KafkaLines.source(args[0], "stateful", topic)
                                        .setStartingOffsets(OffsetsInitializer.earliest())
                                        .build(),
                                WatermarkStrategy.noWatermarks(),
                                "kafka")
                        .uid("kafka-source")
                        .map(Progress.Counter.ofPartitions("", 1))
                        .uid("progress")
                        .map(StatefulJob::event)
                        .returns(Types.TUPLE(Types.LONG, Types.LONG, Types.STRING, Types.LONG))
                        .uid("events")
                        .assignTimestampsAndWatermarks(
                                WatermarkStrategy
                                        .<Tuple4<Long, Long, String, Long>>forBoundedOutOfOrderness(
                                                Duration.ofSeconds(2))
                                        .withTimestampAssigner((event, before) -> event.f3))
                        .uid("times");
        events.keyBy(event -> event.f0).process(new Totals()).uid("totals");
        DataStream<String> seen =
                events.keyBy(event -> event.f2).process(new Unseen()).uid("seen");
        DataStream<String> windows =
                events.keyBy(event -> event.f0)
                        .window(TumblingEventTimeWindows.of(Span.seconds(10)))
                        .aggregate(new CountAndSum(), new Told("window"))
                        .uid("windows");
        DataStream<String> lasting =
                events.keyBy(event -> event.f0)
                        .window(TumblingEventTimeWindows.of(Span.seconds(10)))
                        .allowedLateness(Span.seconds(20))
                        .aggregate(new CountAndSum(), new Told("lasting"))
                        .uid("lasting");
        DataStream<String> sessions =
                events.keyBy(event -> event.f0)
                        .window(EventTimeSessionWindows.withGap(Span.seconds(3)))
                        .aggregate(new CountAndSum(), new Told("session"))
                        .uid("sessions");
        DataStream<String> hops =
                events.keyBy(event -> event.f0)
                        .window(SlidingEventTimeWindows.of(Span.seconds(10), Span.seconds(5)))
                        .aggregate(new CountAndSum(), new Told("hop"))
                        .uid("hops");
        seen.union(windows, lasting, sessions, hops)
                .sinkTo(
                        FileSink.forRowFormat(
                                        new org.apache.flink.core.fs.Path(Path.of(args[5]).toUri()),
                                        new SimpleStringEncoder<String>())
                                .withRollingPolicy(OnCheckpointRollingPolicy.build())
                                .build())
                .uid("file-sink");
        tables(env, events);
        JobClient job = env.executeAsync("stateful");
        LocalFlink.awaitProgress(job);
        System.out.println(LocalFlink.stopWithSavepoint(job, Path.of(args[4]), false));
    }

    private static void tables(
            StreamExecutionEnvironment env, DataStream<Tuple4<Long, Long, String, Long>> events) {
        StreamTableEnvironment tables = StreamTableEnvironment.create(env);
        Schema schema =
                Schema.newBuilder()
                        .column("f0", "BIGINT")
                        .column("f1", "BIGINT")
                        .column("f2", "STRING")
                        .build();
        tables.createTemporaryView("events", tables.fromDataStream(events, schema));
        Schema timed =
                Schema.newBuilder()
                        .column("f0", "BIGINT")
                        .column("f1", "BIGINT")
                        .columnByMetadata("at", DataTypes.TIMESTAMP_LTZ(3), "rowtime")
                        .watermark("at", "SOURCE_WATERMARK()")
                        .build();
        tables.createTemporaryView("timed", tables.fromDataStream(events, timed));
        // Windows over a TIMESTAMP_LTZ are stored in the wall-clock time of this time zone.
        tables.getConfig().setLocalTimeZone(ZoneId.of("America/New_York"));
        String[] queries = {
            "SELECT f0, COUNT(*), SUM(f1) FROM events GROUP BY f0",
            "SELECT f0, COUNT(*), SUM(f1) FROM TABLE(TUMBLE(TABLE timed, DESCRIPTOR(`at`),"
                    + " INTERVAL '10' SECOND)) GROUP BY f0, window_start, window_end",
            "SELECT f2 FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY f2 ORDER BY PROCTIME()) AS n"
                    + " FROM events) WHERE n = 1"
        };
        for (int i = 0; i < queries.length; i++) {
            tables.toChangelogStream(tables.sqlQuery(queries[i]))
                    .map(row -> 0)
                    .returns(Types.INT)
                    .uid("query " + i);
        }
    }

    private static Tuple4<Long, Long, String, Long> event(String line) {
        String[] fields = line.split(",");
        return Tuple4.of(
                Long.parseLong(fields[3]),
                Long.parseLong(fields[4]),
                fields[5],
                Long.parseLong(fields[6]));
    }

    private static final class Totals
            extends KeyedProcessFunction<Long, Tuple4<Long, Long, String, Long>, Void> {
        private static final long serialVersionUID = 1L;

        @Override
        public void processElement(
                Tuple4<Long, Long, String, Long> event, Context context, Collector<Void> out)
                throws Exception {
            ValueState<Tuple2<Long, Long>> total =
                    getRuntimeContext()
                            .getState(
                                    new ValueStateDescriptor<>(
                                            "total", Types.TUPLE(Types.LONG, Types.LONG)));
            Tuple2<Long, Long> before = total.value();
            total.update(
                    before == null
                            ? Tuple2.of(1L, event.f1)
                            : Tuple2.of(before.f0 + 1, before.f1 + event.f1));
        }
    }

    private static final class Unseen
            extends KeyedProcessFunction<String, Tuple4<Long, Long, String, Long>, String> {
        private static final long serialVersionUID = 1L;

        @Override
        public void processElement(
                Tuple4<Long, Long, String, Long> event, Context context, Collector<String> out)
                throws Exception {
            ValueState<Boolean> seen =
                    getRuntimeContext()
                            .getState(new ValueStateDescriptor<>("seen", Types.BOOLEAN));
            if (seen.value() == null) {
                seen.update(true);
                out.collect("seen," + event.f2);
            }
        }
    }

    private static final class CountAndSum
            implements AggregateFunction<
                    Tuple4<Long, Long, String, Long>, Tuple2<Long, Long>, Tuple2<Long, Long>> {
        private static final long serialVersionUID = 1L;

        @Override
        public Tuple2<Long, Long> createAccumulator() {
            return Tuple2.of(0L, 0L);
        }

        @Override
        public Tuple2<Long, Long> add(
                Tuple4<Long, Long, String, Long> event, Tuple2<Long, Long> total) {
            return Tuple2.of(total.f0 + 1, total.f1 + event.f1);
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
    private static final class Told
            extends ProcessWindowFunction<Tuple2<Long, Long>, String, Long, TimeWindow> {
        private static final long serialVersionUID = 1L;
        private final String kind;

        private Told(String kind) {
            this.kind = kind;
        }

        @Override
        public void process(
                Long user,
                Context context,
                Iterable<Tuple2<Long, Long>> totals,
                Collector<String> out) {
            Tuple2<Long, Long> total = totals.iterator().next();
            out.collect(
                    String.join(
                            ",",
                            kind,
                            user.toString(),
                            Long.toString(context.window().getStart()),
                            Long.toString(context.window().getEnd()),
                            total.f0.toString(),
                            total.f1.toString()));
        }
    }
}
