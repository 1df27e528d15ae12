"""Read logs of pairwise verdicts from files of any tool, and validate them into code columns."""

from __future__ import annotations

import difflib
import hashlib
import math
import re
import unicodedata
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, Field, model_validator

from assaymark.errors import InputError
from assaymark.importers.read import Column, ShapeError, as_model
from assaymark.importers.report import TableProblems
from assaymark.importers.roles import SYNONYMS, Bools, Coded, Ints, abridge, encode, in_english, normalise, swap_masks
from assaymark.importers.tables import FileRows, read_rows
from assaymark.importers.verdict_log import BLANKS, VERDICTS, VerdictLog, combine_codes, dense, sorted_codes
from assaymark.plan import read_toml
from assaymark.records import SlotVerdict

_SLOTS: Final = (
    ("slot1_model", "slot2_model"), ("slot_1", "slot_2"), ("slot1", "slot2"), ("slot1_content", "slot2_content"),
    ("model_a", "model_b"), ("model_1", "model_2"), ("candidate_a", "candidate_b"), ("candidate_1", "candidate_2"),
    ("content_1", "content_2"), ("first", "second"), ("agent_a", "agent_b"), ("response_a", "response_b"),
    ("output_1", "output_2"),
)  # fmt: skip

SPELLINGS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "judge": ("judge", "judge_model", "judge_name", "judge_id", "grader", "rater"),
        "question": ("question_id", "question", "item_id", "item", "prompt_id", "task_id", "qid"),
        "slot_1": tuple(one for one, _ in _SLOTS), "slot_2": tuple(two for _, two in _SLOTS),
        "verdict": ("verdict", "winner", "judgment", "judgement", "preference"),
        "trial": ("trial", "rep", "repetition", "repeat", "replicate"), "pair": ("pair_id", "pair"),
        "order_1": ("order_1", "verdict_1", "winner_ab", "verdict_ab"),
        "order_2": ("order_2", "verdict_2", "winner_ba", "verdict_ba"),
        "truth": ("truth", "human_winner", "gold_label"),
    }
)  # fmt: skip
"""Column names that need no map; the first that a file has is used. Case, spaces and dashes are ignored."""

LABELS: Final[Mapping[SlotVerdict, tuple[str, ...]]] = MappingProxyType(
    {
        "1": ("1", "1.0", "a", "[[a]]", "slot_1", "slot1", "model_a", "model_1", "assistant_a", "first"),
        "2": ("2", "2.0", "b", "[[b]]", "slot_2", "slot2", "model_b", "model_2", "assistant_b", "second"),
        "tie": ("tie", "c", "[[c]]", "draw", "tie_(bothbad)", "both_bad", "bothbad", "unentschieden", "empate", "平局"),
        "abstain": ("abstain", "abstention"), "invalid": ("invalid", "error"),
    },
)  # fmt: skip
"""Verdict words that need no map; case, spaces and dashes are ignored."""

VERDICT_OF: Final[Mapping[str, SlotVerdict]] = {word: verdict for verdict, words in LABELS.items() for word in words}
"""Verdict of each known word."""
_BAND: Final = r"^-?\d*\.?\d+(\.\.-?\d*\.?\d+)?$"
ORDERS: Final = frozenset({"order_1", "order_2"})
"""Fields of two verdicts in one row."""


class VerdictMap(BaseModel):
    """Column map of a verdict log: the column of each field, the rows to read, and the meanings of verdict words.

    Every field is optional: columns that are not named here are found by their usual spellings (`SPELLINGS`), and words
    that are not in ``labels`` by `LABELS`. A column is a name, a dotted path into an object, or several joined by
    ``+``. ``order_1`` and ``order_2`` are two verdicts in one row: on the pair as named, and with the contents swapped.
    ``order`` is the column with the content shown first, if rows always name a pair in the same way. ``truth`` names
    the better content; ``text_1`` and ``text_2`` are the texts shown, if the slots have names: equal texts are null
    pairs. ``threshold`` converts a number to a verdict: above it slot ``above``, below it the other, equal to it (or
    within ``"low..high"``) a tie. ``filter`` selects the rows whose column has the value, or one of the values.
    ``judge_name`` is for a log of one judge without a column for it. ``verdict_names`` says what a verdict names:
    slots, contents (1 and 2 are then those of the row as named), or, by default, whichever matches; a word that
    matches both is then an error.
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
    order_1: Column | None = None
    order_2: Column | None = None
    order: Column | None = None
    truth: Column | None = None
    text_1: Column | None = None
    text_2: Column | None = None
    threshold: Annotated[str, Field(pattern=_BAND)] | None = None
    above: Literal["1", "2"] = "2"
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
        """The allowed values of each column of ``filter``, as text."""
        return {
            column: tuple(map(str, values if isinstance(values, tuple) else (values,)))
            for column, values in self.filter.items()
        }

    def label(self, word: str) -> SlotVerdict | None:
        """Return the verdict of a word, independent of its row; None if it is not known."""
        if word in self.labels:
            return self.labels[word]
        number = math.nan
        with suppress(ValueError):
            number = float(word)
        if self.threshold is not None and math.isfinite(number):
            low, *rest = map(float, self.threshold.split(".."))
            if low <= number <= (rest or [low])[0]:
                return "tie"
            return self.above if number > low else "1" if self.above == "2" else "2"
        return VERDICT_OF.get(normalise(word))


def verdict_map(source: str = "map", **fields: Any) -> VerdictMap:
    """Build a map from keyword arguments, such as the options of a command."""
    try:
        return as_model(VerdictMap, fields)
    except ShapeError as exc:
        raise InputError(source, exc.problems) from None


def parse_verdict_map(text: str, *, source: str = "map.toml") -> VerdictMap:
    """Parse a map from TOML."""
    return verdict_map(source, **read_toml(text, source))


def find_columns(rows: FileRows, mapping: VerdictMap, findings: TableProblems) -> dict[str, str]:
    """Return the column of each field; missing ones are added to ``findings``, with the closest column."""
    header = rows.table.column_names
    fields: dict[str, str] = {}
    plain = [in_english(name) for name in header]
    both = [pair for pair in _SLOTS if set(pair) <= set(plain)]
    # fields for which the header has one of the usual spellings
    spelt = {field for field, names in SPELLINGS.items() if set(names) & set(plain)}
    two = spelt | {order for order in ORDERS if getattr(mapping, order)} >= ORDERS
    for field in (*SPELLINGS, "order", "text_1", "text_2"):
        spelled = SPELLINGS.get(field, ())
        if named := getattr(mapping, field):
            if has_column(rows, named, field, findings):
                fields[field] = named
            continue
        if field in ("slot_1", "slot_2"):  # slot 2 uses the spelling of slot 1
            spelled = tuple(pair[field == "slot_2"] for pair in both) or spelled
        columns = [name for name in spelled if name in plain and header[plain.index(name)] not in fields.values()]
        if field == "verdict" and two:
            continue  # both orders are in one row; a combined verdict is ignored
        if field == "verdict" and len(columns) > 1:
            findings.add(field, f"could be any of {', '.join(columns)}; say which in the map: verdict = {columns[0]!r}")
        if columns:
            fields[field] = header[plain.index(columns[0])]
    if mapping.judge_name and "judge" in fields:
        findings.add("judge_name", f"the log has a column {fields['judge']!r} for the judge; leave judge_name out")
    free = {in_english(name): name.strip() for name in header if name not in fields.values()}
    needed = ("judge", "question") if ORDERS.issubset(fields) else ("judge", "question", "slot_1", "slot_2", "verdict")
    for field in (*needed, *(sorted(ORDERS) if ORDERS & fields.keys() else ())):
        stands_in = (field == "question" and "pair" in fields) or (field == "judge" and mapping.judge_name)
        if field not in fields and getattr(mapping, field) is None and not stands_in:
            spellings = ", ".join(SPELLINGS[field][:4])
            shown = abridge([f"{name.strip():.40}" for name in header], 12)
            matches = [
                (difflib.SequenceMatcher(None, in_english(word), close).ratio(), free[close])
                for word in SPELLINGS[field] for close in difflib.get_close_matches(in_english(word), free, n=1)
            ]  # fmt: skip
            message = f"no column for it (the log has {shown}; known are {spellings} ...)"
            closest = f"; is it {max(matches)[1]!r}?" if matches else ""
            findings.add(field, f"{message}{closest}; name it in the map: {field} = ...")
    return fields


def has_column(rows: FileRows, column: str, field: str, findings: TableProblems) -> bool:
    """True if a file has a column; otherwise a problem is added to ``findings``."""
    try:
        rows.column(column)
    except InputError as exc:
        findings.add(field, exc.problems[0].what)
        return False
    return True


_TRIAL: Final = re.compile(r"(\d{1,9})(?:\.0*)?", re.ASCII)
# Bidirectional controls, by which a name could look like another one on a page.
_TURNING: Final = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_UNPRINTED: Final = ("Cc", "Zl", "Zp")
_CLASH: Final = -2
_AGAIN: Final = "; if calls were repeated, name the column that counts them: trial (or which was shown first: order)"


def read_verdicts(
    source: Path | str, data: bytes | Path | None = None, mapping: VerdictMap | None = None, keep_going: bool = False
) -> VerdictLog:
    """Read and validate a log of pairwise verdicts; ``data`` is the file if ``source`` is only its name.

    The file is of any kind that `assaymark.importers.tables.read_rows` supports, with one row per call: ``judge``,
    ``question``, the two contents in positions 1 and 2 (``slot_1``, ``slot_2``), the ``verdict``, and optionally the
    repetition (``trial``), an id of the pair (``pair``) and the better content (``truth``); or one row with two
    verdicts for both orders of a pair. ``mapping`` names the columns, which are otherwise found by their usual
    spellings. A verdict names a slot or a content, or is a tie, an abstention or invalid. The same text in both slots
    is a null pair. A log with only one order is valid, and a repeated call with the same verdict counts once.
    ``keep_going`` leaves out unreadable rows with a note. `InputError` lists every problem with its line.
    """
    mapping = mapping or VerdictMap()
    name = str(source)
    rows = read_rows(Path(source) if data is None else data, name, delimiter=mapping.delimiter, keep_going=keep_going)
    findings = TableProblems(name)
    fields = find_columns(rows, mapping, findings)
    filters = [column for column in mapping.wanted if has_column(rows, column, f"filter {column}", findings)]
    findings.refuse()
    keep: Bools = np.ones(len(rows), dtype=bool)
    for column in filters:
        values = mapping.wanted[column]
        words, codes = encode(rows.column(column))
        words = pc.ascii_trim(words, BLANKS)
        passes = pc.is_in(words, value_set=pa.array(values, pa.string())).to_numpy(zero_copy_only=False)[codes]
        keep &= passes
        if not passes.any():
            asked = " or ".join(map(repr, values)) or "any of no values"
            cells = sorted(set(words.to_pylist()))
            some = abridge([f"{word!r:.40}" for word in cells], 5)
            findings.add(f"filter {column}", f"no row has {asked} (the column holds {some})")
    if not keep.any():
        findings.add("filter", "no row passes every filter")
    findings.refuse()
    places = np.flatnonzero(keep)
    calls = _CallColumns(rows, fields, places, mapping, findings)
    key, chosen = calls.once()
    notes, again = rows.said, calls.row.size - chosen.size
    like = next((name for name in rows.table.column_names if in_english(name) in SYNONYMS["order"]), None)
    if again and like is not None and "order" not in fields:
        note = f"if {like!r} says which content was shown first, map it: order"
        notes = (*notes, f"{again:,} rows repeat a call and count once; {note}")
    if not keep_going:
        findings.refuse()
    notes = (*notes, *(f"left out: {note}" for note in findings.summaries))
    if not key.size + len(calls.nulls):
        raise InputError(name, ["no row is left to read", *notes])
    judge, verdict = calls.judge[chosen], calls.verdict[chosen]
    # the last part of a key is the order, so keys that differ only there are neighbours
    later = np.zeros(key.size, dtype=bool)
    later[1:] = key[1:] // 2 == key[:-1] // 2
    both = np.bincount(judge[later], minlength=len(calls.judges))
    digest = hashlib.sha256(repr((calls.trials, calls.pair_ids is None)).encode())
    for names in (calls.judges, calls.questions, calls.contents, calls.pair_ids or ()):
        digest.update(np.array([len(names), *map(len, names)]).tobytes() + "".join(names).encode())
    for numbers in (calls.pair_question, calls.pair_contents, key, verdict.astype(np.int8)):
        digest.update(numbers.tobytes())
    if len(calls.nulls) or (calls.pair_truth >= 0).any():
        digest.update(calls.nulls.tobytes() + calls.pair_truth.tobytes())
    named = ("judges", "questions", "contents", "trials", "pair_ids", "pair_question", "pair_contents", "labels",
             "pair_truth", "nulls", "reading")  # fmt: skip
    of_calls = {name: getattr(calls, name)[chosen] for name in ("judge", "pair", "trial", "order", "verdict")}
    of_calls["line"] = rows.line[calls.row[chosen]]
    return VerdictLog(
        **{name: getattr(calls, name) for name in named}, **of_calls, source=name, digest=digest.hexdigest()[:16],
        both=both, single=np.bincount(judge, minlength=len(calls.judges)) - 2 * both, rows=len(rows),
        filtered=len(rows) - places.size, duplicates=again + int(calls.copies), columns=fields, said=notes,
        sha256=rows.sha256, format=rows.format, filters=mapping.wanted,
    )  # fmt: skip


class _CallColumns:
    """The readable rows, one per call in file order, as names and codes; ``second`` masks swapped rows, if any."""

    def __init__(
        self, rows: FileRows, fields: Mapping[str, str], places: Ints, mapping: VerdictMap, problems: TableProblems
    ) -> None:
        self.mapping, self.found, self.rows, self.row = mapping, problems, rows, places
        columns = self._columns(rows, fields, places)
        self.judges, (self.judge,) = sorted_codes([columns["judge"]])
        self.questions, (self.question,) = sorted_codes([columns["question" if "question" in columns else "pair"]])
        self.contents, (self.slot_1, self.slot_2) = sorted_codes([columns["slot_1"], columns["slot_2"]])
        self.pair_ids: tuple[str, ...] | None = None
        codes = {
            "judge": (self.judges, self.judge), "question": (self.questions, self.question),
            "slot_1": (self.contents, self.slot_1), "slot_2": (self.contents, self.slot_2),
        }  # fmt: skip
        if "pair" in columns:
            self.pair_ids, (self.pair,) = sorted_codes([columns["pair"]])
            codes["pair"] = (self.pair_ids, self.pair)
        self.trials, self.trial = self._trials(columns.get("trial"))
        bad, fault = self.trial < 0, "is empty; a value is needed"
        for field, (names, code) in codes.items():
            if field in columns and names:
                empty: Bools = code == (0 if names[0] == "" else -1)  # the empty name sorts before all others
                bad |= empty
                problems.rows(empty, partial(lambda name, k: (self.at(k, name), fault), field))
        # names of judges are displayed, so control characters are not allowed
        for place, name in enumerate(self.judges):
            wrong = next((c for c in name if unicodedata.category(c) in _UNPRINTED or c in _TURNING), None)
            if wrong is not None:
                first = int(np.argmax(self.judge == place))
                text = f"the name of a judge may hold no control characters (got {name!r:.60}, with {ord(wrong):#04x})"
                problems.add(self.at(first, "judge"), text, first, "judge")
                bad |= self.judge == place
        self.verdict, self.labels, self.reading = self._verdicts(columns["verdict"])
        self.truth = self._truths(columns.get("truth"))
        null = self.slot_1 == self.slot_2
        if "text_1" in columns and "text_2" in columns:
            _, (text_1, text_2) = sorted_codes([columns["text_1"], columns["text_2"]])
            null |= text_1 == text_2
        good = ~bad & (self.verdict >= 0)
        self.nulls, self.copies = self._null_calls(good & null)
        self._only(good & ~null)
        self._pair_up()

    def _columns(self, rows: FileRows, fields: Mapping[str, str], places: Ints) -> dict[str, Coded]:
        """Return the columns of the selected rows; two verdicts in one row become two calls."""
        columns = {}
        for field, column in fields.items():
            words, codes = encode(rows.column(column))
            columns[field] = Coded(words, codes[places])
        none = np.zeros(places.size, dtype=np.int64)
        if self.mapping.judge_name:
            columns["judge"] = Coded(pa.array([self.mapping.judge_name]), none)
        self.second: Bools | None = None
        left, two = (columns.get(f"slot_{k}", Coded(pa.array([f"content {k}"]), none)) for k in (1, 2))
        if ORDERS.issubset(columns):
            pairs = {"slot_1": (left, two), "slot_2": (two, left), "verdict": (columns["order_1"], columns["order_2"])}
            columns = {name: Coded(of.words, np.tile(of.codes, 2)) for name, of in columns.items()}
            for name, (first, then) in pairs.items():
                codes = np.concatenate([first.codes, then.codes + len(first.words)])
                columns[name] = Coded(pa.concat_arrays([first.words, then.words]), codes)
            self.row, self.second = np.tile(self.row, 2), np.repeat([False, True], places.size)
        elif "order" in columns:  # swap the slots of rows that were shown in swapped order
            labels, (code,) = sorted_codes([columns["order"]])
            self.second, readable = (of[code] for of in swap_masks(pa.array(labels)))
            rule = "must be ab or ba, or a flag"
            self.found.rows(~readable, lambda k: (self.at(k, "order"), f"{rule} (got {labels[code[k]]!r:.60})"))
            words, after = pa.concat_arrays([left.words, two.words]), two.codes + len(left.words)
            columns["slot_1"] = Coded(words, np.where(self.second, after, left.codes))
            columns["slot_2"] = Coded(words, np.where(self.second, left.codes, after))
        return columns

    def _null_calls(self, chosen: Bools) -> tuple[Ints, int]:
        """Return judge, question, verdict, pair, order and trial of the null calls, and the number of repeated ones."""
        ids = self.question if self.pair_ids is None else self.pair
        slots = np.sort(np.stack([self.slot_1, self.slot_2]), axis=0)
        keys, pair = np.unique(np.stack([self.question, ids, *slots], axis=1)[chosen], axis=0, return_inverse=True)
        judge, trial, verdict = (column[chosen] for column in (self.judge, self.trial, self.verdict))
        calls = np.stack([judge, pair.ravel(), trial, verdict], axis=1)
        cells, cell, times = np.unique(calls, axis=0, return_inverse=True, return_counts=True)
        groups = np.unique(cells[:, :3], axis=0, return_inverse=True)[1].ravel()
        kinds, asked = np.bincount(groups)[groups], np.bincount(groups, times)[groups]
        # Equal texts look alike in both orders, so they are one question with two calls a trial, and copies of these.
        copied = (asked > 2) & (kinds <= 2) & (times * kinds == asked)
        kept = np.where(copied, 3 - kinds, np.where(asked > 2, 0, times))
        rows = np.flatnonzero(chosen)[(~copied & (asked > 2))[cell.ravel()]]
        message = "has one text in both slots, more than two calls in one trial, and different verdicts"
        message += "" if len(self.trials) > 1 else _AGAIN
        self.found.rows(rows, lambda k: (self.at(k), message))
        judge, pair, trial, verdict = np.repeat(cells, kept, axis=0).T
        return np.stack([judge, keys[pair, 0], verdict, pair, 0 * pair, trial], axis=1), (times - kept)[copied].sum()

    def _only(self, good: Bools) -> None:
        """Keep only the rows of a mask."""
        names = ("row", "judge", "question", "slot_1", "slot_2", "trial", "verdict", "truth")
        for column in (*names, *(("pair",) * (self.pair_ids is not None))):
            setattr(self, column, getattr(self, column)[good])

    def at(self, k: int | np.intp, field: str = "") -> str:
        """Format the place of a row, with a field if given."""
        return self.rows.where(int(self.row[k])) + (f", {field}" if field else "")

    def _trials(self, column: Coded | None) -> tuple[tuple[int, ...], Ints]:
        """Return the trial numbers, and each row's index into them; -1 if it is not a number."""
        if column is None:
            return (1,), np.zeros(self.row.size, dtype=np.int64)
        words, (codes,) = sorted_codes([column])
        read = [_TRIAL.fullmatch(word) for word in words]
        numbers = tuple(sorted({int(match[1]) for match in read if match}))
        place = {number: k for k, number in enumerate(numbers)}
        trial = np.array([place[int(match[1])] if match else -1 for match in read], dtype=np.int64)[codes]
        rule = "must be a whole number from 0 to 999999999"
        self.found.rows(trial < 0, lambda k: (self.at(k, "trial"), f"{rule} (got {words[codes[k]]!r:.60})"))
        return numbers, trial

    def _truths(self, column: Coded | None) -> Ints:
        """Return the better content of each row; -2 for a tie, -1 if unknown."""
        if column is None:
            return np.full(self.row.size, -1, dtype=np.int64)
        words, (codes,) = sorted_codes([column])
        place = {name: k for k, name in enumerate(self.contents)}
        label = [self.mapping.labels.get(word) or VERDICT_OF.get(normalise(word)) for word in words]
        by_label = np.array([("1", "2", "tie").index(tag) if tag in ("1", "2", "tie") else -1 for tag in label])[codes]
        named = np.array([place.get(word, -1) for word in words])[codes]
        content_1, two = self.slot_1, self.slot_2
        if self.second is not None:  # a label names a content as in the row, regardless of the order shown
            content_1, two = np.where(self.second, two, content_1), np.where(self.second, content_1, two)
        truth = np.select([by_label == 0, by_label == 1, by_label == 2], [content_1, two, np.full_like(codes, -2)], -1)
        truth = np.where((named == self.slot_1) | (named == self.slot_2), named, truth)
        empty = np.array([not word for word in words])[codes]
        rule = "is not one of the contents of its row, nor 1, 2, A, B or tie; map other words under labels"
        self.found.rows((truth == -1) & ~empty, lambda k: (self.at(k, "truth"), f"{words[codes[k]]!r:.60} {rule}"))
        return np.asarray(truth, dtype=np.int64)

    def _verdicts(self, column: Coded) -> tuple[Ints, Mapping[str, SlotVerdict], str]:
        """Return each row's verdict code (negative if none), the words read as labels, and a note on their reading."""
        words, (codes,) = sorted_codes([column])
        mapping, second, as_contents = self.mapping, self.second, self.mapping.verdict_names == "contents"
        labels = {word: label for word in words if (label := mapping.label(word)) is not None}
        if as_contents and second is None:
            labels = {word: tag for word, tag in labels.items() if word in mapping.labels or tag not in ("1", "2")}
        by_label = np.array([VERDICTS.index(labels[word]) if word in labels else -1 for word in words], dtype=np.int64)
        by_label = by_label[codes]
        if as_contents and second is not None:
            by_label = np.where(second & (by_label >= 0) & (by_label < 2), 1 - by_label, by_label)
        verdict = by_label
        place = {name: k for k, name in enumerate(self.contents)} if mapping.verdict_names != "slots" else {}
        if place:
            named = np.array([-1 if word in mapping.labels else place.get(word, -1) for word in words], dtype=np.int64)
            chosen = named[codes]
            by_content = np.where(chosen == self.slot_1, 0, np.where(chosen == self.slot_2, 1, -1))
            verdict = np.where(by_content >= 0, by_content, by_label)
            clash = (by_label >= 0) & (by_content >= 0) & (by_label != by_content) & (self.slot_1 != self.slot_2)
            verdict = np.where(clash & (not as_contents), _CLASH, verdict)
        read_as_label = set(np.unique(codes[(by_label >= 0) & (verdict == by_label)]).tolist())
        # one problem for each unknown word, at its first row and with the number of its rows
        for state in (-1, _CLASH):
            rows = np.flatnonzero(verdict == state)
            unknown, first, counts = np.unique(codes[rows], return_index=True, return_counts=True)
            for k in np.argsort(first).tolist():
                at = int(rows[first[k]])
                there = f"{self.contents[self.slot_1[at]]!r:.40}, {self.contents[self.slot_2[at]]!r:.40}"
                message = f"{words[unknown[k]]!r:.60}" + (f" in {counts[k]} rows" if counts[k] > 1 else "")
                if state == _CLASH:
                    message += f" is a label and also a content of its row ({there}) in another slot; "
                    message += 'say in the map: verdict_names = "contents" or "slots"'
                else:
                    message += (
                        f" is not a recognised verdict; expected {', '.join(VERDICTS)}, A, B, their usual spellings, "
                        f"or the contents of the row ({there}); map other words under labels"
                    )
                self.found.add(self.at(at, "verdict"), message, at, f"verdict {state}")
        labels = {word: labels[word] for k, word in enumerate(words) if k in read_as_label}
        shown = [word for word, label in labels.items() if label in ("1", "2") and word not in place]
        how = "verdicts name contents"
        if shown:
            these, other = ("contents", "positions") if as_contents else ("positions", "contents")
            quoted = ", ".join(f"{word:.20}" for word in shown[:6])
            follows = "consistent and position-biased pairs change places"
            other_way = "slots" if as_contents else "contents"
            how = f'{quoted} were read as {these}; if they name {other}, {follows} (verdict_names = "{other_way}")'
        return verdict, labels, how

    def _pair_up(self) -> None:
        """Set the pair and order of each call, and the contents of each pair; the first by name is u."""
        if self.pair_ids is None:
            pairs = [(self.question, len(self.questions)), *((side, len(self.contents)) for side in self._sides())]
            names, self.pair = dense(combine_codes(pairs))
            first = _first_rows(self.pair, names.size)
        else:
            self._check_ids(self.pair_ids)
            first = _first_rows(self.pair, len(self.pair_ids))
        if not self.pair.size:  # no readable row; an error follows
            first = first[:0]
        low, high = self._sides()
        self.order = (self.slot_1 > self.slot_2).astype(np.int64)
        self.pair_question = self.question[first]
        self.pair_contents = np.stack([low[first], high[first]], axis=1)
        truth = np.select([self.truth == -2, self.truth == low, self.truth == high], [2, 0, 1], -1)
        self.pair_truth = np.full(first.size, -1, dtype=np.int64)
        self.pair_truth[self.pair[truth >= 0]] = truth[truth >= 0]

        def describe(k: int) -> tuple[str, str]:
            words = [*(f"{self.contents[c]!r:.40}" for c in self.pair_contents[self.pair[k]].tolist()), "a tie"]
            here, there = words[truth[k]], words[self.pair_truth[self.pair[k]]]
            return self.at(k, "truth"), f"is {here} here and {there} in another row of the pair; a pair has one"

        self.found.rows((truth >= 0) & (truth != self.pair_truth[self.pair]), describe)

    def _sides(self) -> tuple[Ints, Ints]:
        """Return the two contents of each call, sorted by name."""
        return np.minimum(self.slot_1, self.slot_2), np.maximum(self.slot_1, self.slot_2)

    def _check_ids(self, ids: tuple[str, ...]) -> None:
        """Check that all rows of a pair id have the question and contents of its first row; others are left out."""
        low, high = self._sides()
        first = _first_rows(self.pair, len(ids))[self.pair]

        def different(bad: Bools, has: str, quote: Callable[[int], str], to: str, rule: str) -> Bools:
            def describe(k: int) -> tuple[str, str]:
                there = f"{to}{quote(first[k])} in {self.at(first[k])}"
                return self.at(k, "pair"), f"{ids[self.pair[k]]!r:.60} {has} {quote(k)} here, {there}; {rule}"

            self.found.rows(bad, describe)
            return bad

        others = different(
            (low != low[first]) | (high != high[first]), "has the contents",
            lambda k: f"{self.contents[low[k]]!r:.40} and {self.contents[high[k]]!r:.40}", "", "a pair has two",
        ) | different(
            self.question != self.question[first], "belongs to question",
            lambda k: f"{self.questions[self.question[k]]!r:.40}", "to ", "a pair has one",
        )  # fmt: skip
        self._only(~others)

    def once(self) -> tuple[Ints, Ints]:
        """Return the distinct calls sorted by judge, pair, trial and order: their keys and row indices."""
        key = combine_codes([
            (self.judge, len(self.judges)), (self.pair, len(self.pair_question)), (self.trial, len(self.trials)),
            (self.order, 2),
        ])  # fmt: skip
        places = np.argsort(key, kind="stable")
        key = key[places]
        again = np.zeros(key.size, dtype=bool)
        again[1:] = key[1:] == key[:-1]
        first = np.empty_like(places)
        first[places] = places[np.maximum.accumulate(np.where(again, 0, np.arange(key.size)))]
        hint = "" if len(self.trials) > 1 else _AGAIN

        def describe(k: int) -> tuple[str, str]:
            call = f"judge {self.judges[self.judge[k]]!r:.40}, question {self.questions[self.question[k]]!r:.40}"
            return self.at(k), (
                f"is the call of {self.at(first[k])} again ({call}, {self.contents[self.slot_1[k]]!r:.40} in "
                f"slot 1) with verdict {VERDICTS[self.verdict[k]]}, there {VERDICTS[self.verdict[first[k]]]}{hint}"
            )

        self.found.rows(self.verdict != self.verdict[first], describe)
        return key[~again], places[~again]


def _first_rows(pair: Ints, pairs: int) -> Ints:
    """Return the first row of each pair."""
    first = np.zeros(pairs, dtype=np.int64)
    first[pair[::-1]] = np.arange(pair.size)[::-1]
    return first
