"""Look-up index of a decision's context: facts by instrument and unit, free facts, rules, the agent's own numbers."""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import groupby, pairwise
from operator import itemgetter
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from assaymark.judging.evidence.mention import HALF, PrintedNumber, Values, extract_numbers
from assaymark.judging.evidence.words import (
    DOWN,
    LISTS,
    STOP,
    UP,
    Subjects,
    content_words,
    index_subjects,
    is_horizon,
    words_of,
)
from assaymark.judging.prompts import order_outcome
from assaymark.records import JSON, Completeness, Constraint, Context, Decision, Fact, Instrument, Series

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_UNSIGNED_KINDS = LISTS["unsigned_kinds"]
_DEPTH_KINDS = LISTS["depth_kinds"]
_TASK_WORDS = LISTS["task_words"]
_OBLIGATION = re.compile(
    r"\b(?:must|exactly|maximum|minimum|max|min|at (?:most|least)|caps?|capped|cannot|required?|allowed|never|exceed"
    r"|between|limits?|increments?|no more than"
    r"|no (?:single )?[a-z]+ (?:may|can|should|is|goes|above|over|below|under|beyond|beneath|exceeds?))\b",
    re.IGNORECASE,
)
_RULED = re.compile(
    r"\b(?:allocat\w+|weights?|holdings?|portfolio|confidence|candidates?|finalists|positions?|leverage|trades?|orders?"
    r"|exposure|risks|sentences)\b",
    re.IGNORECASE,
)
_SENTENCES = re.compile(r"[.!?;](?=\s|\Z)\s*")
Entry = tuple[float, str, frozenset[str], str, str]
OwnEntry = tuple[str, str, float, str]
"""One of a decision's own numbers: instrument (or an empty string), name, value, unit."""
_LONGEST_NOTE = 4000
_LIMIT_WORDS = {
    "max_": frozenset(("cap", "limit", "ceiling", "most")),
    "min_": frozenset(("floor", "least", "minimum")),
}
_PRONOUN = re.compile(r"(?:It|They|Both|That|This|These|The index|The gauge)\b")
_DIGITS = re.compile(r"([0-9]+)")
_FACTORS = (1.0, 0.01, 1e3, 1e6, 1e9, 1e12)


@dataclass(frozen=True, slots=True)
class FieldLabel:
    """A parsed field name: its kind words, its horizon (or empty), the use of its sign, and its words as printed."""

    kinds: frozenset[str]
    horizon: str
    signed: bool
    depth: bool
    printed: frozenset[str]


@dataclass(frozen=True, slots=True)
class FactCells:
    """Facts about instruments, sorted by instrument: row r has the slice ``parts[r]``."""

    values: Values
    labels: tuple[FieldLabel, ...]
    label: Ints
    ids: tuple[str, ...]
    horizons: tuple[frozenset[str], ...]
    of_cell: tuple[FieldLabel, ...]
    parts: tuple[slice, ...]


@dataclass(frozen=True, slots=True)
class FreeFacts:
    """Facts about no instrument of the universe, each with the words of its source sentence."""

    values: Values
    words: tuple[frozenset[str], ...]
    ids: tuple[str, ...]
    direction: Ints
    note: Ints
    falling: Bools


@dataclass(frozen=True, slots=True)
class DecisionNumbers:
    """Numbers with label words: rules of the task, or the agent's own figures (weights, forecasts, stops)."""

    values: Values
    words: tuple[frozenset[str], ...]
    subjects: tuple[str, ...]
    ids: tuple[str, ...]
    needed: tuple[int, ...]

    @classmethod
    def of(cls, entries: Iterable[OwnEntry] = ()) -> DecisionNumbers:
        """Index an agent's own numbers from (instrument or "", name, value, unit); a name's words are its labels."""
        finite = (entry for entry in entries if math.isfinite(entry[2]))
        return _index([(value, unit, _name_words(name), subject, name) for subject, name, value, unit in finite])


@dataclass(frozen=True, slots=True)
class ContextIndex:
    """The look-up index of everything that one agent could see. Build it once per context: `of` or `build`."""

    subjects: Subjects
    cells: FactCells
    free: FreeFacts
    rules: DecisionNumbers
    series: Mapping[str, Series]
    benchmark: int
    completeness: Completeness
    prompts: tuple[str, ...]

    def prints(self, number: PrintedNumber) -> tuple[str, bool] | None:
        """Find a number in the prompts: ``prompt:LINE``, and True if it has more digits there; None if it is absent.

        The first line that prints it, else the first line with a number that rounds to it at four digits or more.
        """
        hits = []
        size, unit = abs(number.value), number.unit
        fine = len(str(round(size / number.step))) >= _FINE
        reach = number.step * HALF if fine else size * _FINEST
        for at, (sizes, printed) in enumerate(map(_sorted_numbers, self.prompts)):
            for other, line in printed[bisect_left(sizes, size - reach) : bisect_right(sizes, size + reach)]:
                same_unit = other.unit == unit or "percent" not in (other.unit, unit) or other.unit == "none"
                if same_unit and (not number.signed or (other.value < 0) == (number.value < 0)):
                    hits.append((abs(abs(other.value) - size) > size * _FINEST, at, line))
        rounded, _, line = min(hits, default=(False, 0, 0))
        return (f"prompt:{line}", rounded) if hits else None

    @classmethod
    def of(cls, context: Context) -> ContextIndex:
        """Index a context: its facts, instruments, constraints, prompt rules, holdings and price bars."""
        rows: list[tuple[str, str, str, float, str, str]] = []
        if (portfolio := context.portfolio) is not None:  # the holdings before the decision, as facts
            totals = (("portfolio cash", portfolio.cash), ("portfolio nav value", portfolio.nav))
            rows = [(name, "", name, value, "usd", name) for name, value in totals]
            rows += [(name, name, "units held", units, "count", "") for name, units in portfolio.positions.items()]
        holdings = [
            Fact(f"portfolio.{id_}", of, field, value, unit, note=note, available_at=context.cutoff)
            for id_, of, field, value, unit, note in rows
        ]  # fmt: skip
        return cls.build(
            [*context.facts, *holdings], context.instruments, (*context.constraints, context.prompt),
            context.completeness, context.series,
        )  # fmt: skip

    @classmethod
    def build(
        cls, facts: Sequence[Fact], instruments: Sequence[Instrument] = (), rules: Sequence[Constraint | str] = (),
        completeness: Completeness = "partial", series: Sequence[Series] = (),
    ) -> ContextIndex:  # fmt: skip
        """Build the index from its parts, for callers without a context record."""
        ids = {instrument.id for instrument in instruments}
        further = sorted({fact.instrument for fact in facts} - ids - {""})
        subjects = index_subjects((*instruments, *(Instrument(id=name) for name in further)))
        # Numeric facts about instruments, ordered by row, field and id, so that the input order does not matter.
        rows = subjects.rows
        about = [fact for fact in facts if fact.instrument]
        numbers = [(rows[fact.instrument], fact.field, fact.id, *part) for fact in about for part in _values_of(fact)]
        numbers.sort(key=itemgetter(slice(4)))
        fields = sorted({number[1] for number in numbers})
        labels, place = tuple(map(field_label, fields)), {name: at for at, name in enumerate(fields)}
        label = np.array([place[number[1]] for number in numbers], dtype=np.int64)
        bounds = np.searchsorted([number[0] for number in numbers], np.arange(len(subjects.ids) + 1)).tolist()
        parts = tuple(slice(start, stop) for start, stop in pairwise(bounds))
        of_cell = tuple(labels[at] for at in label.tolist())
        # The horizons for which each instrument has values; most instruments have the same.
        known_horizons: dict[bytes, frozenset[str]] = {}
        keys = [label[part].tobytes() for part in parts]
        for key, part in zip(keys, parts, strict=True):
            if key not in known_horizons:
                known_horizons[key] = frozenset(label.horizon for label in of_cell[part]) - {""}
        cells = FactCells(
            Values.of([number[3:] for number in numbers]), labels, label, tuple(number[2] for number in numbers),
            tuple(known_horizons[key] for key in keys), of_cell, parts,
        )  # fmt: skip
        # The benchmark instrument named in field names (``beta_spy_63s``), or -1.
        alone = (subjects.row_named(word) for label in cells.labels for word in sorted(label.kinds))
        benchmark = next((row for row in alone if row >= 0), -1)
        # The prices of an instrument at several times, if facts state them one by one.
        shown: dict[str, dict[datetime, float]] = defaultdict(dict)
        bars_in = {name for name in fields if name.replace("_", " ").lower() in _BARS}
        for fact in about:
            if fact.field in bars_in and fact.as_of is not None:
                for value, _ in _values_of(fact):
                    shown[fact.instrument].setdefault(fact.as_of, value)
        stated = {}
        for name, bars in shown.items():
            if len(times := sorted(bars)) > 1:
                interval, prices = int((times[-1] - times[-2]).total_seconds()), tuple(bars[at] for at in times)
                stated[name] = Series(name, interval_s=interval, times=tuple(times), close=prices)
        # Numbers of constraints, and of prompt lines that state an obligation of the agent.
        entries: list[Entry] = []
        for bound in rules:
            if isinstance(bound, Constraint):
                words = _name_words(f"{bound.kind} {bound.scope}")
                # In a sentence a limit may have other names than its kind.
                more = next((also for start, also in _LIMIT_WORDS.items() if bound.kind.startswith(start)), frozenset())
                entries.append((bound.limit, bound.unit, words | more, "", f"constraint:{bound.kind}"))
            else:
                entries += [
                    (value, unit, words, "", f"prompt:{at}")
                    for at, line in enumerate(bound.split("\n"), start=1)
                    for value, unit, words in _rules_of_line(line[:_LONGEST_NOTE])
                ]
        free = _index_free_facts([fact for fact in facts if not fact.instrument])
        return cls(
            subjects, cells, free, _index(entries), benchmark=benchmark, completeness=completeness,
            series=MappingProxyType(stated | {bars.instrument: bars for bars in series}),
            prompts=tuple(rule for rule in rules if isinstance(rule, str)),
        )  # fmt: skip


@lru_cache(maxsize=1 << 12)
def _name_words(name: str) -> frozenset[str]:
    """Return the words of a stored name; cached, because decisions of one format share names."""
    return frozenset(words_of(name.replace("_", " ")).forms)


_BARS = frozenset(("close", "price", "last", "last price", "adj close", "adjusted close", "previous close"))

_FINEST = 1e-12
_FINE = 4


@lru_cache(maxsize=256)
def _sorted_numbers(text: str) -> tuple[list[float], list[tuple[PrintedNumber, int]]]:
    """Return the sorted absolute values of the numbers of a text, and each number with its line, counted from 1."""
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    prints = sorted(extract_numbers(text), key=lambda number: abs(number.value))
    return [abs(number.value) for number in prints], [(number, bisect_right(starts, number.start)) for number in prints]


@lru_cache(maxsize=4096)
def field_label(name: str) -> FieldLabel:
    """Parse a field's name: the kind and horizon of its values, and whether their sign counts."""
    read = words_of(name.replace("_", " "))
    words = read.forms
    horizons = [word for word in words if is_horizon(word)]
    kinds = frozenset(word for word in words if not word[0].isdigit() and word not in ("of", "to", "from", "vs", "the"))
    return FieldLabel(
        kinds, horizon=horizons[0] if horizons else "", signed=not (kinds & _UNSIGNED_KINDS),
        depth=bool(kinds & _DEPTH_KINDS), printed=frozenset(read.lowers),
    )  # fmt: skip


def _values_of(fact: Fact) -> list[tuple[float, str]]:
    """Return the numbers in a fact: its value, or the numbers in a text value."""
    if isinstance(fact.value, str):
        return [(number.value, number.unit) for number in extract_numbers(fact.value[:_LONGEST_NOTE])]
    return [(float(fact.value), fact.unit)] if math.isfinite(fact.value) else []


@lru_cache(maxsize=1 << 12)
def _sort_key(name: str) -> tuple[tuple[int, str], ...]:
    """Return a sort key that orders b2 before b10."""
    parts = filter(None, _DIGITS.split(name))
    return tuple((int(part[:15]), "") if part[0] in "0123456789" else (-1, part) for part in parts)


def _index_free_facts(facts: Sequence[Fact]) -> FreeFacts:
    """Index facts about no instrument, ordered by id, and the other numbers of the notes that they come from."""
    entries: list[tuple[float, str, frozenset[str], str, int, int, bool]] = []
    before: frozenset[str] = frozenset()

    ordered = sorted(facts, key=lambda fact: (fact.source, _sort_key(fact.id), fact.note, fact.field, str(fact.value)))
    for at, (note, group) in enumerate(groupby(ordered, key=lambda fact: fact.note or fact.field)):
        members = list(group)
        note_words = content_words(note[:_LONGEST_NOTE])
        # "It was down 1.9% for the week" has the subject of the sentence before
        words = note_words | before if _PRONOUN.match(note) else note_words
        before = words
        falling, numbers = _read_note(note)
        sizes = set()
        for fact in members:
            named = words | content_words(fact.field.replace("_", " "))
            rising = not UP.isdisjoint(fact.field[-40:].lower().split()[-2:])
            for value, unit in _values_of(fact):
                sizes.add(abs(value))
                # -1 for a negative value, 1 if the last words of the field's name mean a rise, else 0
                direction = -1 if value < 0 else int(rising)
                entries.append((value, unit, named, fact.id, direction, at, falling))
        for number in numbers:
            size = abs(number.value)
            # a number of the note that equals one of its own facts, in any scale, is not added again
            if not any(abs(size * f - stored) <= 1e-9 * max(stored, 1e-9) for stored in sizes for f in _FACTORS):
                sign = 0 if not number.signed else (-1 if number.value < 0 else 1)
                entries.append((number.value, number.unit, words, members[0].id, sign, at, falling))
    values, units, named_by, ids, directions, notes, decreases = zip(*entries, strict=True) if entries else ((),) * 7
    ints = [np.array(column, dtype=np.int64) for column in (directions, notes)]
    free = Values.of([*zip(values, units, strict=True)])
    return FreeFacts(free, named_by, ids, ints[0], ints[1], np.array(decreases, bool))


@lru_cache(maxsize=1 << 12)
def _read_note(note: str) -> tuple[bool, tuple[PrintedNumber, ...]]:
    """Return whether a note mentions a decrease, and its numbers; cached, because rounds share their briefings."""
    text = note[:_LONGEST_NOTE]
    return not DOWN.isdisjoint(words_of(text).lowers), tuple(extract_numbers(text))


@lru_cache(maxsize=1 << 12)
def _rules_of_line(line: str) -> tuple[tuple[float, str, frozenset[str]], ...]:
    """Return the numbers of one line with its words; cached, because most prompt lines recur every round."""
    if not (_DIGITS.search(line) and _OBLIGATION.search(line) and _RULED.search(line)):
        return ()
    entries: list[tuple[float, str, frozenset[str]]] = []
    for part in _SENTENCES.split(line):  # a line of news has obligations of others, far from its numbers
        if _OBLIGATION.search(part) and _RULED.search(part):
            # one distinctive word identifies a rule that is a single short sentence, whatever the rest of its line
            words = own if len(own := _distinctive_words(part)) == 1 else _distinctive_words(line)
            entries += [(number.value, number.unit, words) for number in extract_numbers(part)]
    return tuple(dict.fromkeys(entries))


def _distinctive_words(text: str) -> frozenset[str]:
    """Return the distinctive words of a rule, without task vocabulary that is common elsewhere."""
    return frozenset(
        form
        for form in words_of(text).forms
        if form in _TASK_WORDS or (len(form) > 2 and not form[0].isdigit() and form not in STOP)
    )


def _index(entries: Sequence[Entry]) -> DecisionNumbers:
    needed = tuple(min(2, len(words)) or 1 if id_.startswith("prompt:") else 1 for *_, words, _, id_ in entries)
    values = Values.of([entry[:2] for entry in entries])
    words, subjects = tuple(entry[2] for entry in entries), tuple(entry[3] for entry in entries)
    return DecisionNumbers(values, words, subjects, tuple(entry[4] for entry in entries), needed)


_ID_KEYS = ("instrument", "option_id", "id", "symbol", "asset")
_DEEPEST = 12
ACTION_UNITS = {
    "weight": "ratio", "confidence": "ratio", "expected_return": "ratio", "quantity": "count", "price": "price",
    "leverage": "multiple", "stop": "price", "target": "price",
}  # fmt: skip


def own_numbers(decision: Decision, context: Context | None = None) -> DecisionNumbers:
    """Index every number of a decision's actions, stages and confidence under its stored name."""
    entries: list[OwnEntry] = []
    if decision.confidence is not None:
        entries.append(("", "confidence probability", decision.confidence, "ratio"))
    for action in decision.actions:
        for name, unit in ACTION_UNITS.items():
            if (value := getattr(action, name)) is not None:
                label = "weight allocation" if name == "weight" else name
                entries.append((action.instrument, label, float(value), unit))
    for name in sorted(decision.stages):
        entries += _walk_numbers(decision.stages[name], name, "", 0)
    outcome = None if context is None else order_outcome(context, decision.actions)
    if outcome is not None and outcome.after is not None and outcome.after.equity > 0:
        after = outcome.after
        for name, weight in after.weights.items():
            entries.append((name, "weight allocation position share", weight, "ratio"))
            entries.append((name, "value", weight * after.equity, "usd"))
        entries += [
            ("", "exposure over equity", after.leverage, "ratio"), ("", "leverage", after.leverage, "multiple"),
            ("", "cash share of equity", after.residual / after.equity, "ratio"),
            ("", "cash before", after.cash, "usd"), ("", "cost of the orders", after.cost, "usd"),
            ("", "cash residual", after.residual, "usd"), ("", "fees", after.fees, "usd"),
            ("", "exposure", after.exposure, "usd"), ("", "equity", after.equity, "usd"),
        ]  # fmt: skip
    if context is not None and context.portfolio is not None:
        positions = context.portfolio.positions
        entries += [(name, "units held before", units, "count") for name, units in positions.items()]
    return DecisionNumbers.of(dict.fromkeys(entries))


def owners_of(decision: Decision) -> dict[str, str]:
    """Map each text that is the reason for exactly one instrument's action to that instrument."""
    reasons: dict[str, set[str]] = {}
    for action in decision.actions:
        if action.rationale:
            reasons.setdefault(action.rationale.strip(), set()).add(action.instrument)
    return {text: next(iter(owners)) for text, owners in reasons.items() if len(owners) == 1}


def _walk_numbers(value: JSON, path: str, subject: str, depth: int, percent: bool = False) -> Iterator[OwnEntry]:
    """Yield the numbers in a structured part; a key that names an instrument, or an adjacent id, sets the subject."""
    if depth > _DEEPEST or isinstance(value, (str, bool)) or value is None:
        return
    if isinstance(value, (int, float)):
        key = path.rsplit(".", 1)[-1].lower()
        unit = "ratio" if key in ("weight", "confidence") or key.startswith("p_") else "count"
        if percent or key.endswith(("pct", "percent")) or "pct" in path:
            unit = "percent"
        elif key.endswith("bps"):
            unit = "bps"
        yield subject, path, float(value), unit
    elif isinstance(value, Mapping):
        named = next((value[key] for key in _ID_KEYS if isinstance(value.get(key), str)), subject)
        is_percent = any(key.endswith("_pct") for key in value)
        for key in sorted(value):
            entry = value[key]
            leaf = isinstance(entry, (int, float))
            if leaf and path.rsplit(".", 1)[-1] in ("holdings", "weights"):
                yield from _walk_numbers(entry, path, key, depth + 1, percent)
            else:
                whose = named or ("" if leaf else key)
                yield from _walk_numbers(entry, f"{path}.{key}", whose, depth + 1, percent=is_percent and not leaf)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _walk_numbers(item, path, subject, depth + 1, percent)
