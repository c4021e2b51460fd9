package testjobs;

import java.time.Duration;

/** Time spans, with the classes of Flink 2.0 and later. */
final class Span {
    private Span() {}

    /** For a time to live. */
    static Duration hours(long hours) {
        return Duration.ofHours(hours);
    }

    /** For a time to live. */
    static Duration ofLife(long seconds) {
        return Duration.ofSeconds(seconds);
    }

    /** For a window. */
    static Duration seconds(long seconds) {
        return Duration.ofSeconds(seconds);
    }
}
