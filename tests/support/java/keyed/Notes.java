package testjobs;

import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.core.JsonProcessingException;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;

/**
 * The values that the functions of a job report to have stored in its state.
 *
 * <p>The fields are static, because the tasks of a local mini-cluster share this JVM with the main
 * program.
 */
final class Notes {
    /** The value of each entry, by operator id, state name, and the entry's key and map key. */
    private static final Map<String, Map<String, Map<String, String>>> PUT = new TreeMap<>();

    /** The times of the last access to each entry, as reported by the backend. */
    private static final Map<String, Object> ACCESSED = new TreeMap<>();

    private Notes() {}

    static synchronized void forget() {
        PUT.clear();
        ACCESSED.clear();
    }

    /** Records the times of the last access to an entry, if no dump contains them. */
    static synchronized void accessed(
            String operatorId, String state, Object key, Object mapKey, Object times)
            throws Exception {
        ACCESSED.put(json(Arrays.asList(operatorId, state, key, mapKey)), times);
    }

    /** Adds the recorded times of last access to the dumped entries. */
    @SuppressWarnings("unchecked")
    static synchronized void addAccesses(List<Map<String, Object>> operators) throws Exception {
        for (Map<String, Object> operator : operators) {
            for (Map<String, Object> state : (List<Map<String, Object>>) operator.get("states")) {
                if (state.get("entries") instanceof List<?> entries) {
                    for (Map<String, Object> entry : (List<Map<String, Object>>) entries) {
                        Object id = operator.get("operator_id");
                        Object name = state.get("state");
                        Object place = Arrays.asList(id, name, entry.get("key"), entry.get("map_key"));
                        Object times = ACCESSED.remove(json(place));
                        if (times != null) {
                            entry.put("last_access", times);
                        }
                    }
                }
            }
        }
        if (!ACCESSED.isEmpty()) {
            throw new IllegalStateException("not restored: " + ACCESSED);
        }
    }

    /** Records an entry, and replaces an earlier entry with the same key and map key. */
    static synchronized void put(
            String operatorId, String state, Object key, Object mapKey, Object value)
            throws Exception {
        Map<String, Object> place = new LinkedHashMap<>();
        try {
            place.put("key", Told.of(key, null));
            place.put("map_key", mapKey == null ? null : Told.of(mapKey, null));
            PUT.computeIfAbsent(operatorId, id -> new TreeMap<>())
                    .computeIfAbsent(state, name -> new TreeMap<>())
                    .put(json(place), json(Told.of(value, null)));
        } catch (Told.Unreadable unreadable) {
            // The dump will report the state as unreadable.
        }
    }

    /**
     * Fails if Flink has restored different values than the recorded ones. With {@code more}, the
     * state may also contain entries that an earlier job stored.
     */
    static synchronized void compareWith(List<Map<String, Object>> operators, boolean more)
            throws Exception {
        Map<String, Map<String, Map<String, String>>> told = new TreeMap<>();
        for (Map<String, Object> operator : operators) {
            String id = (String) operator.get("operator_id");
            for (Object each : (List<?>) operator.get("states")) {
                Map<?, ?> state = (Map<?, ?>) each;
                if (PUT.containsKey(id) && PUT.get(id).containsKey(state.get("state"))) {
                    if (state.containsKey("unreadable")) {
                        PUT.get(id).remove(state.get("state"));
                    } else {
                        told.computeIfAbsent(id, it -> new TreeMap<>())
                                .put((String) state.get("state"), entries(state));
                        if (more) {
                            Set<String> put = PUT.get(id).get(state.get("state")).keySet();
                            told.get(id).get(state.get("state")).keySet().retainAll(put);
                        }
                    }
                }
            }
        }
        PUT.values().removeIf(Map::isEmpty);
        if (!json(told).equals(json(PUT))) {
            throw new IllegalStateException(
                    "put in: " + json(PUT) + "\nrestored: " + json(told));
        }
    }

    private static Map<String, String> entries(Map<?, ?> state) throws JsonProcessingException {
        boolean timers = "timers".equals(state.get("kind"));
        Map<String, String> entries = new TreeMap<>();
        for (Object each : (List<?>) state.get("entries")) {
            Map<?, ?> entry = (Map<?, ?>) each;
            Map<String, Object> place = new LinkedHashMap<>();
            place.put("key", entry.get("key"));
            place.put("map_key", timers ? entry.get("value") : entry.get("map_key"));
            entries.put(json(place), json(entry.get("value")));
        }
        return entries;
    }

    private static String json(Object value) throws JsonProcessingException {
        return new ObjectMapper().writeValueAsString(value);
    }
}
