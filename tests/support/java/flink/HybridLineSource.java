package testjobs;

import java.nio.file.Files;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.connector.base.source.hybrid.HybridSource;
import org.apache.flink.connector.file.src.FileSource;
import org.apache.flink.connector.file.src.reader.TextLineInputFormat;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.core.fs.Path;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/** A HybridSource that reads a file and then Kafka; the only line of the file is dropped. */
final class HybridLineSource implements LineSource {
    private static final String FIRST = "first";

    @Override
    public DataStream<String> read(StreamExecutionEnvironment env, String servers, String topic)
            throws Exception {
        java.nio.file.Path file = Files.createTempFile("first", "");
        file.toFile().deleteOnExit();
        Files.writeString(file, FIRST + "\n");
        KafkaSource<String> kafka =
                KafkaLines.source(servers, "hybrid", topic)
                        .setStartingOffsets(OffsetsInitializer.earliest())
                        .build();
        FileSource<String> first =
                FileSource.forRecordStreamFormat(
                                new TextLineInputFormat(), new Path(file.toUri()))
                        .build();
        return env.fromSource(
                        HybridSource.builder(first).addSource(kafka).build(),
                        WatermarkStrategy.noWatermarks(),
                        "hybrid",
                        Types.STRING)
                .uid("hybrid-source")
                .filter(line -> !line.equals(FIRST));
    }
}
