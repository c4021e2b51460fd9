package testjobs;

/** A POJO as it became: a field is gone, and others have come. */
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
