"""Fuzz every target briefly, and retry every input that once crashed the decoder."""

from __future__ import annotations

from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

from decoder import DecodeError
from tests.fuzz.corpus import corpus_hash, seeds
from tests.fuzz.runner import CRASHES, run
from tests.fuzz.targets import TARGETS

RUNS = 3000
SEED = 1


@pytest.mark.slow
@pytest.mark.skipif(
    find_spec("atheris") is None, reason="atheris is not installed: Python 3.11 to 3.13 only"
)
@pytest.mark.parametrize("name", TARGETS)
def test_fuzzed_decoder_raises_only_decode_error(name: str, tmp_path: Path) -> None:
    corpus = seeds()[name]
    result = run(TARGETS[name], corpus, RUNS, SEED, tmp_path)
    assert result.findings == (), result.log[-4000:]
    assert result.executions >= RUNS
    # libFuzzer has read the seeds, and their mutations have reached new code.
    assert result.seeded is not None
    assert result.end is not None
    assert result.end.features > result.seeded.features


def test_inputs_that_once_crashed_decoder_raise_only_decode_error() -> None:
    for path in (path for path in CRASHES.iterdir() if path.suffix != ".md"):
        name = max((name for name in TARGETS if path.name.startswith(f"{name}-")), key=len)
        with suppress(DecodeError):
            TARGETS[name].parse(path.read_bytes())


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_every_fuzz_target_has_decodable_seed(name: str) -> None:
    decoded = 0
    for seed in seeds()[name]:
        with suppress(DecodeError):
            TARGETS[name].parse(seed)
            decoded += 1
    assert decoded


def test_corpus_hash_depends_on_content() -> None:
    corpus = seeds()
    first = next(iter(corpus))
    assert corpus_hash(corpus) != corpus_hash({**corpus, first: corpus[first][1:]})
