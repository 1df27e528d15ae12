"""Reference judges of a season: instruments with known properties, asked and parsed like any model."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import lru_cache
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final

from assaymark.engine.calls import CallSpec, Model, Reply
from assaymark.errors import InputError, ModelError, Problem
from assaymark.judging.evidence import Finding, Material, audit_texts
from assaymark.judging.reference.features import topic_counts
from assaymark.judging.reference.judges import interpolate, knob_problem, standard_normal, value_words
from assaymark.judging.season.ledger import BORNE_OUT
from assaymark.judging.season.record import ORDER
from assaymark.prompting.fences import cells, sections
from assaymark.prompting.texts import JUDGED_KINDS, SIGNATURES, style_of, token_count
from assaymark.records import JSON, Fact, Instrument

# A rendered horizon read back: all that a reference judge of a season knows of it.


Row = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ShownStep:
    """A step as a judge sees it: its tables by name, a mapping of column to cell for each row, and its texts.

    ``cash`` is None where no book is shown.
    """

    number: int
    day: str
    tables: Mapping[str, tuple[Row, ...]]
    cash: float | None = None
    texts: tuple[tuple[str, str], ...] = ()
    outcomes: tuple[Row, ...] = ()

    @property
    def text(self) -> str:
        """The judged texts as one."""
        return "\n\n".join(text for _, text in self.texts)

    def rows(self, table: str) -> tuple[Row, ...]:
        """The rows of a table; none where it is not shown."""
        return self.tables.get(table, ())

    @property
    def positions(self) -> dict[str, float] | None:
        """Units by symbol after the step; None where no book is shown."""
        return None if self.cash is None else {one["symbol"]: float(one["units"]) for one in self.rows("book")}


@dataclass
class _Open:
    """A step as its sections come."""

    tables: Mapping[str, tuple[Row, ...]]
    number: int
    day: str
    cash: float | None
    texts: list[tuple[str, str]] = field(default_factory=list)
    outcomes: tuple[Row, ...] = ()

    def closed(self) -> ShownStep:
        return ShownStep(self.number, self.day, self.tables, self.cash, tuple(self.texts), self.outcomes)


def read_steps(text: str) -> tuple[ShownStep, ...]:
    """The steps of a user message."""
    steps: list[_Open] = []
    for section in sections(text):
        if section.label == "step":
            steps.append(_opened(section.content.split("\n")))
        elif steps and section.label == "outcomes":
            steps[-1].outcomes = _tables(section.content.split("\n")).get("outcomes", ())
        elif steps and section.label in JUDGED_KINDS:
            steps[-1].texts.append((section.label, section.content))
    return tuple(step.closed() for step in steps)


def _opened(lines: Sequence[str]) -> _Open:
    """A step from the lines of its first section."""
    head = cells(lines[0])
    if len(head) != 3 or head[0] != "step" or not head[1].isdecimal():
        raise InputError("prompt", [Problem("step", f"its first line is not a step's (got {lines[0][:60]!r})")])
    cash = [float(line.partition("\t")[2]) for line in lines if line.startswith("cash\t")]
    return _Open(_tables(lines[1:]), int(head[1]), head[2], cash[0] if cash else None)


def _tables(lines: Sequence[str]) -> dict[str, tuple[Row, ...]]:
    """The tables among some lines, by name."""
    found: dict[str, tuple[Row, ...]] = {}
    at = 0
    while at < len(lines):
        if lines[at].startswith("table\t"):
            _, size, name = cells(lines[at])
            head = cells(lines[at + 1])
            body = lines[at + 2 : at + 2 + int(size)]
            found[name] = tuple(dict(zip(head, cells(line), strict=True)) for line in body)
            at += 1 + int(size)
        at += 1
    return found


# What a reference judge notices in a horizon, as numbers. Nothing here knows more than the rendered prompt says.


MOST_CLAIMS: Final = 40
"""A reference judge's ledger is this long at most: numbers from all over the record, evenly spaced."""

_EARLY: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TRADES: Final = ("buy", "sell", "short", "cover", "close", "target_weight")
_AROUND: Final = 60
_LONGEST: Final = 500
_HALF_PAIR: Final = re.compile("[\ud800-\udfff]")
_SLACK: Final = 1e-6


@dataclass(frozen=True, slots=True)
class NoticedClaim:
    """A number of the reasons with the words around it, and what the market lines of its step say of it."""

    quote: str
    step: int
    state: str
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HorizonFeatures:
    """What can be noticed about a horizon. None: it gives nothing to notice it by.

    Rates are words per 100 tokens of the judged texts, shares lie in 0..1.
    """

    steps: int
    tokens: float
    """Tokens of judged text per step: what a slope on length looks at."""
    hedge_rate: float
    risk_rate: float
    catalyst_rate: float
    condition_rate: float
    contrast_rate: float
    constraint_rate: float
    size_rate: float
    numbers: float
    """Numbers per step."""
    grounded: float | None
    """Share of the numbers that the market lines of their step bear out."""
    named: float | None
    """Share of the traded symbols that the reasons of the step name."""
    reversed_trades: float | None
    """Share of the trades that go against the last trade of their symbol."""
    carried_out: float | None
    """Share of the orders that the broker filled."""
    holdings: float | None
    """Positions held, on average."""
    reconciled: float | None
    """Share of the positions that follow from the book before and the fills."""
    style: str | None
    """The house style of the reasons (`prompting.styles`), if they have one."""
    claims: tuple[NoticedClaim, ...] = ()


@lru_cache(maxsize=8)
def notice_horizon(text: str) -> HorizonFeatures:
    """The features of a user message; one reading serves every judge and trial."""
    steps = read_steps(text)
    said = "\n\n".join(step.text for step in steps)
    tokens = token_count(said)
    findings = [(step, found) for step in steps for found in _findings(step)]
    borne_out = sum(found.state in BORNE_OUT for _, found in findings)
    noticed: dict[str, Any] = {
        f"{topic}_rate": 100.0 * count / max(tokens, 1) for topic, count in topic_counts(said).items()
    }
    return HorizonFeatures(
        steps=len(steps),
        tokens=tokens / max(len(steps), 1),
        numbers=len(findings) / max(len(steps), 1),
        grounded=borne_out / len(findings) if findings else None,
        named=_named(steps),
        reversed_trades=_reversed(steps),
        carried_out=_carried_out(steps),
        holdings=_holdings(steps),
        reconciled=_reconciled(steps),
        style=style_of(said),
        claims=tuple(_claim(step, found) for step, found in findings[:: -(-len(findings) // MOST_CLAIMS) or 1]),
        **noticed,
    )


def _findings(step: ShownStep) -> list[Finding]:
    """The numbers of one step against its market lines; what is not shown cannot contradict anything."""
    return list(_audited(step.texts, tuple(tuple(line.items()) for line in step.rows("market"))))


@lru_cache(maxsize=2048)
def _audited(
    texts: tuple[tuple[str, str], ...], market: tuple[tuple[tuple[str, str], ...], ...]
) -> tuple[Finding, ...]:
    """The numbers of texts against market lines. A step is shown to every judge, in its period and in the whole."""
    lines = [dict(line) for line in market]
    facts = [
        Fact(id=column, instrument=line["symbol"], field=name, value=value, unit=unit, available_at=_EARLY)
        for line in lines
        for column, cell in line.items()
        if column != "symbol" and (value := _number(cell)) is not None
        for name, unit in [_column(column)]
    ]
    names = [Instrument(id=line["symbol"], symbol=line["symbol"]) for line in lines]
    shown: list[Any] = list(texts)
    return tuple(audit_texts(shown, Material.build(facts=facts, instruments=names, completeness="partial")))


def _column(column: str) -> tuple[str, str]:
    """A column's field and unit."""
    name, _, unit = column.rpartition(" [")
    return name, unit.removesuffix("]")


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _claim(step: ShownStep, found: Finding) -> NoticedClaim:
    """A number with the words around it: a quotation word for word."""
    text = step.texts[found.part][1]
    start, end = found.number.start, found.number.start + len(found.number.quote)
    low = text.rfind(" ", 0, max(start - _AROUND, 0)) + 1 if start > _AROUND else 0
    high = text.find(" ", min(end + _AROUND, len(text)))
    state = "supported" if found.state in BORNE_OUT else "not_verifiable"
    quote = text[low : high if high >= 0 else len(text)]
    if len(quote) > _LONGEST or _HALF_PAIR.search(quote):
        quote = found.number.quote[:_LONGEST]
    return NoticedClaim(quote, step.number, state, found.facts)


def _traded(step: ShownStep) -> list[Mapping[str, str]]:
    return [line for line in step.rows("actions") if line["action"] in _TRADES]


def _named(steps: Sequence[ShownStep]) -> float | None:
    """Share of what is traded that the reasons name by its symbol."""
    found = [line["instrument"] in step.text for step in steps for line in _traded(step)]
    return sum(found) / len(found) if found else None


def _reversed(steps: Sequence[ShownStep]) -> float | None:
    """Share of the fills that go against the last one of their symbol."""
    last: dict[str, bool] = {}
    turns: list[bool] = []
    for step in steps:
        for fill in _ordered(step):
            bought = float(fill["units"]) > 0
            turns.append(last.get(fill["symbol"], bought) != bought)
            last[fill["symbol"]] = bought
    return sum(turns) / len(turns) if turns else None


def _ordered(step: ShownStep) -> list[Mapping[str, str]]:
    """The fills that orders asked for: no splits, dividends and instruments that ended."""
    return [fill for fill in step.rows("fills") if fill.get("kind", ORDER) == ORDER]


def _carried_out(steps: Sequence[ShownStep]) -> float | None:
    filled, refused = sum(len(_ordered(step)) for step in steps), sum(len(step.rows("refused")) for step in steps)
    return filled / (filled + refused) if filled + refused else None


def _holdings(steps: Sequence[ShownStep]) -> float | None:
    sizes = [len(held) for step in steps if (held := step.positions) is not None]
    return sum(sizes) / len(sizes) if sizes else None


def _reconciled(steps: Sequence[ShownStep]) -> float | None:
    """Share of the positions after a step that the book before and the fills explain."""
    right = total = 0
    for early, late in pairwise(steps):
        before, after = early.positions, late.positions
        if before is None or after is None:
            continue
        expected = defaultdict(float, before)
        for fill in late.rows("fills"):
            expected[fill["symbol"]] += float(fill["units"])
        for symbol in {*expected, *after}:
            total += 1
            right += abs(expected[symbol] - after.get(symbol, 0.0)) <= _SLACK * max(1.0, abs(expected[symbol]))
    return right / total if total else None


VERSION: Final = "1"
"""Changes with anything that can change a score; part of the fingerprint."""

MIDDLE: Final = 50.0
"""The grade where a prompt gives nothing to go by."""

_HIGHEST = 100
Knots = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class SeasonPlanted:
    """What is known about a reference judge of a season because it was put in.

    Every grade before rounding is
    ``opinion + offset + slope * (tokens per step - pivot) / 100 + preference [style is kin] + noise * z``, with one
    standard normal z for a call, fixed by judge, prompt, seed and trial: what repeated judging shows of a composite is
    ``noise``, but for rounding. It is then rounded half up and clipped to 0..100. In outcome calls ``slope`` and
    ``preference`` have nothing to look at.
    """

    offset: float
    noise: float
    slope: float
    pivot: float
    words: str
    preference: float = 0.0
    kin: str = ""
    knows: str = ""


SEASON_PLANTED: Mapping[str, SeasonPlanted] = MappingProxyType(
    {
        "reference/season-auditor": SeasonPlanted(
            offset=-3.0,
            noise=2.5,
            slope=0.0,
            pivot=60.0,
            words="asks whether it is true; three points strict, noise of 2.5 points, blind to length and style",
        ),
        "reference/season-reader": SeasonPlanted(
            offset=4.0,
            noise=3.5,
            slope=5.0,
            pivot=60.0,
            words="asks whether it is explained; four points lenient, noise of 3.5 points, each 100 tokens a step "
            "beyond 60 earn five points, blind to style",
        ),
        "reference/season-allocator": SeasonPlanted(
            offset=0.0,
            noise=3.0,
            slope=0.0,
            pivot=60.0,
            words="asks whether it is prudent; neither strict nor lenient, noise of 3 points, blind to length and "
            "style",
        ),
    }
)
"""The planted properties by model name; a call's arguments of the same names override them."""

_WORDS = ("kin", "knows")
_KNOBS = tuple(one.name for one in fields(SeasonPlanted) if one.name != "words")
_MOST = 1e6

# --- opinions ---------------------------------------------------------------------------------------------------------

WORTH: Mapping[str, Knots] = {
    "hedge_rate": ((0.0, 30.0), (1.5, 60.0), (4.0, 85.0)),
    "risk_rate": ((0.0, 15.0), (2.0, 50.0), (6.0, 90.0)),
    "catalyst_rate": ((0.0, 25.0), (2.0, 60.0), (5.0, 90.0)),
    "condition_rate": ((0.0, 25.0), (1.0, 55.0), (4.0, 90.0)),
    "contrast_rate": ((0.0, 35.0), (1.5, 65.0), (3.0, 85.0)),
    "constraint_rate": ((0.0, 30.0), (0.5, 60.0), (2.0, 90.0)),
    "size_rate": ((0.0, 25.0), (1.5, 60.0), (4.0, 90.0)),
    "numbers": ((0.0, 15.0), (2.0, 55.0), (6.0, 90.0)),
    "grounded": ((0.1, 5.0), (0.5, 45.0), (0.9, 80.0), (1.0, 97.0)),
    "named": ((0.0, 10.0), (0.6, 55.0), (1.0, 92.0)),
    "reversed_trades": ((0.0, 92.0), (0.1, 65.0), (0.4, 20.0)),
    "carried_out": ((0.5, 10.0), (0.9, 60.0), (1.0, 90.0)),
    "holdings": ((0.5, 15.0), (2.0, 40.0), (6.0, 75.0), (12.0, 92.0)),
}
"""What a value of a feature is worth in points: straight lines between these, flat beyond."""

TOPICS: Mapping[str, tuple[str, ...]] = {
    "action_rationale_alignment": ("named", "carried_out", "grounded"),
    "thesis_quality": ("named", "catalyst_rate", "contrast_rate", "grounded"),
    "strategy_fit": ("constraint_rate", "carried_out", "holdings"),
    "risk_awareness": ("risk_rate", "condition_rate", "holdings"),
    "portfolio_discipline": ("holdings", "carried_out", "size_rate", "reversed_trades"),
    "temporal_consistency": ("reversed_trades", "condition_rate"),
    "decision_update_quality": ("reversed_trades", "catalyst_rate", "numbers"),
    "uncertainty_discipline": ("hedge_rate", "condition_rate", "grounded"),
    "outcome_independent_reasoning": ("contrast_rate", "catalyst_rate", "numbers"),
    "clarity_and_specificity": ("named", "numbers", "size_rate"),
    "claim_support": ("grounded", "numbers"),
    "valuation_use": ("grounded", "numbers"),
    "momentum_use": ("grounded", "numbers"),
    "analyst_use": ("grounded", "catalyst_rate"),
    "sector_use": ("grounded", "contrast_rate"),
    "no_unsupported_claims": ("grounded",),
    "no_contradiction": ("grounded", "reversed_trades"),
}
"""The features that speak to each part of the shipped plans. A part that is not among them is graded `MIDDLE`."""

LEANING: Mapping[str, Mapping[str, float]] = {
    "reference/season-auditor": {"grounded": 3.0, "numbers": 1.5},
    "reference/season-reader": {"named": 2.0, "catalyst_rate": 2.0, "contrast_rate": 2.0, "numbers": 2.0},
    "reference/season-allocator": {"holdings": 3.0, "reversed_trades": 2.0, "carried_out": 2.0, "risk_rate": 2.0},
}
"""How much a feature counts for each judge; 1 where nothing is said. This is where their viewpoints differ."""


def season_opinion(judge: str, part: str, seen: HorizonFeatures) -> float:
    """What a judge thinks of one part before any planted error: the weighted mean of what its features are worth."""
    weights = LEANING[judge]
    found = [
        (weights.get(name, 1.0), interpolate(float(value), WORTH[name]))
        for name in TOPICS.get(part, ())
        if (value := getattr(seen, name)) is not None
    ]
    return sum(w * points for w, points in found) / sum(w for w, _ in found) if found else MIDDLE


# --- answers ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SeasonJudge:
    """A judge of whole horizons that reads nothing but the rendered prompt and grades it by stated functions.

    It is a `Model` and answers horizon calls, outcome calls and author probes, by the schema of the call.
    """

    name: str

    async def complete(self, call: CallSpec) -> Reply:
        """Answer one call."""
        return Reply(text=self.answer(call), model=self.name, fingerprint=f"{self.name}@{VERSION}")

    def answer(self, call: CallSpec) -> str:
        """The text of the reply."""
        planted = _with_arguments(self.name, call.args)
        form = _properties(call)
        shown = "\n\n".join(message.text for message in call.messages if message.role == "user")
        z = standard_normal(self._asked(call)) if planted.noise else 0.0
        try:
            if "outcome" in form:
                return json.dumps(_outcome(shown, planted, z))
            if "author" in form:
                return json.dumps(self._author(shown, form["author"]["enum"], planted, call))
            if "reasoning" in form:
                return json.dumps(self._grades(notice_horizon(shown), form, planted, z))
        except (InputError, KeyError, ValueError) as exc:
            raise ModelError(f"{self.name} cannot read the prompt: {exc}", retryable=False) from None
        raise ModelError(f"{self.name} is asked for nothing that it knows", retryable=False)

    def _grades(
        self, seen: HorizonFeatures, form: Mapping[str, Any], planted: SeasonPlanted, z: float
    ) -> dict[str, JSON]:
        """A reply on a horizon. No tense is understood here, so the check for look-ahead always passes."""
        error = planted.offset + planted.slope * (seen.tokens - planted.pivot) / 100.0 + planted.noise * z
        if planted.kin and seen.style == planted.kin:
            error += planted.preference
        axes: dict[str, dict[str, int]] = {
            axis: {part: _points(season_opinion(self.name, part, seen) + error) for part in form[axis]["required"]}
            for axis in ("reasoning", "evidence")
        }
        mean = sum(axes["reasoning"].values()) / max(len(axes["reasoning"]), 1)
        claims = [
            {"quote": one.quote, "step": one.step, "state": one.state, "fields": list(one.fields)}
            for one in seen.claims
        ]
        reply: dict[str, JSON] = {
            **axes,
            "data_reliability": _points(MIDDLE if seen.reconciled is None else 100.0 * seen.reconciled),
            "claims": claims,
            "lookahead_check": "pass",
            "lookahead_reason": "reference judges do not read tenses",
            "verdict": f"{mean:.0f} by the {self.name.partition('/')[2]}",
            "summary": f"{seen.steps} steps with {seen.tokens:.0f} tokens of reasons each.",
        }
        return {**reply, "notes": f"{seen.steps} steps read."} if "notes" in form else reply

    def _author(self, shown: str, options: Sequence[str], planted: SeasonPlanted, call: CallSpec) -> dict[str, JSON]:
        """A guess: whom the planted knowledge names, else a draw."""
        style = style_of("\n\n".join(step.text for step in read_steps(shown)))
        known = _pairs(planted.knows).get(style or "")
        if known in options:
            return {"author": known, "reason": "its phrases"}
        drawn = int.from_bytes(hashlib.sha256(self._asked(call).encode()).digest()[:8], "big")
        return {"author": options[drawn % len(options)], "reason": "a draw"}

    def _asked(self, call: CallSpec) -> str:
        parts = ",".join(part.sha256 for message in call.messages for part in message.parts)
        return f"{self.name}|{parts}|{call.seed}|{call.trial}"


def reference_season_judges() -> Mapping[str, Model]:
    """The reference judges of a season by model name, for registration.

    >>> sorted(reference_season_judges())
    ['reference/season-allocator', 'reference/season-auditor', 'reference/season-reader']
    """
    return {name: SeasonJudge(name) for name in SEASON_PLANTED}


def season_argument_problems(model: str, args: Mapping[str, Any]) -> list[str]:
    """What is wrong with the arguments of a reference judge of a season, in words; nothing if they can be used.

    >>> season_argument_problems("reference/season-reader", {"preference": 15, "kin": "alder"})
    []
    >>> season_argument_problems("reference/season-reader", {"preference": 15})
    ['argument preference needs kin, the style that it favours (one of alder, birch, cedar, dogwood, elder)']
    """
    if model not in SEASON_PLANTED:
        return []
    problems = [problem for key, value in args.items() if (problem := _argument_problem(key, value))]
    if args.get("preference") and "kin" not in args:
        problems.append(f"argument preference needs kin, the style that it favours (one of {', '.join(SIGNATURES)})")
    return problems


def _argument_problem(key: str, value: object) -> str | None:
    """What is wrong with one argument."""
    if key != "knows":
        return knob_problem(key, value, _KNOBS, most=_MOST, never_negative=("noise",))
    known = isinstance(value, str) and bool(_pairs(value)) and all(style in SIGNATURES for style in _pairs(value))
    return None if known else f"argument knows must be style=agent pairs with commas between (got {value_words(value)})"


def _pairs(text: str) -> dict[str, str]:
    """``style=agent`` pairs."""
    found = (pair.partition("=") for pair in text.split(",") if "=" in pair)
    return {style.strip(): agent.strip() for style, _, agent in found}


def _with_arguments(model: str, args: Mapping[str, Any]) -> SeasonPlanted:
    """The planted properties of a judge as a call overrides them."""
    if problems := season_argument_problems(model, args):
        raise ModelError("; ".join(problems), retryable=False)
    given: dict[str, Any] = {key: value if key in _WORDS else float(value) for key, value in args.items()}
    return replace(SEASON_PLANTED[model], **given)


def _properties(call: CallSpec) -> Mapping[str, Any]:
    """What the reply schema of a call asks for."""
    if call.schema is None:
        raise ModelError("a judge call needs a reply schema", retryable=False)
    try:
        found: Mapping[str, Any] = json.loads(call.schema.text)["properties"]
    except (ValueError, KeyError, TypeError) as exc:
        raise ModelError(f"the reply schema asks for nothing: {exc!r}", retryable=False) from None
    return found


def _outcome(shown: str, planted: SeasonPlanted, z: float) -> dict[str, JSON]:
    """A reply of an outcome call: the share of the outcomes above their benchmark, or above 0."""
    rows = [one for step in read_steps(shown) for one in step.outcomes]
    won = [float(one["value"]) > float(one["benchmark"] or 0.0) for one in rows]
    points = 100.0 * sum(won) / len(won) if won else MIDDLE
    return {
        "outcome": _points(points + planted.offset + planted.noise * z),
        "reason": f"{sum(won)} of {len(won)} outcomes above the benchmark",
    }


def _points(value: float) -> int:
    """Rounded half up and clipped to the scale."""
    return min(max(math.floor(value + 0.5), 0), _HIGHEST)
