import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.JobStatus;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.core.execution.CheckpointType;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.runtime.jobgraph.JobGraph;
import org.apache.flink.runtime.jobgraph.SavepointRestoreSettings;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.streaming.api.graph.StreamGraph;

/**
 * The job of the playground: it reads the topics orders and payments, and keeps nothing else.
 *
 * <p>Arguments: bootstrap servers, the directories of checkpoints and of savepoints, the ids of its
 * first and its second run. Lines of standard input say what happens next, and each is answered by
 * the path that it led to: {@code checkpoint N} waits until N records are read and takes a
 * checkpoint; {@code restart} cancels the job, which keeps its checkpoints, and starts it again from
 * the newest; {@code stop N} waits as well, and stops it with a savepoint.
 */
public final class PlaygroundJob {
    private static final long PATIENCE_SECONDS = 90;
    private static final AtomicLong READ = new AtomicLong();

    private PlaygroundJob() {}

    public static void main(String[] args) throws Exception {
        String checkpoints = args[1];
        String newest = null;
        try (MiniCluster cluster = cluster()) {
            cluster.start();
            JobID job = start(cluster, args, args[3], null);
            BufferedReader lines =
                    new BufferedReader(
                            new InputStreamReader(System.in, StandardCharsets.UTF_8));
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                String[] words = line.split(" ");
                if (words[0].equals("restart")) {
                    cluster.cancelJob(job).get(PATIENCE_SECONDS, TimeUnit.SECONDS);
                    await(cluster, job, JobStatus.CANCELED);
                    job = start(cluster, args, args[4], newest);
                    System.out.println(newest);
                    continue;
                }
                awaitRecords(Long.parseLong(words[1]));
                if (words[0].equals("checkpoint")) {
                    long number =
                            cluster.triggerCheckpoint(job, CheckpointType.CONFIGURED)
                                    .get(PATIENCE_SECONDS, TimeUnit.SECONDS);
                    newest = checkpoints + "/" + job + "/chk-" + number;
                    System.out.println(newest);
                } else {
                    System.out.println(
                            cluster.stopWithSavepoint(
                                            job, args[2], false, SavepointFormatType.CANONICAL)
                                    .get(PATIENCE_SECONDS, TimeUnit.SECONDS));
                    await(cluster, job, JobStatus.FINISHED);
                }
            }
        }
    }

    private static MiniCluster cluster() {
        Configuration conf = new Configuration();
        conf.setString("rest.address", "127.0.0.1");
        conf.setString("rest.bind-address", "127.0.0.1");
        conf.setString("rest.port", "0");
        conf.setString("rest.bind-port", "0");
        conf.setString("taskmanager.memory.network.min", "32 mb");
        conf.setString("taskmanager.memory.network.max", "32 mb");
        conf.setString("taskmanager.memory.managed.size", "64 mb");
        conf.setString("execution.checkpointing.num-retained", "3");
        return new MiniCluster(
                new MiniClusterConfiguration.Builder()
                        .setConfiguration(conf)
                        .setNumTaskManagers(1)
                        .setNumSlotsPerTaskManager(2)
                        .build());
    }

    private static JobID start(MiniCluster cluster, String[] args, String id, String restored)
            throws Exception {
        Configuration conf = new Configuration();
        conf.setString("execution.checkpointing.dir", args[1]);
        // Each is asked for, so that there are as many wherever this runs.
        conf.setString("execution.checkpointing.interval", "1 d");
        conf.setString(
                "execution.checkpointing.externalized-checkpoint-retention",
                "RETAIN_ON_CANCELLATION");
        StreamExecutionEnvironment env =
                StreamExecutionEnvironment.getExecutionEnvironment(conf);
        env.setParallelism(2);
        KafkaSource<String> source =
                KafkaSource.<String>builder()
                        .setBootstrapServers(args[0])
                        .setGroupId("playground")
                        .setTopics("orders", "payments")
                        .setStartingOffsets(OffsetsInitializer.earliest())
                        .setValueOnlyDeserializer(new SimpleStringSchema())
                        .build();
        env.fromSource(source, WatermarkStrategy.noWatermarks(), "Kafka orders, payments")
                .uid("orders-and-payments")
                .map(
                        line -> {
                            READ.incrementAndGet();
                            return line;
                        })
                .returns(String.class)
                .sinkTo(new DiscardingSink<>());
        StreamGraph graph = env.getStreamGraph();
        graph.setJobName("playground");
        JobGraph job = graph.getJobGraph();
        job.setJobID(JobID.fromHexString(id));
        if (restored != null) {
            job.setSavepointRestoreSettings(SavepointRestoreSettings.forPath(restored));
        }
        cluster.submitJob(job).get(PATIENCE_SECONDS, TimeUnit.SECONDS);
        await(cluster, job.getJobID(), JobStatus.RUNNING);
        return job.getJobID();
    }

    private static void await(MiniCluster cluster, JobID job, JobStatus wanted) throws Exception {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_SECONDS);
        JobStatus status = null;
        while (status != wanted) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException("the job is " + status + ", not " + wanted);
            }
            Thread.sleep(50);
            status = cluster.getJobStatus(job).get(PATIENCE_SECONDS, TimeUnit.SECONDS);
        }
    }

    private static void awaitRecords(long count) throws Exception {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_SECONDS);
        while (READ.get() < count) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException(READ.get() + " records read, not " + count);
            }
            Thread.sleep(50);
        }
    }
}
