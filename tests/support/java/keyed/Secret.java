package testjobs;

/** A class that is no POJO: Kryo writes its fields, and only itself knows which they are. */
public final class Secret {
    private final String text;
    private final long number;

    Secret(String text, long number) {
        this.text = text;
        this.number = number;
    }

    @Override
    public String toString() {
        return text + number;
    }
}
