"""The base class of the real systems that tests start and stop."""

from __future__ import annotations

from typing_extensions import Self


class Service:
    """A context manager that starts a system, and stops it even if the start fails."""

    def start(self) -> None:
        """Start the system, and wait until it answers."""
        raise NotImplementedError

    def close(self) -> None:
        """Stop the system, even if its start has failed."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
