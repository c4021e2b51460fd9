package testjobs;

import java.lang.reflect.Field;

/** What Flink keeps to itself. */
final class Inside {
    private Inside() {}

    /** A field of a class; {@code type} is that class, or one below it. */
    @SuppressWarnings("unchecked")
    static <T> T of(Class<?> type, Object target, String name) {
        for (Class<?> at = type; at != null; at = at.getSuperclass()) {
            try {
                Field field = at.getDeclaredField(name);
                field.setAccessible(true);
                return (T) field.get(target);
            } catch (NoSuchFieldException above) {
                continue;
            } catch (IllegalAccessException error) {
                throw new AssertionError(error);
            }
        }
        throw new IllegalArgumentException(type.getName() + " has no " + name);
    }
}
