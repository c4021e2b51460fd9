"""The record of a cut-over as one self-contained page, for people.

As the page of ``migrate diff`` it asks for nothing from anywhere; it has no script. What it looks
like is in ``cut_over_page/``.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from migrate.model.positions import Marker
from migrate.model.wording import counted
from migrate.planning.verify import StartOutcome
from migrate.report.cut_over import (
    CutOverRecord,
    PartitionReport,
    PlanReport,
    RunReport,
    StepReport,
)
from migrate.report.html import page, page_text, part, source_hash
from migrate.report.text import number_text

_PARTITIONS = (
    ("topic", ""),
    ("partition", "number"),
    ("verdict", ""),
    ("checkpoint", "number"),
    ("planned", "number"),
    ("log start", "number"),
    ("log end", "number"),
    ("started at", "number"),
    ("reached", "number"),
    ("lost", "number"),
    ("repeated", "number"),
    ("outcome", ""),
)
_STATES = {"begun": "not finished", "done": "done", "went back": "went back"}


def cut_over_page(record: CutOverRecord) -> str:
    """The page of a record."""
    style = part("cut_over_page", "page.css")
    policy = f"default-src 'none'; style-src '{source_hash(style)}'; base-uri 'none'"
    last = record.runs[-1] if record.runs else None
    return page(
        "cut_over_page",
        policy,
        title=page_text(f"Cut-over {record.name}"),
        name=page_text(record.name),
        state=page_text(_STATES[record.state]),
        css=_state_class(record, last),
        last=page_text(_last_run(last)),
        totals="".join(_totals(record)),
        facts="".join(_facts(record)),
        steps="".join(map(_step, record.steps)),
        partitions="".join(map(_partition, record.partitions)),
        columns="".join(_heading(name, css) for name, css in _PARTITIONS),
        policies="".join(_policies(record)),
        states=_list(record.plan.states if record.plan else []),
        findings=_list(record.plan.findings if record.plan else []),
        warnings=_list(record.plan.warnings if record.plan else []),
        runs="".join(map(_run, record.runs)),
    )


def _last_run(last: RunReport | None) -> str:
    """Return how the last run ended; empty where that says no more than the state."""
    if last is None or (last.asked == "execute" and last.end == "done"):
        return ""
    end = f"{last.end}" if last.end is not None else "has not ended, or was killed"
    return f"its last run ({last.asked}): {end}"


def _state_class(record: CutOverRecord, last: RunReport | None) -> str:
    if record.state == "done" and record.lost == record.repeated == 0:
        return "good"
    return "bad" if last is not None and last.end not in (None, "done") else ""


def _totals(record: CutOverRecord) -> Iterator[str]:
    verified = next((one for one in reversed(record.verifications) if one.when == "after"), None)
    before = next((one for one in record.verifications if one.when == "before"), None)
    found = verified or before
    yield _total("partitions", str(len(record.partitions)), "")
    when = "" if verified else ("before the start" if before else "not verified yet")
    lost, repeated = (str(found.lost), str(found.repeated)) if found else ("?", "?")
    if found is not None and found.unknown:
        when = f"{counted(found.unknown, 'partition')} cannot be told"
        lost, repeated = (text if text != "0" else "?" for text in (lost, repeated))
    yield _total("lost", lost, when, bad=lost not in ("0", "?"))
    yield _total("repeated", repeated, when, bad=repeated not in ("0", "?"))
    answer = "yes" if found is not None and found.verified else "no"
    yield _total("verified", answer, when, bad=found is not None and not found.verified)


def _total(name: str, value: str, note: str, *, bad: bool = False) -> str:
    css = ' class="bad"' if bad else ""
    return f"<div>{name}<b{css}>{page_text(value)}</b><small>{page_text(note)}</small></div>"


def _facts(record: CutOverRecord) -> Iterator[str]:
    flink, plan = record.flink, record.plan
    for name, value in (
        ("Flink", f"{flink.version or ''} at {flink.host}" if flink.host else None),
        ("job", f"{flink.job_name} ({flink.job_id})" if flink.job_id else None),
        ("savepoint", flink.savepoint),
        ("sha256 of its _metadata", flink.savepoint_sha256),
        ("brokers", record.brokers or None),
        ("Kafka cluster", plan.cluster_id if plan else None),
        ("target", record.target),
        ("sink", record.sink),
        ("plan made", _time(plan.made_at) if plan else None),
        ("sha256 of the plan", plan.sha256 if plan else None),
        ("streams of the query", _streams(plan) if plan else None),
        ("batches of the priming", f"0 to {record.primed}" if record.primed is not None else None),
        ("sha256 of the spec", record.spec_sha256),
        ("query started", _time(record.start.at) if record.start else None),
    ):
        if value:
            yield f"<div><dt>{name}</dt><dd>{page_text(value)}</dd></div>"


def _streams(plan: PlanReport) -> str:
    return "; ".join(f"{number}: {', '.join(topics)}" for number, topics in plan.streams.items())


def _step(step: StepReport) -> str:
    css = "good" if step.state == "done" else "bad"
    return (
        f'<tr><td>{page_text(step.name)}</td><td class="{css}">{step.state}</td>'
        f"<td>{page_text(_time(step.ended_at))}</td>"
        f'<td class="number">{step.seconds:.1f} s</td><td class="number">{step.run}</td>'
        f'<td class="wide">{page_text(step.told)}</td></tr>\n'
    )


def _heading(name: str, css: str) -> str:
    return f'<th scope="col"{_class(css)}>{name}</th>'


def _partition(one: PartitionReport) -> str:
    position = one.checkpoint.value if isinstance(one.checkpoint, Marker) else None
    ok = one.outcome is StartOutcome.OK
    outcome = one.outcome.value if one.outcome is not None else ""
    cells = (
        one.topic,
        str(one.partition),
        one.verdict.value,
        position or number_text(one.checkpoint if isinstance(one.checkpoint, int) else None),
        number_text(one.planned),
        number_text(one.log_start),
        number_text(one.log_end),
        number_text(one.started),
        number_text(one.reached),
        str(one.lost),
        str(one.repeated),
        f"{outcome}: {one.reason}" if one.reason else outcome,
    )
    classes = [css for _, css in _PARTITIONS]
    classes[-1] = "" if one.outcome is None else "good" if ok else "bad"
    inside = "".join(
        f"<td{_class(css)}>{page_text(text)}</td>" for css, text in zip(classes, cells, strict=True)
    )
    return f"<tr>{inside}</tr>\n"


def _policies(record: CutOverRecord) -> Iterator[str]:
    policies = record.plan.policies if record.plan else {}
    if not policies:
        yield "<p>None: nothing that would lose or repeat records is allowed.</p>"
        return
    yield "<dl>"
    for name, value in policies.items():
        yield f"<div><dt>{page_text(name)}</dt><dd>{page_text(value)}</dd></div>"
    yield "</dl>"


def _list(lines: list[str]) -> str:
    if not lines:
        return "<p>None.</p>"
    return "<ul>" + "".join(f"<li>{page_text(line)}</li>" for line in lines) + "</ul>"


def _run(run: RunReport) -> str:
    cells = (
        f"{run.user} on {run.host}",
        run.asked,
        _time(run.began_at),
        _time(run.ended_at) if run.ended_at else "killed",
        run.migrate,
        run.python,
    )
    inside = "".join(f"<td>{page_text(text)}</td>" for text in cells)
    end = f'<td class="wide">{page_text(run.end or "")}</td>'
    return f'<tr><td class="number">{run.number}</td>{inside}{end}</tr>\n'


def _class(css: str) -> str:
    return f' class="{css}"' if css else ""


def _time(text: str) -> str:
    """To the second; the record's times are UTC, and the page says so."""
    return datetime.fromisoformat(text).replace(tzinfo=None).isoformat(" ", "seconds")
