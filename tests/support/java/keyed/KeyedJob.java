package testjobs;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/**
 * A job with keyed state, and the snapshots that are taken after it has read all of its input.
 *
 * @param before a job from whose first snapshot this job is restored; null without one
 * @param restored the name of a job from which this job is restored, and which a different JVM has
 *     run; null without one
 * @param oracle a job in a different backend, from which the expected contents come; null if the
 *     heap backend restores this job's own first snapshot
 */
record KeyedJob(
        int parallelism,
        int maxParallelism,
        Map<String, String> options,
        Consumer<StreamExecutionEnvironment> topology,
        List<Form> forms,
        KeyedJob before,
        String restored,
        Oracle oracle) {

    /**
     * A job in a backend whose snapshots the heap backend can restore.
     *
     * @param goesOn true if the job resumes from the first snapshot; false if it has processed the
     *     same input from the start
     */
    record Oracle(KeyedJob job, boolean goesOn) {}

    /** The forms of snapshots; a job at rest has equal snapshots. The last one ends the job. */
    enum Form {
        CANONICAL,
        NATIVE,
        RETAINED
    }

    static KeyedJob of(Consumer<StreamExecutionEnvironment> topology, Form... forms) {
        return new KeyedJob(1, 128, Map.of(), topology, List.of(forms), null, null, null);
    }

    KeyedJob in(int parallelism, int maxParallelism) {
        return new KeyedJob(parallelism, maxParallelism, options, topology, forms, before, restored, oracle);
    }

    KeyedJob after(KeyedJob first) {
        return new KeyedJob(parallelism, maxParallelism, options, topology, forms, first, null, oracle);
    }

    KeyedJob afterJob(String name) {
        return new KeyedJob(parallelism, maxParallelism, options, topology, forms, null, name, oracle);
    }

    KeyedJob with(String... pairs) {
        Map<String, String> more = new LinkedHashMap<>(options);
        for (int i = 0; i < pairs.length; i += 2) {
            more.put(pairs[i], pairs[i + 1]);
        }
        return new KeyedJob(parallelism, maxParallelism, more, topology, forms, before, restored, oracle);
    }

    KeyedJob toldBy(KeyedJob other, boolean goesOn) {
        Oracle told = new Oracle(other, goesOn);
        return new KeyedJob(parallelism, maxParallelism, options, topology, forms, before, restored, told);
    }
}
