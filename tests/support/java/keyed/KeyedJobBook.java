package testjobs;

/** Some of the jobs with keyed state. */
interface KeyedJobBook {
    /** The job of that name; null without one. */
    KeyedJob named(String name);
}
