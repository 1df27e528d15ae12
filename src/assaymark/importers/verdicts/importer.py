"""From a CSV file of verdicts to a `VerdictLog`, or to everything that is wrong with the file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assaymark.importers.verdicts.coding import Calls, coded_calls
from assaymark.importers.verdicts.findings import Bools, Findings, Ints
from assaymark.importers.verdicts.log import VERDICTS, VerdictLog
from assaymark.importers.verdicts.mapping import VerdictMap, find_columns, find_filters
from assaymark.importers.verdicts.sheet import (
    BLANKS,
    HEADER,
    Coded,
    dense,
    file_bytes,
    joined,
    open_sheet,
    read_columns,
)


def read_verdicts(
    source: Path | str, data: bytes | Path | None = None, mapping: VerdictMap | None = None
) -> VerdictLog:
    """A log of pairwise verdicts from a CSV file of any tool, checked.

    One row for each call: who judged (``judge``), what was asked (``question``), which two contents stood in slots 1
    and 2 (``slot_1``, ``slot_2``), the ``verdict``, and optionally the number of the repetition (``trial``) and an id
    of the pair (``pair``). A verdict names a slot, or the content in it, or is a tie, an abstention or invalid. Other
    columns are left alone, and may hold anything. White space around a cell does not count.

    Parameters
    ----------
    source : path or str
        The file; where ``data`` is given, only what to call it in messages.
    data : bytes or path, optional
        The file itself. Gzip, a byte order mark, and semicolons, tabs or bars for commas are fine.
    mapping : VerdictMap, optional
        Which column is what. Without one the usual spellings are looked for.

    Returns
    -------
    VerdictLog
        A log with one order only is no error: see ``orders``. The same call twice with the same verdict counts once.

    Raises
    ------
    InputError
        Everything wrong at once, at most 20 problems listed and the rest counted, each with its row: no such column
        (with the closest), empty cells, words that are no verdict, one content in both slots, a pair id with more than
        two contents or in two questions, the same call twice with different verdicts, control characters in the name
        of a judge, a filter that keeps nothing; or a file that is no CSV.

    Examples
    --------
    >>> log = read_verdicts("log.csv", b"judge,question_id,model_a,model_b,winner\\nj,q1,x,y,A\\nj,q1,y,x,x\\n")
    >>> len(log), log.orders["j"], [log.contents[k] for k in log.chosen]
    (2, OrderCounts(both=1, one=0), ['x', 'x'])
    """
    mapping = mapping or VerdictMap()
    name = str(source)
    given = Path(source) if data is None else data
    sheet = open_sheet(name, given if isinstance(given, bytes) else file_bytes(given), mapping.delimiter)
    found = Findings()
    places, filters = find_columns(sheet.header, mapping, found), find_filters(sheet.header, mapping, found)
    found.refuse(name)
    cells = read_columns(sheet, {*places.values(), *filters.values()})
    total = next(iter(cells.values())).codes.size
    kept = _kept({column: cells[place] for column, place in filters.items()}, mapping.wanted, total, found)
    found.refuse(name)
    columns = {field: cells[place].at(kept) for field, place in places.items()}
    if mapping.judge_name:
        columns["judge"] = Coded(pa.array([mapping.judge_name]), np.zeros(kept.size, dtype=np.int64))
    calls = coded_calls(columns, kept + HEADER + 1, mapping, found)
    pairs = _pairs(calls, found)
    key, chosen = _once(calls, pairs, found)
    found.refuse(name)
    read_as = {field: sheet.header[place].strip() for field, place in places.items()}
    return _log(name, calls, pairs, key, chosen, total=total, filtered=total - kept.size, columns=read_as)


def _kept(cells: Mapping[str, Coded], wanted: Mapping[str, Sequence[str]], total: int, found: Findings) -> Ints:
    """The rows that pass every filter."""
    keep: Bools = np.ones(total, dtype=bool)
    for column, values in wanted.items():
        words = pc.ascii_trim(cells[column].words, BLANKS)
        passes = pc.is_in(words, value_set=pa.array(values, pa.string())).to_numpy(zero_copy_only=False)
        passes = passes[cells[column].codes]
        keep &= passes
        if not passes.any():
            asked = " or ".join(map(repr, values)) or "any of no values"
            found.add("filter", f"filter {column}", f"no row has {asked} (the column holds {_some(words.to_pylist())})")
    if not keep.any():
        found.add("filter", "filter", "no row passes every filter")
    return np.flatnonzero(keep)


def _some(words: Iterable[str]) -> str:
    """A few of many words."""
    names = sorted(set(words))
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(f"{name!r:.40}" for name in names[:5]) + more


@dataclass(frozen=True, slots=True, eq=False)
class _Pairs:
    """The pairs of a log: ``code`` and ``order`` [n] of each call, ``question`` [P] and ``contents`` [P, 2] of each."""

    code: Ints
    order: Ints
    question: Ints
    contents: Ints


def _pairs(calls: Calls, found: Findings) -> _Pairs:
    """Which pair each call is about, and which of its contents stood in slot 1; the first by name is u."""
    low, high = np.minimum(calls.slot_1, calls.slot_2), np.maximum(calls.slot_1, calls.slot_2)
    if calls.pair is None:
        size = len(calls.contents)
        names, code = dense(
            joined([(calls.question, len(calls.questions)), (low, size), (high, size)]),
        )
        first = _first(code, names.size)
    else:
        assert calls.ids is not None
        code = calls.pair
        first = _first(code, len(calls.ids))
        _check_ids(calls, code, first[code], low, high, found)
    order = (calls.slot_1 > calls.slot_2).astype(np.int64)
    if not code.size:  # nothing could be read, and an error is on its way
        first = first[:0]
    return _Pairs(code, order, calls.question[first], np.stack([low[first], high[first]], axis=1))


def _first(codes: Ints, size: int) -> Ints:
    """The first row of each code [size]."""
    first = np.zeros(size, dtype=np.int64)
    first[codes[::-1]] = np.arange(codes.size)[::-1]
    return first


def _check_ids(calls: Calls, code: Ints, first: Ints, low: Ints, high: Ints, found: Findings) -> None:
    """One id, one question, two contents: the rows of a pair say what its first row says."""
    ids = calls.ids or ()

    def at(k: int) -> tuple[str, str]:
        return f"row {calls.row[k]}, pair", f"{ids[code[k]]!r:.60}"

    def contents(k: int) -> str:
        return f"{calls.contents[low[k]]!r:.40} and {calls.contents[high[k]]!r:.40}"

    def question(k: int) -> str:
        return f"{calls.questions[calls.question[k]]!r:.40}"

    def other_contents(k: int) -> tuple[str, str]:
        where, pair = at(k)
        there = f"{contents(first[k])} in row {calls.row[first[k]]}"
        return where, f"{pair} has the contents {contents(k)} here, {there}; a pair has two"

    def other_question(k: int) -> tuple[str, str]:
        where, pair = at(k)
        there = f"to {question(first[k])} in row {calls.row[first[k]]}"
        return where, f"{pair} belongs to question {question(k)} here, {there}; a pair has one"

    found.rows("pair", (low != low[first]) | (high != high[first]), other_contents)
    found.rows("pair in two questions", calls.question != calls.question[first], other_question)


def _once(calls: Calls, pairs: _Pairs, found: Findings) -> tuple[Ints, Ints]:
    """The calls sorted by judge, pair, trial and order, each once: their keys, and their places in ``calls``."""
    key = joined(
        [
            (calls.judge, len(calls.judges)),
            (pairs.code, len(pairs.question)),
            (calls.trial, len(calls.trials)),
            (pairs.order, 2),
        ]
    )
    places = np.argsort(key, kind="stable")
    key = key[places]
    again = np.zeros(key.size, dtype=bool)
    again[1:] = key[1:] == key[:-1]
    first = np.empty_like(places)
    first[places] = places[np.maximum.accumulate(np.where(again, 0, np.arange(key.size)))]
    found.rows("twice", calls.verdict != calls.verdict[first], lambda k: _second(calls, k, first[k]))
    return key[~again], places[~again]


def _second(calls: Calls, row: int, first: int) -> tuple[str, str]:
    """What to say of a call that was recorded before with another verdict."""
    where = f"judge {calls.judges[calls.judge[row]]!r:.40}, question {calls.questions[calls.question[row]]!r:.40}"
    hint = "" if len(calls.trials) > 1 else "; if calls were repeated, name the column that counts them: trial"
    return f"row {calls.row[row]}", (
        f"is the call of row {calls.row[first]} again ({where}, {calls.contents[calls.slot_1[row]]!r:.40} in slot 1) "
        f"with verdict {VERDICTS[calls.verdict[row]]}, there {VERDICTS[calls.verdict[first]]}{hint}"
    )


def _log(
    source: str,
    calls: Calls,
    pairs: _Pairs,
    key: Ints,
    chosen: Ints,
    *,
    total: int,
    filtered: int,
    columns: Mapping[str, str],
) -> VerdictLog:
    """The finished log. The last part of ``key`` is the order, so keys that differ only there are neighbours."""
    judge, verdict = calls.judge[chosen], calls.verdict[chosen]
    second = np.zeros(key.size, dtype=bool)
    second[1:] = key[1:] // 2 == key[:-1] // 2
    both = np.bincount(judge[second], minlength=len(calls.judges))
    digest = hashlib.sha256(repr((calls.trials, calls.ids is None)).encode())
    for names in (calls.judges, calls.questions, calls.contents, calls.ids or ()):
        digest.update(np.array([len(names), *map(len, names)]).tobytes() + "".join(names).encode())
    for values in (pairs.question, pairs.contents, key, verdict.astype(np.int8)):
        digest.update(values.tobytes())
    return VerdictLog(
        source=source,
        digest=digest.hexdigest()[:16],
        judges=calls.judges,
        questions=calls.questions,
        contents=calls.contents,
        trials=calls.trials,
        pair_ids=calls.ids,
        pair_question=pairs.question,
        pair_contents=pairs.contents,
        judge=judge,
        pair=pairs.code[chosen],
        trial=calls.trial[chosen],
        order=pairs.order[chosen],
        verdict=verdict,
        row=calls.row[chosen],
        both=both,
        single=np.bincount(judge, minlength=len(calls.judges)) - 2 * both,
        rows=total,
        filtered=filtered,
        duplicates=calls.row.size - chosen.size,
        columns=columns,
        labels=calls.labels,
    )
