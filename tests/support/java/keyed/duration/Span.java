package testjobs;

import java.time.Duration;

/** Spans of time, as they are named since Flink 2.0. */
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
