"""What a change that is cut short says of itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate.cli.changing import carry_out
from migrate.targets.consumer_group import Outcome


def test_an_interrupt_within_kafkas_client_is_an_interrupt(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Seen: Ctrl-C came while confluent-kafka was in C, and CPython made a SystemError of it."""
    path = tmp_path / "rollback.json"

    def change() -> Outcome:
        path.touch()
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as interrupt:
            raise SystemError("returned a result with an exception set") from interrupt

    with pytest.raises(KeyboardInterrupt):
        carry_out(change, "orders", path)
    assert f"migrate rollback {path}" in " ".join(capsys.readouterr().err.split())


def test_another_system_error_is_not(tmp_path: Path) -> None:
    def change() -> Outcome:
        raise SystemError("of another kind")

    with pytest.raises(SystemError):
        carry_out(change, "orders", tmp_path / "rollback.json")
