"""Files left by commands, by name, as lines without sentences and without anything that may differ between runs.

Files are read by their published forms alone (Parquet, Arrow, JSON, SQLite, HTML); nothing of assaymark is imported.
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator, Set
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

Lines = list[str]

# Fields that hold measured seconds, or digests of bytes that hold them (``inputs`` of a measurement).
MEASURED: Final = frozenset(("seconds", "inputs"))
# Fields of documents that no two runs or versions share: these, times, the version, and paths that were typed.
VOLATILE: Final = MEASURED | {"locked_at", "date", "software", "page", "next"}
# Measurements of measured seconds.
TIMED: Final = frozenset(("agent.seconds",))
# Fields of results (verdicts, certificates, datasheets, measurements, locks, reports) that hold words for readers.
SENTENCES: Final = frozenset((
    "assumptions", "basis", "condition", "cutoff", "hides", "method", "n_of", "non_claims", "notes", "reason",
    "reasons", "sketch", "statement", "title", "warnings", "why", "words",
))  # fmt: skip
RESULTS: Final = SENTENCES | VOLATILE
# Columns and fields of tables that hold words of ours for readers. Every other text of a table is a record.
TOLD: Final = {
    **{name: {"reason"} for name in ("anchor", "grades", "guesses", "human", "judgments", "pairs", "points", "probe")},
    "checks": {"mismatches"}, "measurements": SENTENCES, "rejections": {"text"}, "replaced": {"why"},
    "verdicts": SENTENCES,
}  # fmt: skip
# Mappings whose keys are words for readers: their values count, in order of their text.
WORDED: Final = frozenset(("fragility", "missing"))
# Tables that are pinned in parts, by the values of a column, so that a failure names the quantity that moved.
PARTS: Final = {"measurements": "name", "scores": "name", "verdicts": "scope"}
# Lists of files with digests of their bytes: these hold sentences, and bytes of a version of the Parquet library.
UNREAD: Final = frozenset(("manifest.json", "site.json"))
# Texts that commands write. The others are what these runs were given.
KEPT: Final = frozenset(("plan.toml", "questions.jsonl", "template.toml"))


def artefacts(folder: Path) -> dict[str, Lines]:
    """Everything that is pinned of a run, as lines by the name of the artefact."""
    found: dict[str, Lines] = defaultdict(list)
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        here = name.rpartition("/")[0]
        if path.suffix in (".parquet", ".arrow"):
            found |= _table(name, path)
        elif path.name == "ledger.db":
            found |= _ledger(name, path)
        elif path.parent.name == "certificates":
            found[f"{here}/{path.name.partition('-')[0]}"].append(_line(_plain(json.loads(path.read_bytes()), RESULTS)))
        elif (path.suffix == ".json" or path.name == "study.lock") and path.name not in UNREAD:
            found |= _document(name, json.loads(path.read_bytes()))
        elif path.name == "SHA256SUMS":
            found[name] = [line.split()[-1] for line in path.read_text().splitlines()]
        elif path.name in KEPT:
            found[name] = path.read_text(encoding="utf-8").splitlines()
        elif path.suffix == ".html":
            found[f"{here}/*.html"] += _page(path)
        elif path.suffix == ".csv" and {"report", "site"} & {*path.parts}:
            found[f"{here}/*.csv"] += _sheet(path)
    return dict(found)


def digest(lines: Lines) -> str:
    """Return the number of lines, and the head of their sha256."""
    return f"{len(lines)} {hashlib.sha256(chr(10).join(lines).encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


# --- values -----------------------------------------------------------------------------------------------------------


def _plain(value: Any, dropped: Set[str]) -> Any:
    """A value without some of its fields, each float as its text. Results (their sentences are dropped) lose more."""
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, list | tuple):
        return [_plain(one, dropped) for one in value]
    if not isinstance(value, dict):
        return value
    kept = {key: one for key, one in value.items() if key not in dropped or (key == "inputs" and isinstance(one, dict))}
    if dropped >= SENTENCES:
        if kept.keys() == {"id", "text"}:  # a condition, by its id
            del kept["text"]
        if " " in str(kept.get("state", "")):  # why there is no number; other states are codes
            kept["state"] = "not ok"
        for key in WORDED & kept.keys():
            if isinstance(kept[key], dict):
                kept[key] = sorted(_line(_plain(one, dropped)) for one in kept[key].values())
        for key in {"preflight", "amendments"} & kept.keys():  # sentences; digests of files with a date in them
            if isinstance(kept[key], list) and all(isinstance(one, str) for one in kept[key]):
                kept[key] = len(kept[key])
    return {key: _plain(one, dropped) for key, one in kept.items()}


def _float(value: float) -> str:
    """Nine significant digits, and 0 for what is below 1e-12.
    A rebuilt sum may add in another order, and another processor or BLAS does: that moves p-values of length contrasts
    by up to 2e-12 of itself (measured, without AVX), and leaves 1e-16 where there was 0. Of twelve digits the last then
    turns in eleven artefacts, of nine in none. Another formula, seed or rounding moves more than that."""
    return f"{0.0 if abs(value) < 1e-12 else value:.8e}"


def _line(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


# --- files ------------------------------------------------------------------------------------------------------------


def _table(name: str, path: Path) -> dict[str, Lines]:
    """Names and types of the columns, and the values in row order; the JSON of whole records by what it holds."""
    if path.suffix == ".arrow":
        with pa.memory_map(str(path)) as source:
            table = pa.ipc.open_file(source).read_all()
    else:
        table = pq.read_table(path)
    dropped, stem = MEASURED | TOLD.get(path.stem, set()), name.rpartition(".")[0]
    part = PARTS.get(path.stem) if path.suffix == ".parquet" else None
    found: dict[str, Lines] = defaultdict(list)
    found[stem] = [f"{one.name}: {one.type}" for one in table.schema]
    for row in table.to_pylist():
        if row.get("name") in TIMED:
            continue
        if "record" in row:
            row["record"] = json.loads(row["record"])
        found[f"{stem}/{row[part]}" if part else stem].append(_line(_plain(row, dropped)))
    return dict(found)


def _document(name: str, value: dict[str, Any]) -> dict[str, Lines]:
    """A JSON document: its lists and mappings by their names, measurements by theirs, and all else together."""
    found: dict[str, Lines] = defaultdict(list)
    for key, one in sorted(value.items()):
        plain = _plain({key: one}, RESULTS).get(key)
        if key == "measurements" and isinstance(one, list):
            for each, item in zip(one, plain, strict=True):
                found[f"{name}/{key}/{each['name']}"].append(_line(item))
        elif isinstance(plain, dict | list) and plain:
            found[f"{name}/{key}"] = [
                _line(item) for item in (sorted(plain.items()) if isinstance(plain, dict) else plain)
            ]
        elif key not in RESULTS:
            found[name].append(f"{key}: {_line(plain)}")
    return dict(found)


def _ledger(name: str, path: Path) -> dict[str, Lines]:
    """Keys of the planned calls, digests of schemas, of every text that was shown, of replies and of sources."""
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as ledger:
        calls = list(ledger.execute("select key, spec from calls"))
        objects = list(ledger.execute("select kind, sha256 from objects"))
        sources = list(ledger.execute("select path, sha256, format from sources"))
    found: dict[str, Lines] = defaultdict(list)
    found["calls"] = sorted(key for key, _ in calls)
    found["schemas"] = sorted({str(json.loads(spec)["schema"]) for _, spec in calls})
    for kind, sha256 in sorted(objects):
        found[kind].append(sha256)
    found["sources"] = sorted(map(_line, sources))
    return {f"{name}/{key}": lines for key, lines in found.items() if lines}


_CARD: Final = re.compile(r'data-k="(headline|qualified|no-claim)"|certificates/([\w.-]+)\.json')
_ANCHOR: Final = re.compile(r'\bid="(m[0-9a-f]{10})"')
_BENCH: Final = re.compile(r'id="b-data">(.*?)</script>', re.DOTALL)
_TALLY: Final = re.compile(r'href="#g-(headline|qualified|no-claim)"/></svg><span><b>(\d+)</b>')


def _page(path: Path) -> Iterator[str]:
    """Yield a page's statements: the level at each certificate, of its cards, in its bench and its tally, the values
    that it shows, and its numbers of rows and links."""
    text, level = path.read_text(encoding="utf-8"), ""
    for found in _CARD.finditer(text):
        level = found[1] or level
        if found[2]:
            yield f"{path.name}: {found[2]} {level}"
    for bench in _BENCH.findall(text):  # the level of every sentence that can be asked for, by its places
        for key, record in sorted(json.loads(bench)["records"].items()):
            yield f"{path.name}: bench {key} {record[0]} {record[6]}"
    levels = Counter(one[1] for one in _CARD.finditer(text) if one[1])
    yield f"{path.name}: {_line(levels)} {_line(_TALLY.findall(text))} {' '.join(sorted(_ANCHOR.findall(text)))}"
    yield f"{path.name}: {len(re.findall('<tr[ >]', text))} rows, {len(re.findall('<a [^>]*href=', text))} links"


def _sheet(path: Path) -> Iterator[str]:
    """The rows of a file of comma-separated values."""
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.reader(file):
            yield f"{path.name}: {_line([_cell(cell) for cell in row])}"


def _cell(text: str) -> str:
    try:
        return _float(float(text)) if "." in text else text
    except ValueError:
        return text
