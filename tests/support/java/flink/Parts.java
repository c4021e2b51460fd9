package testjobs;

import java.lang.reflect.Constructor;
import java.util.Optional;

/** What only some Flink versions have, in folders of its own that are compiled where it is. */
final class Parts {
    private Parts() {}

    static <T> Optional<T> find(Class<T> type, String name) throws ReflectiveOperationException {
        Class<?> found;
        try {
            found = Class.forName(Parts.class.getPackageName() + "." + name);
        } catch (ClassNotFoundException absent) {
            return Optional.empty();
        }
        Constructor<?> constructor = found.getDeclaredConstructor();
        return Optional.of(type.cast(constructor.newInstance()));
    }
}
