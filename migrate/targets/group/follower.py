"""Keeps a consumer group at what a Spark query has committed, so that its lag goes on to show.

Spark commits to no group. Here the group gets the positions of the newest batch in the commit log
(``commits/N``), all of them in one request, and never those of a batch that is only planned
(``offsets/N``). Whoever is killed at any moment leaves the group at that batch or at an earlier
one. A topic or partition that was deleted since is named once, and left out: nothing can be
committed for it, and the others go on.

The order of each look keeps that true beside other followers, and a query that goes on: first the
group, then the commit log, then the ends of the logs. What the group holds is never beyond what the
log says afterwards, unless somebody else has committed for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from migrate.inputs.spark_log import newest_committed_batch, positions_after, query_id
from migrate.kafka.config import KafkaConfig
from migrate.kafka.groups import CommitFailure, ConsumerGroups
from migrate.model.cluster_snapshot import BrokerError, Committed, GroupView
from migrate.model.errors import Refused
from migrate.model.log import log
from migrate.model.positions import Logs, TopicPartition, UnreadableInput, log_of
from migrate.model.wording import counted
from migrate.storage.files import Files, path_of
from migrate.targets.group.commit import Result, partition_outcome, write, write_obstacles
from migrate.targets.group.commit_marks import commit_metadata

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Followed:
    """What one look came to.

    Attributes:
        batch: the newest batch that the query has committed; None before its first.
        next_offsets: where that batch ended: what the group holds now; without what was deleted.
        written: how many of them were committed at this look.
        lag: how many offsets lie between that and the log end.
    """

    batch: int | None
    next_offsets: Mapping[TopicPartition, int]
    written: int
    lag: Mapping[TopicPartition, int]


class GroupFollower:
    """Commits for one group what one query has committed.

    Args:
        config: librdkafka's properties.
        group: the consumer group; it must have no members.
        directory: the query's checkpoint location, a local path or a URL.
    """

    def __init__(self, config: KafkaConfig, group: str, directory: str) -> None:
        self.group = group
        self._files = Files()
        self.directory = self._files.absolute(path_of(directory, self._files))
        self._groups = ConsumerGroups(config)
        self._gone: frozenset[TopicPartition] = frozenset()

    @property
    def query(self) -> str | None:
        """The query's id; None where it has none yet. Raises as ``query_id``."""
        return query_id(self.directory, self._files)

    def look(self, *, allow_moved_on: bool = False) -> Followed:
        """Look once, and commit what has changed since.

        Args:
            allow_moved_on: commit although offsets of the group go back.

        Raises:
            Refused: the group has members, or is beyond the query; or the query's positions are
                beyond these brokers' logs, or they have none of its partitions; nothing was
                committed.
            UnreadableInput, AmbiguousPositions: as for ``progress.committed_positions``.
            BrokerError: the broker did not answer, or did not take all of it.
        """
        held = self._groups.view(self.group)
        query = self.query
        batch = newest_committed_batch(self.directory, self._files)
        if batch is None:
            return Followed(None, {}, 0, {})
        if query is None:
            raise UnreadableInput(f"{self.directory}: there is no metadata in it")
        ended = positions_after(self.directory, self.directory, batch, self._files)
        positions = ended.next_offsets
        logs = self._groups.snapshot({topic for topic, _ in positions}).topics
        lag = _lag(positions, logs)
        self._tell_of(frozenset(positions.keys() - lag.keys()))
        positions = {place: positions[place] for place in lag}
        todo = {
            place: Committed(position, commit_metadata(f"batch-{batch} {query[:18]}"))
            for place, position in positions.items()
            if held.next_offset(*place) != position
        }
        if todo:
            refusals = write_obstacles(held)
            if not allow_moved_on:
                refusals += _goes_back(held, positions)
            if refusals:
                raise Refused(refusals)
            self._commit(todo, held)
        return Followed(batch, positions, len(todo), lag)

    def _tell_of(self, gone: frozenset[TopicPartition]) -> None:
        """Name what the brokers have no more, once."""
        if new := sorted(gone - self._gone):
            named = ", ".join(f"{topic}-{partition}" for topic, partition in new[:_SHOWN])
            log.warning(
                f"these brokers have no {named}{' …' if len(new) > _SHOWN else ''}, which the "
                "query has read: deleted since? It is left out; the others go on"
            )
        self._gone = gone

    def _commit(self, todo: Mapping[TopicPartition, Committed], held: GroupView) -> None:
        written = write(self._groups, self.group, todo, held.committed)
        outcomes = [
            partition_outcome(place, wanted, held.committed.get(place), written)
            for place, wanted in todo.items()
        ]
        bad = [one for one in outcomes if one.result is not Result.COMMITTED]
        if not bad:
            return
        failure = next((one.failure for one in bad if one.failure is not None), None)
        if failure is not None and failure.code == "UNKNOWN_MEMBER_ID":
            raise Refused(f"group {self.group}: {failure.reason}")
        first = bad[0]
        raise BrokerError(
            f"group {self.group}: {len(bad)} of {counted(len(outcomes), 'offset')} not committed "
            f"(the first is {first.topic}-{first.partition}: {_why(failure)})"
        )


def _why(failure: CommitFailure | None) -> str:
    return failure.reason if failure is not None else "it holds another offset: who commits too?"


def _lag(positions: Mapping[TopicPartition, int], logs: Logs) -> dict[TopicPartition, int]:
    """How far each position is from its log's end; those that have no log are left out.

    Raises:
        Refused: one is beyond it, or none has a log.
    """
    refusals, lag = [], {}
    for place, position in positions.items():
        found = log_of(logs, *place)
        if found is not None and position > found.end:
            refusals.append(
                f"{place[0]}-{place[1]}: the query is at {position}, beyond the log end "
                f"{found.end}: the topic was created again, or these are the brokers of another "
                "cluster"
            )
        elif found is not None:
            lag[place] = found.end - position
    if positions and not lag and not refusals:
        topic, partition = min(positions)
        refusals = [
            f"{topic}-{partition}: these brokers have no such partition; name the query's own"
        ]
    if refusals:
        raise Refused(refusals)
    return lag


def _goes_back(held: GroupView, positions: Mapping[TopicPartition, int]) -> Iterator[str]:
    """Why the group would go back, in one line."""
    back = {
        place: now - position
        for place, position in positions.items()
        if (now := held.next_offset(*place)) is not None and now > position
    }
    if back:
        topic, partition = first = min(back)
        yield (
            f"group {held.name} is beyond the query in {counted(len(back), 'partition')} (the "
            f"first is {topic}-{partition}: {positions[first] + back[first]}, the query is at "
            f"{positions[first]}): others have committed for it, or the query began anew; add "
            "--allow-moved-on to take it back, or name another group"
        )
