"""Built-in judges of a season: models with known properties, asked and parsed like any model."""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from assaymark.engine.calls import CallSpec, Model
from assaymark.errors import InputError, ModelError, Problem
from assaymark.judging.evidence import Finding, Material, audit_texts
from assaymark.judging.reference.features import planted_tables, topic_counts
from assaymark.judging.reference.judges import (
    Knots,
    PromptJudge,
    half_up,
    knob_problem,
    knobs_of,
    planted_with,
    prompt_digest,
    standard_normal,
    value_words,
    weighed,
    without_kin,
)
from assaymark.judging.season.calls import BORNE_OUT
from assaymark.judging.season.record import ORDER
from assaymark.prompting import JUDGED_KINDS, SIGNATURES, cells, sections, style_of, token_count
from assaymark.records import JSON, Fact, Instrument

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
    def ordered(self) -> list[Row]:
        """The fills that orders asked for: no splits, dividends and instruments that ended."""
        return [fill for fill in self.rows("fills") if fill.get("kind", ORDER) == ORDER]

    @property
    def positions(self) -> dict[str, float] | None:
        """Units by symbol after the step; None where no book is shown."""
        return None if self.cash is None else {row["symbol"]: float(row["units"]) for row in self.rows("book")}


def read_steps(text: str) -> tuple[ShownStep, ...]:
    """The steps of a user message: each is a section of tables, followed by those of its texts and outcomes."""
    steps: list[tuple[list[str], list[tuple[str, str]], tuple[Row, ...]]] = []
    for section in sections(text):
        lines = section.content.split("\n")
        if section.label == "step":
            head = cells(lines[0])
            if len(head) != 3 or head[0] != "step" or not head[1].isdecimal():
                raise InputError("prompt", [Problem("step", f"its first line is not a step's (got {lines[0][:60]!r})")])
            steps.append((lines, [], ()))
        elif steps and section.label == "outcomes":
            steps[-1] = (*steps[-1][:2], _tables(lines).get("outcomes", ()))
        elif steps and section.label in JUDGED_KINDS:
            steps[-1][1].append((section.label, section.content))
    found = []
    for lines, texts, outcomes in steps:
        _, number, day = cells(lines[0])
        cash = [float(line.partition("\t")[2]) for line in lines if line.startswith("cash\t")]
        found.append(ShownStep(int(number), day, _tables(lines[1:]), cash[0] if cash else None, tuple(texts), outcomes))
    return tuple(found)


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


MOST_CLAIMS: Final = 40
"""Maximum length of a built-in judge's ledger: numbers from all over the record, evenly spaced."""

_EARLY: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TRADES: Final = ("buy", "sell", "short", "cover", "close", "target_weight")
_AROUND: Final = 60
_LONGEST: Final = 500
_HALF_PAIR: Final = re.compile("[\ud800-\udfff]")
_SLACK: Final = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class HorizonFeatures:
    """What can be noticed about a horizon. None: it gives nothing to notice it by.

    Rates are words per 100 words of the judged texts, shares lie in 0..1. ``claims`` are entries of a claims ledger:
    numbers of the reasons with the words around them, and what the market lines of their step say of them.
    """

    steps: int
    tokens: float
    """Words of judged text per step: what a slope on length looks at."""
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
    """The house style of the reasons (`prompting.texts.style_of`), if they have one."""
    claims: tuple[Mapping[str, JSON], ...] = ()


@lru_cache(maxsize=8)
def notice_horizon(text: str) -> HorizonFeatures:
    """The features of a user message; one reading serves every judge and trial."""
    steps = read_steps(text)
    said = "\n\n".join(step.text for step in steps)
    tokens = token_count(said)
    findings = []
    for step in steps:
        # What is not shown in the market lines of a step cannot contradict anything.
        market = tuple(tuple(line.items()) for line in step.rows("market"))
        findings += [(step, found) for found in _audited(step.texts, market)]
    last: dict[str, bool] = {}
    turns: list[bool] = []
    right: list[bool] = []
    for before, step in zip((None, *steps), steps, strict=False):
        for fill in step.ordered:
            bought = float(fill["units"]) > 0
            turns.append(last.get(fill["symbol"], bought) != bought)
            last[fill["symbol"]] = bought
        early, after = before.positions if before else None, step.positions
        if early is None or after is None:
            continue
        expected = defaultdict(float, early)
        for fill in step.rows("fills"):
            expected[fill["symbol"]] += float(fill["units"])
        for symbol in {*expected, *after}:
            right.append(abs(expected[symbol] - after.get(symbol, 0.0)) <= _SLACK * max(1.0, abs(expected[symbol])))
    filled, refused = sum(len(step.ordered) for step in steps), sum(len(step.rows("refused")) for step in steps)
    traded = [(line, step) for step in steps for line in step.rows("actions") if line["action"] in _TRADES]
    rates: dict[str, Any] = {f"{topic}_rate": 100.0 * n / max(tokens, 1) for topic, n in topic_counts(said).items()}
    return HorizonFeatures(
        steps=len(steps),
        tokens=tokens / max(len(steps), 1),
        numbers=len(findings) / max(len(steps), 1),
        grounded=_mean([found.state in BORNE_OUT for _, found in findings]),
        named=_mean([line["instrument"] in step.text for line, step in traded]),
        reversed_trades=_mean(turns),
        carried_out=filled / (filled + refused) if filled + refused else None,
        holdings=_mean([len(held) for step in steps if (held := step.positions) is not None]),
        reconciled=_mean(right),
        style=style_of(said),
        claims=tuple(_claim(step, found) for step, found in findings[:: -(-len(findings) // MOST_CLAIMS) or 1]),
        **rates,
    )


def _mean(values: Sequence[int]) -> float | None:
    return sum(values) / len(values) if values else None


@lru_cache(maxsize=2048)
def _audited(
    texts: tuple[tuple[str, str], ...], market: tuple[tuple[tuple[str, str], ...], ...]
) -> tuple[Finding, ...]:
    """The numbers of texts against market lines. A step is shown to every judge, in its period and in the whole."""
    facts, names = [], []
    for line in map(dict, market):
        symbol = line.pop("symbol")
        names.append(Instrument(id=symbol, symbol=symbol))
        for column, cell in line.items():
            try:
                value = float(cell)
            except ValueError:
                continue
            name, _, unit = column.rpartition(" [")
            unit = unit.removesuffix("]")
            facts.append(Fact(id=column, instrument=symbol, field=name, value=value, unit=unit, available_at=_EARLY))
    shown: list[Any] = list(texts)
    return tuple(audit_texts(shown, Material.build(facts, instruments=names, completeness="partial")))


def _claim(step: ShownStep, found: Finding) -> dict[str, JSON]:
    """A number with the words around it: a quotation word for word."""
    text = step.texts[found.part][1]
    start, end = found.number.start, found.number.start + len(found.number.quote)
    low = text.rfind(" ", 0, max(start - _AROUND, 0)) + 1 if start > _AROUND else 0
    high = text.find(" ", min(end + _AROUND, len(text)))
    state = "supported" if found.state in BORNE_OUT else "not_verifiable"
    quote = text[low : high if high >= 0 else len(text)]
    if len(quote) > _LONGEST or _HALF_PAIR.search(quote):
        quote = found.number.quote[:_LONGEST]
    return {"quote": quote, "step": step.number, "state": state, "fields": list(found.facts)}


MIDDLE: Final = 50.0
"""The grade where a prompt gives nothing to go by."""


@dataclass(frozen=True, slots=True)
class SeasonPlanted:
    """The known properties of a built-in judge of a season.

    Every grade before rounding is ``opinion + offset + slope * (words per step - pivot) / 100 + preference [style is
    kin] + noise * z``, with one standard normal z for a call, fixed by judge, prompt, seed and trial: what repeated
    judging shows of a composite is ``noise``, but for rounding. It is then rounded half up and clipped to 0..100.
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
    {model: SeasonPlanted(**row) for model, row in planted_tables()["season"].items()}
)
"""The planted properties by model name; a call's arguments of the same names override them."""
WORTH: Mapping[str, Knots] = {
    feature: tuple((value, points) for value, points in rows)
    for feature, rows in planted_tables()["season_worth"].items()
}
"""The worth of a value of a feature in points: straight lines between these, flat beyond."""
TOPICS: Mapping[str, Sequence[str]] = planted_tables()["season_topics"]
"""The features that speak to each part of the shipped plans. A part that is not among them is graded `MIDDLE`."""
LEANING: Mapping[str, Mapping[str, float]] = planted_tables()["season_leaning"]
"""How much a feature counts for each judge; 1 where nothing is said. This is where their viewpoints differ."""


def season_opinion(judge: str, part: str, seen: HorizonFeatures) -> float:
    """The opinion of a judge on one part before any planted error: the weighted mean of what its features are worth."""
    weights = LEANING[judge]
    return weighed(seen, ((name, WORTH[name], weights.get(name, 1.0)) for name in TOPICS.get(part, ())), MIDDLE)


class SeasonJudge(PromptJudge):
    """A judge of whole horizons; it answers horizon calls, outcome calls and author probes, by the schema asked for."""

    version = "1"
    unreadable = (InputError, KeyError, ValueError)

    def answer(self, call: CallSpec) -> str:
        """The text of the reply. No tense is understood here, so the check for look-ahead always passes."""
        planted = planted_with(SEASON_PLANTED, self.name, call.args, season_argument_problems(self.name, call.args))
        if call.schema is None:
            raise ModelError("a judge call needs a reply schema", retryable=False)
        try:
            form: Mapping[str, Any] = json.loads(call.schema.text)["properties"]
        except (ValueError, KeyError, TypeError) as exc:
            raise ModelError(f"the reply schema asks for nothing: {exc!r}", retryable=False) from None
        shown = "\n\n".join(message.text for message in call.messages if message.role == "user")
        asked = f"{self.name}|{prompt_digest(call)}|{call.seed}|{call.trial}"
        noise = planted.noise * (standard_normal(asked) if planted.noise else 0.0)
        if "outcome" in form:
            rows = [one for step in read_steps(shown) for one in step.outcomes]
            won = [float(row["value"]) > float(row["benchmark"] or 0.0) for row in rows]
            points = 100.0 * sum(won) / len(won) if won else MIDDLE
            reason = f"{sum(won)} of {len(won)} outcomes above the benchmark"
            return json.dumps({"outcome": half_up(points + planted.offset + noise, 0, 100), "reason": reason})
        if "author" in form:
            options = form["author"]["enum"]
            style = style_of("\n\n".join(step.text for step in read_steps(shown)))
            known = _pairs(planted.knows).get(style or "")
            if known in options:
                return json.dumps({"author": known, "reason": "its phrases"})
            drawn = int.from_bytes(hashlib.sha256(asked.encode()).digest()[:8], "big")
            return json.dumps({"author": options[drawn % len(options)], "reason": "a draw"})
        if "reasoning" not in form:
            raise ModelError(f"{self.name} is asked for nothing that it knows", retryable=False)
        seen = notice_horizon(shown)
        error = planted.offset + planted.slope * (seen.tokens - planted.pivot) / 100.0 + noise
        if planted.kin and seen.style == planted.kin:
            error += planted.preference
        axes: dict[str, dict[str, int]] = {
            axis: {
                part: half_up(season_opinion(self.name, part, seen) + error, 0, 100) for part in form[axis]["required"]
            }
            for axis in ("reasoning", "evidence")
        }
        mean = sum(axes["reasoning"].values()) / max(len(axes["reasoning"]), 1)
        reply: dict[str, JSON] = {
            **axes,
            "data_reliability": half_up(MIDDLE if seen.reconciled is None else 100.0 * seen.reconciled, 0, 100),
            "claims": list(seen.claims),
            "lookahead_check": "pass",
            "lookahead_reason": "reference judges do not read tenses",
            "verdict": f"{mean:.0f} by the {self.name.partition('/')[2]}",
            "summary": f"{seen.steps} steps with {seen.tokens:.0f} tokens of reasons each.",
        }
        return json.dumps({**reply, "notes": f"{seen.steps} steps read."} if "notes" in form else reply)


def reference_season_judges() -> Mapping[str, Model]:
    """The built-in judges of a season by model name, for registration."""
    return {name: SeasonJudge(name) for name in SEASON_PLANTED}


def season_argument_problems(model: str, args: Mapping[str, Any]) -> list[str]:
    """The problems of the arguments of a built-in judge of a season, in words; nothing for models that are none."""
    if model not in SEASON_PLANTED:
        return []
    problems = []
    for key, value in args.items():
        if key == "knows":
            pairs = _pairs(value) if isinstance(value, str) else {}
            if not pairs or any(style not in SIGNATURES for style in pairs):
                wanted = "style=agent pairs with commas between"
                problems.append(f"argument knows must be {wanted} (got {value_words(value)})")
        elif problem := knob_problem(key, value, knobs_of(SeasonPlanted), most=1e6, never_negative=("noise",)):
            problems.append(problem)
    return [*problems, *without_kin("preference", args)]


def _pairs(text: str) -> dict[str, str]:
    """``style=agent`` pairs."""
    found = (pair.partition("=") for pair in text.split(",") if "=" in pair)
    return {style.strip(): agent.strip() for style, _, agent in found}
