"""Shared parts of prompts and replies: strict parsing, word lists, prompt templates, and contexts as text."""

from __future__ import annotations

import hashlib
import json
import math
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, lru_cache
from importlib.resources import files
from itertools import count, groupby, islice
from operator import itemgetter
from string import Template
from types import MappingProxyType
from typing import Any, Final, Generic, Literal, NoReturn, TypeVar

from assaymark.errors import InputError, Problem
from assaymark.records import (
    JSON,
    Constraint,
    Context,
    Decision,
    Fact,
    Instrument,
    Portfolio,
    Rationale,
    RationaleKind,
    Series,
    sha256_text,
)
from assaymark.text import code_points

# Replies: parsed strictly, always recorded, never repaired

A = TypeVar("A")
W = TypeVar("W", bound=str)

_FENCE = "```"
MOST_DIGITS = 20
"""Maximum digits of an integer: converting 100,000 digits is slow, and no score has them."""


class Rejected(ValueError):
    """The reply does not have the requested form; the message becomes the recorded reason."""


class NotJson(Rejected):
    """The reply is not a JSON value."""


def strict_reply(text: str) -> JSON:
    """Parse the JSON value of a reply, with or without a code fence; raises like `strict_json`."""
    bare = text.strip()
    if bare.startswith(_FENCE) and bare.endswith(_FENCE) and "\n" in bare:
        kind, _, inside = bare[len(_FENCE) : -len(_FENCE)].partition("\n")
        if kind.strip().lower() in ("", "json"):
            return strict_json(inside)
    return strict_json(text)


def is_not_json(text: str) -> bool:
    """True if a reply is not a JSON value, with or without a code fence."""
    try:
        strict_reply(text)
    except NotJson:
        return True
    except Rejected:
        pass
    return False


def members(
    raw: JSON, keys: Sequence[str], noun: str = "keys", *, optional: Sequence[str] = (), otherwise: str = ""
) -> Mapping[str, Any]:
    """Check that a value is an object with exactly these keys; ``otherwise`` is the reason if it is not an object."""
    if not isinstance(raw, dict):
        raise Rejected(otherwise or f"not a JSON object (got {type(raw).__name__})")
    if missing := [key for key in keys if key not in raw]:
        raise Rejected(f"{noun} are missing: {', '.join(map(brief, missing))}")
    if extra := [key for key in raw if key not in keys and key not in optional]:
        raise Rejected(f"{noun} are unknown: {', '.join(map(brief, extra[:3]))}")
    return raw


def object_schema(properties: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the schema of an object with exactly these keys, in the subset for structured output of providers."""
    return {
        "type": "object", "properties": dict(properties), "required": list(properties), "additionalProperties": False,
    }  # fmt: skip


def schema_text(properties: Mapping[str, JSON]) -> str:
    """Return the schema of a reply as text: an object with exactly these keys."""
    return json.dumps(object_schema(properties), indent=1)


def strict_json(text: str) -> JSON:
    """Parse one JSON value strictly: no duplicate keys, NaN, infinity or huge integers; raises `Rejected`."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        for key, value in pairs:
            if key in fields:
                raise Rejected(f"key {brief(key)} comes more than once")
            fields[key] = value
        return fields

    def no_constant(name: str) -> NoReturn:
        raise Rejected(f"{name} is not JSON")

    def sane(digits: str) -> int:
        if len(digits) > MOST_DIGITS:
            raise Rejected(f"an integer with {len(digits)} digits")
        return int(digits)

    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=no_constant, parse_int=sane)
    except json.JSONDecodeError as exc:
        raise NotJson(f"not one JSON object: {exc.msg[:1].lower()}{exc.msg[1:]} at character {exc.pos}") from None
    except RecursionError:
        raise Rejected("nested too deeply") from None


def brief(value: object) -> str:
    """Format a value for a reason: at most 60 characters of printable ASCII."""
    text = ascii(value)
    return text if len(text) <= 60 else text[:57] + "..."


def whole_number(raw: JSON, noun: str, low: int, high: int) -> int:
    """Check that a value is a whole number in a range."""
    # In Python True is an int and 4.0 equals 4, but neither was written as a whole number.
    if type(raw) is not int or not low <= raw <= high:
        raise Rejected(f"{noun} must be a whole number from {low} to {high} (got {brief(raw)})")
    return raw


def bounded_text(raw: JSON, noun: str, most: int) -> str:
    """Check that a value is a text of bounded length without lone surrogates."""
    if not isinstance(raw, str):
        raise Rejected(f"{noun} must be text (got {brief(raw)})")
    if len(raw) > most:
        raise Rejected(f"{noun} has {len(raw)} characters, at most {most} are allowed")
    if any("\ud800" <= char <= "\udfff" for char in raw):
        raise Rejected(f"{noun} holds half of a surrogate pair")
    return raw


def choice(raw: JSON, words: Sequence[W], requirement: str) -> W:
    """Check that a value is one of the words; ``requirement`` is the start of the reason if it is not."""
    for word in words:
        if raw == word:
            return word
    raise Rejected(f"{requirement} (got {brief(raw)})")


ReplyState = Literal["ok", "invalid", "refused", "truncated", "failed"]


@dataclass(frozen=True, slots=True)
class Parsed(Generic[A]):
    """Result of parsing a reply: the answer if ``state`` is ok, else the reason as a short printable line."""

    state: ReplyState
    answer: A | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ReplyForm(Generic[A]):
    """The form of a reply: the JSON schema that the prompt requests, and a check that raises `Rejected`.

    ``version`` is that of the rubric, plan or instruction. A reply with more than ``most`` characters is invalid
    without parsing. With ``failures``, a call without a reply is an outcome, too.
    """

    version: str
    schema: str
    check: Callable[[JSON], A]
    most: int
    failures: bool = False

    def parse(self, text: str) -> Parsed[A]:
        """Parse a reply as strict JSON, with or without a code fence; never raises, whatever ``text`` is."""
        if len(text) > self.most:
            return Parsed("invalid", None, f"longer than {self.most} characters (got {len(text)})")
        try:
            return Parsed("ok", self.check(strict_reply(text)))
        except Rejected as exc:
            return Parsed("invalid", None, str(exc))


_LISTS: Final = tomllib.loads((files("assaymark.prompting") / "words.toml").read_text(encoding="utf-8"))
HEDGES, HEDGE_PHRASES = frozenset(_LISTS["hedges"]), tuple(_LISTS["hedge_phrases"])
UNSPACED_HEDGES, CONFIDENT = tuple(_LISTS["unspaced_hedges"]), tuple(_LISTS["confident"])

_WHO = r"(?:judge|grader|evaluator|assessor|reviewer|assistant|language model|llm|ai)"
_IT = r"(?:this|it|me|(?:my|the|this)\s+(?:answer|decision|rationale|response|reasoning|text|output|analysis))"
_AMOUNT = r"(?:[.,]?\d|%|per\s?cent|bps|basis|x\b|days?|weeks?|months?|years?|sessions?|hours?|minutes?|shares|units)"
_MOST = r"(?:full|highest|maximum|top|perfect)\s+(?:marks?|scores?|grades?)"
_TOP = rf"(?:(?:5|five|10|ten|100)\b(?!\s*{_AMOUNT})|{_MOST})"
INSTRUCTIONS: Final = (
    # delimiters of our prompts, and of common chat formats
    r"<<<\s*(?:BEGIN|END)\b",
    r"<\|\w+\|>|\[/?INST\]|</?(?:system|instructions?|prompt)>",
    r"^\s*(?:#+\s*(?:system|instructions?)\b|(?:system|assistant)\s*:)",
    # keys of the requested replies
    r'"(?:scores|lookahead_check|verdict)"\s*:',
    r"\b(?:ignore|disregard|forget|override)\s+(?:\w+\s+){0,3}(?:instructions?|prompts?|rubrics?)\b",
    r"\b(?:system|hidden)\s+prompt\b|\bnew\s+instructions?\s*:",
    rf"\b(?:give|rate|score|grade|award|assign)\s+{_IT}\s+(?:(?:an?|with|the)\s+)*{_TOP}",
    r"\b(?:judges?|graders?|evaluators?|assessors?|reviewers?)\s*[,:]\s*(?:please|you|give|score|rate|award|assign)\b",
    rf"\b(?:note|message|instructions?|attention)\s+(?:to|for)\s+(?:the\s+|all\s+)?{_WHO}s?\b",
    rf"\byou\s+are\s+(?:now\s+)?(?:an?|the)\s+{_WHO}\b",
)
"""Patterns of texts that address a judge or imitate its prompt (case-insensitive)."""

# the patterns that begin with a word share one \b, so that they are not tried one by one at every position
_MARKS, _WORDS = (tuple(one for one in INSTRUCTIONS if one.startswith(r"\b") is words) for words in (False, True))
_SPOKEN = r"\b(?=[a-z])(?:" + "|".join(word.removeprefix(r"\b") for word in _WORDS) + ")"
_INSTRUCTIONS = re.compile("|".join((*_MARKS, _SPOKEN)), re.IGNORECASE | re.MULTILINE)
_WORD = re.compile(r"[a-z]+")


def _pattern(phrases: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern for any of the phrases as whole words, longest first."""
    ordered = sorted(phrases, key=lambda phrase: (-len(phrase), phrase))
    return re.compile(r"(?<![a-z])(?:" + "|".join(map(re.escape, ordered)) + r")(?![a-z])")


_HEDGE_PHRASE = _pattern(HEDGE_PHRASES)
_CONFIDENT = _pattern(CONFIDENT)


def hedges_in(text: str) -> tuple[str, ...]:
    """Return the hedging words and then phrases of a text, in lower case."""
    lower = text.lower()
    hedges = [word for word in _WORD.findall(lower) if word in HEDGES]
    hedges += _HEDGE_PHRASE.findall(lower)
    if not text.isascii():
        hedges += [word for word in UNSPACED_HEDGES for _ in range(text.count(word))]
    return tuple(hedges)


def instructions_in(text: str) -> tuple[str, ...]:
    """Return the parts of a text that address its judge, or imitate the prompt."""
    return tuple(match[0] for match in _INSTRUCTIONS.finditer(text))


def confident_in(text: str) -> tuple[str, ...]:
    """Return the phrases of a text that express confidence, in order and in lower case."""
    return tuple(_CONFIDENT.findall(text.lower()))


JUDGED_KINDS: tuple[RationaleKind, ...] = ("summary", "portfolio", "risk", "candidate", "stage")
"""Kinds of text that judges see, in the order shown.

``arena`` texts come from the venue and ``holding`` texts repeat the actions line by line; neither is judged.
"""

_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")
_WIDE_PUNCTUATION = re.compile("[\u3000-\u303f\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65]")


def judged_rationales(decision: Decision) -> tuple[Rationale, ...]:
    """Return the texts that judges see, in the order of `JUDGED_KINDS`; texts of one kind stay in record order."""
    judged = (text for text in decision.rationales if text.kind in JUDGED_KINDS)
    return tuple(sorted(judged, key=lambda text: JUDGED_KINDS.index(text.kind)))


def judged_text(decision: Decision) -> str:
    """Join the judged texts by empty lines, unchanged."""
    return "\n\n".join(rationale.text for rationale in judged_rationales(decision))


INSTRUCTION_LIKE = "instruction-like text"
"""Flag of a decision whose texts address the judge or imitate its prompt. It does not affect scores."""


def with_flags(decision: Decision) -> Decision:
    """Add the flag `INSTRUCTION_LIKE` if the texts of a decision address the judge or imitate its prompt."""
    if INSTRUCTION_LIKE in decision.flags or not instructions_in(judged_text(decision)):
        return decision
    return replace(decision, flags=(*decision.flags, INSTRUCTION_LIKE))


def token_count(text: str) -> int:
    """Count the words of a text by whitespace; in scripts without spaces each character counts."""
    if text.isascii():
        return len(text.split())
    rest, characters = _UNSPACED.subn(" ", text)
    return characters + len(_WIDE_PUNCTUATION.sub(" ", rest).split())


_DIGIT = re.compile(r"\d")
_LIST_ITEM = re.compile(r"^\s*(?:[-*\u2022]|\d{1,3}[.)])\s", re.MULTILINE)


def style_counts(text: str, names: Sequence[str]) -> dict[str, float]:
    """Return style covariates other than length: ``log2(1 + count per 100 words)`` of digits, list items or hedges."""
    counts = {"digits": _DIGIT, "lists": _LIST_ITEM}
    words = max(1, token_count(text))
    counted = {name: len(counts[name].findall(text)) if name in counts else len(hedges_in(text)) for name in names}
    return {name: math.log2(1 + 100 * count / words) for name, count in counted.items()}


# Blinding removes names but not style. A judge with self-preference recognises its family's texts by their style, so a
# built-in judge with planted self-preference looks only for one of these phrases.
SIGNATURES: Final[Mapping[str, str]] = MappingProxyType(
    {"alder": "Read plainly,", "birch": "On the numbers,", "cedar": "By this screen,", "dogwood": "In brief,",
     "elder": "Seen whole,"}
)  # fmt: skip
"""Opening words of each style. Any agent can have any style."""


_NAME = re.compile(r"(?:Asset|I)\b")


def signature(style: str) -> str:
    """Return the opening words of a style; empty if it has none."""
    return SIGNATURES.get(style, "")


def with_opening(opening: str, text: str) -> str:
    """Return a text after opening words; its first letter becomes lower case unless it starts a name."""
    if not opening or not text:
        return opening or text
    return f"{opening} {text if _NAME.match(text) else text[:1].lower() + text[1:]}"


def style_of(text: str) -> str | None:
    """Return the style whose opening words a text contains; None if there is none or more than one."""
    styles = [style for style, words in SIGNATURES.items() if words in text]
    return styles[0] if len(styles) == 1 else None


_BEGIN = re.compile(r"^<<<BEGIN ([a-z]+) ([0-9a-f]{16})>>>\n", re.MULTILINE)
_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_ESCAPE = re.compile(r"[\\\t\n\r]")
_ESCAPE_BESIDE_TAB = re.compile(r"[\\\n\r]")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_UNESCAPES = {"t": "\t", "n": "\n", "r": "\r"}


@dataclass(frozen=True, slots=True)
class Section:
    """The content between a pair of fences, and its label."""

    label: str
    content: str


def nonce(label: str, content: str) -> str:
    """Return 16 hex digits of the sha256 of label and content."""
    return hashlib.sha256(f"{label}\n{content}".encode("utf-8", "surrogatepass")).hexdigest()[:16]


def fence(label: str, content: str) -> str:
    """Put ``content`` between two lines with its label and nonce."""
    content = code_points(content)
    mark = f"{label} {nonce(label, content)}"
    return f"<<<BEGIN {mark}>>>\n{content}\n<<<END {mark}>>>"


def sections(text: str) -> tuple[Section, ...]:
    """Parse the outermost fenced sections of a prompt, in order; fence-like lines inside a section are content."""
    parts = []
    at = 0
    while begin := _BEGIN.search(text, at):
        label, mark = begin.groups()
        end = f"\n<<<END {label} {mark}>>>"
        # One character back, because with empty content the two line ends coincide.
        stop = text.find(end, begin.end() - 1)
        content = text[begin.end() : max(stop, begin.end())]
        if stop < 0 or nonce(label, content) != mark:
            raise InputError("prompt", [Problem(f"section {label}", "its fence is not closed or was tampered with")])
        parts.append(Section(label, content))
        at = stop + len(end)
    return tuple(parts)


def row(cells: Iterable[str]) -> str:
    """Join cells by tabs into one line; tabs and line ends within cells are escaped."""
    values = list(cells)
    line = "\t".join(values)
    if line.count("\t") == len(values) - 1 and not _ESCAPE_BESIDE_TAB.search(line):
        return line
    return "\t".join(_ESCAPE.sub(lambda match: _ESCAPES[match.group()], cell) for cell in values)


def cells(line: str) -> list[str]:
    """Split a line into its cells, the inverse of `row`."""
    if "\\" not in line:
        return line.split("\t")
    return [_ESCAPED.sub(lambda m: _UNESCAPES.get(m.group(1), m.group(1)), cell) for cell in line.split("\t")]


_PART: Final = re.compile(r"^=== ([A-Za-z0-9_]+) ===\n", re.MULTILINE)


@dataclass(frozen=True, slots=True, eq=False)
class PromptTemplate:
    """A prompt template: its file name, text, sha256, and parts by name."""

    name: str
    text: str
    sha256: str
    parts: Mapping[str, Template]

    @classmethod
    def of(cls, name: str, text: str) -> PromptTemplate:
        """Parse a template text into its parts."""
        _, *pieces = _PART.split(text)
        parts = {key: Template(part.rstrip("\n")) for key, part in zip(pieces[::2], pieces[1::2], strict=True)}
        return cls(name, text, sha256_text(text), parts)

    def part(self, name: str) -> str:
        """Return one part without filling in values."""
        return self.parts[name].template

    def filled(self, part: str, **values: object) -> str:
        """Return one part with its values filled in; raises `KeyError` if a value is missing."""
        return self.parts[part].substitute(values)


@cache
def prompt_template(package: str, name: str) -> PromptTemplate:
    """Load the template ``name`` from the folder ``templates`` of a package."""
    return PromptTemplate.of(name, (files(package) / "templates" / name).read_text(encoding="utf-8"))


# The time at which a fact became available is not rendered: `refuse_future` ensures that it precedes the decision.

Block = tuple[str, str]
"""Label and content of a section."""

Column = tuple[str, str, str]
"""Field, unit and note common to the facts in one column of a table."""

Placed = tuple[Column, Fact]

_MOST_SHOWN = 5
_DENSE = 0.5


@lru_cache(maxsize=4096)
def moment(when: datetime) -> str:
    """Format a time in UTC as RFC 3339."""
    return when.astimezone(UTC).isoformat().replace("+00:00", "Z")


def refuse_future(decision: Decision, context: Context) -> None:
    """Raise `InputError` if a context has facts or bars from after the decision."""
    late = [
        Problem(f"fact {fact.id}", f"available at {moment(fact.available_at)}, after the decision")
        for fact in context.facts
        if fact.available_at > decision.decided_at
    ]
    late += [
        Problem(f"series {series.instrument}", f"has a bar of {moment(max(series.times))}, after the decision")
        for series in context.series
        if series.times and max(series.times) > decision.decided_at
    ]
    if late:
        more = [f"and {len(late) - _MOST_SHOWN} more"] if len(late) > _MOST_SHOWN else []
        source = f"record {decision.record_id}, decided at {moment(decision.decided_at)}"
        raise InputError(source, [*late[:_MOST_SHOWN], *more])


def latest_time(context: Context) -> datetime | None:
    """Return the latest availability of a fact or close of a bar; None without facts and bars."""
    times = [fact.available_at for fact in context.facts]
    times += [max(series.times) for series in context.series if series.times]
    return max(times, default=None)


def material_blocks(context: Context) -> list[Block]:
    """Return the sections of a context in order, without empty ones; all its decisions share them."""
    pairs = [("cutoff", moment(context.cutoff)), ("completeness", context.completeness)]
    if context.profile:
        pairs.append(("profile", context.profile))
    positions: Mapping[str, float] = {}
    if book := context.portfolio:
        positions = book.positions
        pairs += [("currency", book.currency), ("cash", number_text(book.cash)), ("nav", number_text(book.nav))]
    limits = [(rule.kind, number_text(rule.limit), rule.unit, rule.scope) for rule in context.constraints]
    instruments = [
        (rule.id, rule.symbol or "", rule.name, rule.asset_class, rule.group, "; ".join(rule.aliases))
        for rule in context.instruments
    ]
    units = [(instrument, number_text(positions[instrument])) for instrument in sorted(positions)]
    tables: list[tuple[str, Sequence[str], Sequence[Sequence[str]]]] = [
        ("constraints", ("kind", "limit", "unit", "scope"), limits),
        ("instruments", ("instrument", "symbol", "name", "class", "group", "also called"), instruments),
        ("holdings", ("instrument", "units"), units),
    ]
    blocks = [("situation", "\n".join(map(row, pairs)))]
    blocks += [(label, "\n".join(map(row, [head, *rows])) if rows else "") for label, head, rows in tables]
    blocks.append(("facts", _facts_text(context.facts)))
    bars: list[str] = []
    for rule in context.series:
        names = [name for name in ("open", "high", "low", "close", "volume") if getattr(rule, name)]
        columns = [map(repr, map(float, getattr(rule, name))) for name in names]  # as `number_text` writes them
        bars += [row(("bars", str(len(rule.times)), rule.instrument, str(rule.interval_s))), row(("time", *names))]
        bars += map("\t".join, zip(map(moment, rule.times), *columns, strict=True))  # none has a tab that `row` escapes
    blocks += [("series", "\n".join(bars)), ("prompt", context.prompt)]
    return [(label, content) for label, content in blocks if content]


def number_text(value: float | None) -> str:
    """Format a number with all of its digits; empty for None."""
    return "" if value is None else repr(float(value))


def _facts_text(facts: Sequence[Fact]) -> str:
    """Format facts as wide tables with a row per instrument if they form one, the others one per line."""
    wide: dict[tuple[str, datetime | None], list[Placed]] = defaultdict(list)
    for fact in facts:
        if fact.instrument and not isinstance(fact.value, str):
            wide[fact.source, fact.as_of].append(((fact.field, fact.unit, fact.note), fact))
    lines, shown = list[str](), set[int]()
    for (source, when), cells_ in wide.items():
        grid: dict[str, dict[Column, Fact]] = {}
        if any(note for (_, _, note), _ in cells_):
            # A note is put in the head of a column only if at least half of the instruments share it.
            members = Counter(column for column, _ in cells_)
            enough = max(2.0, _DENSE * len({fact.instrument for _, fact in cells_}))
            cells_ = [(column, fact) for column, fact in cells_ if not fact.note or members[column] >= enough]
        for column, fact in cells_:
            grid.setdefault(fact.instrument, {}).setdefault(column, fact)
        columns = list(dict.fromkeys(column for of_row in grid.values() for column in of_row))
        count = sum(map(len, grid.values()))
        if count < 2 or count < _DENSE * len(grid) * len(columns):
            continue
        # A table line, a header, notes of the columns if any, and a line per instrument
        noted = any(note for _, _, note in columns)
        head = "table", str(len(grid)), source, moment(when) if when else ""
        lines.append(row((*head, "notes") if noted else head))
        lines.append(row(("instrument", *(f"{field} [{unit}]" for field, unit, _ in columns))))
        if noted:
            lines.append(row(("note", *(note for _, _, note in columns))))
        for instrument, of_row in grid.items():
            placed = map(of_row.get, columns)
            lines.append(row([instrument, *["" if fact is None else repr(float(fact.value)) for fact in placed]]))
            shown.update(id(fact) for fact in of_row.values())
    # The others one per line, under the note (source sentence) that they share
    if rest := [fact for fact in facts if id(fact) not in shown]:
        lines.append(row(("kind", "instrument", "field", "value", "unit", "as of", "source")))
    for note, several in groupby(rest, key=lambda fact: fact.note):
        lines.append(row(("note", note)))
        for fact in several:
            value = fact.value if isinstance(fact.value, str) else number_text(fact.value)
            kind = "text" if isinstance(fact.value, str) else "fact"
            as_of = moment(fact.as_of) if fact.as_of else ""
            lines.append(row((kind, fact.instrument, fact.field, value, fact.unit, as_of, fact.source)))
    return "\n".join(lines)


_COLUMN = re.compile(r"(.*) \[(.*)\]", re.DOTALL)


def read_material(sections: Sequence[Section]) -> Context:
    """Parse the sections of a prompt into a context. Facts are numbered, and become available at the cutoff."""
    content = {section.label: section.content for section in reversed(sections)}
    situation = dict(pair for line in lines_of(content.get("situation", "")) if len(pair := cells(line)) == 2)
    if "cutoff" not in situation:
        raise InputError("prompt", ["holds no material"])
    cutoff = datetime.fromisoformat(situation["cutoff"])

    def body(label: str) -> list[list[str]]:  # the rows of a table below its head
        return [cells(line) for line in lines_of(content.get(label, ""))[1:]]

    portfolio: Portfolio | None = None
    if "nav" in situation:
        cash, nav = float(situation["cash"]), float(situation["nav"])
        positions = {instrument: float(units) for instrument, units in body("holdings")}
        portfolio = Portfolio(situation["currency"], cash, nav, positions)
    instruments = [
        Instrument(name, symbol or None, words, asset_class, group, tuple(filter(None, aliases.split("; "))))
        for name, symbol, words, asset_class, group, aliases in body("instruments")
    ]  # fmt: skip
    lines = iter(lines_of(content.get("facts", "")))
    facts: list[Fact] = []
    note, ids = "", map("f{}".format, count(1))
    for line in lines:
        kind, *read_facts_found = cells(line)
        if kind == "note":
            note = read_facts_found[0]
        elif kind in ("fact", "text"):
            instrument, field, written, unit, as_of, source = read_facts_found
            value = float(written) if kind == "fact" else written
            when = _moment(as_of) if as_of else None
            facts.append(Fact(next(ids), instrument, field, value, unit, cutoff, when, source, note))
        elif kind == "table":
            height, source, as_of, *noted = read_facts_found
            titles = [_COLUMN.fullmatch(head) for head in cells(next(lines))[1:]]
            notes = cells(next(lines))[1:] if noted else [""] * len(titles)
            columns = [(*match.groups(), note) for match, note in zip(titles, notes, strict=True) if match]
            when = _moment(as_of) if as_of else None
            for _ in range(int(height)):
                instrument, *values = cells(next(lines))
                facts += [
                    Fact(next(ids), instrument, field, float(value), unit, cutoff, when, source, remark)
                    for (field, unit, remark), value in zip(columns, values, strict=True)
                    if value
                ]
    series = []
    lines = iter(lines_of(content.get("series", "")))
    for line in lines:
        _, height, instrument, interval = cells(line)
        names = cells(next(lines))[1:]
        rows = [cells(next(lines)) for _ in range(int(height))]
        read = {name: tuple(map(float, map(itemgetter(at), rows))) for at, name in enumerate(names, start=1)}
        closed = tuple(datetime.fromisoformat(line[0]) for line in rows)
        series.append(Series(instrument, interval_s=int(interval), times=closed, **{"close": (), **read}))
    return Context(
        completeness="complete" if situation["completeness"] == "complete" else "partial",
        cutoff=cutoff,
        cutoff_source="prompt",
        prompt=content.get("prompt", ""),
        facts=tuple(facts),
        series=tuple(series),
        instruments=tuple(instruments),
        portfolio=portfolio,
        constraints=tuple(
            Constraint(kind, float(limit), unit, scope) for kind, limit, unit, scope in body("constraints")
        ),
        profile=situation.get("profile"),
    )


Row = Mapping[str, str]
"""One row of a table: its cells by column."""


def table_lines(name: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Render a table with its size, name and header, one line per row; empty if it has no rows."""
    body = [row(cells) for cells in rows]
    return [row(("table", str(len(body)), name)), row(head), *body] if body else []


def read_tables(lines: Sequence[str]) -> tuple[dict[str, tuple[Row, ...]], list[list[str]]]:
    """Parse lines with tables as of `table_lines`: their rows by name, and the cells of all other lines."""
    tables: dict[str, tuple[Row, ...]] = {}
    others: list[list[str]] = []
    at = iter(lines)
    for line in at:
        kind, *stated = cells(line)
        if kind != "table":
            others.append([kind, *stated])
            continue
        size, name = stated
        columns = cells(next(at, ""))
        tables[name] = tuple(dict(zip(columns, cells(entry), strict=True)) for entry in islice(at, int(size)))
    return tables, others


def lines_of(text: str) -> list[str]:
    """Split a section into lines; an empty section has none."""
    return text.split("\n") if text else []


_moment = lru_cache(maxsize=4096)(datetime.fromisoformat)
Read, flagged, latest, no_json = Parsed, with_flags, latest_time, is_not_json  # their names in 0.1
shown, text_of, whole, word_of = brief, bounded_text, whole_number, choice
