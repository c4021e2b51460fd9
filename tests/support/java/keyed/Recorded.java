package testjobs;

/** A Java record. Later versions of Flink treat it as a POJO, and earlier ones use Kryo. */
public record Recorded(String name, int age, Things.Color color) {}
