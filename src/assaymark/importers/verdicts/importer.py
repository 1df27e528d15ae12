"""From a CSV file of verdicts to a `VerdictLog`, or to everything that is wrong with the file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assaymark.errors import InputError
from assaymark.importers.verdicts.checks import (
    check_names,
    refuse_second_verdicts,
    sound_pairs,
    trial_numbers,
)
from assaymark.importers.verdicts.findings import Bools, Findings, Ints
from assaymark.importers.verdicts.log import VerdictLog
from assaymark.importers.verdicts.mapping import VerdictMap, find_columns, find_filters
from assaymark.importers.verdicts.meaning import labels_met, verdict_codes
from assaymark.importers.verdicts.sheet import (
    BLANKS,
    HEADER,
    Coded,
    dense,
    file_bytes,
    joined,
    open_sheet,
    read_columns,
    sorted_codes,
)

_ORDERS: Final = 2


def read_verdicts(
    source: Path | str, data: bytes | Path | None = None, mapping: VerdictMap | None = None
) -> VerdictLog:
    """A log of pairwise verdicts from a CSV file of any tool, checked.

    One row for each call: who judged (``judge``), what was asked (``question``), which two contents stood in slots 1
    and 2 (``slot_1``, ``slot_2``), the ``verdict``, and optionally the number of the repetition (``trial``) and an id
    of the pair (``pair``). A verdict names a slot, or the content in it, or is a tie, an abstention or invalid. Other
    columns are left alone, and may hold anything.

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
    path = Path(source) if data is None else data
    sheet = open_sheet(name, path if isinstance(path, bytes) else file_bytes(path), mapping.delimiter)
    found = Findings()
    places, filters = find_columns(sheet.header, mapping, found), find_filters(sheet.header, mapping, found)
    found.refuse(name)
    cells = read_columns(sheet, {*places.values(), *filters.values()})
    total = next(iter(cells.values())).codes.size
    kept = _kept({column: cells[place] for column, place in filters.items()}, mapping.wanted, total, found)
    found.refuse(name)
    columns = {field: cells[place].at(kept) for field, place in places.items()}
    if "judge" not in columns:
        columns["judge"] = Coded(pa.array([mapping.judge_name]), np.zeros(kept.size, dtype=np.int64))
    read_as = {field: sheet.header[place].strip() for field, place in places.items()}
    return _log(name, columns, kept + HEADER + 1, mapping, read_as, rows=total, found=found)


def _kept(cells: Mapping[str, Coded], wanted: Mapping[str, Iterable[str]], total: int, found: Findings) -> Ints:
    """The rows that pass every filter."""
    keep: Bools = np.ones(total, dtype=bool)
    for column, values in wanted.items():
        words = pc.ascii_trim(cells[column].words, BLANKS)
        passes = pc.is_in(words, value_set=pa.array(list(values), pa.string())).to_numpy(zero_copy_only=False)
        keep &= passes[cells[column].codes]
        if not passes[cells[column].codes].any():
            seen = sorted({repr(word)[:40] for word in words.to_pylist()})
            more = f" and {len(seen) - 5} more" if len(seen) > 5 else ""
            held = f"the column holds {', '.join(seen[:5])}{more}"
            found.add("filter", f"filter {column}", f"no row has {' or '.join(map(repr, values))} ({held})")
    if not keep.any():
        found.add("filter", "filter", "no row passes all filters")
    return np.flatnonzero(keep)


def _log(
    source: str,
    columns: Mapping[str, Coded],
    row: Ints,
    mapping: VerdictMap,
    read_as: Mapping[str, str],
    *,
    rows: int,
    found: Findings,
) -> VerdictLog:
    """The log of the kept rows, or the error that names all problems of them."""
    judges, (judge,) = sorted_codes([columns["judge"]])
    questions, (question,) = sorted_codes([columns["question" if "question" in columns else "pair"]])
    contents, (slot_1, slot_2) = sorted_codes([columns["slot_1"], columns["slot_2"]])
    words, (word,) = sorted_codes([columns["verdict"]])
    trials, trial = trial_numbers(columns.get("trial"), row, found)
    named = {"judge": (judges, judge), "question": (questions, question)}
    named |= {"slot_1": (contents, slot_1), "slot_2": (contents, slot_2)}
    bad = check_names(named, row, found) | (trial < 0)
    verdict = verdict_codes(words, word, (slot_1, slot_2), contents, mapping, row, found)
    good = np.flatnonzero(~bad & (verdict >= 0))

    ids: tuple[str, ...] | None = None
    low, high = np.minimum(slot_1, slot_2), np.maximum(slot_1, slot_2)
    if "pair" in columns:
        ids, (pair,) = sorted_codes([columns["pair"]])
        good = good[sound_pairs(ids, pair[good], (question[good], low[good], high[good]), questions, contents, row[good], found)]
        pairs = np.arange(len(ids))
    else:
        pairs, pair = dense(joined({"q": (question, len(questions)), "u": _sized(low), "v": _sized(high)}))
    order = (slot_1 > slot_2).astype(np.int64)
    sizes = {"pair": pairs.size, "trial": len(trials), "order": _ORDERS}
    key = joined({"judge": (judge, len(judges)), **{k: (c, sizes[k]) for k, c in (("pair", pair), ("trial", trial), ("order", order))}})

    good = good[np.argsort(key[good], kind="stable")]
    again = np.zeros(good.size, dtype=bool)
    again[1:] = key[good][1:] == key[good][:-1]
    refuse_second_verdicts(...)
