package bench;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.runtime.state.hashmap.HashMapStateBackend;
import org.apache.flink.state.api.OperatorIdentifier;
import org.apache.flink.state.api.SavepointReader;
import org.apache.flink.state.api.functions.KeyedStateReaderFunction;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;

/**
 * Reads a keyed state of longs as Flink's documentation shows it: with a job of the State Processor
 * API in a local environment. The job emits nothing and only counts. Arguments: a checkpoint
 * directory, the operator's id, the state's name, `value` or `map`, and the number of reads. Prints
 * the number of entries, the sum of their values and the CPU seconds of each read; those of the
 * first one include the start.
 */
public final class KeyedStateReader {
    private static final AtomicLong ENTRIES = new AtomicLong();
    private static final AtomicLong SUM = new AtomicLong();

    private KeyedStateReader() {}

    public static void main(String[] args) throws Exception {
        OperatingSystemMXBean system =
                (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        for (int read = 0; read < Integer.parseInt(args[4]); read++) {
            long start = read == 0 ? 0 : system.getProcessCpuTime();
            ENTRIES.set(0);
            SUM.set(0);
            StreamExecutionEnvironment environment =
                    StreamExecutionEnvironment.getExecutionEnvironment();
            environment.setParallelism(1);
            SavepointReader.read(environment, args[0], new HashMapStateBackend())
                    .readKeyedState(
                            OperatorIdentifier.forUidHash(args[1]),
                            args[3].equals("map")
                                    ? new MapReader(args[2])
                                    : new ValueReader(args[2]),
                            Types.STRING,
                            Types.LONG)
                    .sinkTo(new DiscardingSink<>());
            environment.execute();
            double seconds = (system.getProcessCpuTime() - start) / 1e9;
            System.out.println(ENTRIES.get() + " " + SUM.get() + " " + seconds);
        }
    }

    private static final class ValueReader extends KeyedStateReaderFunction<String, Long> {
        private final String name;
        private transient ValueState<Long> state;

        private ValueReader(String name) {
            this.name = name;
        }

        @Override
        public void open(org.apache.flink.api.common.functions.OpenContext context) {
            state = getRuntimeContext().getState(new ValueStateDescriptor<>(name, Types.LONG));
        }

        @Override
        public void readKey(String key, Context context, Collector<Long> out) throws Exception {
            ENTRIES.incrementAndGet();
            SUM.addAndGet(state.value());
        }
    }

    private static final class MapReader extends KeyedStateReaderFunction<String, Long> {
        private final String name;
        private transient MapState<String, Long> state;

        private MapReader(String name) {
            this.name = name;
        }

        @Override
        public void open(org.apache.flink.api.common.functions.OpenContext context) {
            state =
                    getRuntimeContext()
                            .getMapState(
                                    new MapStateDescriptor<>(name, Types.STRING, Types.LONG));
        }

        @Override
        public void readKey(String key, Context context, Collector<Long> out) throws Exception {
            for (Map.Entry<String, Long> entry : state.entries()) {
                ENTRIES.incrementAndGet();
                SUM.addAndGet(entry.getValue());
            }
        }
    }
}
