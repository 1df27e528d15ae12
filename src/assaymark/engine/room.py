"""Large replies: each is read and kept, but only a few at a time, from their first megabyte until they are on the disk.

A run has up to hundreds of attempts under way, and a hostile answer to each may be as long as one is kept. So whoever
reads a body asks for a place here when it passes `LARGE_BYTES`; the run gives the place back when the reply is
committed or the attempt has failed.
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Final

MOST_KEPT_BYTES: Final = 64_000_000
"""The longest body that is kept as a whole; of a longer one, so much of its start."""

LARGE_BYTES: Final = 1_000_000
"""A longer body needs a place. No answer of the form that is asked for comes near it."""

PLACES: Final = 2
"""So many of them are in memory at once, in one run. Each may be there several times over while it is written down."""


class Room:
    """The places of one run."""

    def __init__(self, places: int = PLACES) -> None:
        self._free = asyncio.Semaphore(places)

    def place(self) -> Place:
        """A place for one attempt, which takes it only if it needs it."""
        return Place(self._free)


class Place:
    """The right of one attempt to hold a large body.

    >>> async def read() -> bool:
    ...     place = Room(places=1).place()
    ...     await place.take()
    ...     return place.taken
    >>> asyncio.run(read())
    True
    """

    def __init__(self, free: asyncio.Semaphore) -> None:
        self._free = free
        self._over = False
        self.taken = False

    async def take(self) -> None:
        """Wait until there is a place. Taking it twice is taking it once."""
        if self.taken or self._over:
            return
        await self._free.acquire()
        self.taken = True
        if self._over:  # the attempt was left behind while it waited
            self.leave()

    def leave(self) -> None:
        """Give it back, if it was taken, and take none from now on."""
        self._over = True
        if self.taken:
            self.taken = False
            self._free.release()


_PLACE: ContextVar[Place | None] = ContextVar("assaymark_place", default=None)


def hold(place: Place) -> None:
    """Let whoever reads a body in this task find its place."""
    _PLACE.set(place)


def place_here() -> Place | None:
    """The place of the attempt that this task makes; None outside of a run, where nobody else reads meanwhile."""
    return _PLACE.get()
