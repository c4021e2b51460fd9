package testjobs;

import static testjobs.Topology.count;

import java.util.Map;
import java.util.Optional;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/** Jobs with a DynamicKafkaSource that reads two clusters with topics of the same names. */
final class DynamicScenarios implements Scenarios {
    @Override
    public Optional<Scenario> named(String name, Place place) {
        if (!name.equals("dynamic")) {
            return Optional.empty();
        }
        return Optional.of(
                Scenario.of(
                        2,
                        env -> dynamic(place, env),
                        Map.of(
                                "east/orders:0", 12,
                                "east/orders:1", 14,
                                "east/payments:0", 8,
                                "west/orders:0", 20,
                                "west/orders:1", 10)));
    }

    /** The value of a record contains its cluster. */
    private static void dynamic(Place place, StreamExecutionEnvironment env) {
        DataStream<String> lines =
                env.fromSource(
                                TwoClusters.source(
                                        place.bootstrapServers(),
                                        place.secondServers(),
                                        "orders",
                                        "payments"),
                                WatermarkStrategy.noWatermarks(),
                                "Dynamic Kafka orders, payments",
                                Types.STRING)
                        .uid("orders-and-payments-of-two-clusters");
        count(lines.filter(line -> !line.contains(",west-")), "east/");
        count(lines.filter(line -> line.contains(",west-")), "west/");
    }
}
