"""A folder of Parquet partitions, each whole cycles of one table of scores: summed apart, and added up."""

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
from assaymark.metrology.partitions import VERSION, misfits, partition_sums, read_partition
from assaymark.metrology.streaming import THREADS
from assaymark.metrology.sums import ScoreSums, total
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
    """What the command line says about it; None if nothing.

    >>> computing_of(None, 4, None, None)
    Computing(how='processes', workers=4, address=None, deadline_s=3600.0)

    Raises
    ------
    UnknownNameError
        There is no such way to compute.
    InputError
        Options that do not go together, or a number that is out of range.
    """
    if how is None and workers is None and address is None and deadline_s is None:
        return None
    if how is None:
        how = "ray" if address is not None else "processes"
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
    folder: Path,
    weights: Mapping[str, float] | None,
    computing: Computing,
    kept: Path | None,
    progress: Progress,
    dimensions: Sequence[str] | None = None,
) -> ScoreSums:
    """The sums of all partitions below a folder.

    Parameters
    ----------
    folder : Path
        Holds ``*.parquet`` or ``part=*/*.parquet``. Every cycle lies in one of the files.
    weights : mapping of dimension to weight, optional
        Weights of the aggregate.
    computing : Computing
        Where and how.
    kept : Path, optional
        Folder of a ledger that keeps the sums of each partition; what is there is not summed again.
    progress : Progress
        Told how many partitions are summed.
    dimensions : sequence of column names, optional
        As for `read_scores`.

    Raises
    ------
    InputError
        Partitions that cannot be read or are wrong, all of them; or that are not parts of one table.
    ChunkError
        A partition could not be summed for another reason: its process died again and again, or was too slow.
    """
    paths = partition_files(folder)
    names = [str(path.relative_to(folder)) for path in paths]
    digests = _digests(folder, paths, names)
    threads = THREADS if computing.how == "serial" else max(1, THREADS // (computing.workers or usable_cores()))
    chunks = [
        # The digest, not the path: a folder that is moved is not summed again, a file that was changed is.
        Chunk(
            name,
            {
                "sha256": digest,
                "weights": None if weights is None else dict(weights),
                "dimensions": dimensions if dimensions is None or isinstance(dimensions, str) else list(dimensions),
            },
            {"path": str(path.absolute()), "threads": threads},
        )
        for name, path, digest in zip(names, paths, digests, strict=True)
    ]
    problems: list[Problem] = []
    if kept is not None:
        kept.mkdir(parents=True, exist_ok=True)
    with nullcontext() if kept is None else Ledger.open(kept / "ledger.db") as ledger:
        try:
            found = dict(
                enumerate(
                    map_chunks(
                        partition_sums,
                        chunks,
                        version=f"{VERSION} of {__version__}",
                        how=computing.how,
                        workers=computing.workers,
                        deadline_s=computing.deadline_s,
                        ledger=ledger,
                        address=computing.address,
                        progress=progress,
                        what="summing partitions",
                    )
                )
            )
        except ChunkError as exc:
            if not exc.of_data:
                raise
            found = exc.results
            problems = [Problem(one.name, what) for one in exc.failures for what in _few(one.problems)]
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


def _few(problems: Sequence[str]) -> list[str]:
    """The first problems of one file, so that every file is named before the list is cut."""
    rest = ["and more in this file"] if len(problems) > _SHOWN else []
    return [*problems[:_SHOWN], *rest]


def _digests(folder: Path, paths: Sequence[Path], names: Sequence[str]) -> list[str]:
    """The sha256 of every file."""
    problems: dict[str, Problem] = {}

    def digest(path: Path, name: str) -> str:
        try:
            with path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as exc:
            problems[name] = Problem(name, f"cannot be read ({exc.strerror})")
            return ""

    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(digest, paths, names))
    if problems:
        raise InputError(str(folder), [problems[name] for name in names if name in problems])
    return found
