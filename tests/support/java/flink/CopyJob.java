package testjobs;

import java.nio.file.Path;
import java.util.Map;
import java.util.Properties;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/**
 * Copies a topic, exactly once, and is stopped with a savepoint.
 *
 * <p>Arguments: bootstrap servers, topic, the number of records to wait for, savepoint directory,
 * the savepoint to restore (or empty), whether the process exits after the savepoint but before the
 * job commits, and then the copies. Each copy is {@code topic=timeout}, with the timeout of its
 * transactions in milliseconds. The program prints the path of the savepoint.
 *
 * <p>The job takes no checkpoint except the savepoint, so all records are in one transaction.
 */
public final class CopyJob {
    private CopyJob() {}

    public static void main(String[] args) throws Exception {
        String bootstrapServers = args[0];
        String topic = args[1];
        Progress.require(Map.of(topic + ":0", Integer.parseInt(args[2])));
        Path savepoints = Path.of(args[3]);
        boolean dies = Boolean.parseBoolean(args[5]);

        Configuration conf = LocalFlink.configuration(savepoints);
        conf.setString("execution.checkpointing.interval", "1 h");
        if (!args[4].isEmpty()) {
            String restored = Path.of(args[4]).toUri().toString();
            conf.setString("execution.savepoint.path", restored);
            conf.setString("execution.state-recovery.path", restored);
        }
        // The operator that ends the process and the sinks that commit are in the same chain, so
        // the same thread runs them. The counter is also in this chain, because the source of a
        // restored job may be ahead of it.
        StreamExecutionEnvironment env =
                StreamExecutionEnvironment.createLocalEnvironment(1, conf);
        DataStream<String> lines =
                env.fromSource(
                                KafkaLines.source(bootstrapServers, "copies", topic)
                                        .setStartingOffsets(OffsetsInitializer.earliest())
                                        .build(),
                                WatermarkStrategy.noWatermarks(),
                                "kafka")
                        .uid("kafka-source")
                        .transform(
                                "die",
                                Types.STRING,
                                new DiesAfterTheSavepoint(dies ? savepoints.toString() : null))
                        .uid("die")
                        .map(Progress.Counter.ofPartitions("", 20))
                        .uid("count");
        for (int i = 6; i < args.length; i++) {
            String[] copy = args[i].split("=");
            lines.sinkTo(sink(bootstrapServers, copy[0], copy[1])).uid(copy[0]);
        }
        JobClient job = env.executeAsync("copies");
        try {
            LocalFlink.awaitProgress(job);
            System.out.println(LocalFlink.stopWithSavepoint(job, savepoints, false));
        } catch (Exception failure) {
            // Exit, because the threads of the mini-cluster would keep running.
            failure.printStackTrace();
            System.exit(1);
        }
    }

    private static KafkaSink<String> sink(String bootstrapServers, String topic, String timeout) {
        Properties producer = new Properties();
        producer.setProperty("transaction.timeout.ms", timeout);
        return ExactlyOnce.of(
                        KafkaSink.<String>builder()
                                .setBootstrapServers(bootstrapServers)
                                .setRecordSerializer(
                                        KafkaRecordSerializationSchema.builder()
                                                .setTopic(topic)
                                                .setValueSerializationSchema(
                                                        new SimpleStringSchema())
                                                .build())
                                .setTransactionalIdPrefix("to-" + topic)
                                .setKafkaProducerConfig(producer))
                .build();
    }
}
