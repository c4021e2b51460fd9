package testjobs;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Consumer;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/**
 * One job and how it is ended: once it has processed what is required, by {@link Progress}'s keys.
 *
 * @param before another job, from whose checkpoint this one goes on; null without one
 */
record Scenario(
        int parallelism,
        Map<String, String> options,
        Consumer<StreamExecutionEnvironment> topology,
        Map<String, Integer> required,
        Finish finish,
        Scenario before) {

    /** A job without options of its own, whose checkpoint is retained when it is cancelled. */
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

    /** Every state in a file of its own, under the option's old and new name. */
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
