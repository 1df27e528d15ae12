"""A folder of partitions of scores, summed one by one: in this process, in several, or on Ray."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from assaymark import __version__
from assaymark.engine import Chunk, ChunkError, Ledger, map_chunks
from assaymark.engine.compute import DEADLINE_S, How, usable_cores, way
from assaymark.errors import InputError, Problem
from assaymark.metrology.streaming import THREADS, VERSION, misfits, partition_sums, read_partition
from assaymark.metrology.sums import ScoreSums, total
from assaymark.protocol import SCALE, Scale
from assaymark.workflow.progress import Progress

FORMS: Final = ("*.parquet", "part=*/*.parquet")
"""Where partitions lie in their folder."""

_SHOWN: Final = 2  # problems of one partition


@dataclass(frozen=True, slots=True)
class Computing:
    """Where partitions are summed, how many at once, and how many seconds one may take; see `map_chunks`."""

    how: How = "serial"
    workers: int | None = None
    address: str | None = None
    deadline_s: float = DEADLINE_S


def computing_of(
    how: str | None, workers: int | None, address: str | None, deadline_s: float | None
) -> Computing | None:
    """What the command line says about it; None if nothing."""
    if how is None and workers is None and address is None and deadline_s is None:
        return None
    how = how or ("ray" if address is not None else "processes")
    problems = []
    if how == "serial" and (workers or 1) > 1:
        problems.append(Problem("--workers", f"with --compute serial there is one (got {workers})"))
    if how != "ray" and address is not None:
        problems.append(Problem("--ray", f"needs --compute ray (got {how})"))
    if deadline_s is not None and not (math.isfinite(deadline_s) and deadline_s > 0):
        problems.append(Problem("--deadline", f"must be finite and above 0 (got {deadline_s:g})"))
    if problems:
        raise InputError("measure", problems)
    return Computing(way(how), workers, address, DEADLINE_S if deadline_s is None else deadline_s)


def folder_sums(
    folder: Path, weights: Mapping[str, float] | None, computing: Computing, kept: Path | None, progress: Progress,
    dimensions: Sequence[str] | None = None, scale: Scale = SCALE,
) -> ScoreSums:  # fmt: skip
    """The sums of all partitions below a folder."""
    paths = partition_files(folder)
    names = [str(path.relative_to(folder)) for path in paths]

    def digest(path: Path) -> str | OSError:
        try:
            with path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as exc:
            return exc

    with ThreadPoolExecutor(THREADS) as pool:
        digests = list(pool.map(digest, paths))
    unread = [(name, one) for name, one in zip(names, digests, strict=True) if isinstance(one, OSError)]
    if unread:
        raise InputError(str(folder), [Problem(name, f"cannot be read ({exc.strerror})") for name, exc in unread])
    threads = THREADS if computing.how == "serial" else max(1, THREADS // (computing.workers or usable_cores()))
    asked = {
        "weights": None if weights is None else dict(weights),
        "dimensions": dimensions if dimensions is None or isinstance(dimensions, str) else list(dimensions),
        "scale": list(scale),
    }
    chunks = [
        # The digest, not the path: a folder that is moved is not summed again, a file that was changed is.
        Chunk(name, {"sha256": sha256, **asked}, {"path": str(path.absolute()), "threads": threads})
        for name, path, sha256 in zip(names, paths, digests, strict=True)
    ]
    problems: list[Problem] = []
    if kept is not None:
        kept.mkdir(parents=True, exist_ok=True)
    with nullcontext() if kept is None else Ledger.open(kept / "ledger.db") as ledger:
        try:
            summed = map_chunks(
                partition_sums, chunks, version=f"{VERSION} of {__version__}", how=computing.how,
                workers=computing.workers, deadline_s=computing.deadline_s, ledger=ledger, address=computing.address,
                progress=progress, what="summing partitions",
            )  # fmt: skip
            found = dict(enumerate(summed))
        except ChunkError as exc:
            if not exc.of_data:
                raise
            found = exc.results
            for one in exc.failures:
                # The first problems of one file, so that every file is named before the list is cut.
                rest = ["and more in this file"] if len(one.problems) > _SHOWN else []
                problems += [Problem(one.name, what) for what in (*one.problems[:_SHOWN], *rest)]
    partitions = {names[index]: read_partition(found[index]) for index in sorted(found)}
    if partitions:
        problems += misfits(partitions)
    if problems:
        raise InputError(str(folder), problems)
    return total(one.sums for one in partitions.values())


def partition_files(folder: Path) -> list[Path]:
    """The files of a folder of partitions, of which there is at least one."""
    found = sorted({path for form in FORMS for path in folder.glob(form) if not path.name.startswith((".", "_"))})
    if not found:
        raise InputError(str(folder), [Problem("", f"no partitions here: {' or '.join(FORMS)} is looked for")])
    return found
