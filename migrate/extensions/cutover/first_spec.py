"""Write a first version of a spec from a running job, with comments for missing values.

Flink's REST API shows the job's name, the folder for savepoints, and the parameters that the job
has registered. It shows neither the brokers of a ``KafkaSource`` nor the query. The keys for these
values are therefore commented out, and ``cut-over`` reports the keys as missing until they are set.

Source: org.apache.flink.runtime.rest.messages.{ConfigurationInfo, JobConfigInfo} @ Flink 1.20.3.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from decoder.urls import redact_url
from migrate.inputs.flink.rest_api import FlinkJob, JobManager
from migrate.model.errors import UsageError
from migrate.model.option_names import option

# Flink 1.20 renamed the option, and Flink 2 reports only the new (second) name.
_SAVEPOINT_OPTIONS = ("state.savepoints.dir", "execution.checkpointing.savepoint-dir")
_SERVERS = "bootstrap.servers"

_TEMPLATE = """\
# A cut-over of one Flink job. Set each key that is marked as required, then run:
#   migrate cut-over {spec}             a dry run, which changes nothing
#   migrate cut-over {spec} --execute   stops the job, and starts the query
# Help: migrate cut-over --help. In the source repository of migrate, docs/how-to/cut-over.md is the
# guide, and docs/schemas/cut-over-spec.schema.json lists all keys.
# Relative paths are relative to the folder of this file.
version: 1
flink:
{rest}
{job}
{savepoints}
kafka:
{servers}
  # Credentials and TLS, as a Kafka client reads them.
  # config: client.properties
move:
  # The consumer group to which the job commits. In addition to the JobManager, the group's commits
  # show whether the job kept running.
  # source-group: {group}
  # Partitions whose position is below the log start offset: fail, or earliest.
  on-expired: fail
target:
  # Required: exactly one of these. checkpoint-dir is new: migrate writes it, and the query uses it
  # as its checkpointLocation.
  # checkpoint-dir: /lake/queries/{name}
  # group: {name}
# The directory or table that the query writes to. migrate refuses a sink that would skip batches.
# sink: /lake/{name}
# The command that starts the query or the consumers, in the folder of this file. Without this key,
# start them yourself at the step first-batch. A query needs Spark's Kafka connector; with
# --format python, `migrate to-spark` prints a query to complete.
# start: spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0 {name}.py
"""


def first_spec(flink_rest: str | None = None, *, spec: str = "SPEC") -> str:
    """Return a commented spec, as YAML.

    Args:
        flink_rest: the address of the JobManager; None to let the user fill in the job.
        spec: the path of the spec file, which the comments mention.

    Raises:
        FlinkRestError: the JobManager did not answer, or it denied the request.
        UsageError: ``flink_rest`` is not an address, or no job is running on that cluster.
    """
    if flink_rest is None:
        return _filled(spec)
    flink = JobManager(flink_rest)
    running = [job for job in flink.jobs() if not job.ended]
    if not running:
        raise UsageError(
            f"{option('flink_rest', redact_url(flink_rest))}: no job is running on this cluster; "
            f"to move a stopped job, omit {option('flink_rest')} and set flink.savepoint in the "
            "spec"
        )
    parameters = flink.job_parameters(running[0].job_id) if len(running) == 1 else {}
    return _filled(
        spec,
        rest=flink_rest,
        running=running,
        savepoints=next(
            (
                folder
                for name, folder in flink.configuration().items()
                if name in _SAVEPOINT_OPTIONS and folder
            ),
            None,
        ),
        servers=_servers(parameters),
    )


def _filled(
    spec: str,
    *,
    rest: str | None = None,
    running: Sequence[FlinkJob] = (),
    savepoints: str | None = None,
    servers: str | None = None,
) -> str:
    name = "orders"
    if len(running) == 1:
        (job,) = running
        name = _file_name(job.name)
        # Two jobs may have the same name; the ID is unique.
        job_lines = [_line("job", job.name), f"  # or its id: {job.job_id}"]
    else:
        examples = [f"{_value(job.name)}   # {job.state}, {job.job_id}" for job in running]
        job_lines = ["  # Required: the job's name, or its id."]
        job_lines += [f"  # job: {example}" for example in examples or [name]]
    return _TEMPLATE.format(
        spec=spec,
        rest=_line("rest", rest)
        if rest
        else "  # Required: the JobManager's REST address.\n  # rest: http://jobmanager:8081",
        job="\n".join(job_lines),
        savepoints=_line("savepoints", savepoints)
        if savepoints
        else "  # Required: the folder for the savepoint, a path or a URL that both Flink and\n"
        "  # this machine can reach. migrate adds a subfolder for the job.\n"
        "  # savepoints: s3://flink/savepoints",
        servers=_line("bootstrap-servers", servers)
        if servers
        else "  # Required: the brokers of the job's source. Flink's REST API does not show them.\n"
        "  # bootstrap-servers: broker:9092",
        name=name,
        group=f"flink-{name}",
    )


def _line(key: str, value: str) -> str:
    return f"  {key}: {_value(value)}"


def _value(text: str) -> str:
    """Return a string in quotes, as JSON, because every JSON string is also a YAML string."""
    return json.dumps(text)


def _servers(parameters: Mapping[str, str]) -> str | None:
    """Return the brokers in the job's ``bootstrap.servers`` parameters.

    Names with a prefix, such as ``source.bootstrap.servers``, also count. Return None if the
    parameters are missing or have different values.
    """
    found = {value for name, value in parameters.items() if name.endswith(_SERVERS) and value}
    return found.pop() if len(found) == 1 else None


def _file_name(name: str) -> str:
    """Return a job's name for use in a path: its words in lower case, joined by hyphens."""
    return "-".join("".join(c if c.isalnum() else " " for c in name.lower()).split()) or "orders"
