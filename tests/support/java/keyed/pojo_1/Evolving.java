package testjobs;

/** The first version of a POJO. */
public class Evolving {
    public String name;
    public int removed;
    public Long kept;

    public Evolving() {}

    static Evolving sample(int number) {
        Evolving value = new Evolving();
        value.name = "first " + number;
        value.removed = number;
        value.kept = number % 2 == 0 ? null : (long) number;
        return value;
    }
}
