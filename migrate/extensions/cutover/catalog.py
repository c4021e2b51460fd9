"""The messages of the cutover extension; ``migrate.model.catalog`` describes catalogs."""

from __future__ import annotations

from migrate.model.finding import Code
from migrate.model.message import input_error, refusal, service_error, stop, warning

ALL_STOPS_FAILED = stop(
    "all-stops-failed",
    "Flink has failed to stop this job {attempts} times",
    "fix the cause that Flink's log shows, and rerun the command",
)
CHECKPOINT_DIR_NOT_WRITABLE = refusal(
    "checkpoint-dir-not-writable",
    "target.checkpoint-dir {location} cannot be written, because no directory can be created in "
    "{directory} ({error})",
    "make {directory} writable, or set target.checkpoint-dir to a directory that migrate can write",
)
CHECKPOINT_DIR_UNUSABLE = refusal(
    "checkpoint-dir-unusable",
    "target.checkpoint-dir {problem}",
    "set target.checkpoint-dir to a directory that this machine can write to",
)
CHECKPOINT_FAILED = refusal(
    "checkpoint-failed",
    "the job's newest checkpoint failed: {failure}",
    "fix the cause, wait for a completed checkpoint, and rerun the command",
)
COMMAND_IS_COMMENT = refusal(
    "command-is-comment",
    "the command is only a shell comment or blank, so it does nothing",
    "omit the # at its start, or set a command",
)
COMMAND_NOT_PARSED = refusal(
    "command-not-parsed",
    "the shell cannot parse the command",
    "check its quotes and parentheses",
)
COMMAND_RUNNING = refusal(
    "command-running",
    "the {command} command is still running (process {process})",
    "to stop it, run kill -- -{process}; then rerun this command",
)
COMMAND_RUNNING_UNKNOWN_PROCESS = refusal(
    "command-running-unknown-process",
    "the {command} command is still running",
    "stop it, and rerun this command",
)
COMMITTED_BEFORE_START = refusal(
    "committed-before-start",
    "other clients committed for {target} after the plan was written and before the start command "
    "was run; the offsets at which these clients started are unknown",
    "stop these clients, and compare the records that they processed with the topic",
)
COMMITTED_BEFORE_VERIFICATION = refusal(
    "committed-before-verification",
    "other clients committed for {target} after the plan was written and before {target} was "
    "verified; the offsets at which these clients started are unknown",
    "stop these clients, and compare the records that they processed with the topic",
)
CONSUMERS_STARTED = refusal(
    "consumers-started",
    "readers have started from {target}; {evidence}",
    "stop the group's consumers, and start the Flink job from the group's offsets",
)
CUT_OVER_ACTIVE = refusal(
    "cut-over-active",
    "another run of this cut-over is active ({holder})",
    "wait until that run has ended, and rerun the command",
)
FINAL_SAVEPOINT_UNKNOWN = stop(
    "final-savepoint-unknown",
    "job {job_id} ({job}) is {state} in Flink, but Flink reports none of the savepoints in "
    "{folder} ({savepoints}) as the job's final savepoint",
    "if the job is not running, start it from its newest checkpoint or from one of these "
    "savepoints; then set the key `record` in the spec to a new folder, and rerun the command",
)
FIRST_BATCH_NOT_COMMITTED = stop(
    "first-batch-not-committed",
    "batch {batch} has started, but was not committed within {limit} (timeouts.first-batch); the "
    "batch may have written records, and a restarted query would rerun the batch",
    "rerun the command to wait longer",
)
FOLDER_IS_FILE = refusal(
    "folder-is-file",
    "{key} {folder} is a file, or one of its parent directories is a file",
    "set {key} to a folder",
)
GROUP_COMMIT_INCOMPLETE = stop(
    "group-commit-incomplete",
    "the planned offsets of group {group} were not all committed ({applied})",
    "rerun the command to commit the remaining offsets",
)
GROUP_OF_OTHER_MOVE = refusal(
    "group-of-other-move",
    "group {group} contains offsets that another move has committed ({commits:1})",
    "continue that move, or take over the group with {option.adopt:true}",
)
GROUP_ON_OTHER_CLUSTER = refusal(
    "group-on-other-cluster",
    "the brokers in kafka.bootstrap-servers belong to cluster {cluster}, but the group's offsets "
    "were written to cluster {written}",
    "set kafka.bootstrap-servers to the brokers of cluster {written}",
)
GROUP_RESTORE_INCOMPLETE = stop(
    "group-restore-incomplete",
    "the offsets of group {group} were not all restored ({applied})",
    "rerun the command to restore the remaining offsets",
)
GROUP_WRITER_UNKNOWN = refusal(
    "group-writer-unknown",
    "group {group} already has the planned offsets, and no rollback file in the record's "
    "directory or the current directory shows which client committed these offsets",
    "if the job commits to this group, set move.source-group; if another cut-over committed the "
    "offsets, continue that cut-over; otherwise, take over the group with {option.adopt:true}",
)
JOB_ENDED_WITH_OTHER_SAVEPOINT = stop(
    "job-ended-with-other-savepoint",
    "the job was restarted; it ended with {savepoint}, but the record of this cut-over contains "
    "{recorded}",
    "set the key `record` in the spec to a new folder, and rerun the command",
)
JOB_NAME_UNKNOWN = refusal(
    "job-name-unknown",
    "flink.job specifies job {job}, but Flink has no such job; running jobs: {running}",
    "set flink.job to the name or the ID of a running job",
)
JOB_NOT_FINISHED = stop(
    "job-not-finished",
    "the savepoint is complete, but Flink reports the job as {state}, not as FINISHED",
    "wait until the job has finished, and rerun the command; if it does not finish, check Flink's "
    "log",
)
JOB_NOT_LISTED = stop(
    "job-not-listed",
    "Flink no longer lists job {job_id}, and the job may not have committed its pending output at "
    "savepoint {savepoint}",
    "start the job once from this savepoint (flink run -s), or set flink.savepoint to "
    "{savepoint}; then set the key `record` in the spec to a new folder, and rerun the command",
)
JOB_NOT_RUNNING = refusal(
    "job-not-running",
    "job {job_id} ({job}) is {state} in Flink, but migrate can only stop a RUNNING job",
    "wait until the job is RUNNING, and rerun the command",
)
JOB_RESTARTED_WITH_NEW_ID = refusal(
    "job-restarted-with-new-id",
    "flink.job specifies job {job}, which is {state}; {name} was restarted as {new_id} "
    "({new_state})",
    "set flink.job to the ID of the restarted job",
)
LEGACY_CONSUMER_STOP = refusal(
    "legacy-consumer-stop",
    "the job reads with a FlinkKafkaConsumer, so the offsets that a stop-with-savepoint saves are "
    "one checkpoint behind",
    "take a savepoint without stopping the job, then cancel the job, and set flink.savepoint to "
    "this savepoint",
)
LOCATION_HAS_BATCHES = refusal(
    "location-has-batches",
    "{location} contains batches that do not belong to this cut-over, so the start offsets of the "
    "query at this location are unknown",
    "run `migrate verify`, or choose a new directory",
)
LOCATION_IS_FILE = refusal(
    "location-is-file",
    "{location} is a file or a symbolic link, or one of its parent directories is a file",
    "set target.checkpoint-dir to a new directory",
)
LOCATION_NOT_PRIMED = refusal(
    "location-not-primed",
    "the location has no committed batch, so it was not primed",
    "if this cut-over wrote the location, and no query is running from it, remove the directory, "
    "and rerun the command; otherwise, choose a new directory",
)
LOCATION_OF_OTHER_QUERY = refusal(
    "location-of-other-query",
    "{location} contains query {query_id}, but this cut-over wrote query {written}",
    "if nothing needs the directory, remove it yourself, and rerun the command",
)
LOCATION_OF_OTHER_WRITER = refusal(
    "location-of-other-writer",
    "{location} contains the planned query {query_id}, but this cut-over did not write this "
    "query; another cut-over may start the query",
    "choose a new directory, or take over the query with {option.adopt:true}",
)
LOCATION_TAKEN = refusal(
    "location-taken",
    "{location} already contains a query, but this cut-over has no plan yet",
    "choose a new directory",
)
NO_BATCH_IN_TIME = stop(
    "no-batch-in-time",
    "no batch was committed within {limit} (timeouts.first-batch); without new records in the "
    "topic, this is normal",
    "rerun the command to wait longer",
)
NO_COMPLETED_CHECKPOINT = refusal(
    "no-completed-checkpoint",
    "the job has no readable completed checkpoint",
    "wait for a completed checkpoint, and rerun the command",
)
NO_FINAL_SAVEPOINT = stop(
    "no-final-savepoint",
    "job {job_id} ({job}) is {state} in Flink, but Flink reports no final savepoint for the job "
    "in {folder}",
    "if the job is not running, start it from its newest checkpoint or savepoint; then set the "
    "key `record` in the spec to a new folder, and rerun the command",
)
NO_JOB_RUNNING = refusal(
    "no-job-running",
    "flink.job specifies job {job}, but Flink has no such job, and no job is running",
    "start the job, or set flink.savepoint to its last savepoint",
)
NO_MEMBER_SEEN = stop(
    "no-member-seen",
    "no member joined {target}, and no offsets were committed for it, within {limit} "
    "(timeouts.first-batch)",
    "check that the consumers use this group, or rerun the command to wait longer",
)
NO_QUERY_STARTED = stop(
    "no-query-started",
    "no query has started from {location} within {limit} (timeouts.first-batch)",
    "check that {location} is the query's checkpointLocation, or rerun the command to wait longer",
)
NOTHING_TO_ROLL_BACK = refusal(
    "nothing-to-roll-back",
    "there is nothing to roll back, because the job was not stopped",
    "to start the cut-over, omit {option.back:true}",
)
PLAN_DIFFERS_FROM_REVIEW = refusal(
    "plan-differs-from-review",
    "the plan differs from the reviewed plan: {differences:3}",
    "to review the new plan, add {option.until:plan}",
)
PLAN_FILE_MISSING = refusal(
    "plan-file-missing",
    "the plan for {target} cannot be read, because plan.json is missing from the record's folder",
    "restore plan.json, or roll back with {option.back:true}",
)
PLAN_FILE_UNREADABLE = refusal(
    "plan-file-unreadable",
    "the plan for {target} cannot be read: {problem}",
    "restore plan.json, or roll back with {option.back:true}",
)
PLANNED_OFFSETS_GONE = refusal(
    "planned-offsets-gone",
    "{target} no longer contains the planned offsets",
    "rerun the command",
)
PRIME_COMMAND_FAILED = stop(
    "prime-command-failed",
    "the prime command for {location} failed with exit code {exit_code}",
    "fix the error that its output shows, remove {location} if it exists, and rerun the command",
)
PRIME_COMMAND_NOT_RUN = stop(
    "prime-command-not-run",
    "the prime command cannot be run: {error}",
    "correct the key `prime` in the spec, and rerun the command",
)
PRIME_COMMAND_UNFINISHED = stop(
    "prime-command-unfinished",
    "the prime command is still running after {limit} (timeouts.prime)",
    "rerun the command to wait longer",
)
PRIMED_BATCHES_DIFFER = refusal(
    "primed-batches-differ",
    "these batches in the location do not end at the planned offsets: {batches}",
    "if this cut-over wrote the location, and no query is running from it, remove the directory, "
    "and rerun the command; otherwise, choose a new directory",
)
PRIMED_LOCATION_IN_USE = refusal(
    "primed-location-in-use",
    "the location contains an uncommitted batch, so a query has already run from it",
    "if this cut-over wrote the location, and no query is running from it, remove the directory, "
    "and rerun the command; otherwise, choose a new directory",
)
PRIMED_LOCATION_REMOTE = refusal(
    "primed-location-remote",
    "migrate cannot remove {location}, because it is a primed location in an object store",
    "remove the location yourself, and rerun the command",
)
PRIMED_SEED_DIFFERS = refusal(
    "primed-seed-differs",
    "the start offsets in the location differ from the plan",
    "if this cut-over wrote the location, and no query is running from it, remove the directory, "
    "and rerun the command; otherwise, choose a new directory",
)
PRIMED_STATE_MISSING = refusal(
    "primed-state-missing",
    "the location contains no state, so it was not primed",
    "if this cut-over wrote the location, and no query is running from it, remove the directory, "
    "and rerun the command; otherwise, choose a new directory",
)
PRIMING_END_UNKNOWN = refusal(
    "priming-end-unknown",
    "the prime command for {location} was run, but its exit code is unknown, so the location may "
    "be incomplete",
    "check that no query is running from {location}, remove {location}, and rerun the command",
)
PRIMING_FAILED = refusal(
    "priming-failed",
    "the prime command for {location} failed with exit code {exit_code}, so the location may be "
    "incomplete",
    "check that no query is running from {location}, remove {location}, and rerun the command",
)
PROGRAM_MISSING = refusal(
    "program-missing",
    "the program {program} does not exist",
    "install it, or correct the command in the spec",
)
QUERY_DIFFERS_FROM_PLAN = refusal(
    "query-differs-from-plan",
    "the query in {location} differs from the planned query",
    "choose a new directory",
)
QUERY_STARTED = refusal(
    "query-started",
    "the query has started from {target}; {evidence}",
    "stop the query, run it with trigger(availableNow=True) to commit its batch (omit this run if "
    "the batch cannot succeed), and start the Flink job from the query's positions (with its "
    "state: migrate to-flink {savepoint} --from {target} --out NEW -b {brokers} --flink-rest URL; "
    "without its state: migrate commit-group {target} --group G -b {brokers})",
)
QUERY_LOCATION_MISSING = refusal(
    "query-location-missing",
    "the script {script} still contains the placeholder CHECKPOINT-DIR, so the query would not "
    "start from the target",
    "replace the placeholder with the path in target.checkpoint-dir",
)
QUERY_TEMPLATE_UNEDITED = refusal(
    "query-template-unedited",
    "the script {script} is an unedited query template, which shows 20 records and does not start "
    "the query",
    "complete the lines with COMPLETE",
)
READERS_AND_JOB_STARTED = refusal(
    "readers-and-job-started",
    "readers have started from {target} ({evidence}), and job {job} ({job_id}) has resumed from "
    "the savepoint",
    "do not start the Flink job again; stop the job or the readers, and compare their output",
)
READERS_POSSIBLE = refusal(
    "readers-possible",
    "a reader may have started from {target}; {evidence}",
    "stop all readers of the target, and check their output; if nothing has started, add "
    "{option.nothing_started:true}",
)
RECORD_WITHOUT_CHECKSUM = input_error(
    "record-without-checksum",
    "{path} has no checksum and may have been edited",
    "restore the original file, or use the release of migrate that wrote it",
)
REHEARSE_FAILED = refusal(
    "rehearse-failed",
    "the rehearse command failed with exit code {exit_code}",
    "fix the error that its output shows, and rerun the dry run",
)
REHEARSE_NOT_STARTED = refusal(
    "rehearse-not-started",
    "the rehearse command cannot be started: {error}",
    "correct the command in the spec",
)
RESTART_HIDDEN = refusal(
    "restart-hidden",
    "cannot determine whether the job was restarted: {problem}",
    "if the job was restarted, roll back with {option.back:true}, and move the restarted job; "
    "otherwise, add {option.allow_ran_on:true}",
)
RESTART_HIDDEN_AFTER_START = refusal(
    "restart-hidden-after-start",
    "cannot determine whether the job was restarted: {problem}; readers have started from {target}",
    "if the job was restarted, stop either the job or the readers, and compare their output; if "
    "you returned the job to Flink on purpose, stop the readers, and use a spec with a new {keys} "
    "to move the job again; if the job was not restarted, add {option.allow_ran_on:true}",
)
RESTARTED_JOB = stop(
    "restarted-job",
    "job {job} was restarted as {job_id} ({state}) and has written output since the savepoint",
    "to move the restarted job, first roll back with {option.back:true}, or set the key `record` "
    "in the spec to a new folder",
)
RESTARTED_JOB_AND_READERS = stop(
    "restarted-job-and-readers",
    "job {job} was restarted as {job_id} ({state}) and has written output since the savepoint; "
    "readers have also started from {target}",
    "stop the job or the readers, and compare their output; if you returned the job to Flink on "
    "purpose, this is expected; to move the job again, use a spec with a new {keys}",
)
RESTARTED_OR_OTHER_JOB = refusal(
    "restarted-or-other-job",
    "job {job} was restarted as {job_id} ({state}), or the savepoint is from a different job; the "
    "job has written output since the savepoint",
    "stop the job with a savepoint, and set flink.savepoint to that savepoint",
)
ROLLBACK_FILE_MISSING = refusal(
    "rollback-file-missing",
    "group {group} contains commits of this cut-over, but the rollback file is missing from the "
    "record's folder",
    "restore the file, and rerun the command",
)
SAVED_PLAN_EDITED = refusal(
    "saved-plan-edited",
    "the plan {path} was edited, and edits are not used",
    "to continue with a new plan from the savepoint, delete this file; to change the plan, set "
    "the keys under `move` in the spec",
)
SAVEPOINT_ALREADY_MOVED = refusal(
    "savepoint-already-moved",
    "cut-over {name} (record {folder}) has already moved savepoint {savepoint} to {target}",
    "return the job to Flink first, so that it can be stopped with a new savepoint; or, if nothing "
    "has started from {target}, roll back cut-over {name} with {option.back:true}, or take over "
    "its move with {option.adopt:true}",
)
SAVEPOINT_CHANGED = refusal(
    "savepoint-changed",
    "{savepoint} has changed since an earlier run checked it",
    "restore the files that the earlier run checked",
)
SAVEPOINT_IN_OTHER_FOLDER = refusal(
    "savepoint-in-other-folder",
    "the newest job with the name {job} ({job_id}) ended as {state}, and {folder} does not "
    "contain its newest savepoint {savepoint}",
    "to move from this savepoint, set flink.savepoint to it; otherwise, start the job",
)
SAVEPOINT_KEY_ADDED = refusal(
    "savepoint-key-added",
    "flink.savepoint was added ({savepoint}), but an earlier run already asked Flink to stop "
    "{job} ({job_id})",
    "remove flink.savepoint, or, to start a new cut-over, set the key `record` in the spec to a "
    "new folder",
)
SAVEPOINT_KEY_REMOVED = refusal(
    "savepoint-key-removed",
    "flink.savepoint was removed (it was {savepoint})",
    "restore flink.savepoint, or, to start a new cut-over, set the key `record` in the spec to a "
    "new folder",
)
SAVEPOINT_MISSING_AFTER_END = refusal(
    "savepoint-missing-after-end",
    "the newest job with the name {job} ({job_id}) ended as {state} without a savepoint in "
    "{folder}",
    "start the job, or set flink.savepoint to the savepoint that you want to move",
)
SAVEPOINT_OF_OTHER_CUT_OVER = refusal(
    "savepoint-of-other-cut-over",
    "cut-over {name} (record {folder}) is already moving this job to {target}, but has not "
    "written the target yet",
    "continue cut-over {name}; or roll it back with {option.back:true}, or take over its move "
    "with {option.adopt:true}",
)
SAVEPOINT_WITHOUT_STOP = refusal(
    "savepoint-without-stop",
    "{savepoint} was not taken by a stop-with-savepoint, so the job kept running after it",
    "stop the job with a savepoint, and set flink.savepoint to that savepoint",
)
SCRIPT_MISSING = refusal(
    "script-missing",
    "the command runs the script {script} with {program}, but {directory} does not contain this "
    "script",
    "create the script, or correct its path in the spec",
)
SEED_BEING_WRITTEN = refusal(
    "seed-being-written",
    "{location} is incomplete, because another run is writing it",
    "wait until that run has ended, or choose a new directory",
)
SEVERAL_RUNNING_JOBS = refusal(
    "several-running-jobs",
    "flink.job is set to {job}, but several running jobs have this name ({ids})",
    "set flink.job to one of these IDs",
)
SPEC_EMPTY = input_error(
    "spec-empty",
    "{path} is empty",
    "set the keys `version` (to 1), `flink`, `kafka`, and `target`",
)
SPEC_KEY_CHANGED = refusal(
    "spec-key-changed",
    "{key} has changed from {before} to {after}",
    "restore the old value, or, to start a new cut-over, set the key `record` in the spec to a "
    "new folder",
)
SPEC_NOT_VALID = input_error(
    "spec-not-valid",
    "{path} is not a valid spec: {problems}",
    "correct these keys (docs/schemas/cut-over-spec.schema.json lists all keys)",
)
SPEC_OF_OTHER_KIND = input_error(
    "spec-of-other-kind",
    "{path} is not a spec, but a {kind}",
    "pass a spec (YAML); to move from a savepoint, set flink.savepoint in the spec",
)
START_BESIDE_IDLE_QUERY = stop(
    "start-beside-idle-query",
    "a query was started from {target}, but not by this cut-over, and has not logged a batch yet",
    "if the query is running, rerun the command after its first batch; otherwise, roll back with "
    "{option.back:true} and {option.nothing_started:true}, and rerun the command",
)
START_CHANGED_WHILE_RUNNING = stop(
    "start-changed-while-running",
    "the key `start` in the spec has changed, but the earlier command is still running{how_to_end}",
    "stop the earlier command, and rerun this command to run the new one",
)
START_COMMAND_FAILED = stop(
    "start-command-failed",
    "the start command failed with exit code {exit_code}",
    "fix the error that its output shows, and rerun the command",
)
START_COMMAND_NOT_RUN = stop(
    "start-command-not-run",
    "the start command cannot be run: {error}",
    "correct the key `start` in the spec, and rerun the command",
)
START_COMMAND_WITHOUT_CONSUMERS = stop(
    "start-command-without-consumers",
    "the start command succeeded, but no member joined {target}, and no offsets were committed "
    "for it, within {limit} (timeouts.first-batch); migrate does not run this command again",
    "check that the consumers use this group; if they are not running, start them yourself, and "
    "rerun the command",
)
START_COMMAND_WITHOUT_QUERY = stop(
    "start-command-without-query",
    "the start command succeeded, but no query has started from {location} within {limit} "
    "(timeouts.first-batch); migrate does not run the same command again",
    "check that {location} is the query's checkpointLocation; then start the query yourself, or "
    "correct the key `start` in the spec, and rerun the command",
)
START_EXIT_CODE_MISSING = stop(
    "start-exit-code-missing",
    "the start command was run, but its exit code was not recorded (for example, because the "
    "machine rebooted)",
    "check whether the query is running; if it is not, start it yourself; after its first batch, "
    "rerun `migrate cut-over`",
)
STOP_FAILED = stop(
    "stop-failed",
    "the stop failed: {problem}; the job is {state} in Flink",
    "fix the cause, and rerun the command",
)
STOP_REQUEST_LOST = service_error(
    "stop-request-lost",
    "Flink no longer has the stop request, because its JobManager was restarted",
    "rerun the command",
)
STOP_UNDERWAY = refusal(
    "stop-underway",
    "Flink is still stopping job {job_id} ({job}), and a stop cannot be canceled",
    "to wait until the job has stopped, add {option.until:stop}",
)
STOP_UNFINISHED = stop(
    "stop-unfinished",
    "the stop has not finished within {limit} (timeouts.stop), but may still finish; the job is "
    "{state} in Flink",
    "rerun the command to wait longer",
)
TARGET_NOT_VERIFIED = stop(
    "target-not-verified",
    "{target} is not verified: {result}",
    "to see where each partition starts, open {page}",
)
TARGET_START_DIFFERS = stop(
    "target-start-differs",
    "{target} is not verified, because its start offsets differ from the plan: {result}",
    "stop all readers of the target, and check each partition on the cut-over's page: {page}",
)
TARGET_START_UNKNOWN = stop(
    "target-start-unknown",
    "{target} is not verified: {result}",
    "compare the output of the target's readers with the topic; to see the result for each "
    "partition, open {page}",
)
TASKS_NOT_RUNNING = refusal(
    "tasks-not-running",
    "these tasks of the job are not running: {tasks:5}",
    "wait until they are running; if they have finished, use to-spark or commit-group with the "
    "job's newest checkpoint",
)
WRITTEN_OFFSETS_GONE = refusal(
    "written-offsets-gone",
    "{target} no longer contains the offsets that this cut-over wrote, and a reader may have "
    "started from those offsets; {evidence}",
    "check the output of that reader; if no reader has started, roll back with {option.back:true} "
    "and {option.nothing_started:true}, and rerun the command",
)
WRITTEN_QUERY_DIFFERS = refusal(
    "written-query-differs",
    "this cut-over wrote the planned query to {location}, but the query in this location now "
    "differs from the planned query",
    "restore the planned query from a backup, or roll back with {option.back:true}",
)
YAML_ALIAS = input_error(
    "yaml-alias",
    "aliases are not supported (line {line})",
    "replace *{alias} with its value",
)
YAML_CHARACTER = input_error(
    "yaml-character",
    "not YAML: {problem}: character {character}",
    "save the file as UTF-8, without control characters",
)
YAML_COLON_MISSING = input_error(
    "yaml-colon-missing",
    "not YAML: line {line}, or the line before it, is missing a colon",
    "write a colon and a space after each key",
)
YAML_ESCAPE = input_error(
    "yaml-escape",
    "an escape sequence or the version in the %YAML line is not supported",
    "remove the escape sequence or the %YAML line",
)
YAML_INDENTATION = input_error(
    "yaml-indentation",
    "not YAML: this line or the line before it is indented incorrectly, or is missing a colon or "
    "a quotation mark (line {line})",
    "indent the keys of each part by the same number of spaces",
)
YAML_KEY_EMPTY = input_error(
    "yaml-key-empty",
    "the key {key} has no value (line {line})",
    "set a value, or remove the key",
)
YAML_KEY_NOT_STRING = input_error(
    "yaml-key-not-string",
    "a key is a list or a mapping, not a string (line {line})",
    "use a string as the key",
)
YAML_KEY_REPEATED = input_error(
    "yaml-key-repeated",
    "the key {key} is repeated (lines {first} and {second})",
    "remove one of the lines",
)
YAML_NOT_CLOSED = input_error(
    "yaml-not-closed",
    "not YAML: a bracket or a quote is not closed (line {line})",
    "close it",
)
YAML_NUL = input_error(
    "yaml-nul",
    "NUL characters are not supported (line {line})",
    "remove the NUL characters",
)
YAML_SYNTAX = input_error(
    "yaml-syntax",
    "not YAML: {problem} (line {line})",
    "correct this line, or the line before it",
)
YAML_TAB = input_error(
    "yaml-tab",
    "not YAML: the line contains a tab (line {line})",
    "indent with spaces",
)
YAML_TAG = input_error(
    "yaml-tag",
    "tags are not supported (line {line})",
    "remove {tag}",
)
YAML_TOO_DEEP = input_error(
    "yaml-too-deep",
    "the spec is nested too deeply",
    "remove the nested brackets",
)

# Warnings. Several messages can have the same code, because ``explanations.md`` explains codes, not
# messages.

FLINK_REST_CHANGED = warning(
    "flink-rest-changed",
    "the host in flink.rest has changed from {before} to {host}, so migrate cannot see a job that "
    "is restarted on {before}",
)
KEYED_STATES_UNREADABLE = warning(
    "state-unreadable",
    "migrate cannot list the keyed states that are not migrated: {error}",
)
RESTARTED_JOB_ALLOWED = warning(
    Code.RAN_ON,
    "job {job} was restarted as {job_id} ({state}); its output since the savepoint will be "
    "duplicated",
)
RESTART_UNDETERMINED = warning(
    "restart-unseen",
    "cannot determine whether the job was restarted: {error}",
)
RESTART_UNSEEN = warning(
    "restart-unseen",
    "the spec has no flink.rest, so migrate cannot see a job that was restarted from the savepoint",
)
RUN_STOPPED = warning(
    "run-stopped",
    "stopped {when} {step}: {state}",
)
START_COMMAND_FAILED_AFTER_START = warning(
    "start-command-failed-later",
    "readers have started from the target, but the start command ended with exit code {exit_code}",
    "check its output, and whether the readers are still running",
)
STOP_UNKNOWN = warning(
    "stop-unknown",
    "a savepoint from before Flink 1.16 does not show whether the job stopped with the savepoint",
)
