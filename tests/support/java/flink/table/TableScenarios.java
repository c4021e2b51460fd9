package testjobs;

import static testjobs.Topology.KAFKA;

import java.util.Map;
import java.util.Optional;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;

/** SQL jobs that read Kafka tables; their sources are KafkaSources with uids from the planner. */
final class TableScenarios implements Scenarios {
    @Override
    public Optional<Scenario> named(String name, Place place) {
        return Optional.ofNullable(
                switch (name) {
                    case "table" -> Scenario.of(
                            2,
                            env ->
                                    read(
                                            place,
                                            env,
                                            "orders",
                                            "`value` STRING",
                                            "'connector' = 'kafka', 'format' = 'raw', "
                                                    + "'scan.startup.mode' = 'earliest-offset'"),
                            Map.of("orders:0", 12, "orders:1", 14));
                    case "upsert-kafka" -> Scenario.of(
                            2,
                            env ->
                                    read(
                                            place,
                                            env,
                                            "keyed",
                                            "`k` STRING NOT NULL, `value` STRING, "
                                                    + "PRIMARY KEY (`k`) NOT ENFORCED",
                                            "'connector' = 'upsert-kafka', 'key.format' = 'raw', "
                                                    + "'value.format' = 'raw', "
                                                    + "'value.fields-include' = 'EXCEPT_KEY'"),
                            Map.of("keyed:0", 6));
                    default -> null;
                });
    }

    private static void read(
            Place place,
            StreamExecutionEnvironment env,
            String topic,
            String columns,
            String options) {
        StreamTableEnvironment tables = StreamTableEnvironment.create(env);
        String table = "`" + KAFKA + topic + "`";
        tables.executeSql(
                String.format(
                        "CREATE TEMPORARY TABLE %s (`topic` STRING METADATA VIRTUAL,"
                                + " `partition` INT METADATA VIRTUAL,"
                                + " `offset` BIGINT METADATA VIRTUAL, %s) WITH (%s,"
                                + " 'topic' = '%s', 'properties.group.id' = 'table',"
                                + " 'properties.bootstrap.servers' = '%s',"
                                + " 'properties.max.partition.fetch.bytes' = '1',"
                                + " 'properties.fetch.max.bytes' = '1')",
                        table, columns, options, topic, place.bootstrapServers()));
        Topology.count(
                tables.toChangelogStream(
                                tables.sqlQuery(
                                        "SELECT `topic`, `partition`, `offset`, `value` FROM "
                                                + table))
                        .map(
                                row ->
                                        String.format(
                                                "%s,%s,%s,%s",
                                                row.getField(0),
                                                row.getField(1),
                                                row.getField(2),
                                                row.getField(3)))
                        .returns(Types.STRING),
                "");
    }
}
