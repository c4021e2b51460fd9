"""Snapshots with keyed state that real Flink jobs left, and what is in them.

    <version>/<job>/<form>/…         a snapshot: its `_metadata`, and its files
    <version>/<job>/expected.json    what each of the job's snapshots holds
    manifest.json                    {"snapshots": [...]}, one entry per snapshot

The job was at rest when all of its snapshots were taken, so that they hold the same. The form is
`canonical` or `native` (savepoints) or `retained` (a checkpoint, whose directory is `chk-N`).

An entry of the manifest, paths from here:

    name         version/job/form
    description  what the job is for
    flink        the release that wrote it
    path         the snapshot's directory
    written_at   where the job wrote it: absolute URIs in it start there
    expected     the path of what it holds
    files        path -> sha256, of the snapshot's files and of `expected`

`expected` is a list of the operators with keyed state, by operator id:

    operator_id, name, uid    as Flink tells them; null where this metadata version has none
    states                    a list, by name

and each state has `state` (its name), `kind` (value, list, map, reducing, aggregating or timers)
and either `entries`, or, where a value's bytes can be read by nothing but the job's own code,
`unreadable`: the name of that class. An entry is a line of `migrate state --format json`:

    key_group    KeyGroupRangeAssignment's
    key
    namespace    left out of VoidNamespace and GlobalWindow; a window is {"start", "end"} in epoch
                 milliseconds, a slice of SQL's its end
    map_key      in states of kind map alone
    value        of timers: when they fire, in epoch milliseconds; of aggregating: the accumulator
    last_access  where the state has a time to live, in epoch milliseconds; of a list: a list, one
                 for each element

NaN and the infinities are "NaN", "Infinity", "-Infinity"; a float has the value of its double;
big integers and decimals are strings; java.sql.Date and Time are told as LocalDate and LocalTime,
java.util.Date and java.sql.Timestamp as an Instant, all in UTC. Entries have no order.

The oracle is Flink: `KeyedDump` has the heap backend of that release restore the first form, and
tells its objects. That backend does not restore what ForSt writes: what a job on ForSt holds is
told of a savepoint that RocksDB took after it went on from the job's own (`forst`), or of the same
job on the heap backend (`async-forst`, `sql-async-forst`). There, the times of last access are
ForSt's own. Beside the oracle, the functions of the jobs note what they put in, or what they read
(`Notes`), and a job whose notes differ from the oracle is not adopted.
"""
