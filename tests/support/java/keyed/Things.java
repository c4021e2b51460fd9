package testjobs;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;

/** Classes like those of a user, for values. */
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

    /** A POJO, which is also used as a key. */
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

    /** An unregistered subclass, which the snapshot may not list. */
    public static class Manager extends Person {
        public int reports;

        public Manager() {}

        public Manager(String name, int age) {
            super(name, age, null, Color.GREEN, null);
            this.reports = 3;
        }
    }

    /** A subclass that is registered. */
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

    /** A POJO with fields that Kryo writes, followed by another field. */
    public static class Order {
        public UUID id;
        public Duration took;
        public int units;

        public Order() {}

        public Order(UUID id, Duration took, int units) {
            this.id = id;
            this.took = took;
            this.units = units;
        }
    }

    /** A POJO with containers whose types only some versions of Flink support. */
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

    /** A POJO with types of the standard library, some of which Flink serializes with Kryo. */
    public static class Moments {
        public java.util.Date date;
        public java.time.LocalDate day;
        public java.time.Instant instant;
        public java.math.BigDecimal amount;
        public java.math.BigInteger number;
        public byte[] bytes;
        public String[] names;
        public Boolean flag;
        public Character letter;

        public Moments() {}

        static Moments sample() {
            Moments sample = new Moments();
            sample.date = new java.util.Date(1_700_000_000_123L);
            sample.day = java.time.LocalDate.of(2024, 2, 29);
            sample.instant = java.time.Instant.ofEpochSecond(1, 2);
            sample.amount = new java.math.BigDecimal("1.50");
            sample.number = java.math.BigInteger.valueOf(-5);
            sample.bytes = new byte[] {1, -1};
            sample.names = new String[] {"a", null};
            sample.flag = true;
            sample.letter = 'x';
            return sample;
        }
    }

    /** A POJO that contains other objects of its own class. */
    public static class Tree {
        public String label;
        public Tree[] children;

        public Tree() {}

        static Tree sample() {
            Tree leaf = new Tree();
            leaf.label = "leaf";
            Tree root = new Tree();
            root.label = "root";
            root.children = new Tree[] {leaf, null};
            return root;
        }
    }

    /** A POJO that contains a value whose bytes only the value's own class can read. */
    public static class Holder {
        public long number;
        public Secret secret;

        public Holder() {}

        static Holder sample() {
            Holder holder = new Holder();
            holder.number = 5;
            holder.secret = new Secret("held", 6);
            return holder;
        }
    }
}
