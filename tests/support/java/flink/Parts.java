package testjobs;

import java.lang.reflect.Constructor;
import java.util.Optional;

/** Finds classes that exist only for some Flink versions, whose folders are compiled separately. */
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
