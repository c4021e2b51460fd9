package testjobs;

import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaSinkBuilder;

/** How the connector since Flink 1.16 is told to write in transactions. */
final class ExactlyOnce {
    private ExactlyOnce() {}

    static <T> KafkaSinkBuilder<T> of(KafkaSinkBuilder<T> builder) {
        return builder.setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE);
    }
}
