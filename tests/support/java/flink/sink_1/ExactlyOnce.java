package testjobs;

import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaSinkBuilder;

/** Configures the connector of Flink 1.15 to write in transactions. */
final class ExactlyOnce {
    private ExactlyOnce() {}

    static <T> KafkaSinkBuilder<T> of(KafkaSinkBuilder<T> builder) {
        return builder.setDeliverGuarantee(DeliveryGuarantee.EXACTLY_ONCE);
    }
}
