package testjobs;

/** Time spans, with the classes before Flink 2.0. */
final class Span {
    private Span() {}

    /** For a time to live. */
    static org.apache.flink.api.common.time.Time hours(long hours) {
        return org.apache.flink.api.common.time.Time.hours(hours);
    }

    /** For a time to live. */
    static org.apache.flink.api.common.time.Time ofLife(long seconds) {
        return org.apache.flink.api.common.time.Time.seconds(seconds);
    }

    /** For a window. */
    static org.apache.flink.streaming.api.windowing.time.Time seconds(long seconds) {
        return org.apache.flink.streaming.api.windowing.time.Time.seconds(seconds);
    }
}
