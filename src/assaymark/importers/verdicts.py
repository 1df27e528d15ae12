"""Logs of pairwise verdicts that were made elsewhere: from a CSV file of any tool to checked columns of codes.

`read_verdicts` reads a file, `parse_verdict_map` and `verdict_map` say which of its columns is what, and the result is
a `VerdictLog`; `to_pair_calls` turns a small one into records. Such a log does not say which text is better, so
nothing read from it is about sensitivity.
"""

from __future__ import annotations

import difflib
import hashlib
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, Field, model_validator

from assaymark.errors import InputError
from assaymark.importers.read import ShapeError, as_shape
from assaymark.importers.verdict_log import (
    BLANKS,
    CALLS_CONDITION,
    HEADER,
    VERDICTS,
    Bools,
    Coded,
    CsvLog,
    Findings,
    Ints,
    OrderCounts,
    VerdictLog,
    dense,
    joined,
    sorted_codes,
    to_pair_calls,
)
from assaymark.plan import read_toml
from assaymark.records import SlotVerdict

__all__ = [
    "CALLS_CONDITION",
    "LABELS",
    "SPELLINGS",
    "VERDICTS",
    "OrderCounts",
    "VerdictLog",
    "VerdictMap",
    "parse_verdict_map",
    "read_verdicts",
    "to_pair_calls",
    "verdict_map",
]

Column = Annotated[str, Field(min_length=1)]

_SLOTS: Final = (
    ("slot1_model", "slot2_model"),
    ("slot_1", "slot_2"),
    ("slot1", "slot2"),
    ("slot1_content", "slot2_content"),
    ("model_a", "model_b"),
    ("model_1", "model_2"),
    ("candidate_a", "candidate_b"),
    ("candidate_1", "candidate_2"),
    ("content_1", "content_2"),
    ("first", "second"),
)

SPELLINGS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "judge": ("judge", "judge_model", "judge_name", "judge_id", "grader", "rater"),
        "question": ("question_id", "question", "item_id", "item", "prompt_id", "task_id", "qid"),
        "slot_1": tuple(one for one, _ in _SLOTS),
        "slot_2": tuple(two for _, two in _SLOTS),
        "verdict": ("verdict", "winner", "judgment", "judgement", "preference"),
        "trial": ("trial", "rep", "repetition", "repeat", "replicate"),
        "pair": ("pair_id", "pair"),
    }
)
"""Column names that are known without a map, the first that a file has is taken; case, spaces and dashes are free."""

LABELS: Final[Mapping[SlotVerdict, tuple[str, ...]]] = MappingProxyType(
    {
        "1": ("1", "1.0", "a", "[[a]]", "slot_1", "slot1", "model_a", "model_1", "assistant_a", "first"),
        "2": ("2", "2.0", "b", "[[b]]", "slot_2", "slot2", "model_b", "model_2", "assistant_b", "second"),
        "tie": ("tie", "c", "[[c]]", "draw", "tie_(bothbad)", "both_bad", "bothbad"),
        "abstain": ("abstain", "abstention"),
        "invalid": ("invalid", "error"),
    }
)
"""Words that are known as verdicts without a map; case, spaces and dashes are free."""

_VERDICT_OF: Final[Mapping[str, SlotVerdict]] = {word: verdict for verdict, words in LABELS.items() for word in words}
_JOINTS: Final = re.compile(r"[ -]+")
_NEEDED: Final = ("judge", "question", "slot_1", "slot_2", "verdict")
_TRIAL: Final = re.compile(r"(\d{1,9})(?:\.0*)?", re.ASCII)
# Written right to left, or over other text: a name could look like another one on a page.
_TURNING: Final = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_UNPRINTED: Final = ("Cc", "Zl", "Zp")
_CLASH: Final = -2


class VerdictMap(BaseModel):
    """Which column is what, which rows to read, and what the words of the verdict column mean.

    Every field is optional: a column that is not named here is looked for under its usual spellings (`SPELLINGS`), a
    word that ``labels`` does not hold under `LABELS`. ``filter`` keeps the rows whose column has the value, or one of
    the values. ``judge_name`` is for a log of one judge without a column for it. ``verdict_names`` says what a verdict
    names: slots, contents, or, by default, whichever fits; a word that could be both is then refused.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal["1"] = "1"
    judge: Column | None = None
    question: Column | None = None
    slot_1: Column | None = None
    slot_2: Column | None = None
    verdict: Column | None = None
    trial: Column | None = None
    pair: Column | None = None
    judge_name: Column | None = None
    verdict_names: Literal["auto", "slots", "contents"] = "auto"
    delimiter: Literal[",", ";", "\t", "|"] | None = None
    labels: dict[str, SlotVerdict] = Field(default_factory=dict)
    filter: dict[Column, str | int | tuple[str | int, ...]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_judge(self) -> VerdictMap:
        if self.judge and self.judge_name:
            raise ValueError("judge names a column and judge_name the one judge of a log; give one of them")
        return self

    @property
    def wanted(self) -> dict[str, tuple[str, ...]]:
        """The values that each column of ``filter`` may have, as text."""
        return {
            column: tuple(map(str, values if isinstance(values, tuple) else (values,)))
            for column, values in self.filter.items()
        }

    def label(self, word: str) -> SlotVerdict | None:
        """What a word means whatever its row holds; None for one that is not known."""
        if word in self.labels:
            return self.labels[word]
        known = _VERDICT_OF.get(_plain(word))
        return None if self.verdict_names == "contents" and known in ("1", "2") else known


def verdict_map(source: str = "map", **fields: Any) -> VerdictMap:
    """A map from keyword arguments, such as the flags of a command."""
    try:
        return as_shape(VerdictMap, fields)
    except ShapeError as exc:
        raise InputError(source, exc.problems) from None


def parse_verdict_map(text: str, *, source: str = "map.toml") -> VerdictMap:
    """A map from its TOML."""
    return verdict_map(source, **read_toml(text, source=source))


def _find_columns(header: Sequence[str], mapping: VerdictMap, found: Findings) -> dict[str, int]:
    """The place of each of our fields in a header; what is missing goes to ``found``, with the closest column."""
    places: dict[str, int] = {}
    plain = [_plain(name) for name in header]
    both = [pair for pair in _SLOTS if set(pair) <= set(plain)]
    for field, spelled in SPELLINGS.items():
        if named := getattr(mapping, field):
            if (place := _named(header, named, field, found)) is not None:
                places[field] = place
            continue
        if field in ("slot_1", "slot_2"):  # slot 2 goes by the spelling of slot 1
            spelled = tuple(pair[field == "slot_2"] for pair in both) or spelled
        held = [name for name in spelled if name in plain and plain.index(name) not in places.values()]
        if field == "verdict" and len(held) > 1:
            could = f"could be any of {', '.join(held)}; say which in the map: verdict = {held[0]!r}"
            found.add("header", field, could)
        if held:
            places[field] = _single(header, plain.index(held[0]), found)
    if mapping.judge_name and "judge" in places:
        seen = header[places["judge"]]
        found.add("header", "judge_name", f"the log has a column {seen!r} for the judge; leave judge_name out")
    free = [name for place, name in enumerate(header) if place not in places.values()]
    for field in _NEEDED:
        stands_in = (field == "question" and "pair" in places) or (field == "judge" and mapping.judge_name)
        if field not in places and getattr(mapping, field) is None and not stands_in:
            known = ", ".join(SPELLINGS[field][:4])
            what = f"no column for it (the log has {_shown(header)}; known are {known} ...)"
            closest = _closest(free, SPELLINGS[field])
            found.add("header", field, f"{what}{closest}; name it in the map: {field} = ...")
    return places


def _named(header: Sequence[str], column: str, field: str, found: Findings) -> int | None:
    """The place of a column that the map names."""
    names = [name.strip() for name in header]
    if column.strip() in names:
        return _single(header, names.index(column.strip()), found)
    found.add("header", field, f"no column {column!r} (the log has {_shown(header)}){_closest(header, [column])}")
    return None


def _single(header: Sequence[str], place: int, found: Findings) -> int:
    """``place``, after a note if its name is in the header more than once."""
    name = header[place].strip()
    if sum(other.strip() == name for other in header) > 1:
        found.add("header", "header", f"column {name!r} stands there more than once")
    return place


def _closest(header: Sequence[str], wanted: Sequence[str]) -> str:
    """A question after the column that is spelled most like one that is wanted."""
    plain = {_plain(name): name.strip() for name in header}
    scored = [
        (difflib.SequenceMatcher(None, _plain(word), close).ratio(), plain[close])
        for word in wanted
        for close in difflib.get_close_matches(_plain(word), plain, n=1)
    ]
    return f"; is it {max(scored)[1]!r}?" if scored else ""


def _shown(header: Sequence[str]) -> str:
    """The columns of a header, the first dozen of many."""
    more = f" and {len(header) - 12} more" if len(header) > 12 else ""
    return ", ".join(f"{name.strip():.40}" for name in header[:12]) + more


def _plain(text: str) -> str:
    """A name without what spellings differ in: case, spaces, dashes."""
    return _JOINTS.sub("_", text.strip().lower())


def read_verdicts(
    source: Path | str, data: bytes | Path | None = None, mapping: VerdictMap | None = None
) -> VerdictLog:
    """A log of pairwise verdicts from a CSV file of any tool, checked; ``data``: the file, if ``source`` only names it.

    One row for each call: who judged (``judge``), what was asked (``question``), which two contents were in slots 1 and
    2 (``slot_1``, ``slot_2``), the ``verdict``, and optionally the number of the repetition (``trial``) and an id of
    the pair (``pair``); ``mapping`` says which column is what, otherwise the usual spellings are looked for. A verdict
    names a slot, or the content in it, or is a tie, an abstention or invalid. Other columns are left alone; white space
    around a cell does not count. Gzip, a byte order mark, and semicolons, tabs or bars for commas are fine. A log with
    one order only is no error, and the same call twice with the same verdict counts once. `InputError`: everything
    wrong at once, each with its row.
    """
    mapping = mapping or VerdictMap()
    name = str(source)
    sheet = CsvLog(name, Path(source) if data is None else data, mapping.delimiter)
    found = Findings()
    places = _find_columns(sheet.header, mapping, found)
    filters: dict[str, int] = {}
    for column in mapping.wanted:
        if (place := _named(sheet.header, column, f"filter {column}", found)) is not None:
            filters[column] = place
    found.refuse(name)
    cells = sheet.columns({*places.values(), *filters.values()})
    total = next(iter(cells.values())).codes.size
    keep: Bools = np.ones(total, dtype=bool)
    for column, values in mapping.wanted.items():
        words, codes = cells[filters[column]]
        words = pc.ascii_trim(words, BLANKS)
        passes = pc.is_in(words, value_set=pa.array(values, pa.string())).to_numpy(zero_copy_only=False)[codes]
        keep &= passes
        if not passes.any():
            asked = " or ".join(map(repr, values)) or "any of no values"
            held = sorted(set(words.to_pylist()))
            some = ", ".join(f"{word!r:.40}" for word in held[:5]) + (f" and {len(held) - 5} more" * (len(held) > 5))
            found.add("filter", f"filter {column}", f"no row has {asked} (the column holds {some})")
    if not keep.any():
        found.add("filter", "filter", "no row passes every filter")
    kept = np.flatnonzero(keep)
    found.refuse(name)
    columns = {field: Coded(cells[place].words, cells[place].codes[kept]) for field, place in places.items()}
    if mapping.judge_name:
        columns["judge"] = Coded(pa.array([mapping.judge_name]), np.zeros(kept.size, dtype=np.int64))
    calls = _Calls(columns, kept + HEADER + 1, mapping, found)
    calls.pair_up(found)
    key, chosen = calls.once(found)
    found.refuse(name)
    judge, verdict = calls.judge[chosen], calls.verdict[chosen]
    # the last part of a key is the order, so keys that differ only there are neighbours
    second = np.zeros(key.size, dtype=bool)
    second[1:] = key[1:] // 2 == key[:-1] // 2
    both = np.bincount(judge[second], minlength=len(calls.judges))
    digest = hashlib.sha256(repr((calls.trials, calls.ids is None)).encode())
    for names in (calls.judges, calls.questions, calls.contents, calls.ids or ()):
        digest.update(np.array([len(names), *map(len, names)]).tobytes() + "".join(names).encode())
    for numbers in (calls.pair_question, calls.pair_contents, key, verdict.astype(np.int8)):
        digest.update(numbers.tobytes())
    return VerdictLog(
        source=name, digest=digest.hexdigest()[:16], judges=calls.judges, questions=calls.questions,
        contents=calls.contents, trials=calls.trials, pair_ids=calls.ids, pair_question=calls.pair_question,
        pair_contents=calls.pair_contents, judge=judge, pair=calls.pair[chosen], trial=calls.trial[chosen],
        order=calls.order[chosen], verdict=verdict, row=calls.row[chosen], both=both,
        single=np.bincount(judge, minlength=len(calls.judges)) - 2 * both, rows=total, filtered=total - kept.size,
        duplicates=calls.row.size - chosen.size,
        columns={field: sheet.header[place].strip() for field, place in places.items()}, labels=calls.labels,
    )  # fmt: skip


class _Calls:
    """The rows that could be read, in their sequence in the file: names, and one code a row in each column.

    Rows with a cell that means nothing go to ``found`` and are left out. Without a column for the question, a pair is
    one.
    """

    def __init__(self, columns: Mapping[str, Coded], row: Ints, mapping: VerdictMap, found: Findings) -> None:
        self.row = row
        self.judges, (self.judge,) = sorted_codes([columns["judge"]])
        self.questions, (self.question,) = sorted_codes([columns["question" if "question" in columns else "pair"]])
        self.contents, (self.slot_1, self.slot_2) = sorted_codes([columns["slot_1"], columns["slot_2"]])
        self.ids: tuple[str, ...] | None = None
        codes = {
            "judge": (self.judges, self.judge),
            "question": (self.questions, self.question),
            "slot_1": (self.contents, self.slot_1),
            "slot_2": (self.contents, self.slot_2),
        }
        if "pair" in columns:
            self.ids, (self.pair,) = sorted_codes([columns["pair"]])
            codes["pair"] = (self.ids, self.pair)
        self.trials, self.trial = _trials(columns.get("trial"), row, found)
        bad = self.trial < 0
        for field, (names, code) in codes.items():
            if field in columns and names:
                empty: Bools = code == (0 if names[0] == "" else -1)  # the empty name sorts before all others
                bad |= empty
                found.rows(f"empty {field}", empty, partial(_empty, row, field))
        # names of judges are printed on screens and pages, so they may not hold what is no character
        for place, name in enumerate(self.judges):
            wrong = next((c for c in name if unicodedata.category(c) in _UNPRINTED or c in _TURNING), None)
            if wrong is not None:
                first = row[np.argmax(self.judge == place)]
                what = f"the name of a judge may hold no control characters (got {name!r:.60}, with {ord(wrong):#04x})"
                found.add("judge", f"row {first}, judge", what)
        same = (self.slot_1 == self.slot_2) & ~bad
        slot_1 = self.slot_1
        found.rows(
            "one content",
            same,
            lambda k: (
                f"row {row[k]}",
                f"has {self.contents[slot_1[k]]!r:.60} in both slots; a pair needs two contents",
            ),
        )
        self.verdict, self.labels = self._verdicts(columns["verdict"], mapping, found)
        good = np.flatnonzero(~bad & ~same & (self.verdict >= 0))
        for column in (
            "row",
            "judge",
            "question",
            "slot_1",
            "slot_2",
            "trial",
            "verdict",
            *(("pair",) * bool(self.ids)),
        ):
            setattr(self, column, getattr(self, column)[good])

    def _verdicts(self, column: Coded, mapping: VerdictMap, found: Findings) -> tuple[Ints, Mapping[str, SlotVerdict]]:
        """The verdict code of each row, below 0 where there is none, and the words that were read as labels."""
        words, (codes,) = sorted_codes([column])
        labels = {word: label for word in words if (label := mapping.label(word)) is not None}
        by_label = np.array([VERDICTS.index(labels[word]) if word in labels else -1 for word in words], dtype=np.int64)
        by_label = by_label[codes]
        verdict = by_label
        if mapping.verdict_names != "slots":
            place = {name: k for k, name in enumerate(self.contents)}
            named = np.array([-1 if word in mapping.labels else place.get(word, -1) for word in words], dtype=np.int64)
            chosen = named[codes]
            by_content = np.where(chosen == self.slot_1, 0, np.where(chosen == self.slot_2, 1, -1))
            verdict = np.where(by_content >= 0, by_content, by_label)
            verdict = np.where((by_label >= 0) & (by_content >= 0) & (by_label != by_content), _CLASH, verdict)
        read_as_label = set(np.unique(codes[(by_label >= 0) & (verdict == by_label)]).tolist())
        # one problem for each word that is no verdict, at its first row and with the number of its rows
        for state in (-1, _CLASH):
            rows = np.flatnonzero(verdict == state)
            unknown, first, counts = np.unique(codes[rows], return_index=True, return_counts=True)
            for k in np.argsort(first).tolist():
                at = rows[first[k]]
                there = f"{self.contents[self.slot_1[at]]!r:.40}, {self.contents[self.slot_2[at]]!r:.40}"
                what = f"{words[unknown[k]]!r:.60}" + (f" in {counts[k]} rows" if counts[k] > 1 else "")
                if state == _CLASH:
                    what += (
                        f" is a label and also a content of its row ({there}) in another slot; "
                        'say in the map: verdict_names = "contents" or "slots"'
                    )
                else:
                    what += (
                        f" is no verdict; known are {', '.join(VERDICTS)}, A, B, their usual spellings, and "
                        f"the contents of the row ({there}); map other words under labels"
                    )
                found.add("clash" if state == _CLASH else "verdict", f"row {self.row[at]}, verdict", what)
        return verdict, {word: labels[word] for k, word in enumerate(words) if k in read_as_label}

    def pair_up(self, found: Findings) -> None:
        """Which pair each call is about, and which of its contents was in slot 1; the first by name is u."""
        low, high = np.minimum(self.slot_1, self.slot_2), np.maximum(self.slot_1, self.slot_2)
        pairs = len(self.ids or ())
        if self.ids is None:
            size = len(self.contents)
            names, self.pair = dense(joined([(self.question, len(self.questions)), (low, size), (high, size)]))
            pairs = names.size
        first = np.zeros(pairs, dtype=np.int64)
        first[self.pair[::-1]] = np.arange(self.pair.size)[::-1]
        if self.ids is not None:
            self._check_ids(self.ids, first[self.pair], low, high, found)
        if not self.pair.size:  # nothing could be read, and an error is on its way
            first = first[:0]
        self.order = (self.slot_1 > self.slot_2).astype(np.int64)
        self.pair_question = self.question[first]
        self.pair_contents = np.stack([low[first], high[first]], axis=1)

    def _check_ids(self, ids: Sequence[str], first: Ints, low: Ints, high: Ints, found: Findings) -> None:
        """One id, one question, two contents: the rows of a pair say what its first row says."""

        def different(kind: str, bad: Bools, has: str, said: Callable[[int], str], to: str, one: str) -> None:
            def describe(k: int) -> tuple[str, str]:
                there = f"{to}{said(first[k])} in row {self.row[first[k]]}"
                return f"row {self.row[k]}, pair", f"{ids[self.pair[k]]!r:.60} {has} {said(k)} here, {there}; {one}"

            found.rows(kind, bad, describe)

        different(
            "pair",
            (low != low[first]) | (high != high[first]),
            "has the contents",
            lambda k: f"{self.contents[low[k]]!r:.40} and {self.contents[high[k]]!r:.40}",
            "",
            "a pair has two",
        )
        different(
            "pair in two questions",
            self.question != self.question[first],
            "belongs to question",
            lambda k: f"{self.questions[self.question[k]]!r:.40}",
            "to ",
            "a pair has one",
        )

    def once(self, found: Findings) -> tuple[Ints, Ints]:
        """The calls sorted by judge, pair, trial and order, each once: their keys, and their places among the rows."""
        key = joined([
            (self.judge, len(self.judges)), (self.pair, len(self.pair_question)), (self.trial, len(self.trials)),
            (self.order, 2),
        ])  # fmt: skip
        places = np.argsort(key, kind="stable")
        key = key[places]
        again = np.zeros(key.size, dtype=bool)
        again[1:] = key[1:] == key[:-1]
        first = np.empty_like(places)
        first[places] = places[np.maximum.accumulate(np.where(again, 0, np.arange(key.size)))]
        hint = "" if len(self.trials) > 1 else "; if calls were repeated, name the column that counts them: trial"

        def describe(k: int) -> tuple[str, str]:
            where = f"judge {self.judges[self.judge[k]]!r:.40}, question {self.questions[self.question[k]]!r:.40}"
            return f"row {self.row[k]}", (
                f"is the call of row {self.row[first[k]]} again ({where}, {self.contents[self.slot_1[k]]!r:.40} in "
                f"slot 1) with verdict {VERDICTS[self.verdict[k]]}, there {VERDICTS[self.verdict[first[k]]]}{hint}"
            )

        found.rows("twice", self.verdict != self.verdict[first], describe)
        return key[~again], places[~again]


def _empty(row: Ints, field: str, k: int) -> tuple[str, str]:
    return f"row {row[k]}, {field}", "is empty; a value is needed"


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
