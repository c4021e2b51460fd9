"""Mistakes of users, with the message and the exit code that each gets."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.support.command import migrate
from tests.support.golden import GOLDEN

(_CHK,) = (GOLDEN / "1.20" / "retained-files").glob("*/chk-4")
(_SAVEPOINT,) = (GOLDEN / "1.20" / "stop").iterdir()

# Each command with the exit code and the last message. @CHK and @SAVEPOINT are checkpoints;
# the current folder, @FOLDER, has the files and directories of the fixture.
MISTAKES = """
inspect nope
3 nope: no such file or directory; name a chk-<n> or savepoint directory, its _metadata, or a \
job's checkpoint directory
inspect empty/chk-1
3 empty/chk-1/_metadata: damaged: the file is empty; take another checkpoint (magic number, at \
byte 0)
inspect short/chk-1
3 short/chk-1/_metadata: damaged: the bytes end inside a field: 36 wanted, 8 left; take another \
checkpoint (operator cbc357ccb763df2852fee8c4fc7d55f2 subtask 0 managed operator state relative \
path, at byte 192)
inspect ftp://host/chk-1
3 ftp://host/chk-1: checkpoints are not read from a URI of this kind; name a path or a URI of \
s3://, gs://, abfs://, hdfs://, webhdfs://
inspect s3:/bucket/chk-1
3 s3:/bucket/chk-1: checkpoints are not read from a URI of this kind; did you mean \
s3://bucket/chk-1?
inspect job
3 job: not a complete checkpoint: no _metadata in this directory or in a chk-<n> below it; did you \
mean job/savepoint-1?
inspect none
3 none: not a complete checkpoint: no _metadata in this directory or in a chk-<n> below it; Flink \
writes _metadata last; name another chk-<n> or a savepoint
inspect offsets.json
3 offsets.json: not a Flink checkpoint: its magic number is missing; it is JSON: if it holds \
Spark's offsets, name it json:offsets.json (magic number, at byte 0)
inspect plan.json
3 plan.json: not a Flink checkpoint: its magic number is missing; it is JSON: name a saved \
plan with --plan FILE (for verify plan:FILE), and a rollback file with `migrate rollback FILE`; \
`migrate show FILE` shows both (magic number, at byte 0)
inspect @CHK --list
3 @CHK: no complete chk-N in it; name a job's checkpoint directory
state @SAVEPOINT --state totals
2 this checkpoint holds no keyed state
state @SAVEPOINT --limit 3
2 --limit is of the entries of a state: add --state NAME
state @SAVEPOINT --output x.parquet
2 --output goes with --state, without --format and --limit
to-spark
2 name a checkpoint (CHK), or a saved plan with --plan
to-spark @CHK --source orders
2 no Kafka source answers to 'orders'; there are: cbc357ccb763df2852fee8c4fc7d55f2 (payments)
to-spark @CHK --partitions payments
2 --partitions 'payments': not TOPIC:0-3,5
to-spark @CHK --partitions orders:0
2 --partitions orders: no source reads it; they read: payments
to-spark @CHK --topic-map payments
2 --topic-map 'payments': not OLD=NEW, two topics, each OLD once
to-spark @CHK --unresolved yesterday
2 --unresolved 'yesterday': one of fail, earliest, latest, committed, timestamp:T
to-spark @CHK --spark-source orders
2 --spark-source 'orders': not N=SOURCE, as 0=topic:orders
to-spark @CHK --spark-version 4
2 --spark-version goes with --format python or scala
to-spark @CHK --format python --spark-version four
2 --spark-version 'four': not a version of Spark, as 4.0.0
to-spark @CHK --query-file query.py
2 --query-file goes with --format python or scala
to-spark @CHK --format python --query-file query.py --plan-out new.json
2 --query-file goes with --plan, not with --plan-out: the plan is saved without a query
to-spark @CHK --isolation-level read_committed
2 --isolation-level goes with --format options, python or scala
to-spark @CHK --keep-state spark:query
2 --keep-state goes with --checkpoint-dir DIR, a new local directory
to-spark @CHK --state orders/totals
2 --state goes with --format python, and with a checkpoint, not a plan
to-spark @CHK --plan plan.json
2 --plan FILE already says what moves: name no CHK, and no option that chooses or allows \
something; to change the plan, make a new one with --plan-out
to-spark --plan nope.json
3 nope.json: cannot be read: No such file or directory; --plan-out writes one
to-spark --plan edited.json
3 edited.json: the plan was edited after it was saved: its checksum does not match (partitions: \
payments-0: the verdict is 'ok', and its next_offset 25 is not its position 24); make a new one \
with --plan-out and the options for the change
to-spark --plan offsets.json
3 offsets.json: not a plan of version 2
to-spark @CHK --plan-out plan.json
4 refused: plan.json is there already; name a new file
to-spark broker:yesterday -b 127.0.0.1:1
2 broker:yesterday: name a time, as broker:2026-11-20T18:00:00Z, or broker:earliest or \
broker:latest
to-spark broker:latest
2 broker:latest needs a broker: add --bootstrap-servers HOST:PORT
to-spark topic:orders
2 topic:orders: no such side; a side is CHK without a prefix, group:NAME, spark:DIR, json:FILE, \
csv:FILE, broker:earliest, broker:latest or broker:TIME
to-spark @CHK -b http://broker:9092
2 bootstrap.servers: http://broker:9092: brokers are named HOST:PORT, without http://
to-spark @CHK -b broker:9092 -X security.protocol=SASL_SSL
2 security.protocol is SASL_SSL, and sasl.mechanism is missing: add it, as PLAIN, SCRAM-SHA-256, \
SCRAM-SHA-512, OAUTHBEARER, AWS_MSK_IAM or GSSAPI
to-spark @CHK -b broker:9092 -X acks
2 -X: not a key=value property
to-spark @CHK -b broker:9092 --kafka-config nope.properties
2 nope.properties: cannot be read: No such file or directory
to-spark @CHK --kafka-config empty.properties
2 no Kafka address: add --bootstrap-servers HOST:PORT
commit-group @CHK -b broker:9092
2 name the consumer group with --group G
commit-group @CHK --group orders
2 commit-group needs a broker: add --bootstrap-servers HOST:PORT
commit-group @CHK --group group:orders -b broker:9092
2 --group group:orders: give a group's name without the prefix group:
commit-group @CHK --group orders -b broker:9092 --execute
2 --execute asks on a terminal, and there is none: add --yes
commit-group @CHK --group orders -b broker:9092 --execute --dry-run
2 --execute and --dry-run: one of them
commit-group --plan plan.json -b broker:9092
2 this is a plan for to-spark
commit-group --plan plan.json --group orders -b broker:9092
2 plan.json is a plan for to-spark
rollback nope.json
3 nope.json: cannot be read: No such file or directory; commit-group --execute writes one
rollback plan.json
3 plan.json: not a rollback file of version 1: it is a plan; `migrate show plan.json` shows it
inspect file://job/savepoint-1
3 file://job/savepoint-1: checkpoints are not read from a URI of this kind; a file: URI has an \
absolute path, as file:///job/savepoint-1
to-spark @CHK --checkpoint-dir spark:query
2 --checkpoint-dir spark:query: give the directory without spark:
commit-group @CHK --group spark:query -b broker:9092
2 --group spark:query: give a group's name without the prefix spark:
show nope
3 nope: there is no such file or directory
show offsets.json
3 offsets.json: neither a plan (--plan-out), nor a rollback file (commit-group --execute), nor the \
checkpoint location of a Spark query; `migrate inspect` shows a checkpoint of Flink's
diff @CHK group:
2 'group:': nothing follows group:
diff @CHK group:orders
2 group:orders needs a broker: add --bootstrap-servers HOST:PORT
diff @CHK plan:plan.json
2 plan:plan.json: plan: is for verify; apply a plan with --plan FILE
diff @CHK csv:offsets.json
3 offsets.json: it is JSON, not CSV; name it json:offsets.json
diff @CHK json:offsets.csv
3 offsets.csv: it is CSV, not JSON; name it csv:offsets.csv
diff @CHK spark:@SAVEPOINT
3 @SAVEPOINT: a checkpoint of Flink, not of a Spark query; name it without spark:
diff @CHK spark:nope
3 nope: no such directory; name the checkpointLocation of a query
verify @CHK query
2 query: a target is named spark:query (the checkpoint location of a query) or group:query; the \
checkpoint comes before it
verify plan:offsets.json spark:query
3 offsets.json: not a plan of version 2
verify spark:query @CHK
2 the checkpoint comes first: verify @CHK spark:query
inspect spark:query
3 spark:query: not a checkpoint of Flink; `migrate show spark:query` shows a Spark query
rollback none
3 none: cannot be read: Is a directory; commit-group --execute writes one
rollback short.json
3 short.json: damaged, not a rollback file of version 1: Invalid JSON: EOF while parsing a value \
at line 1 column 8
follow @CHK --group orders -b broker:9092
2 follow takes a Spark query: name its checkpoint location spark:DIR
scan nope
3 @FOLDER/nope: no such directory
scan @CHK --group orders
2 --group says for which groups --plans DIR is to plan: add that
cut-over nope.yaml
3 nope.yaml: cannot be read: No such file or directory
cut-over empty.yaml
3 empty.yaml: the spec is empty
cut-over wrong.yaml
3 wrong.yaml: version: missing; flink: missing; kafka: missing; target: missing; job: no such key
to-flink @SAVEPOINT --from json:offsets.json --out new --topic-map x=y
2 --topic-map x=y: json:offsets.json has no topic x; it has: payments
to-flink @SAVEPOINT --from plan:plan.json --out new
2 plan:plan.json: plan: is for verify; apply a plan with --plan FILE
"""
_LINES = MISTAKES.strip().splitlines()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in (
        ("offsets.json", '{"payments":{"0":24}}'),
        ("offsets.csv", "payments,0,24\n"),
        ("empty.yaml", ""),
        ("wrong.yaml", "job: x\n"),
        ("empty.properties", ""),
        ("short.json", '{"kind":'),
    ):
        Path(name).write_text(text)
    metadata = (_CHK / "_metadata").read_bytes()
    for name, content in (
        ("empty/chk-1", b""),
        ("short/chk-1", metadata[:200]),
        ("job/savepoint-1", metadata),
    ):
        directory = Path(name)
        directory.mkdir(parents=True)
        (directory / "_metadata").write_bytes(content)
    Path("none").mkdir()
    assert migrate("to-spark", _CHK, "--plan-out", "plan.json").code == 0
    plan = Path("plan.json").read_text()
    Path("edited.json").write_text(plan.replace('"next_offset": 24', '"next_offset": 25'))
    return tmp_path


def test_there_are_sixty() -> None:
    assert len(_LINES) // 2 >= 60


@pytest.mark.parametrize(("command", "expected"), list(zip(_LINES[::2], _LINES[1::2], strict=True)))
def test_a_mistake_is_named_with_the_way_out(folder: Path, command: str, expected: str) -> None:
    for name, path in (("@CHK", _CHK), ("@SAVEPOINT", _SAVEPOINT), ("@FOLDER", folder)):
        command, expected = command.replace(name, str(path)), expected.replace(name, str(path))
    before = sorted(folder.rglob("*"))
    result = migrate(*shlex.split(command))
    code, message = expected.split(" ", 1)
    *_, last = result.stderr.replace("\nmigrate: refused; nothing was written", "").splitlines()
    assert (result.code, last.removeprefix("migrate: ")) == (int(code), message)
    assert result.stdout == ""
    assert sorted(folder.rglob("*")) == before
