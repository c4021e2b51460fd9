package testjobs;

import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.flink.api.common.functions.MapFunction;

/**
 * Counts the records that the job in this JVM has processed. Once the required counts are reached,
 * the job is slowed down almost to a stop, so that the positions in its checkpoint are in the
 * middle of the partitions.
 *
 * <p>The fields are static, because the tasks of a local mini-cluster share this JVM with the main
 * program.
 */
final class Progress {
    private static final long SLOW_MILLIS = 250;
    private static final Map<String, AtomicInteger> COUNTS = new ConcurrentHashMap<>();
    private static volatile Map<String, Integer> required = Map.of();

    private Progress() {}

    /** Clears the counts of the last job, and sets the minimum counts for the next job, by key. */
    static void require(Map<String, Integer> atLeast) {
        COUNTS.clear();
        required = Map.copyOf(atLeast);
    }

    static boolean reached() {
        return required.entrySet().stream().allMatch(e -> count(e.getKey()) >= e.getValue());
    }

    static String describe() {
        return "required " + new TreeMap<>(required) + ", processed " + new TreeMap<>(COUNTS);
    }

    /** Returns the key under which a line is counted: {@code topic:partition}. */
    static String partitionOf(String line) {
        String[] fields = line.split(",", 3);
        return fields[0] + ":" + fields[1];
    }

    private static int count(String key) {
        AtomicInteger counted = COUNTS.get(key);
        return counted == null ? 0 : counted.get();
    }

    /** Counts elements under a key, and passes on at most one element per {@code millis}. */
    static final class Counter implements MapFunction<String, String> {
        private static final long serialVersionUID = 1L;
        private final String prefix;
        private final boolean byPartition;
        private final long millis;

        private Counter(String prefix, boolean byPartition, long millis) {
            this.prefix = prefix;
            this.byPartition = byPartition;
            this.millis = millis;
        }

        /** Counts lines of {@link KafkaLines} as {@code <prefix>topic:partition}. */
        static Counter ofPartitions(String prefix, long millis) {
            return new Counter(prefix, true, millis);
        }

        /** Counts all elements as {@code key}. */
        static Counter of(String key, long millis) {
            return new Counter(key, false, millis);
        }

        @Override
        public String map(String element) throws InterruptedException {
            String key = byPartition ? prefix + partitionOf(element) : prefix;
            COUNTS.computeIfAbsent(key, ignored -> new AtomicInteger()).incrementAndGet();
            Thread.sleep(reached() ? SLOW_MILLIS : millis);
            return element;
        }
    }
}
