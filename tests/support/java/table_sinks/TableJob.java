package testjobs;

import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.runtime.typeutils.InternalTypeInfo;
import org.apache.flink.table.types.logical.BigIntType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.RowType;

/**
 * A job without state that writes rows with one number to a table, two at each checkpoint. The job
 * is stopped with a savepoint, which commits every row that was passed to the sink.
 */
final class TableJob {
    private static final AtomicLong PASSED = new AtomicLong();

    private TableJob() {}

    /** Adds the sink to a job; {@code uid} determines the uids. */
    interface Sink {
        void of(DataStream<RowData> rows, String uid) throws Exception;
    }

    /**
     * Runs the job, and returns the number of rows that it passed to its sink.
     *
     * @param job {@code job id,uid,checkpoints}, where the last is the minimum number of completed
     *     checkpoints
     */
    static long run(Path checkpoints, String job, Sink sink) throws Exception {
        String[] told = job.split(",");
        Configuration conf = LocalFlink.configuration(checkpoints);
        conf.setString("$internal.pipeline.job-id", told[0]);
        StreamExecutionEnvironment env =
                StreamExecutionEnvironment.createLocalEnvironment(1, conf);
        RowType type = RowType.of(new LogicalType[] {new BigIntType(false)}, new String[] {"n"});
        InternalTypeInfo<RowData> rowType = InternalTypeInfo.of(type);
        DataGeneratorSource<RowData> source =
                new DataGeneratorSource<>(
                        GenericRowData::of,
                        Long.MAX_VALUE,
                        RateLimiterStrategy.perCheckpoint(2),
                        rowType);
        DataStream<RowData> rows =
                env.fromSource(source, WatermarkStrategy.noWatermarks(), "rows")
                        .uid("rows")
                        .map(
                                row -> {
                                    PASSED.incrementAndGet();
                                    return row;
                                },
                                rowType)
                        .uid("passed");
        sink.of(rows, told[1]);
        JobClient client = env.executeAsync();
        LocalFlink.awaitCheckpoint(client, checkpoints, Long.parseLong(told[2]));
        LocalFlink.stopWithSavepoint(client, checkpoints.resolve("savepoints"), false);
        return PASSED.getAndSet(0);
    }
}
