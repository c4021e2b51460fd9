package testjobs;

import static testjobs.Topology.count;
import static testjobs.Topology.earliest;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.flink.api.common.serialization.SimpleStringEncoder;
import org.apache.flink.connector.file.sink.FileSink;
import org.apache.flink.core.fs.Path;
import org.apache.flink.streaming.api.datastream.AsyncDataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.async.AsyncFunction;
import org.apache.flink.streaming.api.functions.async.ResultFuture;

/** Jobs that are stopped while records are unfinished: in pending requests, or in an open file. */
final class AsyncScenarios implements Scenarios {
    @Override
    public Optional<Scenario> named(String name, Place place) {
        return Optional.ofNullable(
                switch (name) {
                    case "async-io" -> asyncIo(place, name).ending(Finish.STOP);
                    case "async-io-drain" -> asyncIo(place, name).ending(Finish.DRAIN);
                    default -> null;
                });
    }

    private static Scenario asyncIo(Place place, String name) {
        return Scenario.of(
                2,
                env -> topology(place, name, env),
                Map.of("orders:0", 12, "orders:1", 14, "answered", 8));
    }

    private static void topology(Place place, String name, StreamExecutionEnvironment env) {
        SingleOutputStreamOperator<String> lines =
                count(earliest(place, env, "orders").uid("orders"), "");
        AsyncDataStream.unorderedWait(lines, new Requests(), 60, TimeUnit.SECONDS, 100)
                .name("requests")
                .uid("requests")
                .map(Progress.Counter.of("answered", 0))
                .sinkTo(rows(place, name))
                .uid("file-sink");
    }

    /** Returns a sink with the default rolling policy, so that many checkpoints share one file. */
    static FileSink<String> rows(Place place, String name) {
        return FileSink.forRowFormat(
                        new Path(place.root().resolve(name).resolve("rows").toUri()),
                        new SimpleStringEncoder<String>())
                .build();
    }

    /** Completes requests for even offsets immediately, and for odd offsets after five seconds. */
    private static final class Requests implements AsyncFunction<String, String> {
        private static final long serialVersionUID = 1L;

        @Override
        public void asyncInvoke(String line, ResultFuture<String> result) {
            boolean waits = Long.parseLong(line.split(",", 4)[2]) % 2 == 1;
            CompletableFuture.delayedExecutor(waits ? 5000 : 1, TimeUnit.MILLISECONDS)
                    .execute(() -> result.complete(List.of(line)));
        }
    }
}
