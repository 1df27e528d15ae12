"""What a reference judge notices in a horizon, as numbers. Nothing here knows more than the rendered prompt says."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

from assaymark.judging.evidence import Finding, Material, audit_texts
from assaymark.judging.reference.lexicon import topic_counts
from assaymark.judging.season.horizon_ledger import BORNE_OUT
from assaymark.judging.season.horizon_types import ORDER
from assaymark.judging.season.season_reading import ShownStep, read_steps
from assaymark.prompting.styles import style_of
from assaymark.prompting.texts import token_count
from assaymark.records import Fact, Instrument

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
    """The features of a user message; one reading serves every judge and trial.

    Raises
    ------
    InputError
        The message is none of this package's.
    """
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
