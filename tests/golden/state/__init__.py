"""Snapshots with keyed state from real Flink jobs, and their expected contents.

    <version>/<job>/<form>/…         a snapshot: its `_metadata`, and its files
    <version>/<job>/expected.json    the contents of each of the job's snapshots
    manifest.json                    {"snapshots": [...]}, one entry per snapshot

The job was at rest when all of its snapshots were taken, so their contents are the same. The form
is `canonical` or `native` (savepoints) or `retained` (a checkpoint, whose directory is `chk-N`).

An entry of the manifest, with paths relative to this directory:

    name         version/job/form
    description  the purpose of the job
    flink        the release that wrote it
    path         the snapshot's directory
    written_at   the original directory, and the prefix of its absolute URIs
    expected     the path of its expected contents
    files        path -> sha256, of the snapshot's files and of `expected`

`expected` is a list of the operators with keyed state, by operator id:

    operator_id, name, uid    as reported by Flink; null if this metadata version has none
    states                    a list, by name

Each state has `state` (its name), `kind` (value, list, map, reducing, aggregating, or timers), and
either `entries` or `unreadable`. If only the job's own code can read the bytes of a value,
`unreadable` is the name of its class. An entry is a line of `migrate state --format json`:
    key_group    as computed by KeyGroupRangeAssignment
    key
    namespace    omitted for VoidNamespace and GlobalWindow; a window is {"start", "end"} in epoch
                 milliseconds, and a slice of SQL is its end
    map_key      only in states of kind map
    value        for timers, their time in epoch milliseconds; for aggregating, the accumulator
    last_access  in states with a TTL, in epoch milliseconds; for a list, a list with one time
                 for each element

NaN and the infinities are "NaN", "Infinity", "-Infinity"; a float has the value of its double; big
integers and decimals are strings. java.sql.Date and Time have the form of LocalDate and LocalTime.
java.util.Date and java.sql.Timestamp have the form of an Instant. All of them are in UTC. Entries
have no order.

The oracle is Flink. `KeyedDump` lets the heap backend of that release restore the first form, and
reports its objects. That backend does not restore ForSt's files. The expected contents of a job on
ForSt therefore come from a savepoint that RocksDB took after it resumed from the job's savepoint
(`forst`). Alternatively, they come from the same job on the heap backend (`async-forst`,
`sql-async-forst`). The times of last access are then ForSt's own times.

The functions of the jobs also record the values that they write or read (`Notes`). A job is not
adopted if its notes differ from the oracle.
"""
