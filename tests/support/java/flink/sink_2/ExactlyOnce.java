package testjobs;

import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaSinkBuilder;

/** Configures the connectors since Flink 1.16 to write in transactions. */
final class ExactlyOnce {
    private ExactlyOnce() {}

    static <T> KafkaSinkBuilder<T> of(KafkaSinkBuilder<T> builder) {
        return builder.setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE);
    }
}
