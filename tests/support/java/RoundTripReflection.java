import java.lang.invoke.MethodType;
import java.lang.reflect.Constructor;
import java.lang.reflect.Executable;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.Arrays;
import java.util.List;

/** Accesses members by reflection if they are private or their names depend on the release. */
final class RoundTripReflection {

    private RoundTripReflection() {}

    static boolean exists(String className) {
        try {
            Class.forName(className);
            return true;
        } catch (ClassNotFoundException missing) {
            return false;
        }
    }

    /** Returns whether the target has a method with this name, with any parameters. */
    static boolean has(Object target, String method) {
        return Arrays.stream(target.getClass().getMethods())
                .anyMatch(candidate -> candidate.getName().equals(method));
    }

    static Object call(Object target, String method, Object... arguments) throws Exception {
        return invoke(target.getClass(), target, method, arguments);
    }

    static Object callStatic(Class<?> type, String method, Object... arguments) throws Exception {
        return invoke(type, null, method, arguments);
    }

    static Object create(String className, Object... arguments) throws Exception {
        Constructor<?>[] candidates = Class.forName(className).getDeclaredConstructors();
        Constructor<?> constructor = fitting(Arrays.asList(candidates), className, arguments);
        constructor.setAccessible(true);
        return unwrapped(() -> constructor.newInstance(arguments));
    }

    static Object staticField(String className, String field) throws Exception {
        return Class.forName(className).getField(field).get(null);
    }

    static Object field(Class<?> type, Object target, String name) throws Exception {
        return accessible(type, name).get(target);
    }

    static void setField(Class<?> type, Object target, String name, Object value)
            throws Exception {
        accessible(type, name).set(target, value);
    }

    private static Field accessible(Class<?> type, String name) throws Exception {
        Field field = type.getDeclaredField(name);
        field.setAccessible(true);
        return field;
    }

    private static Object invoke(Class<?> type, Object target, String name, Object... arguments)
            throws Exception {
        for (Class<?> declaring = type; declaring != null; declaring = declaring.getSuperclass()) {
            List<Method> candidates =
                    Arrays.stream(declaring.getDeclaredMethods())
                            .filter(method -> method.getName().equals(name))
                            .filter(method -> !Modifier.isAbstract(method.getModifiers()))
                            .filter(method -> fits(method, arguments))
                            .toList();
            if (!candidates.isEmpty()) {
                Method method = candidates.get(0);
                method.setAccessible(true);
                return unwrapped(() -> method.invoke(target, arguments));
            }
        }
        throw new NoSuchMethodException(type.getName() + "." + name);
    }

    private static <E extends Executable> E fitting(
            List<E> candidates, String name, Object... arguments) throws NoSuchMethodException {
        return candidates.stream()
                .filter(candidate -> fits(candidate, arguments))
                .findFirst()
                .orElseThrow(() -> new NoSuchMethodException(name));
    }

    private static boolean fits(Executable executable, Object... arguments) {
        Class<?>[] types = executable.getParameterTypes();
        if (types.length != arguments.length) {
            return false;
        }
        for (int i = 0; i < types.length; i++) {
            Class<?> type = boxed(types[i]);
            if (arguments[i] == null ? types[i].isPrimitive() : !type.isInstance(arguments[i])) {
                return false;
            }
        }
        return true;
    }

    private static Class<?> boxed(Class<?> type) {
        return MethodType.methodType(type).wrap().returnType();
    }

    private interface Invocation {
        Object run() throws Exception;
    }

    private static Object unwrapped(Invocation invocation) throws Exception {
        try {
            return invocation.run();
        } catch (InvocationTargetException failed) {
            if (failed.getCause() instanceof Exception cause) {
                throw cause;
            }
            throw failed;
        }
    }
}
