package testjobs;

/** The second version of a POJO: one field was removed, and other fields were added. */
public class Evolving {
    public String name;
    public Long kept;
    public Integer added;
    public boolean another;

    public Evolving() {}

    static Evolving sample(int number) {
        Evolving value = new Evolving();
        value.name = "second " + number;
        value.kept = (long) -number;
        value.added = number;
        value.another = true;
        return value;
    }
}
