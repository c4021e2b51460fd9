"""Check the output of `to-spark --format`. The integration test runs the code."""

from __future__ import annotations

import importlib.metadata
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

from migrate.targets.source_options import IsolationLevel, SourceStart, spark_streams
from tests.support.checkpoints import splits, write_source
from tests.support.command import migrate

# In the syntax of a Java client. The username and the password must not be printed.
SECRETS = ("hunter2", "letmein")
SECURED = """\
bootstrap.servers=secured:9093
security.protocol=SASL_SSL
sasl.mechanism=SCRAM-SHA-512
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \
username="hunter2" password="letmein";
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """A plan that was created without a broker, so its use queries no broker."""
    chk = write_source(tmp_path / "chk-7", {0: splits("orders", [3, 4])})
    path = tmp_path / "plan.json"
    assert migrate("to-spark", chk, "--plan-out", path).code == 0
    return path


@pytest.fixture
def secured(tmp_path: Path) -> Path:
    path = tmp_path / "client.properties"
    path.write_text(SECURED)
    return path


@pytest.mark.parametrize("kind", ["options", "python", "scala"])
def test_credentials_are_read_from_environment_and_not_printed(
    plan: Path, secured: Path, kind: str
) -> None:
    result = migrate("to-spark", "--plan", plan, "--kafka-config", secured, "--format", kind)
    assert result.code == 0, result.stderr
    assert not any(secret in result.stdout for secret in SECRETS)
    for told in ("secured:9093", "SASL_SSL", "SCRAM-SHA-512", "KAFKA_SASL_JAAS_CONFIG"):
        assert told in result.stdout


def test_options_format_prints_one_option_per_line(plan: Path, secured: Path) -> None:
    result = migrate(
        "to-spark",
        *("--plan", plan, "--kafka-config", secured, "-X", "ssl.ca.location=ca.pem"),
        *("--format", "options", "--isolation-level", "read_committed"),
    )
    assert result.stdout.splitlines() == [
        "kafka.bootstrap.servers=secured:9093",
        "kafka.security.protocol=SASL_SSL",
        "kafka.sasl.mechanism=SCRAM-SHA-512",
        "kafka.sasl.jaas.config=${KAFKA_SASL_JAAS_CONFIG}",
        "kafka.ssl.truststore.location=${KAFKA_SSL_TRUSTSTORE_LOCATION}",
        "kafka.ssl.truststore.password=${KAFKA_SSL_TRUSTSTORE_PASSWORD}",
        "subscribe=orders",
        "kafka.isolation.level=read_committed",
        'startingOffsets={"orders":{"0":3,"1":4}}',
        "failOnDataLoss=true",
    ]


def test_code_without_broker_has_placeholder_for_broker_address(plan: Path) -> None:
    options = migrate("to-spark", "--plan", plan, "--format", "options").stdout.splitlines()
    assert options[0] == "kafka.bootstrap.servers=HOST:PORT"
    assert not any(line.startswith("kafka.s") for line in options)  # no protocol, no credentials
    code = migrate("to-spark", "--plan", plan, "--format", "python").stdout.splitlines()
    place = code.index('    .option("kafka.bootstrap.servers", "HOST:PORT")')
    assert code[place - 1] == "    # Put your brokers here."


def test_code_contains_checkpoint_location_or_placeholder(plan: Path, tmp_path: Path) -> None:
    seed = tmp_path / "seed"
    told = {
        "python": f'checkpoint_location = "{seed}-python"',
        "scala": f'val checkpointLocation = "{seed}-scala"',
    }
    for kind, line in told.items():
        location = ("--checkpoint-dir", f"{seed}-{kind}")
        result = migrate("to-spark", "--plan", plan, "--format", kind, *location)
        assert result.code == 0, result.stderr
        assert line in result.stdout.splitlines()
        without = migrate("to-spark", "--plan", plan, "--format", kind)
        place = line.partition(" = ")[0] + ' = "CHECKPOINT-DIR"'
        assert place in without.stdout.splitlines()


FIRST = {
    "python": "# spark-submit --packages {} query.py",
    "scala": "// spark-shell --packages {} < query.scala",
}


@pytest.mark.parametrize(
    ("release", "connector"),
    [
        ("4.0.0", "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0"),
        ("3.5.1", "org.apache.spark:spark-sql-kafka-0-10_2.12:3.5.1"),
    ],
)
@pytest.mark.parametrize("kind", ["python", "scala"])
def test_first_line_of_printed_code_starts_spark_with_matching_connector(
    plan: Path, kind: str, release: str, connector: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("to-spark", "--plan", plan, "--format", kind)
    named = migrate(*command, "--spark-version", release).stdout
    assert named.startswith(FIRST[kind].format(connector))
    monkeypatch.setattr(importlib.metadata, "version", {"pyspark": release}.__getitem__)
    assert migrate(*command).stdout == named


def test_printed_code_suggests_spark_version_option_if_pyspark_is_missing(
    plan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(package: str) -> str:
        raise PackageNotFoundError(package)

    monkeypatch.setattr(importlib.metadata, "version", none)
    for kind in FIRST:
        command = ("to-spark", "--plan", plan, "--format", kind)
        assert "--spark-version" in migrate(*command).stdout.splitlines()[1]
        assert "--spark-version" not in migrate(*command, "--spark-version", "4.1.0").stdout


@pytest.mark.parametrize("wrong", [("json", "4.0.0"), ("options", "4.0.0"), ("python", "4")])
def test_invalid_spark_version_is_usage_error(
    plan: Path, tmp_path: Path, wrong: tuple[str, str]
) -> None:
    kind, version = wrong
    arguments = ("--format", kind, "--spark-version", version, "--checkpoint-dir", tmp_path / "s")
    result = migrate("to-spark", "--plan", plan, *arguments)
    assert (result.code, result.stdout) == (2, "")
    assert "--spark-version" in result.stderr
    assert not (tmp_path / "s").exists()


def test_printed_code_reads_credentials_from_environment(plan: Path, secured: Path) -> None:
    asked = {"python": 'os.environ["{}"]', "scala": 'sys.env("{}")'}
    for kind, form in asked.items():
        result = migrate("to-spark", "--plan", plan, "--kafka-config", secured, "--format", kind)
        login = form.format("KAFKA_SASL_JAAS_CONFIG")
        assert f'    .option("kafka.sasl.jaas.config", {login})' in result.stdout.splitlines()
        lines = result.stdout.splitlines()
        assert '    .option("kafka.security.protocol", "SASL_SSL")' in lines
        assert any(line.endswith("records = (") for line in lines)
        last = max(n for n, line in enumerate(lines) if line.startswith("    .option("))
        assert lines[last + 1 : last + 3] == ["    .load()", ")"]


def test_options_of_several_streams_are_printed_in_blocks(tmp_path: Path) -> None:
    chk = write_source(tmp_path / "chk-7", {0: [*splits("a", [3]), *splits("b", [4])]})
    result = migrate(
        "to-spark",
        chk,
        *("--spark-source", "0=topic:a", "--spark-source", "2=topic:b", "--format", "options"),
        *("--checkpoint-dir", tmp_path / "seed"),
    )
    lines = result.stdout.splitlines()
    assert [line for line in lines if line.startswith(("#", "subscribe", "checkpoint"))] == [
        "# source 0",
        "subscribe=a",
        "# source 2",
        "subscribe=b",
        "# the query",
        f"checkpointLocation={tmp_path / 'seed'}",
    ]


@pytest.mark.parametrize("name", ['quo"te', "back\\slash", "é", 'three"""quotes', "'"])
def test_checkpoint_location_is_escaped_for_python(plan: Path, tmp_path: Path, name: str) -> None:
    result = migrate(
        "to-spark", "--plan", plan, "--format", "python", "--checkpoint-dir", tmp_path / name
    )
    assert result.code == 0, result.stderr
    (line,) = [x for x in result.stdout.splitlines() if x.startswith("checkpoint_location =")]
    variables: dict[str, str] = {}
    exec(line, variables)
    assert variables["checkpoint_location"] == str(tmp_path / name)


def test_relative_checkpoint_location_is_printed_as_absolute_path(
    plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = migrate("to-spark", "--plan", plan, "--format", "options", "--checkpoint-dir", "seed")
    location = f"checkpointLocation={tmp_path / 'seed'}"
    assert result.stdout.splitlines()[-2:] == ["failOnDataLoss=true", location]


@pytest.mark.parametrize(("kind", "name"), [("python", "query.py"), ("scala", "query.scala")])
def test_query_file_option_writes_printed_code_to_new_file(
    plan: Path, tmp_path: Path, kind: str, name: str
) -> None:
    """Regression: With ``> query.py``, a refused second run truncated the file of the first run."""
    printed = migrate("to-spark", "--plan", plan, "--format", kind)
    file, seed = tmp_path / "my query", tmp_path / "seed"
    to_file = ("to-spark", "--plan", plan, "--format", kind, "--query-file", file)
    result = migrate(*to_file)
    # The first line is the start command, which contains the name of the file.
    code = printed.stdout.replace(f" {name}\n", f" '{file}'\n", 1)
    assert (result.code, file.read_text()) == (0, code)
    assert result.stdout == migrate("to-spark", "--plan", plan).stdout
    again = migrate(*to_file, "--checkpoint-dir", seed)
    assert (again.code, again.stdout) == (4, "")
    assert f"refused: {file} already exists; choose a new file" in again.stderr
    assert file.read_text() == code and not seed.exists()
    elsewhere = migrate(*to_file[:-1], tmp_path / "missing" / "query", "--checkpoint-dir", seed)
    assert (elsewhere.code, seed.exists()) == (2, False)
    assert (
        f"--query-file {tmp_path / 'missing' / 'query'}: the directory {tmp_path / 'missing'} does "
        "not exist; create it"
    ) in elsewhere.stderr


def test_isolation_level_without_format_is_usage_error(plan: Path) -> None:
    result = migrate("to-spark", "--plan", plan, "--isolation-level", "read_committed")
    assert (result.code, result.stdout) == (2, "")
    assert "--format" in result.stderr


def test_invalid_kafka_properties_are_refused_before_writing(plan: Path, tmp_path: Path) -> None:
    arguments = ("--format", "python", "--checkpoint-dir", tmp_path / "seed", "-X", "no-equals")
    result = migrate("to-spark", "--plan", plan, *arguments)
    assert (result.code, result.stdout) == (2, "")
    assert not (tmp_path / "seed").exists()


_SSL = {
    "kafka.ssl.truststore.location": "KAFKA_SSL_TRUSTSTORE_LOCATION",
    "kafka.ssl.truststore.password": "KAFKA_SSL_TRUSTSTORE_PASSWORD",
}
_OWN = {
    "kafka.ssl.keystore.location": "KAFKA_SSL_KEYSTORE_LOCATION",
    "kafka.ssl.keystore.password": "KAFKA_SSL_KEYSTORE_PASSWORD",
}
_JAAS = {"kafka.sasl.jaas.config": "KAFKA_SASL_JAAS_CONFIG"}


@pytest.mark.parametrize(
    ("kafka", "told", "asked_for"),
    [
        ({}, {"kafka.bootstrap.servers": "HOST:PORT"}, {}),
        ({"bootstrap.servers": "b:1"}, {"kafka.bootstrap.servers": "b:1"}, {}),
        ({"bootstrap.servers": "b:1", "security.protocol": "plaintext"}, {}, {}),
        (
            {"bootstrap.servers": "b:1", "security.protocol": "ssl"},
            {"kafka.security.protocol": "SSL"},
            {},
        ),
        (
            {"bootstrap.servers": "b:1", "security.protocol": "ssl", "ssl.ca.pem": "x"},
            {"kafka.security.protocol": "SSL"},
            _SSL,
        ),
        *(
            (
                {"bootstrap.servers": "b:1", "security.protocol": "SSL", name: "x"},
                {"kafka.security.protocol": "SSL"},
                _OWN,
            )
            for name in ("ssl.keystore.location", "ssl.certificate.pem")
        ),
        (
            {"bootstrap.servers": "b:1", "security.protocol": "SASL_PLAINTEXT", "ssl.ca.pem": "x"},
            {"kafka.security.protocol": "SASL_PLAINTEXT", "kafka.sasl.mechanism": "GSSAPI"},
            _JAAS,
        ),
        (
            {
                "bootstrap.servers": "b:1",
                "security.protocol": "sasl_ssl",
                "sasl.mechanisms": "PLAIN",
                "ssl.ca.location": "x",
            },
            {"kafka.security.protocol": "SASL_SSL", "kafka.sasl.mechanism": "PLAIN"},
            {**_JAAS, **_SSL},
        ),
        (
            {
                "bootstrap.servers": "b:1",
                "security.protocol": "SASL_SSL",
                "oauth_cb": lambda _: ("token", 0.0),
            },
            {
                "kafka.security.protocol": "SASL_SSL",
                "kafka.sasl.mechanism": "AWS_MSK_IAM",
                "kafka.sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;",
                "kafka.sasl.client.callback.handler.class": (
                    "software.amazon.msk.auth.iam.IAMClientCallbackHandler"
                ),
            },
            {},
        ),
    ],
)
def test_stream_options_contain_connection_options_and_environment_variables(
    kafka: Any, told: dict[str, str], asked_for: dict[str, str]
) -> None:
    (stream,) = spark_streams([SourceStart(0, {("t", 0): 5})], kafka, None, seeded=False)
    of_kafka = [one for one in stream.options if one.name.startswith("kafka.")]
    plain = {one.name: one.value for one in of_kafka if not one.from_environment}
    servers = plain["kafka.bootstrap.servers"]
    assert plain == {"kafka.bootstrap.servers": servers, **told}
    assert servers == kafka.get("bootstrap.servers", "HOST:PORT")
    assert {one.name: one.value for one in of_kafka if one.from_environment} == asked_for
    assert [one.why for one in stream.options if one.name == "startingOffsets"] == [
        "Spark uses this option only if the checkpoint location contains no offsets."
    ]


def test_stream_options_contain_topics_offsets_and_isolation_level() -> None:
    offsets = {("u", 0): 7, ("t", 10): 5, ("t", 2): 6}
    starts = '{"t":{"2":6,"10":5},"u":{"0":7}}'
    for only_some, what in (
        (False, ("subscribe", "t,u")),
        (True, ("assign", '{"t":[2,10],"u":[0]}')),
    ):
        source = SourceStart(0, offsets, only_some)
        (stream,) = spark_streams([source], None, IsolationLevel.READ_COMMITTED, seeded=True)
        told = stream.options
        assert [(one.name, one.value) for one in told] == [
            ("kafka.bootstrap.servers", "HOST:PORT"),
            what,
            ("kafka.isolation.level", "read_committed"),
            ("startingOffsets", starts),
            ("failOnDataLoss", "true"),
        ]
        assert told[3].why.startswith("The checkpoint location has the same")
    assert {level.value for level in IsolationLevel} == {"read_uncommitted", "read_committed"}
