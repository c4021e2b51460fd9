"""Back: as long as the target has written nothing, it is taken away again."""

from __future__ import annotations

from collections.abc import Sequence

from migrate.commands.rollback import rollback
from migrate.cutover import start, stop
from migrate.cutover.night import CutOverStopped, Night
from migrate.cutover.steps import applied
from migrate.errors import Refused
from migrate.group.commit import Applied
from migrate.spark.locations import LocalDirectory
from migrate.spark.progress import was_started
from migrate.spark.seed import is_unfinished, remove_seed


def what_goes_back(night: Night) -> Sequence[str]:
    """What would be taken back, in lines; nothing where the target is not written.

    Raises:
        Refused: the target has begun: it tells what must be done instead; it may begin yet; or the
            job was not stopped.
        CutOverStopped: whether the job has stopped cannot be told any more.
    """
    for command, does in ((night.starting, "starts the query"), (night.priming, "primes")):
        if command.runs():
            raise Refused([f"the command that {does} runs: stop it first"])
    if night.savepoint() is None and night.record.model.flink.job_id is not None:
        stop.check_came_to_its_end(night)
    savepoint = night.savepoint()
    if night.begun():
        raise Refused(
            [
                f"{night.file.target} has begun: Flink's job would emit again what has been "
                f"written since; go back with its positions instead: stop it, commit what it has "
                f"read for Flink's group (migrate commit-group {night.file.target} --group G), and "
                "start the job from that group's offsets"
                if night.location is not None
                else f"{night.file.target} has begun: its consumers have read on; stop them, and "
                "start Flink's job from the group's offsets"
            ]
        )
    # Whom the query was handed to may let it begin at any time: without its seed at its own start.
    start.check_begins_no_more(night)
    place = night.location
    if place is not None and (is_unfinished(place) or applied(night)):
        if not night.spec.states:
            return [f"remove the seed {place.name}", *_may_have_written(night)]
        if not isinstance(place, LocalDirectory):
            raise Refused([f"{place.name} was primed in a store: remove it there, and go back"])
        return [f"put the primed location {place.name} aside", *_may_have_written(night)]
    if place is None and (earlier := night.group()[1]) is not None:
        return [f"bring group {night.spec.target.group} back by {earlier.path}"]
    if savepoint is None:
        raise Refused(["the job was not stopped: there is nothing to go back from"])
    return []


def _may_have_written(night: Night) -> Sequence[str]:
    """What its log does not show. A priming makes the directories of the logs, too: there only the
    command tells that it was run, as far as it is in the spec."""
    if night.spec.states:
        known = night.spec.start is not None
        if known and not night.starting.log.exists():
            return ()
        how = "the query was started" if known else "if the query was started"
    elif was_started(night.query, night.files):
        how = "the query was started"
    else:
        return ()
    return (
        f"mind: {how}, and has logged no batch. In Real-Time Mode it has written all the same, "
        "which Flink's job writes again: look at its sink first",
    )


def go_back(night: Night) -> None:
    """Take the target away again.

    Raises:
        CutOverStopped: not all of the group came back.
    """
    place = night.location
    if place is not None:
        if place.names() and night.spec.states and isinstance(place, LocalDirectory):
            night.record.put_aside(place.path)
        elif place.names():
            remove_seed(place)
    elif (earlier := night.group()[1]) is not None:
        outcome = rollback(earlier.path, execute=True, **night.file.kafka()).outcome
        if outcome is not None and outcome.applied not in (Applied.ALL, Applied.NOTHING_TO_DO):
            raise CutOverStopped(f"group {night.spec.target.group}: {outcome.applied.value}")
    record = night.record
    commands = (night.starting, night.priming)
    left = (file for one in commands for file in (one.log, one.state))
    record.put_aside(record.plan_path, *left)
    record.change(state="went back", moved_with=None)


def way_to_restart(night: Night) -> str:
    """How Flink's job goes on."""
    savepoint = night.savepoint()
    if savepoint is None:
        return "nothing was stopped"
    return f"start Flink's job from its savepoint: flink run -s {savepoint} …"
