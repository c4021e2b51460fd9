package testjobs;

import java.nio.file.Path;
import java.util.Map;
import org.apache.flink.api.common.ExecutionConfig;
import org.apache.flink.api.common.serialization.SerializerConfig;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.common.typeutils.base.LongSerializer;
import org.apache.flink.api.common.typeutils.base.StringSerializer;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.api.java.typeutils.GenericTypeInfo;
import org.apache.flink.api.scala.typeutils.ScalaCaseClassSerializer;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;
import scala.Tuple2;

/**
 * Stores a Scala case class as a value and as a key, with the serializer of Flink's Scala API.
 *
 * <p>Arguments: checkpoint directory, savepoint directory. The program prints the path of the
 * savepoint.
 */
public final class CaseClassJob {
    private CaseClassJob() {}

    public static void main(String[] args) throws Exception {
        Progress.require(Map.of("numbers", 20));
        StreamExecutionEnvironment env =
                StreamExecutionEnvironment.createLocalEnvironment(
                        1, LocalFlink.configuration(Path.of(args[0])));
        DataStream<Long> numbers =
                env.fromSequence(0, Long.MAX_VALUE - 1)
                        .map(String::valueOf)
                        .returns(Types.STRING)
                        .map(Progress.Counter.of("numbers", 1))
                        .map(Long::parseLong)
                        .returns(Types.LONG);
        numbers.keyBy(number -> number % 4, Types.LONG).process(new Keep<>()).uid("value");
        numbers.keyBy(new ByCaseClass(), new CaseClassType()).process(new Keep<>()).uid("key");
        JobClient job = env.executeAsync("case classes");
        LocalFlink.awaitProgress(job);
        System.out.println(LocalFlink.stopWithSavepoint(job, Path.of(args[1]), false));
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static TypeSerializer<Tuple2<Long, String>> serializer() {
        TypeSerializer<?>[] fields = {LongSerializer.INSTANCE, StringSerializer.INSTANCE};
        return new ScalaCaseClassSerializer(Tuple2.class, fields);
    }

    private static final class ByCaseClass implements KeySelector<Long, Tuple2<Long, String>> {
        private static final long serialVersionUID = 1L;

        @Override
        public Tuple2<Long, String> getKey(Long number) {
            return new Tuple2<>(number % 4, "key");
        }
    }

    private static final class CaseClassType extends GenericTypeInfo<Tuple2<Long, String>> {
        private static final long serialVersionUID = 1L;

        @SuppressWarnings("unchecked")
        private CaseClassType() {
            super((Class<Tuple2<Long, String>>) (Class<?>) Tuple2.class);
        }

        @Override
        public TypeSerializer<Tuple2<Long, String>> createSerializer(SerializerConfig config) {
            return serializer();
        }

        @Override
        public TypeSerializer<Tuple2<Long, String>> createSerializer(ExecutionConfig config) {
            return serializer();
        }
    }

    private static final class Keep<K> extends KeyedProcessFunction<K, Long, Void> {
        private static final long serialVersionUID = 1L;

        @Override
        public void processElement(Long number, Context context, Collector<Void> out)
                throws Exception {
            getRuntimeContext()
                    .getState(new ValueStateDescriptor<>("number", Types.LONG))
                    .update(number);
            getRuntimeContext()
                    .getState(new ValueStateDescriptor<>("pair", serializer()))
                    .update(new Tuple2<>(number, "value"));
        }
    }
}
