import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.Stores;

/**
 * A Kafka Streams application of the classic protocol that counts the records of a topic by key.
 *
 * <p>Arguments: bootstrap servers, the application id (its consumer group), the topic, a state
 * directory, and the number of records to process. The application prints {@code processed} once it
 * has processed them, or {@code failed}. With 0 records, it prints {@code processed} once it runs.
 * It then commits and ends.
 */
public final class StreamsCount {
    private StreamsCount() {}

    public static void main(String[] args) throws Exception {
        Properties config = new Properties();
        config.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, args[0]);
        config.put(StreamsConfig.APPLICATION_ID_CONFIG, args[1]);
        config.put(StreamsConfig.STATE_DIR_CONFIG, args[3]);
        config.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        config.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        config.put("auto.offset.reset", "earliest");
        // A stopped application stays a member until its session times out.
        config.put("session.timeout.ms", "6000");
        config.put("heartbeat.interval.ms", "2000");
        int wanted = Integer.parseInt(args[4]);
        int[] processed = {0};
        String[] outcome = {null};
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(args[2])
                .peek((key, value) -> done(outcome, ++processed[0] == wanted, "processed"))
                .groupByKey()
                .count(Materialized.as(Stores.inMemoryKeyValueStore("counts")));
        KafkaStreams streams = new KafkaStreams(builder.build(), config);
        streams.setStateListener(
                (now, before) -> {
                    done(outcome, now == KafkaStreams.State.ERROR, "failed");
                    done(outcome, wanted == 0 && now == KafkaStreams.State.RUNNING, "processed");
                });
        streams.start();
        synchronized (outcome) {
            while (outcome[0] == null) {
                outcome.wait(60_000);
            }
        }
        streams.close();
        System.out.println(outcome[0]);
    }

    private static void done(String[] outcome, boolean is, String what) {
        if (is) {
            synchronized (outcome) {
                if (outcome[0] == null) {
                    outcome[0] = what;
                    outcome.notifyAll();
                }
            }
        }
    }
}
