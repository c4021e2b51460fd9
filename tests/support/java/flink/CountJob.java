package testjobs;

import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.kafka.source.KafkaSourceBuilder;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/**
 * Counts the records of each partition in keyed state, and leaves a savepoint or a checkpoint.
 *
 * <p>Arguments:
 *
 * <ul>
 *   <li>the bootstrap servers
 *   <li>the topics, separated by commas; a kind of source other than KafkaSource is specified in
 *       front of the topic, as in {@code Hybrid=topic} (see {@link LineSource})
 *   <li>the number of records to wait for in each partition ({@code topic:partition=count,...})
 *   <li>the parallelism
 *   <li>the checkpoint directory
 *   <li>the savepoint directory; if empty, the job is cancelled and retains a checkpoint
 *   <li>the checkpoint or savepoint to restore, of which all state must fit; may be empty
 *   <li>options, {@code name=value}; {@code testjobs.starting-offsets} is earliest (the default),
 *       latest, or committed
 * </ul>
 *
 * <p>The program prints the path of the savepoint or checkpoint, and a line for each record: {@code
 * topic,partition,offset,value}, a space, and the count.
 */
public final class CountJob {
    private static final List<String> COUNTED = new CopyOnWriteArrayList<>();
    /** Long enough to discover partitions, which happens every 500 ms, and to reread records. */
    private static final long WHAT_COMES_TOO_MUCH_MILLIS = 2000;

    private CountJob() {}

    public static void main(String[] args) throws Exception {
        Map<String, Integer> required = new HashMap<>();
        for (String pair : args[2].split(",")) {
            required.put(pair.split("=")[0], Integer.parseInt(pair.split("=")[1]));
        }
        Progress.require(required);
        Path checkpoints = Path.of(args[4]);
        Configuration conf = LocalFlink.configuration(checkpoints);
        if (!args[6].isEmpty()) {
            String restored = Path.of(args[6]).toUri().toString();
            conf.setString("execution.savepoint.path", restored);
            conf.setString("execution.state-recovery.path", restored);
            conf.setString("execution.savepoint.ignore-unclaimed-state", "false");
            conf.setString("execution.state-recovery.ignore-unclaimed-state", "false");
        }
        Arrays.stream(args, 7, args.length)
                .map(option -> option.split("=", 2))
                .forEach(option -> conf.setString(option[0], option[1]));
        StreamExecutionEnvironment env =
                StreamExecutionEnvironment.createLocalEnvironment(
                        Integer.parseInt(args[3]), conf);
        String[] topics = args[1].split(",");
        KafkaSourceBuilder<String> source =
                KafkaLines.source(
                                args[0],
                                "counts",
                                Arrays.stream(topics)
                                        .filter(topic -> !topic.contains("="))
                                        .toArray(String[]::new))
                        .setStartingOffsets(startingOffsets(conf));
        // For a position that was deleted from the log, KafkaSource uses its own reset strategy
        // instead of this property.
        source.setProperty("auto.offset.reset", "earliest");
        if (!args[6].isEmpty()) {
            // A restored job must read all records, so allow large fetches.
            source.setProperty("max.partition.fetch.bytes", "1048576");
            source.setProperty("fetch.max.bytes", "1048576");
        }
        DataStream<String> lines =
                env.fromSource(
                                source.build(),
                                WatermarkStrategy.noWatermarks(),
                                "kafka")
                        .uid("kafka-source");
        for (String topic : topics) {
            if (topic.contains("=")) {
                String[] kind = topic.split("=");
                LineSource more =
                        Parts.find(LineSource.class, kind[0] + "LineSource").orElseThrow();
                lines = lines.union(more.read(env, args[0], kind[1]));
            }
        }
        lines.map(Progress.Counter.ofPartitions("", 5))
                .keyBy(Progress::partitionOf, Types.STRING)
                .map(new Count())
                .uid("count");
        JobClient job = env.executeAsync("counts");
        try {
            LocalFlink.awaitProgress(job);
            if (!args[6].isEmpty()) {
                Thread.sleep(WHAT_COMES_TOO_MUCH_MILLIS);
            }
            System.out.println(
                    args[5].isEmpty()
                            ? LocalFlink.cancelWithCheckpoint(job, checkpoints)
                            : LocalFlink.stopWithSavepoint(job, Path.of(args[5]), false));
        } catch (Exception failure) {
            // Exit, because the threads of the mini-cluster would keep running.
            failure.printStackTrace();
            System.exit(1);
        }
        COUNTED.forEach(System.out::println);
    }

    private static final class Count extends RichMapFunction<String, String> {
        private static final long serialVersionUID = 1L;

        @Override
        public String map(String line) throws Exception {
            ValueState<Long> count =
                    getRuntimeContext()
                            .getState(new ValueStateDescriptor<>("count", Types.LONG));
            long now = count.value() == null ? 1 : count.value() + 1;
            count.update(now);
            COUNTED.add(line + " " + now);
            return line;
        }
    }

    private static OffsetsInitializer startingOffsets(Configuration conf) {
        switch (conf.toMap().getOrDefault("testjobs.starting-offsets", "earliest")) {
            case "latest":
                return OffsetsInitializer.latest();
            case "committed":
                return OffsetsInitializer.committedOffsets();
            default:
                return OffsetsInitializer.earliest();
        }
    }
}
