package testjobs;

/** A group of jobs with keyed state. */
interface KeyedJobBook {
    /** Returns the job with this name, or null. */
    KeyedJob named(String name);
}
