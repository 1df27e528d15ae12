"""What the cells of a verdict log mean: names, repetitions and verdicts as codes; what means nothing is named."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from assaymark.importers.verdicts.findings import Bools, Findings, Ints
from assaymark.importers.verdicts.log import VERDICTS
from assaymark.importers.verdicts.mapping import VerdictMap
from assaymark.importers.verdicts.sheet import Coded, sorted_codes
from assaymark.records import SlotVerdict

_TRIAL: Final = re.compile(r"(\d{1,9})(?:\.0*)?", re.ASCII)
# Written right to left, or over other text: a name could look like another one on a page.
_TURNING: Final = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_UNPRINTED: Final = ("Cc", "Zl", "Zp")
_CLASH: Final = -2


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Calls:
    """The rows that could be read, in their sequence in the file: names, and one code a row in each column."""

    judges: tuple[str, ...]
    questions: tuple[str, ...]
    contents: tuple[str, ...]
    trials: tuple[int, ...]
    ids: tuple[str, ...] | None
    labels: Mapping[str, SlotVerdict]
    judge: Ints
    question: Ints
    slot_1: Ints
    slot_2: Ints
    trial: Ints
    verdict: Ints
    pair: Ints | None
    row: Ints


def coded_calls(columns: Mapping[str, Coded], row: Ints, mapping: VerdictMap, found: Findings) -> Calls:
    """Our columns of a log as codes; rows with a cell that means nothing go to ``found`` and are left out.

    Without a column for the question, a pair is one.
    """
    judges, (judge,) = sorted_codes([columns["judge"]])
    questions, (question,) = sorted_codes([columns["question" if "question" in columns else "pair"]])
    contents, (slot_1, slot_2) = sorted_codes([columns["slot_1"], columns["slot_2"]])
    ids, (pair,) = sorted_codes([columns["pair"]]) if "pair" in columns else (None, [None])
    trials, trial = _trials(columns.get("trial"), row, found)
    bad = trial < 0
    for field, names, codes in (
        ("judge", judges, judge),
        ("question", questions, question),
        ("slot_1", contents, slot_1),
        ("slot_2", contents, slot_2),
        ("pair", ids, pair),
    ):
        if field in columns and names and codes is not None:
            bad |= _empty(field, names, codes, row, found)
    _check_judges(judges, judge, row, found)
    same = (slot_1 == slot_2) & ~bad
    found.rows(
        "one content",
        same,
        lambda k: (f"row {row[k]}", f"has {contents[slot_1[k]]!r:.60} in both slots; a pair needs two contents"),
    )
    verdict, labels = _verdicts(columns["verdict"], (slot_1, slot_2), contents, mapping, row, found)
    good = np.flatnonzero(~bad & ~same & (verdict >= 0))
    return Calls(
        judges=judges,
        questions=questions,
        contents=contents,
        trials=trials,
        ids=ids,
        labels=labels,
        judge=judge[good],
        question=question[good],
        slot_1=slot_1[good],
        slot_2=slot_2[good],
        trial=trial[good],
        verdict=verdict[good],
        pair=None if pair is None else pair[good],
        row=row[good],
    )


def _empty(field: str, names: tuple[str, ...], codes: Ints, row: Ints, found: Findings) -> Bools:
    """The rows whose cell is empty; the empty name sorts before all others."""
    bad: Bools = codes == (0 if names[0] == "" else -1)
    found.rows(f"empty {field}", bad, lambda k: (f"row {row[k]}, {field}", "is empty; a value is needed"))
    return bad


def _check_judges(judges: tuple[str, ...], judge: Ints, row: Ints, found: Findings) -> None:
    """Names of judges are printed on screens and pages, so they may not hold what is no character."""
    for code, name in enumerate(judges):
        wrong = next((c for c in name if unicodedata.category(c) in _UNPRINTED or c in _TURNING), None)
        if wrong is not None:
            first = row[np.argmax(judge == code)]
            what = f"the name of a judge may hold no control characters (got {name!r:.60}, with {ord(wrong):#04x})"
            found.add("judge", f"row {first}, judge", what)


def _trials(column: Coded | None, row: Ints, found: Findings) -> tuple[tuple[int, ...], Ints]:
    """The numbers of the repetitions, and the place of each row's among them; -1 where it is no number."""
    if column is None:
        return (1,), np.zeros(row.size, dtype=np.int64)
    words, (codes,) = sorted_codes([column])
    read = [_TRIAL.fullmatch(word) for word in words]
    numbers = tuple(sorted({int(match[1]) for match in read if match}))
    place = {number: k for k, number in enumerate(numbers)}
    trial = np.array([place[int(match[1])] if match else -1 for match in read], dtype=np.int64)[codes]
    what = "must be a whole number from 0 to 999999999"
    found.rows("trial", trial < 0, lambda k: (f"row {row[k]}, trial", f"{what} (got {words[codes[k]]!r:.60})"))
    return numbers, trial


def _verdicts(
    column: Coded, slots: tuple[Ints, Ints], contents: tuple[str, ...], mapping: VerdictMap, row: Ints, found: Findings
) -> tuple[Ints, Mapping[str, SlotVerdict]]:
    """The verdict code of each row, below 0 where there is none, and the words that were read as labels."""
    words, (codes,) = sorted_codes([column])
    labels = {word: label for word in words if (label := mapping.label(word)) is not None}
    by_label = np.array([VERDICTS.index(labels[word]) if word in labels else -1 for word in words], dtype=np.int64)
    by_label = by_label[codes]
    verdict = by_label
    if mapping.verdict_names != "slots":
        place = {name: k for k, name in enumerate(contents)}
        content = np.array([-1 if word in mapping.labels else place.get(word, -1) for word in words], dtype=np.int64)
        chosen = content[codes]
        by_content = np.where(chosen == slots[0], 0, np.where(chosen == slots[1], 1, -1))
        verdict = np.where(by_content >= 0, by_content, by_label)
        verdict = np.where((by_label >= 0) & (by_content >= 0) & (by_label != by_content), _CLASH, verdict)
    read_as_label = set(np.unique(codes[(by_label >= 0) & (verdict == by_label)]).tolist())
    _note_unknown(words, codes, verdict, (contents, *slots), row, found)
    return verdict, {word: labels[word] for k, word in enumerate(words) if k in read_as_label}


def _note_unknown(
    words: tuple[str, ...],
    codes: Ints,
    verdict: Ints,
    shown: tuple[tuple[str, ...], Ints, Ints],
    row: Ints,
    found: Findings,
) -> None:
    """One problem for each word that is no verdict, at its first row and with the number of its rows."""
    contents, slot_1, slot_2 = shown
    for state in (-1, _CLASH):
        rows = np.flatnonzero(verdict == state)
        unknown, first, counts = np.unique(codes[rows], return_index=True, return_counts=True)
        for k in np.argsort(first).tolist():
            at = rows[first[k]]
            there = f"{contents[slot_1[at]]!r:.40}, {contents[slot_2[at]]!r:.40}"
            word = f"{words[unknown[k]]!r:.60}"
            many = f" in {counts[k]} rows" if counts[k] > 1 else ""
            if state == _CLASH:
                what = (
                    f"{word}{many} is a label and also a content of its row ({there}) in another slot; "
                    'say in the map: verdict_names = "contents" or "slots"'
                )
            else:
                what = (
                    f"{word}{many} is no verdict; known are {', '.join(VERDICTS)}, A, B, their usual spellings, and "
                    f"the contents of the row ({there}); map other words under labels"
                )
            found.add("clash" if state == _CLASH else "verdict", f"row {row[at]}, verdict", what)
