"""Functions that tests run on chunks. Each notes in a folder that it was called, and some end badly."""

from __future__ import annotations

import os
import signal
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from assaymark.engine import Chunk
from assaymark.errors import AssayError, InputError, Problem

Arguments = Mapping[str, Any]


def made(folder: Path, n: int = 5, **more: object) -> list[Chunk]:
    """Chunks that are noted in a folder, with further arguments of their functions."""
    return [Chunk(f"part {k}", {"n": k}, {"folder": str(folder), **more}) for k in range(n)]


def called(folder: Path) -> list[str]:
    """The chunks that were begun, one entry for each attempt."""
    return sorted(path.name.partition(".")[0] for path in folder.iterdir())


def begin(given: Arguments) -> int:
    """Note the attempt, and return how many there were of this chunk, this one included."""
    folder = Path(given["folder"])
    (folder / f"{given['n']}.{uuid.uuid4().hex}").write_text(str(os.getpid()))
    return called(folder).count(str(given["n"]))


def square(given: Arguments) -> bytes:
    begin(given)
    return str(given["n"] ** 2).encode()


def slow(given: Arguments) -> bytes:
    begin(given)
    time.sleep(given["seconds"])
    return str(given["n"] ** 2).encode()


def kill_once(given: Arguments) -> bytes:
    """Kill its process at the first attempt at each chunk named."""
    if begin(given) == 1 and given["n"] in given["victims"]:
        os.kill(os.getpid(), signal.SIGKILL)
    return str(given["n"] ** 2).encode()


def fail_once(given: Arguments) -> bytes:
    """Kill its process at the first attempt at each victim, and hang at that of the others named."""
    first = begin(given) == 1
    if first and given["n"] in given["victims"]:
        os.kill(os.getpid(), signal.SIGKILL)
    if first and given["n"] in given["hung"]:
        time.sleep(600)
    return str(given["n"] ** 2).encode()


def exit_always(given: Arguments) -> bytes:
    begin(given)
    if given["n"] in given["victims"]:
        os._exit(3)
    return str(given["n"] ** 2).encode()


def hang(given: Arguments) -> bytes:
    """Hang for as many attempts as told at each chunk named."""
    if begin(given) <= given["times"] and given["n"] in given["victims"]:
        time.sleep(600)
    return str(given["n"] ** 2).encode()


def refuse(given: Arguments) -> bytes:
    begin(given)
    if given["n"] in given["victims"]:
        raise InputError("rows", [Problem("row 1", f"is {given['n']}"), Problem("row 2", "is worse")])
    return b"fine"


def refuse_plainly(given: Arguments) -> bytes:
    raise AssayError("nothing to be done")


def stumble(given: Arguments) -> bytes:
    begin(given)
    if given["n"] in given["victims"]:
        raise ZeroDivisionError("a defect\nin two lines")
    return b"fine"


def a_number(given: Arguments) -> bytes:
    return 7  # type: ignore[return-value]


def where() -> int:
    return os.getpid()


def fail() -> None:
    raise ValueError("no such thing")


def die() -> int:
    """Kill the process it runs in, unless that is the test's own."""
    if os.environ.get("ASSAYMARK_TEST_PARENT") != str(os.getpid()):
        os.kill(os.getpid(), signal.SIGKILL)
    return 7
