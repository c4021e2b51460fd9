"""What each code of a finding means, and what the user can do: the text of the page of findings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from migrate.model.finding import Code


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of a code, in Markdown without links.

    Attributes:
        severity: the severity of its findings, in words.
        meaning: what such a finding says of the input.
        advice: what the user can do; empty if there is nothing to do.
        section: the page and section of docs/ that explain more, or None.
    """

    severity: str
    meaning: str
    advice: str
    section: str | None = None


_FLINK = "explanation/traps-flink.md"
_SPARK = "explanation/traps-spark.md"

EXPLANATIONS: Mapping[Code, Explanation] = {
    Code.ANOTHER_SOURCE_KIND: Explanation(
        "warning",
        "A source is not a Kafka source, or is a Beam pipeline that may read Kafka by a "
        "splittable `DoFn`. Its positions do not move.",
        "Check that the target need not read what this source reads.",
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
    Code.FILES_IN_PROGRESS: Explanation(
        "warning",
        "A file sink keeps, or may keep, an unfinished file. Readers never see the records in it.",
        "Before the move, let the sink finish its files at each checkpoint, or stop the job with "
        "`--drain`.",
        f"{_FLINK}#a17-a-file-that-is-not-finished-is-not-output",
    ),
    Code.FINISHED_OPERATORS: Explanation(
        "warning",
        "Operators had finished and kept no state.",
        "If one of them was a bounded Kafka source, its positions are not in the checkpoint.",
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
    Code.NO_ENUMERATOR: Explanation(
        "warning",
        "A source has no enumerator state. A bounded partition that was read to its end is then "
        "in no list.",
        "Compare the partitions with those of the job.",
        f"{_FLINK}#a5-a-finished-split-vanishes",
    ),
    Code.NOT_A_STOP: Explanation(
        "warning",
        "The job was not stopped with this checkpoint. What it emitted since will be emitted "
        "again.",
        "Stop the job with a savepoint, or accept the repeats.",
        f"{_FLINK}#a8-the-job-may-have-run-on",
    ),
    Code.NUMBERING_BEGAN_ANEW: Explanation(
        "warning",
        "The numbers of the checkpoints in this directory contradict the times at which they "
        "were written.",
        "Find out which one the job wrote last, and name it.",
        f"{_FLINK}#a18-numbers-that-begin-anew-and-meet-the-old-ones",
    ),
    Code.OUTPUT_BEYOND: Explanation(
        "warning",
        "The Spark query has written, or may have written, more than its last logged batch "
        "shows. A move from here repeats that output.",
        "Run the query once more with `asyncProgressTrackingCheckpointIntervalMs` at 0.",
        f"{_SPARK}#d11-output-beyond-the-last-batch-that-is-logged",
    ),
    Code.PENDING_TRANSACTIONS: Explanation(
        "warning",
        "A sink keeps transactions or files that it has yet to commit. The savepoint does not "
        "show whether the stop committed them.",
        "Give `-b`: the move asks the brokers of a KafkaSink. If the stop failed, restore the job "
        "from here once, and stop it again.",
        f"{_FLINK}#a19-a-stop-that-did-not-commit",
    ),
    Code.QUERY_STATE: Explanation(
        "warning",
        "The Spark query keeps rows that it has read and not emitted. A move from here loses them.",
        "Let records beyond the watermark close its windows first.",
        f"{_SPARK}#d12-rows-in-the-state-of-a-query",
    ),
    Code.RAN_ON: Explanation(
        "blocker",
        "A newer complete checkpoint is beside this one, so the job ran on. What it emitted since "
        "will be emitted again.",
        "Move from the newest one. `--allow-ran-on` repeats the records.",
        f"{_FLINK}#a8-the-job-may-have-run-on",
    ),
    Code.RETAINED_CLUSTERS: Explanation(
        "note", "The state has positions of clusters that a DynamicKafkaSource no longer read.", ""
    ),
    Code.SINK_MEMORY: Explanation(
        "note; a warning in a move to a group",
        "A sink of an unknown kind may remember ids of checkpoints, and skip output under an id "
        "that it has seen.",
        "Start the Flink job with a new job id, or give the sink a new uid.",
        "explanation/sinks.md",
    ),
    Code.SINK_STATE: Explanation(
        "note", "A sink keeps state, and nothing in it is to be committed.", ""
    ),
    Code.STALE_POSITIONS: Explanation(
        "blocker; a warning if the release is not known",
        "The job was stopped with this savepoint, and a `FlinkKafkaConsumer` stores there the "
        "offsets of the checkpoint before. A move repeats what it read in between.",
        "Take a savepoint without a stop, and cancel the job at once. `--allow-ran-on` repeats "
        "the records.",
        f"{_FLINK}#a16-a-flinkkafkaconsumers-stop-is-one-checkpoint-old",
    ),
    Code.STATE_NOT_MOVED: Explanation(
        "warning",
        "An operator keeps state, such as windows or joins. Records in it may be consumed and not "
        "yet emitted, and they do not move with the positions.",
        "Let the windows close before the stop, or take the state along with `to-spark --state`.",
        f"{_FLINK}#a9-operator-state-holds-records-too",
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
    Code.UNRESOLVED_POSITIONS: Explanation(
        "blocker",
        "The state does not have the position of some partitions.",
        "Choose with `--unresolved`.",
        f"{_FLINK}#a6-found-and-not-yet-assigned",
    ),
    Code.WRITTEN_BY: Explanation(
        "note", "The versions in the state tell which releases of Flink may have written it.", ""
    ),
}
