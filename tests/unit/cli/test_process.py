"""Run the command as a process, and check its imports and exit codes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.checkpoints import splits, write_source
from tests.support.golden import golden

pytestmark = pytest.mark.slow  # each test starts a process

ROOT = Path(__file__).parents[3]


def _run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        list(map(str, command)), capture_output=True, text=True, cwd=ROOT, stdin=subprocess.DEVNULL
    )


def test_both_console_scripts_run_same_command() -> None:
    for name in ("migrate", "flink-offset-migrate"):
        done = _run(Path(sys.executable).with_name(name), "inspect", "-q", golden("2.2/retained"))
        assert (done.returncode, done.stderr) == (0, "")
        assert "orders-and-payments" in done.stdout


def test_closed_pipe_is_not_a_failure() -> None:
    command = f"{sys.executable} -m migrate inspect -q {golden('1.20/compressed')} | head -n 1"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True, cwd=ROOT
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_disk_full_error_on_stdout_is_reported_on_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "migrate", "inspect", golden("1.20/compressed")],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
    assert (done.returncode, done.stderr) == (6, "migrate: stdout: No space left on device\n")


def test_closed_stdout_is_usage_error() -> None:
    command = f"{sys.executable} -m migrate inspect {golden('1.20/compressed')} >&-"
    done = subprocess.run(["bash", "-c", command], stderr=subprocess.PIPE, text=True, cwd=ROOT)
    assert done.returncode == 2
    assert done.stderr.startswith("migrate: stdout is closed")


@pytest.mark.parametrize("arguments", [["--help"], ["inspect"], ["to-spark"]])
def test_spark_and_kafka_client_are_imported_only_on_demand(
    tmp_path: Path, arguments: list[str]
) -> None:
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [1])})
    argv = ["migrate", *arguments, *([str(chk)] if arguments != ["--help"] else [])]
    code = (
        f"import sys; sys.argv = {argv!r}\n"
        "from migrate.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        "roots = {name.split('.')[0] for name in sys.modules}\n"
        "heavy = {'pyspark', 'confluent_kafka', 'pandas', 'pyarrow'}\n"
        "print(sorted(roots & heavy), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("--help", 0),
        ("inspect --help", 0),
        ("--show-completion bash", 0),
        ("inspect", 2),
        ("inspect --no-such-option", 2),
        ("inspect /no/such/checkpoint", 3),
    ],
)
def test_closed_output_pipe_does_not_change_exit_code(arguments: str, code: int) -> None:
    """Exit code 1 is reserved for ``diff --exit-code``, so a closed pipe must not cause it."""
    command = f"{sys.executable} -m migrate {arguments} 2>&1 | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")


@pytest.mark.parametrize("module", ["migrate.cli.main", "typer", "migrate.cli.inspect"])
def test_ctrl_c_during_startup_prints_no_traceback(tmp_path: Path, module: str) -> None:
    """The imports take half a second. A user can press Ctrl-C during this time."""
    code = (
        "import sys; sys.argv = ['migrate', 'inspect', 'chk-7']\n"
        "class Interrupted:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}: raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupted())\n"
        "from migrate.cli import main\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_logs_of_libraries_are_hidden_unless_verbose() -> None:
    """Regression: Libraries printed their logs on stderr.

    gcsfs printed two tracebacks, and Azure's library printed five chains of exceptions.
    """
    code = (
        "import sys; sys.argv = ['migrate', *sys.argv[1:]]\n"
        "import logging\n"
        "import migrate.moves.inspect\n"
        "def inspect(chk, **_):\n"
        "    for _ in range(5):\n"
        "        try:\n"
        "            raise OSError('no route')\n"
        "        except OSError:\n"
        "            logging.getLogger('gcsfs').exception('failed\\nfor key=hidden')\n"
        "    raise KeyboardInterrupt\n"
        "migrate.moves.inspect.inspect = inspect\n"
        "from migrate.cli import main\n"
        "main()"
    )
    for option, told in (
        ([], []),
        (["-q"], []),
        (["-v"], ["gcsfs: failed", "gcsfs: for key=…"]),
    ):
        command = [sys.executable, "-c", code, *option, "inspect", "chk-7"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
        assert (done.returncode, done.stdout) == (130, "")
        assert done.stderr.splitlines() == told
