package testjobs;

/** How a job is ended, and what it leaves. */
enum Finish {
    CANCEL_RETAINING_CHECKPOINT,
    SAVEPOINT,
    NATIVE_SAVEPOINT,
    STOP,
    DRAIN
}
