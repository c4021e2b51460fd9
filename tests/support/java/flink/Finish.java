package testjobs;

/** The ways to end a job, each with the snapshot that the job leaves. */
enum Finish {
    CANCEL_RETAINING_CHECKPOINT,
    SAVEPOINT,
    NATIVE_SAVEPOINT,
    STOP,
    DRAIN
}
