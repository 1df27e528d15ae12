"""Memory between the stages of a long run."""

from __future__ import annotations

import ctypes
from contextlib import suppress

import pyarrow as pa


def give_back() -> None:
    """Hand the memory that a stage has freed back to the system, so that the next one begins with as little as it can.

    Where the C library cannot do it (it is one of GNU's own), nothing happens.
    """
    pa.default_memory_pool().release_unused()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
