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
 * <p>Arguments: a warehouse, in which the table will be {@code golden.db/orders}; a directory for
 * checkpoints; then each job as {@link TableJob} takes it. Prints a line for each: how many rows it
 * passed to its sink, how many rows Paimon counts in the table, and what its newest snapshot has of
 * identifier and user.
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
