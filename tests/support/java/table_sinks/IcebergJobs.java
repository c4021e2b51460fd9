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
 * <p>Arguments: the table's directory; a directory for checkpoints; then each job as {@link
 * TableJob} takes it, behind {@code IcebergSink,} or {@code FlinkSink,}. Prints a line for each:
 * how many rows it passed to its sink, how many rows Iceberg counts in the table, and what its
 * newest snapshot has of checkpoint, job id and operator id.
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
