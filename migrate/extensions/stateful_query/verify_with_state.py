"""Verify the start positions of a primed query, and its state, key by key."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from types import EllipsisType

from migrate.model.errors import UsageError
from migrate.model.log import timed
from migrate.model.option_names import option
from migrate.model.positions import GROUP_PREFIX, PLAN_PREFIX, SPARK_PREFIX
from migrate.moves.options import SideArguments
from migrate.moves.verify import verify
from migrate.planning.verify import Verification
from migrate.storage.uris import AnyPath


def verify_with_state(
    moved: AnyPath,
    target: str,
    state: str,
    *,
    run: bool,
    spark_conf: Mapping[str, str],
    expect: str | None,
    sample: int | None,
    merge_keys: bool,
    ttl_ms: int | EllipsisType | None,
    stopped_at_ms: int | None,
    one_cluster: bool,
    arguments: SideArguments,
) -> Verification:
    """Run the checks of ``verify``, and compare a keyed state with Spark's state.

    The arguments and errors of ``verify`` apply.
    """
    from migrate.spark.resume_check import check_pyspark

    if sample is not None and sample < 1:
        raise UsageError(f"{option('sample', sample)}: expected a positive number of keys")
    operator, slash, name = state.partition("/")
    if not (operator and slash and name):
        raise UsageError(
            f"{option('state')} {state!r}: expected OPERATOR/NAME; `migrate state CHK` lists the "
            "states"
        )
    moved = os.fspath(moved)
    if moved.startswith(PLAN_PREFIX):
        raise UsageError("a comparison of keyed state requires a savepoint, not plan:FILE")
    if target.startswith(GROUP_PREFIX):
        raise UsageError("a comparison of keyed state requires a Spark query, spark:DIR")
    check_pyspark()
    verification = verify(
        moved,
        target,
        run=run,
        spark_conf=spark_conf if run else None,
        one_cluster=one_cluster,
        **arguments,
    )
    from migrate.extensions.stateful_query.transfer.verify_state import verify_state

    with timed(f"comparing state {state} with {target}"):
        proof = verify_state(
            moved,
            target.removeprefix(SPARK_PREFIX),
            operator,
            name,
            expect=expect,
            sample=sample,
            merge_keys=merge_keys,
            conf=spark_conf,
            ttl_ms=ttl_ms,
            stopped_at_ms=stopped_at_ms,
            allow_external_files=arguments.get("allow_external_files", False),
        )
    problems: tuple[str, ...] = ()
    if not proof.is_right:
        problems = ("the query's state differs from Flink's", *proof.problems()[1:])
    return replace(verification, state=proof, other_problems=problems)
