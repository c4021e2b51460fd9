package testjobs;

import java.nio.file.Path;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.flink.TableLoader;
import org.apache.iceberg.flink.sink.FlinkSink;
import org.apache.iceberg.flink.sink.IcebergSink;
import org.apache.iceberg.hadoop.HadoopTables;
import org.apache.iceberg.types.Types;

/**
 * Jobs that write to one Iceberg table, one after another, each started without state.
 *
 * <p>Arguments: the table's directory, a directory for checkpoints, and the jobs. A job is {@code
 * IcebergSink,} or {@code FlinkSink,}, followed by the format of {@link TableJob}. The program
 * prints a line for each job: the number of rows that it passed to its sink, the number of rows
 * that Iceberg counts in the table, and the checkpoint, job id, and operator id in the newest
 * snapshot.
 */
public final class IcebergJobs {
    private IcebergJobs() {}

    public static void main(String[] args) throws Exception {
        HadoopTables tables = new HadoopTables();
        tables.create(
                new Schema(Types.NestedField.required(1, "n", Types.LongType.get())), args[0]);
        for (int number = 2; number < args.length; number++) {
            String[] told = args[number].split(",", 2);
            TableLoader loader = TableLoader.fromHadoopTable(args[0]);
            TableJob.Sink sink =
                    told[0].equals("FlinkSink")
                            ? (rows, uid) ->
                                    FlinkSink.forRowData(rows)
                                            .tableLoader(loader)
                                            .uidPrefix(uid)
                                            .append()
                            : (rows, uid) ->
                                    IcebergSink.forRowData(rows)
                                            .tableLoader(loader)
                                            .uidSuffix(uid)
                                            .append();
            long passed =
                    TableJob.run(Path.of(args[1], Integer.toString(number)), told[1], sink);
            Snapshot newest = tables.load(args[0]).currentSnapshot();
            System.out.println(
                    String.join(
                            " ",
                            Long.toString(passed),
                            newest.summary().get("total-records"),
                            newest.summary().get("flink.max-committed-checkpoint-id"),
                            "job",
                            newest.summary().get("flink.job-id") + ",",
                            "operator",
                            newest.summary().get("flink.operator-id")));
        }
    }
}
