import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.TreeMap;
import org.apache.kafka.connect.runtime.rest.entities.ConnectorOffsets;
import org.apache.kafka.connect.util.SinkUtils;

/** Prints what Kafka Connect reads in a body of PATCH /connectors/NAME/offsets, a sink's. */
public final class ConnectOffsets {
    private ConnectOffsets() {}

    public static void main(String[] bodies) throws Exception {
        for (String body : bodies) {
            ConnectorOffsets read = new ObjectMapper().readValue(body, ConnectorOffsets.class);
            TreeMap<String, Long> offsets = new TreeMap<>();
            SinkUtils.parseSinkConnectorOffsets(read.toMap())
                    .forEach((place, offset) -> offsets.put(place.toString(), offset));
            System.out.println(offsets);
        }
    }
}
