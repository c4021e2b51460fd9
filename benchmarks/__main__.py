"""`make bench`: measures everything in one go, and writes docs/performance.md anew.

python -m benchmarks          measure, and write the page
python -m benchmarks scans    measure the scans alone, and write the page
python -m benchmarks states   measure the reading of keyed state alone, and write the page
python -m benchmarks priming  measure keyed state moved to Spark alone, and write the page
python -m benchmarks page     write the page and its plot of the figures that are there
"""

from __future__ import annotations

import sys
import time
from datetime import datetime, timezone

from benchmarks import page
from benchmarks.checkpoints import A, B, C, D, make
from benchmarks.estate import costs
from benchmarks.growth import HANDLES, PARTITIONS, measure_growth
from benchmarks.machine import Others, machine
from benchmarks.measuring import measure
from benchmarks.plots import plot_growth
from benchmarks.priming import measure_priming
from benchmarks.profiling import profile
from benchmarks.readers import BARE, BYTES, OURS, OURS_MANY, PROCESSOR
from benchmarks.results import Results, load, save
from benchmarks.scans import measure_scans
from benchmarks.states import measure_states

# A case -> what is read, by whom, how often: the quicker ones more often.
_CASES = {
    "a": (A, (OURS, BARE, PROCESSOR), 9),
    "b": (B, (OURS, BARE), 9),
    "c": (C, (OURS, BARE, PROCESSOR), 15),
    "d": (D, (OURS_MANY, BYTES, BARE), 5),
}


def main() -> None:
    match sys.argv[1:]:
        case ["page"]:
            pass
        case ["scans"]:
            save({**load(), "scans": measure_scans(), "scans_measured": _today()})
        case ["states"]:
            save({**load(), "states": measure_states(), "states_measured": _today()})
        case ["priming"]:
            save({**load(), "priming": measure_priming(), "priming_measured": _today()})
        case []:
            _say("writing what is to be read")
            make([A, B, C, D, *PARTITIONS.values(), *HANDLES.values()])
            save(_measured())
        case _:
            sys.exit(__doc__)
    results = load()  # of the digits that are kept
    page.write(results)
    plot_growth(results)


def _measured() -> Results:
    began = time.monotonic()
    others = Others()
    cases = {}
    for name, (made, readers, rounds) in _CASES.items():
        _say(f"({name}): {', '.join(reader.name for reader in readers)}, {rounds} rounds")
        cases[name] = measure(made, readers, rounds)
    _say("growth with partitions and with files")
    growth = {"partitions": measure_growth(PARTITIONS), "handles": measure_growth(HANDLES)}
    _say("the fleet scan, by cores")
    scans = measure_scans()
    _say("keyed state")
    states = measure_states()
    _say("keyed state moved to Spark")
    priming = measure_priming()
    _say("profiles, and requests to a store")
    return {
        "measured": _today(),
        "machine": machine(others),
        "cases": cases,
        "growth": growth,
        "scans": scans,
        "scans_measured": _today(),
        "states": states,
        "states_measured": _today(),
        "priming": priming,
        "priming_measured": _today(),
        "profiles": {
            name: profile(made, readers[0]) for name, (made, readers, _) in _CASES.items()
        },
        "costs": costs(),
        "seconds": time.monotonic() - began,
    }


def _today() -> str:
    return datetime.now(timezone.utc).date().isoformat()


def _say(step: str) -> None:
    print(f"{datetime.now():%H:%M:%S} {step}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
