package testjobs;

import java.lang.reflect.Field;

/** Reads private fields of Flink's objects. */
final class Inside {
    private Inside() {}

    /** Returns the value of a field that {@code type}, or one of its superclasses, declares. */
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
