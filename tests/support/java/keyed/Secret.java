package testjobs;

/** A class that is not a POJO. Kryo writes its fields, and only the class itself defines them. */
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
