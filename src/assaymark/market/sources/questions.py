"""A file of questions from a dataset: fetched, looked through line by line, and laid down with where it is from."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from assaymark.durable import write_atomic
from assaymark.errors import InputError, Problem
from assaymark.market.snapshot import Origin
from assaymark.market.sources.hub import SOURCE, fetch_file
from assaymark.market.sources.request import Asking, Request
from assaymark.prompting.strict_json import Rejected, strict_json
from assaymark.records import JSON, canonical_json

PORTBENCH_ITEMS = 6_269
"""How many questions PortBench says that its file holds (abstract)."""

_LONGEST_LINE = 4 << 20
_MOST_PROBLEMS = 20


@dataclass(frozen=True, slots=True)
class Questions:
    """A file of questions on this disk: one JSON object a line.

    ``provenance`` is the file beside it that says the same: dataset, file, commit, sha256, licence and notes.
    """

    path: Path
    provenance: Path
    items: int
    sha256: str
    origin: Origin


def fetch_questions(request: Request, asking: Asking, folder: Path) -> Questions:
    """Fetch a file of questions into ``folder``; a file that is no JSON Lines is refused and leaves nothing there."""
    with TemporaryDirectory() as place:
        fetched = fetch_file(request, asking, Path(place), (".jsonl",))
        data = fetched.path.read_bytes()
    items, digest = counted(data, fetched.file), hashlib.sha256(data).hexdigest()
    notes = [f"commit {fetched.commit}", f"the dataset's card states the licence: {fetched.licence}"]
    if items != PORTBENCH_ITEMS:
        notes.append(f"{items:,} questions; PortBench states {PORTBENCH_ITEMS:,} for its own file")
    origin = Origin(
        source="huggingface", retrieved_at=asking.now, query=request.as_query(), licence=SOURCE.licence,
        notes=tuple(notes),
    )  # fmt: skip
    path = folder / Path(fetched.file).name
    if path.exists() and path.read_bytes() != data:
        raise InputError("source huggingface", [Problem(str(path), "is another file already; choose another folder")])
    provenance = path.with_name(f"{path.name}.provenance.json")
    write_atomic(path, data)
    said = {"file": path.name, "sha256": digest, "items": items, "commit": fetched.commit, **_written(origin)}
    write_atomic(provenance, (canonical_json(said) + "\n").encode())
    return Questions(path, provenance, items, digest, origin)


def counted(data: bytes, name: str) -> int:
    """How many questions a file holds.

    Raises
    ------
    InputError
        A line is no JSON object, or too long, or there is none; the first twenty such lines are named.

    >>> counted(b'{"id": 1}\\n{"id": 2}\\n', "qa.jsonl")
    2
    """
    problems: list[Problem] = []
    items = 0
    for number, line in enumerate(data.splitlines(), start=1):
        if not line.strip():
            continue
        items += 1
        if what := _wrong(line):
            problems.append(Problem(f"line {number}", what))
    if len(problems) > _MOST_PROBLEMS:
        problems[_MOST_PROBLEMS:] = [Problem("", f"and {len(problems) - _MOST_PROBLEMS} more lines")]
    if problems or not items:
        raise InputError(name, problems or ["holds no question"])
    return items


def _wrong(line: bytes) -> str:
    """What is wrong with one line, or nothing."""
    if len(line) > _LONGEST_LINE:
        return f"is longer than {_LONGEST_LINE:,} bytes"
    try:
        value = strict_json(line.decode())
    except (Rejected, UnicodeDecodeError) as exc:
        return f"is {exc}" if isinstance(exc, Rejected) else "is no UTF-8"
    return "" if isinstance(value, dict) else "is no JSON object"


def _written(origin: Origin) -> Mapping[str, JSON]:
    """Where the file is from, as JSON."""
    return {
        "source": origin.source,
        "retrieved_at": origin.retrieved_at.isoformat(),
        "query": dict(origin.query),
        "licence": origin.licence,
        "notes": list(origin.notes),
    }
