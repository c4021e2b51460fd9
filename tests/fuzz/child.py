"""Fuzz one target with atheris: ``python -m tests.fuzz.child TARGET [LIBFUZZER_ARGUMENT...]``."""

from __future__ import annotations

import sys
from contextlib import suppress

# The package has no types and is not available for every Python version.
import atheris  # type: ignore[import-untyped, import-not-found, unused-ignore]

# Imported before the instrumented modules, so that only the coverage of the decoder is measured.
# The module is not used here, hence the noqa.
import cramjam  # noqa: F401

with atheris.instrument_imports(include=["decoder"]):
    from decoder import DecodeError
    from tests.fuzz.targets import TARGETS


def main() -> None:
    target = TARGETS[sys.argv.pop(1)]
    if target.name == "keyed-kernel":
        # Compile the kernel and import pandas here, because each can take longer than the time
        # limit of an input. pyarrow imports pandas for its first array.
        import pandas as pd  # noqa: F401

        import migrate.extensions.keyed_state.kernel.kernel  # noqa: F401

    def test_one_input(data: bytes) -> None:
        with suppress(DecodeError):
            target.parse(data)

    atheris.Setup(sys.argv, test_one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
