package testjobs;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Consumer;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/**
 * A job, the way to end it, and the minimum counts before its end, by the keys of {@link Progress}.
 *
 * @param before a job from whose checkpoint this job is restored; null without one
 */
record Scenario(
        int parallelism,
        Map<String, String> options,
        Consumer<StreamExecutionEnvironment> topology,
        Map<String, Integer> required,
        Finish finish,
        Scenario before) {

    /** Returns a job without additional options, whose checkpoint is retained on cancellation. */
    static Scenario of(
            int parallelism,
            Consumer<StreamExecutionEnvironment> topology,
            Map<String, Integer> required) {
        return new Scenario(
                parallelism,
                Map.of(),
                topology,
                required,
                Finish.CANCEL_RETAINING_CHECKPOINT,
                null);
    }

    Scenario with(String... pairs) {
        Map<String, String> more = new LinkedHashMap<>(options);
        for (int i = 0; i < pairs.length; i += 2) {
            more.put(pairs[i], pairs[i + 1]);
        }
        return new Scenario(parallelism, more, topology, required, finish, before);
    }

    /** Stores every state in a separate file; the option has an old and a new name. */
    Scenario withStateInFiles() {
        return with(
                "state.storage.fs.memory-threshold", "0 b",
                "execution.checkpointing.data-inline-threshold", "0 b");
    }

    Scenario ending(Finish otherFinish) {
        return new Scenario(parallelism, options, topology, required, otherFinish, before);
    }

    Scenario after(Scenario first) {
        return new Scenario(parallelism, options, topology, required, finish, first);
    }
}
