package bench;

import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.connector.kafka.source.split.KafkaPartitionSplit;
import org.apache.flink.connector.kafka.source.split.KafkaPartitionSplitSerializer;
import org.apache.flink.core.io.SimpleVersionedSerialization;
import org.apache.flink.state.api.OperatorIdentifier;
import org.apache.flink.state.api.SavepointReader;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.CloseableIterator;
import testjobs.SourceStates;

/**
 * Reads positions as Flink's documentation shows it: with a job of the State Processor API in a
 * local environment. Arguments: a checkpoint directory and the uids of its sources. Prints the number of
 * partitions and the sum of their offsets.
 */
public final class StateProcessorReader {
    private StateProcessorReader() {}

    public static void main(String[] args) throws Exception {
        StreamExecutionEnvironment environment =
                StreamExecutionEnvironment.getExecutionEnvironment();
        SavepointReader reader = SavepointReader.read(environment, args[0]);
        DataStream<byte[]> states = null;
        for (int i = 1; i < args.length; i++) {
            DataStream<byte[]> source =
                    reader.readListState(
                            OperatorIdentifier.forUid(args[i]),
                            SourceStates.READER_STATE.getName(),
                            PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO);
            states = states == null ? source : states.union(source);
        }
        long partitions = 0;
        long sum = 0;
        KafkaPartitionSplitSerializer serializer = new KafkaPartitionSplitSerializer();
        try (CloseableIterator<byte[]> elements = states.executeAndCollect()) {
            while (elements.hasNext()) {
                KafkaPartitionSplit split =
                        SimpleVersionedSerialization.readVersionAndDeSerialize(
                                serializer, elements.next());
                partitions++;
                sum += split.getStartingOffset();
            }
        }
        System.out.println(partitions + " " + sum);
    }
}
