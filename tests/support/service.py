"""A real system that the tests start, and stop whatever becomes of it."""

from __future__ import annotations

from typing_extensions import Self


class Service:
    """Started by ``with``, and closed at its end, or where it does not start."""

    def start(self) -> None:
        """Start it and wait until it answers."""
        raise NotImplementedError

    def close(self) -> None:
        """Stop it, however far it has come."""
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
