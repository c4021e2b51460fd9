"""The effect of each finding code on a move, as described in migrate/model/explanations.md."""

from __future__ import annotations

import pytest

from migrate.model.finding import Code, Finding, Severity
from migrate.model.message import finding
from migrate.model.policies import Policies


@pytest.mark.parametrize(
    ("field", "codes"),
    [
        ("job_wide", {Code.GROUP_READS, Code.IN_FLIGHT_RECORDS, Code.RAN_ON}),
        (
            "another_source",
            {Code.ANOTHER_SOURCE_KIND, Code.DAMAGED_SOURCE, Code.LEGACY_CONSUMER},
        ),
        ("unread", {Code.DAMAGED_SOURCE, Code.LEGACY_CONSUMER}),
        ("by_partition", {Code.COMMITTED_MARKER, Code.LATEST_MARKER, Code.UNRESOLVED_POSITIONS}),
        ("scan_obstacle", {Code.COMMITTED_MARKER, Code.LATEST_MARKER, Code.PENDING_TRANSACTIONS}),
        ("shown_for_groups", {Code.SINK_MEMORY}),
    ],
)
def test_policy_field_is_set_for_expected_finding_codes(field: str, codes: set[Code]) -> None:
    assert {code for code in Code if getattr(code.policy, field)} == codes


@pytest.mark.parametrize(
    ("policies", "codes"),
    [
        (Policies(), set()),
        (Policies(allow_in_flight=True), {Code.IN_FLIGHT_RECORDS}),
        (Policies(allow_ran_on=True), {Code.GROUP_READS, Code.RAN_ON, Code.STALE_POSITIONS}),
    ],
)
def test_override_options_allow_move_despite_expected_findings(
    policies: Policies, codes: set[Code]
) -> None:
    assert {code for code in Code if code.policy.allowed(policies)} == codes


@pytest.mark.parametrize("code", Code)
def test_uncertain_finding_is_a_warning(code: Code) -> None:
    message = finding(code, "")()
    assert Finding(message).severity is code.policy.severity
    assert Finding(message, is_certain=False).severity is Severity.WARNING


def test_findings_that_only_scan_treats_as_obstacles_are_warnings() -> None:
    severities = {code.policy.severity for code in Code if code.policy.scan_obstacle}
    assert severities == {Severity.WARNING}


def test_severity_and_code_values_are_stable() -> None:
    assert [severity.value for severity in Severity] == ["blocker", "warning", "note"]
    assert str(Code.RAN_ON) == f"{Code.RAN_ON}" == "ran-on"
