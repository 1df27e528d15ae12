"""From a CSV file of verdicts to a `VerdictLog`, or to everything that is wrong with the file."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, Field, model_validator

from assaymark.errors import InputError
from assaymark.importers.report import ShapeError, as_shape
from assaymark.importers.verdicts.log import (
    BLANKS,
    HEADER,
    VERDICTS,
    Coded,
    Findings,
    Ints,
    VerdictLog,
    coded_calls,
    dense,
    file_bytes,
    joined,
    open_sheet,
    read_columns,
)
from assaymark.plan import read_toml
from assaymark.records import SlotVerdict

if TYPE_CHECKING:
    from assaymark.importers.verdicts.log import Bools, Calls


# Which column of a verdict log is what: spellings that are known, and a small map for all others.


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


class VerdictMap(BaseModel):
    """Which column is what, which rows to read, and what the words of the verdict column mean.

    Every field is optional: a column that is not named here is looked for under its usual spellings (`SPELLINGS`), a
    word that ``labels`` does not hold under `LABELS`. ``filter`` keeps the rows whose column has the value, or one of
    the values. ``judge_name`` is for a log of one judge without a column for it. ``verdict_names`` says what a verdict
    names: slots, contents, or, by default, whichever fits; a word that could be both is then refused.

    >>> VerdictMap(question="qid", labels={"X": "1", "Y": "2"}, filter={"bench": "MTBench"}).question
    'qid'
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
        """What a word means whatever its row holds; None for one that is not known.

        >>> VerdictMap().label("[[C]]"), VerdictMap(labels={"C": "2"}).label("C"), VerdictMap().label("gpt-4")
        ('tie', '2', None)
        """
        if word in self.labels:
            return self.labels[word]
        known = _VERDICT_OF.get(_plain(word))
        return None if self.verdict_names == "contents" and known in ("1", "2") else known


def verdict_map(source: str = "map", **fields: Any) -> VerdictMap:
    """A map from keyword arguments, such as the flags of a command.

    >>> verdict_map(judges="grader")
    Traceback (most recent call last):
    assaymark.errors.InputError: map: judges: unknown key (allowed: version, judge, question, slot_1, slot_2, verdict, \
trial, pair, judge_name, verdict_names, delimiter, labels, filter)

    Raises
    ------
    InputError
        Fields that are wrong or unknown: all of them at once.
    """
    try:
        made: VerdictMap = as_shape(VerdictMap, fields)
    except ShapeError as exc:
        raise InputError(source, exc.problems) from None
    return made


def parse_verdict_map(text: str, *, source: str = "map.toml") -> VerdictMap:
    """A map from its TOML.

    >>> parse_verdict_map('judge = "grader"\\n[filter]\\nbench = "MTBench"').wanted
    {'bench': ('MTBench',)}

    Raises
    ------
    InputError
        Not TOML, or fields that are wrong or unknown: all of them at once.
    """
    return verdict_map(source, **read_toml(text, source=source))


def find_columns(header: Sequence[str], mapping: VerdictMap, found: Findings) -> dict[str, int]:
    """The place of each of our fields in a header; what is missing goes to ``found``, with the closest column.

    >>> find_columns(["QID", "Judge Model", "model_a", "model_b", "winner"], VerdictMap(question="QID"), Findings())
    {'judge': 1, 'question': 0, 'slot_1': 2, 'slot_2': 3, 'verdict': 4}
    """
    places: dict[str, int] = {}
    for field in SPELLINGS:
        named = getattr(mapping, field)
        column = _named(header, named, field, found) if named else _known(header, field, places, found)
        if column is not None:
            places[field] = _single(header, column, found)
    if mapping.judge_name and "judge" in places:
        seen = header[places["judge"]]
        found.add("header", "judge_name", f"the log has a column {seen!r} for the judge; leave judge_name out")
    lost = [field for field in _NEEDED if field not in places and getattr(mapping, field) is None]
    for field in lost:
        if not (field == "question" and "pair" in places) and not (field == "judge" and mapping.judge_name):
            found.add("header", field, _missing(header, field, places))
    return places


def find_filters(header: Sequence[str], mapping: VerdictMap, found: Findings) -> dict[str, int]:
    """The place of each column that rows are chosen by."""
    places = {column: _named(header, column, f"filter {column}", found) for column in mapping.wanted}
    return {column: _single(header, place, found) for column, place in places.items() if place is not None}


def _named(header: Sequence[str], column: str, field: str, found: Findings) -> int | None:
    """The place of a column that the map names."""
    names = [name.strip() for name in header]
    if column.strip() in names:
        return names.index(column.strip())
    found.add("header", field, f"no column {column!r} (the log has {_shown(header)}){_closest(header, [column])}")
    return None


def _known(header: Sequence[str], field: str, places: Mapping[str, int], found: Findings) -> int | None:
    """The place of a column that has one of the usual spellings; slot 2 goes by the spelling of slot 1."""
    names = [_plain(name) for name in header]
    spelled = SPELLINGS[field]
    if field in ("slot_1", "slot_2"):
        both = [pair for pair in _SLOTS if pair[0] in names and pair[1] in names]
        spelled = tuple(pair[field == "slot_2"] for pair in both) or spelled
    held = [name for name in spelled if name in names and names.index(name) not in places.values()]
    if field == "verdict" and len(held) > 1:
        found.add("header", field, f"could be any of {', '.join(held)}; say which in the map: verdict = {held[0]!r}")
    return names.index(held[0]) if held else None


def _single(header: Sequence[str], place: int, found: Findings) -> int:
    """``place``, after a note if its name stands in the header more than once."""
    name = header[place].strip()
    if sum(other.strip() == name for other in header) > 1:
        found.add("header", "header", f"column {name!r} stands there more than once")
    return place


def _missing(header: Sequence[str], field: str, places: Mapping[str, int]) -> str:
    """What to say of a field without a column."""
    free = [name for place, name in enumerate(header) if place not in places.values()]
    known = ", ".join(SPELLINGS[field][:4])
    return (
        f"no column for it (the log has {_shown(header)}; known are {known} ...)"
        f"{_closest(free, SPELLINGS[field])}; name it in the map: {field} = ..."
    )


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
    """A name without what spellings differ in: case, spaces, dashes.

    >>> _plain(" Slot-1 Model ")
    'slot_1_model'
    """
    return _JOINTS.sub("_", text.strip().lower())


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
