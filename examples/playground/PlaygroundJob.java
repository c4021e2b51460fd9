import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Paths;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.JobStatus;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SimpleStringEncoder;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.file.sink.FileSink;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.core.execution.CheckpointType;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.core.fs.Path;
import org.apache.flink.runtime.jobgraph.JobGraph;
import org.apache.flink.runtime.jobgraph.SavepointRestoreSettings;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.filesystem.bucketassigners.BasePathBucketAssigner;
import org.apache.flink.streaming.api.functions.sink.filesystem.rollingpolicies.OnCheckpointRollingPolicy;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.streaming.api.graph.StreamGraph;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * The Flink of the playground: a session cluster in one process, and its two jobs.
 *
 * <p>The job playground reads the topics orders and payments, and its only state is its positions.
 * The job clicks copies the topic clicks into files until the user stops it. This program writes a
 * few clicks per second.
 *
 * <p>Arguments: bootstrap servers, the port of the REST interface, the directory of the playground,
 * the ids of the first and the second run of the job playground, and the id of the job clicks. Each
 * line of standard input is a command. The program answers it with one line, a path or a job id.
 * {@code checkpoint N} waits until N records have been read, and takes a checkpoint. {@code
 * restart} cancels the job, whose checkpoints are retained, and restarts it from the newest one.
 * {@code stop N} also waits, and then stops the job with a savepoint. {@code clicks} starts the job
 * clicks, and the program then runs until it is killed. If {@code clicks} was not among the
 * commands, the program ends at the end of standard input.
 */
public final class PlaygroundJob {
    private static final long PATIENCE_SECONDS = 90;
    private static final long PAUSE_MILLISECONDS = 200;
    private static final AtomicLong READ = new AtomicLong();

    private PlaygroundJob() {}

    public static void main(String[] args) throws Exception {
        String home = Paths.get(args[2]).toUri().toString(); // ends with a slash
        String newest = null;
        boolean clicks = false;
        try (MiniCluster cluster = cluster(args[1], args[2])) {
            cluster.start();
            JobID job = submit(cluster, reading(args[0], home), args[3], null);
            BufferedReader lines =
                    new BufferedReader(
                            new InputStreamReader(System.in, StandardCharsets.UTF_8));
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                String[] words = line.split(" ");
                if (words[0].equals("restart")) {
                    cluster.cancelJob(job).get(PATIENCE_SECONDS, TimeUnit.SECONDS);
                    await(cluster, job, JobStatus.CANCELED);
                    job = submit(cluster, reading(args[0], home), args[4], newest);
                    System.out.println(newest);
                    continue;
                }
                if (words[0].equals("clicks")) {
                    job = submit(cluster, named(clicks(args[0], home), "clicks"), args[5], null);
                    long before = READ.get();
                    startWriter(args[0]);
                    awaitRecords(before + 1);
                    cluster.triggerCheckpoint(job, CheckpointType.CONFIGURED)
                            .get(PATIENCE_SECONDS, TimeUnit.SECONDS);
                    clicks = true;
                    System.out.println(job);
                    continue;
                }
                awaitRecords(Long.parseLong(words[1]));
                if (words[0].equals("checkpoint")) {
                    long number =
                            cluster.triggerCheckpoint(job, CheckpointType.CONFIGURED)
                                    .get(PATIENCE_SECONDS, TimeUnit.SECONDS);
                    newest = home + "checkpoints/" + job + "/chk-" + number;
                    System.out.println(newest);
                } else {
                    System.out.println(
                            cluster.stopWithSavepoint(
                                            job,
                                            home + "savepoints",
                                            false,
                                            SavepointFormatType.CANONICAL)
                                    .get(PATIENCE_SECONDS, TimeUnit.SECONDS));
                    await(cluster, job, JobStatus.FINISHED);
                }
            }
            if (clicks) {
                Thread.currentThread().join();
            }
        }
    }

    private static MiniCluster cluster(String port, String home) {
        Configuration conf = new Configuration();
        conf.setString("rest.address", "127.0.0.1");
        conf.setString("rest.bind-address", "127.0.0.1");
        conf.setString("rest.port", port);
        conf.setString("rest.bind-port", port);
        conf.setString("io.tmp.dirs", home + "/flink/tmp");
        conf.setString("web.tmpdir", home + "/flink/tmp");
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

    /** The job playground. Only commands trigger its checkpoints, so their number is constant. */
    private static StreamGraph reading(String brokers, String home) {
        StreamExecutionEnvironment env = environment(home + "checkpoints", "1 d");
        env.setParallelism(2);
        read(env, brokers, "orders-and-payments", "orders", "payments")
                .sinkTo(new DiscardingSink<>());
        return named(env, "playground");
    }

    /** The job clicks. Each checkpoint, and the savepoint of a stop, finishes the current file. */
    static StreamExecutionEnvironment clicks(String brokers, String home) {
        StreamExecutionEnvironment env = environment(home + "clicks/checkpoints", "5 s");
        env.setParallelism(1);
        read(env, brokers, "clicks", "clicks")
                .sinkTo(
                        FileSink.forRowFormat(
                                        new Path(home + "clicks/flink"),
                                        new SimpleStringEncoder<String>())
                                .withBucketAssigner(new BasePathBucketAssigner<>())
                                .withRollingPolicy(OnCheckpointRollingPolicy.build())
                                .build())
                .name("Files")
                .uid("files");
        return env;
    }

    private static StreamExecutionEnvironment environment(String checkpoints, String interval) {
        Configuration conf = new Configuration();
        conf.setString("execution.checkpointing.dir", checkpoints);
        conf.setString("execution.checkpointing.interval", interval);
        conf.setString(
                "execution.checkpointing.externalized-checkpoint-retention",
                "RETAIN_ON_CANCELLATION");
        return StreamExecutionEnvironment.getExecutionEnvironment(conf);
    }

    /** The records of these topics, each counted in READ. */
    private static DataStream<String> read(
            StreamExecutionEnvironment env, String brokers, String uid, String... topics) {
        KafkaSource<String> source =
                KafkaSource.<String>builder()
                        .setBootstrapServers(brokers)
                        .setGroupId("playground")
                        .setTopics(topics)
                        .setStartingOffsets(OffsetsInitializer.earliest())
                        .setValueOnlyDeserializer(new SimpleStringSchema())
                        .build();
        String name = "Kafka " + String.join(", ", topics);
        return env.fromSource(source, WatermarkStrategy.noWatermarks(), name)
                .uid(uid)
                .map(
                        line -> {
                            READ.incrementAndGet();
                            return line;
                        })
                .returns(String.class);
    }

    private static StreamGraph named(StreamExecutionEnvironment env, String name) {
        StreamGraph graph = env.getStreamGraph();
        graph.setJobName(name);
        return graph;
    }

    private static JobID submit(MiniCluster cluster, StreamGraph graph, String id, String restored)
            throws Exception {
        JobGraph job = graph.getJobGraph();
        job.setJobID(JobID.fromHexString(id));
        if (restored != null) {
            job.setSavepointRestoreSettings(SavepointRestoreSettings.forPath(restored));
        }
        cluster.submitJob(job).get(PATIENCE_SECONDS, TimeUnit.SECONDS);
        await(cluster, job.getJobID(), JobStatus.RUNNING);
        return job.getJobID();
    }

    /** Writes the numbers 1, 2, 3 and so on into the topic clicks, each after the one before it. */
    private static void startWriter(String brokers) {
        Thread writer =
                new Thread(
                        () -> {
                            try (KafkaProducer<String, String> producer = producer(brokers)) {
                                int partitions = producer.partitionsFor("clicks").size();
                                for (int number = 1; ; number++) {
                                    String text = String.valueOf(number);
                                    producer.send(
                                                    new ProducerRecord<>(
                                                            "clicks",
                                                            number % partitions,
                                                            null,
                                                            text))
                                            .get();
                                    Thread.sleep(PAUSE_MILLISECONDS);
                                }
                            } catch (Exception error) {
                                error.printStackTrace();
                            }
                        },
                        "clicks");
        writer.setDaemon(true);
        writer.start();
    }

    private static KafkaProducer<String, String> producer(String brokers) {
        return new KafkaProducer<>(
                Map.of("bootstrap.servers", brokers),
                new StringSerializer(),
                new StringSerializer());
    }

    private static void await(MiniCluster cluster, JobID job, JobStatus wanted) throws Exception {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_SECONDS);
        JobStatus status = null;
        while (status != wanted) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException("the job is " + status + ", not " + wanted);
            }
            if (status == JobStatus.FAILED) {
                cluster.requestJobResult(job)
                        .get()
                        .toJobExecutionResult(PlaygroundJob.class.getClassLoader());
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
