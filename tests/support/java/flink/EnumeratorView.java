package testjobs;

import java.util.List;

/**
 * The state of a Kafka source's enumerator, independent of the connector version's classes. A value
 * is null if the version does not store it.
 */
record EnumeratorView(Boolean initialDiscoveryFinished, List<Split> splits) {
    record Split(
            String topic,
            int partition,
            String status,
            Long startingOffset,
            Long stoppingOffset) {}
}
