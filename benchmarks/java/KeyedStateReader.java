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
 * Reads a keyed state of longs as Flink's documentation has it: a job of the State Processor API, in
 * a local environment. It hands nothing on, only counts. Arguments: a checkpoint directory, the
 * operator's id, the state's name, `value` or `map`, and how often: the first time is cold. Prints
 * for each time the number of entries, the sum of their values, and the CPU's seconds.
 */
public final class KeyedStateReader {
    private static final AtomicLong ENTRIES = new AtomicLong();
    private static final AtomicLong SUM = new AtomicLong();

    private KeyedStateReader() {}

    public static void main(String[] args) throws Exception {
        OperatingSystemMXBean system =
                (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        for (int time = 0; time < Integer.parseInt(args[4]); time++) {
            long before = time == 0 ? 0 : system.getProcessCpuTime();
            ENTRIES.set(0);
            SUM.set(0);
            StreamExecutionEnvironment environment =
                    StreamExecutionEnvironment.getExecutionEnvironment();
            environment.setParallelism(1);
            SavepointReader.read(environment, args[0], new HashMapStateBackend())
                    .readKeyedState(
                            OperatorIdentifier.forUidHash(args[1]),
                            args[3].equals("map") ? new OfMap(args[2]) : new OfValue(args[2]),
                            Types.STRING,
                            Types.LONG)
                    .sinkTo(new DiscardingSink<>());
            environment.execute();
            double seconds = (system.getProcessCpuTime() - before) / 1e9;
            System.out.println(ENTRIES.get() + " " + SUM.get() + " " + seconds);
        }
    }

    private static final class OfValue extends KeyedStateReaderFunction<String, Long> {
        private final String name;
        private transient ValueState<Long> state;

        private OfValue(String name) {
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

    private static final class OfMap extends KeyedStateReaderFunction<String, Long> {
        private final String name;
        private transient MapState<String, Long> state;

        private OfMap(String name) {
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
