package testjobs;

import java.nio.file.Path;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.state.StateTtlConfig;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.types.Row;
import org.apache.flink.types.RowKind;
import org.apache.flink.util.Collector;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Counts lines {@code user,amount} by user, in state with a time to live, with a function and with
 * SQL. Before the job is stopped, most users are idle for longer than the time to live. The job is
 * then restarted from its savepoint, and reads new records of all users.
 *
 * <p>Arguments: bootstrap servers, topic, time to live in seconds, checkpoint directory, savepoint
 * directory. The program prints the path of the first savepoint, and then the last result of the
 * restarted job for each user: {@code function|sql,user,count,sum}.
 */
public final class IdleKeysJob {
    private static final Map<String, String> LAST = new ConcurrentHashMap<>();

    private IdleKeysJob() {}

    public static void main(String[] args) throws Exception {
        String topic = args[1];
        int seconds = Integer.parseInt(args[2]);
        Properties kafka = new Properties();
        kafka.setProperty("bootstrap.servers", args[0]);
        Path savepoint;
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(kafka, new StringSerializer(), new StringSerializer())) {
            produce(producer, topic, 0, 200, 3);
            JobClient job = start(args, seconds, null);
            LocalFlink.awaitProgress(job);
            Thread.sleep(seconds * 1000L + 1000);
            produce(producer, topic, 195, 205, 1);
            LocalFlink.awaitProgress(job);
            savepoint = LocalFlink.stopWithSavepoint(job, Path.of(args[4]), false);
            LAST.clear();
            produce(producer, topic, 0, 220, 2);
        }
        JobClient again = start(args, seconds, savepoint);
        LocalFlink.awaitProgress(again);
        LocalFlink.stopWithSavepoint(again, Path.of(args[4], "again"), false);
        System.out.println(savepoint);
        new TreeMap<>(LAST).forEach((key, told) -> System.out.println(key + "," + told));
    }

    /** Produces records for each user, and makes {@link Progress} wait for them. */
    private static void produce(
            KafkaProducer<String, String> producer, String topic, int from, int to, int each)
            throws Exception {
        Progress.require(Map.of(topic + ":0", (to - from) * each));
        for (int i = 0; i < each; i++) {
            for (int user = from; user < to; user++) {
                producer.send(new ProducerRecord<>(topic, 0, null, user + "," + (user % 7 + i)));
            }
        }
        producer.flush();
    }

    private static JobClient start(String[] args, int seconds, Path savepoint) throws Exception {
        Configuration conf = LocalFlink.configuration(Path.of(args[3]));
        if (savepoint != null) {
            conf.setString("execution.state-recovery.path", savepoint.toUri().toString());
            conf.setString("execution.savepoint.path", savepoint.toUri().toString());
        }
        StreamExecutionEnvironment env =
                StreamExecutionEnvironment.createLocalEnvironment(1, conf);
        DataStream<Tuple2<Long, Long>> events =
                env.fromSource(
                                KafkaLines.source(args[0], "idle-keys", args[1])
                                        .setStartingOffsets(OffsetsInitializer.earliest())
                                        .build(),
                                WatermarkStrategy.noWatermarks(),
                                "kafka")
                        .uid("kafka-source")
                        .map(Progress.Counter.ofPartitions("", 0))
                        .uid("progress")
                        .map(IdleKeysJob::event)
                        .returns(Types.TUPLE(Types.LONG, Types.LONG))
                        .uid("events");
        events.keyBy(event -> event.f0).process(new Totals(seconds)).uid("totals");
        StreamTableEnvironment tables = StreamTableEnvironment.create(env);
        tables.getConfig().set("table.exec.state.ttl", seconds + " s");
        Schema schema =
                Schema.newBuilder().column("f0", "BIGINT").column("f1", "BIGINT").build();
        tables.createTemporaryView("events", tables.fromDataStream(events, schema));
        tables.toChangelogStream(
                        tables.sqlQuery("SELECT f0, COUNT(*), SUM(f1) FROM events GROUP BY f0"))
                .map(IdleKeysJob::keep)
                .returns(Types.INT)
                .uid("groups");
        return env.executeAsync("idle keys");
    }

    private static Tuple2<Long, Long> event(String line) {
        String[] fields = line.split(",");
        return Tuple2.of(Long.parseLong(fields[3]), Long.parseLong(fields[4]));
    }

    private static int keep(Row row) {
        if (row.getKind() == RowKind.INSERT || row.getKind() == RowKind.UPDATE_AFTER) {
            LAST.put("sql," + row.getField(0), row.getField(1) + "," + row.getField(2));
        }
        return 0;
    }

    private static final class Totals
            extends KeyedProcessFunction<Long, Tuple2<Long, Long>, Void> {
        private static final long serialVersionUID = 1L;
        private final int seconds;

        private Totals(int seconds) {
            this.seconds = seconds;
        }

        @Override
        public void processElement(
                Tuple2<Long, Long> event, Context context, Collector<Void> out) throws Exception {
            ValueStateDescriptor<Tuple2<Long, Long>> state =
                    new ValueStateDescriptor<>("total", Types.TUPLE(Types.LONG, Types.LONG));
            state.enableTimeToLive(StateTtlConfig.newBuilder(Span.ofLife(seconds)).build());
            ValueState<Tuple2<Long, Long>> total = getRuntimeContext().getState(state);
            Tuple2<Long, Long> before = total.value();
            Tuple2<Long, Long> now =
                    before == null
                            ? Tuple2.of(1L, event.f1)
                            : Tuple2.of(before.f0 + 1, before.f1 + event.f1);
            total.update(now);
            LAST.put("function," + event.f0, now.f0 + "," + now.f1);
        }
    }
}
