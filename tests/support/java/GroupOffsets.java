import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/**
 * Reads and commits the offsets of consumer groups with Kafka's own Java client, so that tests can
 * check offsets without librdkafka.
 *
 * <p>Argument: bootstrap servers. Each line of standard input is a request with tab-separated
 * fields. Metadata is UTF-8 in Base64, and an epoch is a number or {@code -}. The requests are:
 *
 * <ul>
 *   <li>{@code read GROUP}
 *   <li>{@code commit GROUP} and, for each partition, {@code TOPIC PARTITION OFFSET EPOCH METADATA}
 * </ul>
 *
 * <p>The answer is one line for each partition, with the same fields as in {@code commit}, and then
 * {@code end} or {@code error TEXT}.
 */
public final class GroupOffsets {
    private GroupOffsets() {}

    public static void main(String[] args) throws Exception {
        BufferedReader requests =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", args[0]))) {
            String line;
            while ((line = requests.readLine()) != null) {
                String[] fields = line.split("\t", -1);
                try {
                    if (fields[0].equals("read")) {
                        read(admin, fields[1]);
                    } else {
                        commit(admin, fields);
                    }
                    System.out.println("end");
                } catch (Exception error) {
                    System.out.println("error " + error);
                }
                System.out.flush();
            }
        }
    }

    private static void read(Admin admin, String group) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> committed = new HashMap<>();
        admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get()
                .forEach((partition, offset) -> {
                    if (offset != null) {
                        committed.put(partition, offset);
                    }
                });
        Map<String, String> lines = new TreeMap<>();
        committed.forEach((partition, offset) -> {
            List<String> fields = new ArrayList<>();
            fields.add(partition.topic());
            fields.add(Integer.toString(partition.partition()));
            fields.add(Long.toString(offset.offset()));
            fields.add(offset.leaderEpoch().map(String::valueOf).orElse("-"));
            byte[] metadata = offset.metadata().getBytes(StandardCharsets.UTF_8);
            fields.add(Base64.getEncoder().encodeToString(metadata));
            lines.put(partition.toString(), String.join("\t", fields));
        });
        lines.values().forEach(System.out::println);
    }

    private static void commit(Admin admin, String[] fields) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (int at = 2; at < fields.length; at += 5) {
            Optional<Integer> epoch =
                    fields[at + 3].equals("-")
                            ? Optional.empty()
                            : Optional.of(Integer.valueOf(fields[at + 3]));
            byte[] metadata = Base64.getDecoder().decode(fields[at + 4]);
            offsets.put(
                    new TopicPartition(fields[at], Integer.parseInt(fields[at + 1])),
                    new OffsetAndMetadata(
                            Long.parseLong(fields[at + 2]),
                            epoch,
                            new String(metadata, StandardCharsets.UTF_8)));
        }
        admin.alterConsumerGroupOffsets(fields[1], offsets).all().get();
    }
}
