package testjobs;

import java.nio.file.Path;
import org.apache.paimon.Snapshot;
import org.apache.paimon.catalog.Catalog;
import org.apache.paimon.catalog.CatalogContext;
import org.apache.paimon.catalog.CatalogFactory;
import org.apache.paimon.catalog.Identifier;
import org.apache.paimon.flink.sink.FlinkSinkBuilder;
import org.apache.paimon.schema.Schema;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.types.DataTypes;

/**
 * Jobs that write to one Paimon table, one after another, each started without state.
 *
 * <p>Arguments: a warehouse, in which the table will be {@code golden.db/orders}, a directory for
 * checkpoints, and the jobs, in the format of {@link TableJob}. The program prints a line for each
 * job: the number of rows that it passed to its sink, the number of rows that Paimon counts in the
 * table, and the identifier and the user in the newest snapshot.
 */
public final class PaimonJobs {
    private PaimonJobs() {}

    public static void main(String[] args) throws Exception {
        CatalogContext context =
                CatalogContext.create(new org.apache.paimon.fs.Path("file://" + args[0]));
        try (Catalog catalog = CatalogFactory.createCatalog(context)) {
            Identifier name = Identifier.create("golden", "orders");
            catalog.createDatabase("golden", true);
            Schema schema = Schema.newBuilder().column("n", DataTypes.BIGINT()).build();
            catalog.createTable(name, schema, false);
            for (int number = 2; number < args.length; number++) {
                TableJob.Sink sink =
                        (rows, uid) ->
                                new FlinkSinkBuilder(catalog.getTable(name))
                                        .forRowData(rows)
                                        .build();
                long passed =
                        TableJob.run(Path.of(args[1], Integer.toString(number)), args[number], sink);
                Snapshot newest =
                        ((FileStoreTable) catalog.getTable(name)).latestSnapshot().orElseThrow();
                System.out.println(
                        String.join(
                                " ",
                                Long.toString(passed),
                                String.valueOf(newest.totalRecordCount()),
                                Long.toString(newest.commitIdentifier()),
                                newest.commitUser()));
            }
        }
    }
}
