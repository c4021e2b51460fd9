package testjobs;

import java.util.List;

/**
 * What a Kafka source's enumerator state says, whichever connector version's class says it; null
 * where that version does not record it.
 */
record EnumeratorView(Boolean initialDiscoveryFinished, List<Split> splits) {
    record Split(
            String topic,
            int partition,
            String status,
            Long startingOffset,
            Long stoppingOffset) {}
}
