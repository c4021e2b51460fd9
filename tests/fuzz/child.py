"""One target under atheris: ``python -m tests.fuzz.child TARGET`` and libFuzzer's own arguments."""

from __future__ import annotations

import sys
from contextlib import suppress

# Untyped, and not there with every Python.
import atheris  # type: ignore[import-untyped, import-not-found, unused-ignore]

# Imported before the instrumented ones, so that only what decodes counts as covered; not used here,
# hence the noqa.
import cramjam  # noqa: F401

with atheris.instrument_imports(include=["decoder"]):
    from decoder import DecodeError
    from tests.fuzz.targets import TARGETS


def main() -> None:
    target = TARGETS[sys.argv.pop(1)]
    if target.name == "keyed-kernel":
        # Compiled and imported here, because on a busy machine both take longer than one input may.
        # pyarrow imports pandas for its first array.
        import pandas as pd  # noqa: F401

        import migrate.extensions.keyed_state.kernel.kernel  # noqa: F401

    def test_one_input(data: bytes) -> None:
        with suppress(DecodeError):
            target.parse(data)

    atheris.Setup(sys.argv, test_one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
