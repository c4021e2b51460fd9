"""A real system that the tests start, and that is stopped in any case."""

from __future__ import annotations

from typing_extensions import Self


class Service:
    """A context manager that starts a system, and closes it at the end or if the start fails."""

    def start(self) -> None:
        """Start the system, and wait until it answers."""
        raise NotImplementedError

    def close(self) -> None:
        """Stop the system, even if it has started only in part."""
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
