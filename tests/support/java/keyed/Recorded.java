package testjobs;

/** A Java record: a POJO to later versions of Flink, and Kryo's before. */
public record Recorded(String name, int age, Things.Color color) {}
