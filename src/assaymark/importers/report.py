"""What an import gives back: the records, and an account of what was there, what was missing and what was wrong."""

from __future__ import annotations

import dataclasses
import types
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations
from typing import Any, Final, Literal, Protocol, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from assaymark.errors import LISTED, Problem
from assaymark.notebook import Note, Part, Result
from assaymark.portfolio.broker import CheckKind
from assaymark.records import Context, Decision, Outcome, Rationale

# What is wrong with a value from outside, in our words: the place, what is allowed, and a short form of the value.


NAME = r"^[^\x00-\x1f\[\]=,|]{1,120}$"
"""What a name may be made of: what a study file can hold, so that every imported agent can be chosen there."""

NO_NAME = "cannot be a name: 1 to 120 characters, no control characters and none of []=,|"
SHA256 = r"^[0-9a-f]{64}$"

_SEEN = 60


class ShapeError(ValueError):
    """A value does not have the shape it should have; carries every problem."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(map(str, problems)))


@cache
def adapter(kind: Any) -> TypeAdapter[Any]:
    """The strict reader of a shape; made once, for it is slow to make."""
    return TypeAdapter(kind)


def as_shape(kind: Any, value: Any) -> Any:
    """A tree of plain values as a ``kind``.

    >>> as_shape(dict[str, int], {"a": "many"})
    Traceback (most recent call last):
    assaymark.importers.report.ShapeError: a: must be a whole number (got 'many')
    """
    try:
        return adapter(kind).validate_python(value)
    except ValidationError as exc:
        raise ShapeError(worded(exc, kind)) from None


def json_as_shape(kind: Any, text: str | bytes) -> Any:
    """A JSON text as a ``kind``. Raises as `as_shape`."""
    try:
        return adapter(kind).validate_json(text)
    except ValidationError as exc:
        raise ShapeError(worded(exc, kind)) from None


def worded(error: ValidationError, kind: Any) -> list[Problem]:
    """The problems in a pydantic error about a ``kind``, in our words."""
    return [_problem(item, kind) for item in error.errors(include_url=False)]


def _problem(item: Mapping[str, Any], kind: Any) -> Problem:
    loc = item["loc"]
    place = ".".join(str(part) for part in loc)
    if item["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
        return Problem(place, f"unknown key (allowed: {', '.join(_allowed(kind, loc)) or 'none'})")
    what = _what(item["type"], item.get("ctx", {}), item["msg"])
    return Problem(place, what + ("" if item["type"] in _WITHOUT_VALUE else f" (got {_seen(item['input'])})"))


_WITHOUT_VALUE = frozenset(
    {"missing", "missing_argument", "missing_keyword_only_argument", "json_invalid", "value_error"}
)

_WORDS: Mapping[str, str] = {
    "missing": "is missing; a value is needed",
    "missing_argument": "is missing; a value is needed",
    "missing_keyword_only_argument": "is missing; a value is needed",
    "string_type": "must be text",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_parsing_size": "must be a whole number of at most 19 digits",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "dataclass_type": "must be an object",
    "none_required": "must be empty",
    "date_type": "must be a day such as 2026-05-01",
    "date_parsing": "must be a day such as 2026-05-01",
    "date_from_datetime_parsing": "must be a day such as 2026-05-01",
    "date_from_datetime_inexact": "must be a day such as 2026-05-01",
    "datetime_type": "must be a time such as 2026-05-01T13:30:00Z",
    "datetime_parsing": "must be a time such as 2026-05-01T13:30:00Z",
    "datetime_from_date_parsing": "must be a time such as 2026-05-01T13:30:00Z",
    "timezone_aware": "has no time zone; allowed: 2026-05-01T13:30:00Z or with +02:00",
}

_LIMITS: Mapping[str, str] = {
    "greater_than": "must be more than {gt:g}",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than": "must be less than {lt:g}",
    "less_than_equal": "must be at most {le:g}",
    "literal_error": "must be {expected}",
    "too_short": "must hold at least {min_length}",
    "too_long": "must hold at most {max_length}",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "json_invalid": "not JSON: {error}",
    "value_error": "{error}",
}

_PATTERNS: Mapping[str, str] = {
    NAME: NO_NAME,
    SHA256: "must be a sha256: 64 digits of 0-9 and a-f",
}


def _what(kind: str, limits: Mapping[str, Any], message: str) -> str:
    """Our sentence for one kind of error; the library's own, in lower case, for one that we never met."""
    if kind in _WORDS:
        return _WORDS[kind]
    if kind in _LIMITS:
        return _LIMITS[kind].format_map(limits)
    if kind == "string_pattern_mismatch":
        return _PATTERNS.get(limits["pattern"], f"must be written like {limits['pattern']}")
    return f"{message[:1].lower()}{message[1:]}"


def _seen(value: Any) -> str:
    """A value as it is shown; what holds other values is only named."""
    if isinstance(value, Mapping) or dataclasses.is_dataclass(value):
        return "an object"
    if isinstance(value, (list, tuple)):
        return f"a list of {len(value)}"
    if value is None:
        return "nothing"
    if isinstance(value, int) and value.bit_length() > 1000:
        return "a number of more than 300 digits"
    seen = repr(value)
    return seen if len(seen) <= _SEEN else f"{seen[: _SEEN - 3]}..."


def _allowed(kind: Any, loc: Sequence[str | int]) -> tuple[str, ...]:
    """The keys that may stand where ``loc`` ends, found by following it through the types."""
    for part in loc[:-1]:
        kind = _inside(kind, part)
    return tuple(_keys(_bare(kind)))


def _inside(kind: Any, part: str | int) -> Any:
    """The type of one part of a type."""
    kind = _bare(kind)
    if get_origin(kind) in (list, tuple):
        return get_args(kind)[0]
    if get_origin(kind) is dict:
        return get_args(kind)[1]
    return _keys(kind).get(str(part))


def _bare(kind: Any) -> Any:
    """A type without its "or nothing"."""
    if get_origin(kind) in (Union, types.UnionType):
        return next(one for one in get_args(kind) if one is not type(None))
    return kind


def _keys(kind: Any) -> dict[str, Any]:
    """The keys of an object type with their types; a generic one's are those that it was made with."""
    shape = get_origin(kind) or kind
    if not isinstance(shape, type):
        return {}
    if dataclasses.is_dataclass(shape):
        names = [field.name for field in dataclasses.fields(shape)]
    elif issubclass(shape, BaseModel):
        names = list(shape.model_fields)
    else:
        return {}
    hints = get_type_hints(shape)
    given: dict[TypeVar, Any] = dict(zip(getattr(shape, "__parameters__", ()), get_args(kind), strict=False))
    return {name: given.get(hints[name], hints[name]) for name in names}


EXAMPLES = 3
"""How many examples of each missing thing a report keeps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """How often something was absent, and the first few places."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    count: int
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ImportReport(Result):
    """The account of one import: denominators first, then everything a reader should know before using the records.

    ``good`` and ``bad`` count decisions: imported, and left out because something about them (or about the round they
    belong to) was wrong; ``problems`` says what. ``missing`` counts what the source names but does not hold.
    ``verified`` counts files whose hash was recomputed and matched, ``unverifiable`` those that a hash list names but
    that are not there, both by file name. ``never_met`` lists the pairs of agents without a common question: nothing
    can be said about them as a pair. ``replicates`` counts decisions beyond the first of an agent on a question; at 0
    an agent's own noise is undefined.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    source: str
    good: int
    bad: int
    counts: Mapping[str, int] = field(default_factory=dict)
    formats: Mapping[str, int] = field(default_factory=dict)
    flags: Mapping[str, int] = field(default_factory=dict)
    missing: Mapping[str, Missing] = field(default_factory=dict)
    verified: Mapping[str, int] = field(default_factory=dict)
    unverifiable: Mapping[str, int] = field(default_factory=dict)
    no_text: tuple[str, ...] = ()
    never_met: tuple[tuple[str, str], ...] = ()
    replicates: int = 0
    notes: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()

    def _parts(self) -> Iterator[Part]:
        yield from map(Note, self.lines())

    def lines(self) -> tuple[str, ...]:
        """The report as plain lines, most important first.

        >>> ImportReport(source="mine", good=2, bad=0, counts={"contexts": 1}).lines()
        ('mine: 2 decisions imported, 0 left out', 'contexts: 1')
        """
        out = [f"{self.source}: {self.good} decisions imported, {self.bad} left out"]
        out += [f"{name}: {n}" for name, n in self.counts.items()]
        out += [f"format {name}: {n}" for name, n in self.formats.items()]
        out += [f"flag {name}: {n}" for name, n in self.flags.items()]
        if self.verified:
            out.append(f"hashes verified: {sum(self.verified.values())}")
        if self.unverifiable:
            out.append(f"hashes of absent files: {sum(self.unverifiable.values())}")
        out += [f"missing {name}: {m.count} (such as {', '.join(m.examples)})" for name, m in self.missing.items()]
        if self.no_text:
            out.append(f"without any text to judge: {len(self.no_text)}")
        out += [f"never met: {a} and {b}" for a, b in self.never_met]
        out += list(self.notes)
        return (*out, *capped(self.problems))


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """The records of one import. ``contexts`` is keyed by content id; outcomes stay a table of their own."""

    decisions: tuple[Decision, ...]
    contexts: Mapping[str, Context]
    outcomes: tuple[Outcome, ...]
    report: ImportReport


class Tally:
    """Collects, while an import runs, what its report will say."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.counts: Counter[str] = Counter()
        self.verified: Counter[str] = Counter()
        self.unverifiable: Counter[str] = Counter()
        self._missing: dict[str, list[str]] = {}
        self._absent: Counter[str] = Counter()

    def problem(self, where: str, what: str) -> None:
        """One thing wrong with the input."""
        self.problems.append(Problem(where, what))

    def missing(self, what: str, example: str) -> None:
        """One thing the source should hold and does not."""
        self._absent[what] += 1
        kept = self._missing.setdefault(what, [])
        if len(kept) < EXAMPLES:
            kept.append(example)

    def report(self, source: str, decisions: Sequence[Decision], *, bad: int, **more: Any) -> ImportReport:
        """The finished report over the decisions that were imported."""
        return ImportReport(
            source=source,
            good=len(decisions),
            bad=bad,
            counts=dict(self.counts),
            formats=dict(sorted(Counter(d.format for d in decisions).items())),
            flags=dict(sorted(Counter(flag for d in decisions for flag in d.flags).items())),
            missing={k: Missing(count=self._absent[k], examples=tuple(v)) for k, v in self._missing.items()},
            verified=dict(sorted(self.verified.items())),
            unverifiable=dict(sorted(self.unverifiable.items())),
            no_text=tuple(d.record_id for d in decisions if NO_TEXT in d.missing),
            never_met=never_met(decisions),
            replicates=sum(d.replicate > 1 for d in decisions),
            problems=tuple(self.problems),
            **more,
        )


NO_TEXT = "text"
"""What stands in ``Decision.missing`` when the agent wrote nothing that a judge can read."""


def has_text(rationales: Iterable[Rationale]) -> bool:
    """Whether the agent wrote anything that a judge can read; reasons for single holdings are not judged."""
    return any(r.kind not in ("arena", "holding") and r.text.strip() for r in rationales)


def never_met(decisions: Iterable[Decision]) -> tuple[tuple[str, str], ...]:
    """The pairs of agents that never answered one question, in alphabetical order."""
    cycles: dict[str, set[str]] = {}
    for decision in decisions:
        cycles.setdefault(decision.agent.id, set()).add(decision.cycle)
    return tuple((a, b) for a, b in combinations(sorted(cycles), 2) if cycles[a].isdisjoint(cycles[b]))


def capped(problems: Sequence[Problem], limit: int = LISTED) -> tuple[str, ...]:
    """The first ``limit`` problems as lines, and a count of the rest.

    >>> capped([Problem("line 1", "empty"), Problem("line 2", "empty")], limit=1)
    ('line 1: empty', 'and 1 more')
    """
    rest = len(problems) - limit
    return tuple(str(p) for p in problems[:limit]) + ((f"and {rest} more",) if rest > 0 else ())


# A season that somebody else ran, as its log states it: books, fills, baselines, and checks of the one by the other.
#
# An importer's decisions say what was decided and why. A log that states books and has prices gives this beside them.


EQUAL_WEIGHT: Final = "equal weight"
CASH: Final = "cash"

BookState = Literal["ok", "not stated"]
"""``not stated``: the log states no book on that day, and the one before it is carried on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedFill:
    """One logged action that was carried out: signed units. ``price`` is None where nobody knows it."""

    day: str
    agent: str
    record_id: str
    number: int
    symbol: str
    quantity: float
    price: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedBook:
    """The stated book after the last step of a day, and what it was worth then.

    ``stale`` names symbols without a price at that moment, valued at their last known one.
    """

    day: str
    agent: str
    state: BookState
    cash: float
    nav: float
    positions: Mapping[str, float]
    stale: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCheck:
    """How many checks of one kind were made of one agent's log, and how many passed.

    ``mismatches`` are (record id, sentence).
    """

    agent: str
    kind: CheckKind
    checks: int
    passed: int
    mismatches: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedTrack:
    """One track of a log.

    Attributes
    ----------
    capital, currency : float, str
        What each agent began with.
    universe : tuple of str
        The symbols that have prices.
    days : mapping of record id to str
        The day of each decision, where it was made.
    baselines : tuple of RecordedBook
        Books that nobody decided about; ``agent`` is the baseline's name.
    """

    name: str
    capital: float
    currency: str
    universe: tuple[str, ...]
    days: Mapping[str, str]
    fills: tuple[RecordedFill, ...] = ()
    books: tuple[RecordedBook, ...] = ()
    baselines: tuple[RecordedBook, ...] = ()
    checks: tuple[RecordedCheck, ...] = field(default=())


class ReadTrack(Protocol):
    """From the bytes of files to one track; pure. What an import would refuse is left out here."""

    def __call__(self, files: Mapping[str, bytes], track: str) -> RecordedTrack:
        """One track of the log in ``files``."""
        ...
