import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.JobStatus;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.runtime.jobgraph.JobGraph;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.graph.StreamGraph;

/**
 * Runs a cluster with a REST interface, a finished job, and a job that reads Kafka until standard
 * input ends.
 *
 * <p>Arguments: bootstrap servers, the group of the job that reads Kafka, the pattern of its
 * topics, and the checkpoint directory. Optional arguments: the job's id, and the number of
 * retained checkpoints (3 by default). The program prints the address of the REST interface and the
 * id of the running job. The job has no sink, because Flink 1.15 and 2.x have no sink in common.
 */
public final class RunningJobs {
    private RunningJobs() {}

    public static void main(String[] args) throws Exception {
        Configuration conf = new Configuration();
        conf.setString("rest.address", "127.0.0.1");
        conf.setString("rest.bind-address", "127.0.0.1");
        conf.setString("rest.port", "0");
        conf.setString("rest.bind-port", "0");
        conf.setString("taskmanager.memory.network.min", "32 mb");
        conf.setString("taskmanager.memory.network.max", "32 mb");
        conf.setString("taskmanager.memory.managed.size", "64 mb");
        String retained = args.length > 5 ? args[5] : "3";
        conf.setString("execution.checkpointing.num-retained", retained);
        conf.setString("state.checkpoints.num-retained", retained); // before 1.20
        conf.setString("state.checkpoints.dir", args[3]);
        MiniClusterConfiguration configuration =
                new MiniClusterConfiguration.Builder()
                        .setConfiguration(conf)
                        .setNumTaskManagers(1)
                        .setNumSlotsPerTaskManager(2)
                        .build();
        try (MiniCluster cluster = new MiniCluster(configuration)) {
            cluster.start();
            cluster.executeJobBlocking(finishing());
            JobID running = cluster.submitJob(reading(args)).get().getJobID();
            while (cluster.getJobStatus(running).get(30, TimeUnit.SECONDS) != JobStatus.RUNNING) {
                Thread.sleep(50);
            }
            System.out.println(cluster.getRestAddress().get() + " " + running);
            while (System.in.read() >= 0) {}
            cluster.cancelJob(running).get(30, TimeUnit.SECONDS);
        }
    }

    private static JobGraph finishing() {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.setParallelism(1);
        env.fromSequence(1, 10).map(one -> one).returns(Types.LONG);
        return env.getStreamGraph().getJobGraph();
    }

    private static JobGraph reading(String[] args) {
        Configuration conf = new Configuration();
        conf.setString("execution.checkpointing.dir", args[3]);
        conf.setString(
                "execution.checkpointing.externalized-checkpoint-retention",
                "RETAIN_ON_CANCELLATION");
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment(conf);
        env.setParallelism(1);
        env.enableCheckpointing(200);
        KafkaSource<String> source =
                KafkaSource.<String>builder()
                        .setBootstrapServers(args[0])
                        .setGroupId(args[1])
                        .setTopicPattern(Pattern.compile(args[2]))
                        .setStartingOffsets(OffsetsInitializer.earliest())
                        .setValueOnlyDeserializer(new SimpleStringSchema())
                        .build();
        env.fromSource(source, WatermarkStrategy.noWatermarks(), "orders")
                .map(one -> one)
                .returns(Types.STRING);
        StreamGraph graph = env.getStreamGraph();
        graph.setJobName("the job that moves");
        JobGraph job = graph.getJobGraph();
        if (args.length > 4) {
            job.setJobID(JobID.fromHexString(args[4]));
        }
        return job;
    }
}
