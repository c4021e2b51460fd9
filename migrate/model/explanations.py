"""What each code of a finding or a warning means, and what the user can do."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import shorten, wrap

from migrate.model.finding import Code
from migrate.model.warning import WarningCode


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of a code, in Markdown without links.

    Attributes:
        severity: its severity, in words.
        meaning: what it says of the input, or of the move.
        advice: what the user can do; empty if there is nothing to do.
        section: the page and section of docs/ that explain more, or None.
    """

    severity: str
    meaning: str
    advice: str
    section: str | None = None

    @property
    def summary(self) -> str:
        """The beginning of the meaning, for a list of codes in 80 columns."""
        sentence = re.split(r"[.:;] | \(|\.$", self.meaning)[0].replace("`", "")
        return shorten(sentence, 55, placeholder=" …")

    def text(self, code: str) -> str:
        """Return the explanation of a code for a terminal."""
        lines = [f"{code} ({self.severity})", "", *_wrap(self.meaning)]
        if self.advice:
            lines += ["", *_wrap(f"What to do: {self.advice}")]
        if self.section is not None:
            lines += ["", f"More: docs/{self.section}"]
        return "".join(f"{line}\n" for line in lines)


def _wrap(text: str) -> list[str]:
    return wrap(text.replace("`", ""), 80, break_on_hyphens=False, break_long_words=False)


_FLINK = "explanation/traps-flink.md"
_SPARK = "explanation/traps-spark.md"
_BROKER = "explanation/traps-broker.md"
_STATE = "explanation/traps-state.md"

EXPLANATIONS: Mapping[Code | WarningCode, Explanation] = {
    WarningCode.AGE_UNKNOWN: Explanation(
        "warning",
        "The time at which the checkpoint was written is not known: it is a copy, or its store "
        "keeps no times. If a topic was deleted and created again since, and has grown beyond "
        "these offsets, nothing shows it.",
        "Name the checkpoint where it was written, or copy it with its times (`cp -p`, `rsync "
        "-t`).",
        f"{_BROKER}#a-partition-in-range-that-is-another-log",
    ),
    Code.ANOTHER_SOURCE_KIND: Explanation(
        "warning",
        "A source is not a Kafka source, or is a Beam pipeline that may read Kafka by a "
        "splittable `DoFn` (portable pipelines do, others with the experiment `use_sdf_read`). "
        "Its positions do not move.",
        "Check that the target need not read what this source reads. Run a Beam pipeline with "
        "`--experiments=use_deprecated_read`, and take another savepoint.",
        f"{_FLINK}#a15-a-source-that-is-not-kafkas",
    ),
    Code.COMMITTED_MARKER: Explanation(
        "warning",
        "No record of some partitions was read yet. They start where Flink's consumer group has "
        "committed.",
        "Name Flink's own group with `--source-group GROUP`.",
        f"{_FLINK}#a3-markers-stay-until-the-first-record",
    ),
    Code.DAMAGED_SOURCE: Explanation(
        "blocker",
        "Some of a source's state is Kafka's, and some cannot be decoded.",
        "Take another checkpoint, or choose the other sources with `--source`.",
    ),
    WarningCode.EMPTY_STATE: Explanation(
        "warning",
        "`expected` says that the state has no key. The query begins with an empty state.",
        "",
    ),
    WarningCode.EXPIRED_STATE: Explanation(
        "warning",
        "Entries of a state with a time to live had expired when the job was stopped. They are "
        "left out.",
        "",
        f"{_STATE}#e15-time-to-live",
    ),
    WarningCode.EXPIRY_DOUBTFUL: Explanation(
        "warning",
        "Entries count as expired only because the savepoint's files are newer than the last "
        "access to the state. Of a copy, the files' times are those of the copy.",
        "Give the time of the stop: `stopped_at_ms`, or `--stopped-at`.",
        f"{_STATE}#e15-time-to-live",
    ),
    WarningCode.EXPIRY_ENDS: Explanation(
        "warning",
        "Flink drops an entry that is not used for its time to live. Spark never does: a key that "
        "is idle for longer keeps its value.",
        "Check that the query's results may differ for such keys.",
        f"{_STATE}#e15-time-to-live",
    ),
    WarningCode.EXPIRY_IGNORED: Explanation(
        "warning",
        "With `ttl_ms=None`, expired entries go along too. Where Flink would start such a key "
        "anew, Spark goes on from its old value.",
        "Give the job's time to live as `ttl_ms`, or `--ttl`.",
        f"{_STATE}#e15-time-to-live",
    ),
    Code.FILES_IN_PROGRESS: Explanation(
        "warning",
        "A file sink keeps, or may keep, an unfinished file (row formats do, by default), even at "
        "a stop with a savepoint. Readers never see the records in it. Only Flink, restored from "
        "here, would finish it.",
        "Before the move, let the sink finish its files at each checkpoint, or stop the job with "
        "`--drain`.",
        f"{_FLINK}#a17-a-file-that-is-not-finished-is-not-output",
    ),
    Code.FINISHED_OPERATORS: Explanation(
        "warning",
        "Operators had finished and kept no state.",
        "If one of them was a bounded Kafka source, its positions are not in the checkpoint.",
    ),
    WarningCode.FIRED_WINDOWS: Explanation(
        "warning",
        "Flink keeps fired windows for late records (allowed lateness). They are left behind. "
        "Flink would fire such a window again for a late record, and Spark drops the record.",
        "",
        f"{_STATE}#e7-the-watermark-is-not-in-a-savepoint",
    ),
    WarningCode.FLINK_REST_CHANGED: Explanation(
        "warning",
        "The spec names another JobManager than earlier runs of the cut-over did. A job that runs "
        "again on the first one is not seen.",
        "Make sure that the job does not run there.",
        "how-to/cut-over.md#what-it-cannot-know",
    ),
    WarningCode.GROUP_DELETED: Explanation(
        "warning",
        "Kafka's client cannot remove a single offset. The rollback deletes the group, and commits"
        " its other offsets again. Offsets of topics that you may not DESCRIBE are not seen, and "
        "are lost.",
        "Start no consumer of the group meanwhile.",
        f"{_BROKER}#c6-bringing-back-no-offset",
    ),
    WarningCode.GROUP_MOVED: Explanation(
        "warning",
        "The group holds other offsets. Where it is moved back, its consumers read records again; "
        "where it is moved ahead, they skip records.",
        "Compare first: `migrate diff CHK group:NAME`.",
        f"{_BROKER}#going-back-may-repeat",
    ),
    WarningCode.GROUP_NOT_COMMITTED: Explanation(
        "warning",
        "The Spark listener could not commit the query's positions to the group. It tries again "
        "after the next batch.",
        "Look at the reason; the query itself goes on.",
        f"{_SPARK}#d9-lag-dashboards-go-blank",
    ),
    WarningCode.GROUP_OFFSETS_LOST: Explanation(
        "warning",
        "An interrupted rollback has deleted the group. Its offsets of other partitions come from "
        "a rollback file. What was committed after that file is not known.",
        "Compare these offsets with what the consumers have processed.",
        f"{_BROKER}#c6-bringing-back-no-offset",
    ),
    Code.GROUP_READS: Explanation(
        "blocker",
        "The consumer group whose offsets are moved (`group:NAME`) has members, which go on "
        "reading.",
        "Stop its consumers. `--allow-ran-on` repeats what they read from now on.",
    ),
    Code.HYBRID_SOURCE: Explanation("note", "A HybridSource has come to its Kafka source.", ""),
    Code.HYBRID_SOURCE_ELSEWHERE: Explanation(
        "blocker",
        "A HybridSource reads, or also reads, something other than Kafka.",
        "Let it come to Kafka, or choose the other sources with `--source`.",
    ),
    Code.IN_FLIGHT_RECORDS: Explanation(
        "blocker",
        "Records have left the source and are not processed yet: in an unaligned checkpoint, in "
        "async I/O, or in a Beam pipeline. A move loses them.",
        "Take an aligned checkpoint, or stop the job with a savepoint; with async I/O, stop it "
        "with `--drain`. `--allow-in-flight` loses them.",
        f"{_FLINK}#a7-records-in-flight",
    ),
    Code.INITIAL_DISCOVERY: Explanation(
        "note",
        "The state does not say where a partition that it lacks would start. A Beam pipeline has "
        "never read such a partition.",
        "If the broker has such partitions, choose with `--new-partitions`.",
        f"{_FLINK}#a6-found-and-not-yet-assigned",
    ),
    WarningCode.JOB_MAY_RUN: Explanation(
        "warning",
        "A KafkaSource joins no consumer group, so Kafka does not show whether the job still runs."
        " If it runs, it overwrites the offsets at its next checkpoint.",
        "Stop the job with a savepoint, which is proof in itself, or name the JobManager with "
        "`--flink-rest URL`. `--execute` looks for a new checkpoint, if it knows how often the job"
        " takes one.",
        f"{_BROKER}#c3-empty-is-not-stopped",
    ),
    Code.LATEST_MARKER: Explanation(
        "warning",
        "No record of some partitions was read yet, and their start is `latest`. Today's log end "
        "would skip all records since the job started.",
        "Choose with `--unresolved`.",
        f"{_FLINK}#a3-markers-stay-until-the-first-record",
    ),
    Code.LEGACY_CONSUMER: Explanation(
        "blocker",
        "A state has the name of a `FlinkKafkaConsumer`'s, and no position in it can be read.",
        "Take another checkpoint, or choose the other sources with `--source`.",
    ),
    WarningCode.LOOK_FAILED: Explanation(
        "warning",
        "A broker or a store did not answer `follow`. Nothing was committed at this look.",
        "It looks again by itself. With `--once` this is an error.",
    ),
    WarningCode.MAYBE_RECREATED: Explanation(
        "warning",
        "The first record since the checkpoint is below the position in it. The topic may have "
        "been deleted and created again, and the record at the position may be another one.",
        "Look at the records at these positions before the move.",
        f"{_BROKER}#a-partition-in-range-that-is-another-log",
    ),
    WarningCode.MERGED_POSITIONS: Explanation(
        "warning",
        "Several sources read one topic, and the lowest of their positions is taken. A source that"
        " was further on reads records again. A source that lacks a partition loses the records "
        "below its next offset.",
        "Move one source with `--source`, if that is not what you want.",
        f"{_FLINK}#a12-two-sources-of-one-topic",
    ),
    WarningCode.MISSING_OFFSETS: Explanation(
        "warning",
        "The side has no offset of some partitions. The program that takes the output starts there"
        " at its own default.",
        "Name these partitions another way, or set that default.",
    ),
    WarningCode.MISSING_PARTITIONS: Explanation(
        "warning",
        "The brokers do not have partitions that the Spark query has read: they were deleted, or "
        "these are other brokers.",
        "Check the brokers of `-b`. `follow` leaves these partitions out.",
    ),
    WarningCode.NEW_GROUP: Explanation(
        "warning",
        "Kafka creates a group with its first commit, also if its name is misspelt.",
        "Check the name of the group.",
        f"{_BROKER}#c4-a-misspelt-group-is-made-silently",
    ),
    WarningCode.NEW_TOPIC: Explanation(
        "warning",
        "A topic matches `--topic-pattern` and is not in the checkpoint. It moves as a topic that "
        "the job had not found yet.",
        "Check that the job reads this topic.",
        f"{_FLINK}#a20-a-topic-that-the-job-had-not-found-yet",
    ),
    WarningCode.NO_CHECKPOINT: Explanation(
        "warning",
        "There is no `chk-<n>` and no savepoint below the directories.",
        "Name the directory of `execution.checkpointing.dir`, or one above it.",
        "how-to/fleet.md#1-scan",
    ),
    Code.NO_ENUMERATOR: Explanation(
        "warning",
        "A source has no enumerator state. A bounded partition that was read to its end is then "
        "in no list.",
        "Compare the partitions with those of the job.",
        f"{_FLINK}#a5-a-finished-split-vanishes",
    ),
    WarningCode.NO_SUCH_GROUP: Explanation(
        "warning",
        "The consumer group does not exist on these brokers.",
        "Check the name of the group, and the brokers.",
    ),
    WarningCode.NO_TOPIC_IDS: Explanation(
        "warning",
        "Brokers before Kafka 2.8 give topics no id. If a topic was deleted and created again "
        "since the plan was made, and has grown beyond these offsets, nothing shows it.",
        "Make the plan shortly before you apply it.",
        f"{_BROKER}#a-partition-in-range-that-is-another-log",
    ),
    Code.NOT_A_STOP: Explanation(
        "warning",
        "The job was not stopped with this checkpoint. If it ran on, what it emitted since will be "
        "emitted again. Only a stop with a savepoint is a job's last output.",
        "Stop the job with a savepoint, or accept the repeats.",
        f"{_FLINK}#a8-the-job-may-have-run-on",
    ),
    WarningCode.NOT_CHECKED: Explanation(
        "warning",
        "No broker was asked. Records at the positions may be gone, and partitions that are not in"
        " the checkpoint are missing.",
        "Add `-b HOST:PORT`.",
        f"{_BROKER}#the-verdicts",
    ),
    Code.NUMBERING_BEGAN_ANEW: Explanation(
        "warning",
        "The numbers of the checkpoints in this directory contradict the times at which they "
        "were written: the job has begun to count anew, or the checkpoints are copies without "
        "their times.",
        "Find out which one the job wrote last, and name it. `--allow-ran-on` moves from one with "
        "another beside it that looks newer.",
        f"{_FLINK}#a18-numbers-that-begin-anew-and-meet-the-old-ones",
    ),
    WarningCode.OLD_SAVEPOINT: Explanation(
        "warning",
        "The job was stopped with this savepoint more than a day ago. If it was started from it "
        "again, what it emitted since will be emitted again.",
        "Name Flink's own group with `--source-group GROUP`: its commits show it.",
        f"{_FLINK}#a8-the-job-may-have-run-on",
    ),
    WarningCode.ONE_CLUSTER: Explanation(
        "warning",
        "The state of these sources does not name their Kafka cluster. With `--one-cluster` they "
        "count as sources of one cluster. On two clusters these would be two topics.",
        "Check that the sources have the same brokers.",
        f"{_FLINK}#a12-two-sources-of-one-topic",
    ),
    WarningCode.OTHER_BROKERS: Explanation(
        "warning",
        "The state names the brokers of the source, and none of them was asked. A broker may have "
        "several names; but on another cluster the offsets mean other records.",
        "Name the source's own brokers with `-b`.",
        f"{_FLINK}#a14-one-topic-name-on-two-clusters",
    ),
    Code.OUTPUT_BEYOND: Explanation(
        "warning",
        "The Spark query has written, or may have written, more than its last logged batch "
        "shows, even if it was stopped cleanly: it tracks its progress asynchronously, or runs in "
        "Real-Time Mode. A move from here repeats that output.",
        "Run the query once more with `asyncProgressTrackingCheckpointIntervalMs` at 0, and let "
        "two batches run.",
        f"{_SPARK}#d11-output-beyond-the-last-batch-that-is-logged",
    ),
    WarningCode.PARTIAL_TOPIC: Explanation(
        "warning",
        "Not all partitions of a topic move. A query that subscribes to the topic fails, or reads "
        "the others too.",
        "Assign exactly the partitions that move, as the code of `--format python` does.",
        f"{_SPARK}#d1-startingoffsets-counts-once-and-must-list-everything",
    ),
    WarningCode.PARTITION_STAYS: Explanation(
        "warning",
        "Several sources of the savepoint read this topic, each its own partitions. The partition "
        "stays with the source that has it.",
        "",
        f"{_FLINK}#a12-two-sources-of-one-topic",
    ),
    WarningCode.PATTERN_UNMATCHED: Explanation(
        "warning",
        "The pattern matches no topic of the checkpoint, so it may not be the job's.",
        "Copy the pattern from the job's code.",
        f"{_FLINK}#a20-a-topic-that-the-job-had-not-found-yet",
    ),
    Code.PENDING_TRANSACTIONS: Explanation(
        "warning",
        "A sink keeps transactions or files that it has yet to commit. A stop commits them after "
        "the savepoint is complete, so the savepoint does not show whether it did. If it did not, "
        "that output is lost.",
        "Give `-b`: the move asks the brokers of a KafkaSink; `kafka-transactions.sh describe` "
        "asks others. If `flink stop` failed (`StopWithSavepointStoppingException`), or a process "
        "of the job died, restore the job from here once, before `transaction.timeout.ms` has "
        "passed, let it commit, and stop it again.",
        f"{_FLINK}#a19-a-stop-that-did-not-commit",
    ),
    WarningCode.POSITION_CHANGED: Explanation(
        "warning",
        "The job or the query goes on with its state, but from another position. State that counts"
        " records counts some of them twice, or lacks them.",
        "Check that the results allow it.",
        "how-to/same-state.md#what-changes-and-what-does-not",
    ),
    WarningCode.QUERY_COPIED: Explanation(
        "warning",
        "A copy of a checkpoint location has the query's own id. A sink that remembers batches by "
        "that id, such as a Delta table, skips the batches of one copy that another has written.",
        "From here on, run only one of the copies.",
        "how-to/same-state.md#a-spark-query-the-same",
    ),
    Code.QUERY_STATE: Explanation(
        "warning",
        "The Spark query keeps rows that it has read and not emitted. A move from here loses "
        "them. In Real-Time Mode it has also written beyond its positions.",
        "Let records beyond the watermark close its windows first, or begin before them, into a "
        "sink that can take repeats.",
        f"{_SPARK}#d12-rows-in-the-state-of-a-query",
    ),
    Code.RAN_ON: Explanation(
        "blocker",
        "A newer complete checkpoint is beside this one, or Flink's group has committed beyond it, "
        "so the job ran on. What it emitted since will be emitted again.",
        "Move from the newest one. `--allow-ran-on` repeats the records.",
        f"{_FLINK}#a8-the-job-may-have-run-on",
    ),
    WarningCode.REMAINING_FILES: Explanation(
        "warning",
        "An interrupted command could not remove files that it had written to a store.",
        "Remove the files that it names.",
    ),
    WarningCode.RENAMED_TOPIC: Explanation(
        "warning",
        "An offset of one topic is used for another topic. It is the same record only if the topic"
        " was copied offset for offset, which MirrorMaker does not do.",
        "Compare the records at these offsets first.",
        f"{_BROKER}#a-topic-of-another-name-is-another-log",
    ),
    WarningCode.RESTART_UNSEEN: Explanation(
        "warning",
        "The cut-over cannot see, or not fully, whether the job was started again after its stop.",
        "Give `flink.rest` and `flink.job` in the spec, and let Flink answer; or make sure "
        "yourself that the job does not run.",
        "how-to/cut-over.md#what-it-cannot-know",
    ),
    Code.RETAINED_CLUSTERS: Explanation(
        "note", "The state has positions of clusters that a DynamicKafkaSource no longer read.", ""
    ),
    WarningCode.RUN_STOPPED: Explanation(
        "warning",
        "A run of the cut-over has stopped before its end. The message says in which state the job"
        " and the target are.",
        "Remove the cause, and run the same command again: it goes on from there.",
        "how-to/cut-over.md#if-a-run-stops",
    ),
    WarningCode.SINK_HIDES_FILES: Explanation(
        "warning",
        "The directory has the log of a Spark query's file sink (`_spark_metadata`). Spark reads "
        "only the files that are in the log, not those that Flink adds.",
        "Name a new directory for the Flink job.",
        "explanation/sinks.md#the-way-out",
    ),
    Code.SINK_MEMORY: Explanation(
        "note; a warning in a move to a group",
        "A sink may remember ids of checkpoints (Iceberg's IcebergSink, Delta's sink). A job of "
        "the same id that starts without state commits nothing until its checkpoints pass the last "
        "id that the sink remembers: these records are lost.",
        "Start the Flink job with a new job id, or give the sink a new uid. `--sink TABLE` asks "
        "the table.",
        "explanation/sinks.md",
    ),
    Code.SINK_STATE: Explanation(
        "note", "A sink keeps state, and nothing in it is to be committed.", ""
    ),
    WarningCode.SINK_UNKNOWN: Explanation(
        "warning",
        "The sink is not a file sink of Spark, nor a table of Delta, Hudi, Iceberg or Paimon, or "
        "not all of it could be read. It may remember what was written to it, and skip what comes "
        "under the same numbers.",
        "Find out whether the sink remembers batches, or name a new one.",
        "explanation/sinks.md#how-far-it-looks",
    ),
    WarningCode.SINK_WRITER: Explanation(
        "warning",
        "The table remembers batches by a name that the writer chooses. If the new query uses such"
        " a name, its batches up to the last number are skipped without an error.",
        "Choose another name. `--sink-writer NAME` checks whether it is free.",
        "explanation/sinks.md#the-way-out",
    ),
    WarningCode.SOURCE_GROUP_EMPTY: Explanation(
        "warning",
        "The group of `--source-group` has committed nothing for these topics. So it does not show"
        " whether the job ran on after the checkpoint.",
        "Check the name of the group. A job that commits no offsets shows nothing this way.",
        f"{_FLINK}#a8-the-job-may-have-run-on",
    ),
    Code.STALE_POSITIONS: Explanation(
        "blocker; a warning if the release is not known",
        "The job was stopped with this savepoint, and a `FlinkKafkaConsumer` stores there the "
        "offsets of the checkpoint before. A move repeats what it read in between.",
        "Take a savepoint without a stop, and cancel the job at once. `--allow-ran-on` repeats "
        "the records.",
        f"{_FLINK}#a16-a-flinkkafkaconsumers-stop-is-one-checkpoint-old",
    ),
    WarningCode.STATE_LEFT_BEHIND: Explanation(
        "warning",
        "A keyed state, or its timers, does not go along: it was not named, cannot be read, or "
        "Spark has nothing of the kind.",
        "Name the state with `--state OPERATOR/NAME` (in a spec: `states`), if the query needs it.",
        f"{_STATE}#e6-timers",
    ),
    WarningCode.STATE_MISMATCH: Explanation(
        "warning",
        "With `--allow-state-mismatch` the job goes on with a state that belongs to other "
        "positions. It counts some records twice, or lacks them.",
        "Check that the results allow it.",
        "how-to/same-state.md#what-changes-and-what-does-not",
    ),
    Code.STATE_NOT_MOVED: Explanation(
        "warning",
        "An operator keeps state, such as windows, joins or buffers (in Beam, also elements that "
        "wait for side inputs). Records in it may be consumed and not yet emitted. Positions move; "
        "state stays, except with `to-flink`.",
        "Let the windows close before the stop, or take the state along with `to-spark --state`. "
        "`migrate state CHK` reads it.",
        f"{_FLINK}#a9-operator-state-holds-records-too",
    ),
    WarningCode.STATE_UNREADABLE: Explanation(
        "warning",
        "A keyed state could not be read or listed. The message has the reason.",
        "",
        "how-to/keyed-state.md#what-cannot-be-read",
    ),
    WarningCode.STOP_UNKNOWN: Explanation(
        "warning",
        "Savepoints before Flink 1.16 do not record whether the job was stopped with them.",
        "Make sure that the job has ended with this savepoint.",
        f"{_FLINK}#a8-the-job-may-have-run-on",
    ),
    WarningCode.TIME_TO_LIVE: Explanation(
        "warning",
        "A state has a time to live. Its length is in the job's code, not in the savepoint. "
        "`prime` refuses the state without it.",
        "Give it as `ttl_ms` to `prime`.",
        f"{_STATE}#e15-time-to-live",
    ),
    Code.UNCOMMITTED_BATCH: Explanation(
        "warning",
        "The Spark query has begun a batch that it has not committed. Output of this batch may "
        "be repeated.",
        "Let the query commit the batch before it hands over.",
        f"{_SPARK}#d9-lag-dashboards-go-blank",
    ),
    Code.UNDISCOVERED_TOPICS: Explanation(
        "warning",
        "The state has no partition of some topics of a DynamicKafkaSource. They do not move.",
        "Check whether the target must read them.",
    ),
    WarningCode.UNFINISHED_RUN: Explanation(
        "warning",
        "A directory is left from a run that was killed while it primed or read the location.",
        "Remove it, unless such a run is still active.",
    ),
    WarningCode.UNLISTED_PARTITION: Explanation(
        "warning",
        "A partition held records before the checkpoint, by their timestamps, and the checkpoint "
        "does not list it. The job was probably told which partitions to read.",
        "Name those partitions with `--partitions`.",
        f"{_BROKER}#a-new-partition-that-is-older-than-the-checkpoint",
    ),
    Code.UNRESOLVED_POSITIONS: Explanation(
        "blocker",
        "The state does not have the position of some partitions.",
        "Choose with `--unresolved`.",
        f"{_FLINK}#a6-found-and-not-yet-assigned",
    ),
    WarningCode.UNSEEDED_STREAM: Explanation(
        "warning",
        "Streams of the query with lower numbers get no seed. That is right for streams that do "
        "not read Kafka. One that does starts at its own `startingOffsets`, by default at the log "
        "end.",
        "Name each Kafka stream with `--spark-source`. `migrate verify` shows it, once the query "
        "has started.",
        f"{_SPARK}#d6-streams-go-by-number",
    ),
    WarningCode.WATERMARK: Explanation(
        "warning",
        "Flink's watermark is not in the savepoint. If `watermark_ms` is too low, a late record "
        "opens a window again that Flink has fired. If it is too high, Spark drops records that "
        "Flink would have taken.",
        "Take Flink's watermark at the stop, as its REST API or its metrics show it.",
        f"{_STATE}#e7-the-watermark-is-not-in-a-savepoint",
    ),
    Code.WRITTEN_BY: Explanation(
        "note", "The versions in the state tell which releases of Flink may have written it.", ""
    ),
    WarningCode.YOUNG_TOPIC: Explanation(
        "warning",
        "Topics whose names are like those of the job's topics are young, and not in the "
        "checkpoint. If the job finds its topics by a pattern, they stay behind.",
        "Name the job's pattern with `--topic-pattern`.",
        f"{_FLINK}#a20-a-topic-that-the-job-had-not-found-yet",
    ),
}
