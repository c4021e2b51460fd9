package org.apache.flink.streaming.connectors.kafka.table;

import java.util.TreeMap;

/** Parses values of scan.startup.specific-offsets with Flink SQL, and prints a line for each. */
public final class SpecificOffsets {
    private SpecificOffsets() {}

    public static void main(String[] values) {
        for (String value : values) {
            System.out.println(
                    new TreeMap<>(
                            KafkaConnectorOptionsUtil.parseSpecificOffsets(
                                    value, "scan.startup.specific-offsets")));
        }
    }
}
