package testjobs;

import java.util.List;
import java.util.Map;
import java.util.Objects;

/** Classes of a user's, for values. */
final class Things {
    private Things() {}

    /** An enum. */
    public enum Color {
        RED,
        GREEN,
        BLUE
    }

    /** A POJO in a POJO. */
    public static class Address {
        public String street;
        public Integer number;

        public Address() {}

        public Address(String street, Integer number) {
            this.street = street;
            this.number = number;
        }
    }

    /** A POJO; a key, too. */
    public static class Person {
        public String name;
        public int age;
        public Long balance;
        public Color color;
        public Address address;
        private double score;

        public Person() {}

        public Person(String name, int age, Long balance, Color color, Address address) {
            this.name = name;
            this.age = age;
            this.balance = balance;
            this.color = color;
            this.address = address;
            this.score = age / 8.0;
        }

        public double getScore() {
            return score;
        }

        public void setScore(double score) {
            this.score = score;
        }

        @Override
        public int hashCode() {
            return Objects.hash(name, age);
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Person person
                    && person.name.equals(name)
                    && person.age == age;
        }
    }

    /** A subclass that is only met in a value. */
    public static class Employee extends Person {
        public String employer;
        public long salary;

        public Employee() {}

        public Employee(String name, int age, String employer, long salary) {
            super(name, age, null, Color.GREEN, new Address("Office", null));
            this.employer = employer;
            this.salary = salary;
        }
    }

    /** A POJO with containers in it, each of a type that Flink knows in one version and not in another. */
    public static class Basket {
        public int id;
        public List<String> items;
        public Map<String, Integer> counts;
        public int[] places;

        public Basket() {}

        public Basket(int id, List<String> items, Map<String, Integer> counts, int... places) {
            this.id = id;
            this.items = items;
            this.counts = counts;
            this.places = places;
        }
    }
}
