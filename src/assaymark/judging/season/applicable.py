"""Which parts of the evidence axis a season can be graded on: a part about data that it does not have is left out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from assaymark.judging.season.plans import ScoringPlan
from assaymark.records import Context

NEEDED: Final[Mapping[str, re.Pattern[str]]] = MappingProxyType(
    {
        "valuation_use": re.compile(
            "pe|peg|pb|ps|ev|ebitda|ebit|eps|earnings|book|revenue|sales|margin|profit|income|fcf|roe|roa|valuation"
            "|yield|capitalization|marketcap"
        ),
        "momentum_use": re.compile("price|close|return|momentum|rsi|macd|sma|ema|volatility|drawdown"),
        "analyst_use": re.compile("analysts?|target|ratings?|recommendation|consensus"),
        "sector_use": re.compile("sector|industry|subsector"),
    }
)
"""The parts that need data of their own, and the words of which one is in the name of a field that is such data."""

_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def applicable(plan: ScoringPlan, contexts: Iterable[Context]) -> ScoringPlan:
    """The plan for a season with these contexts, without the parts for which no context has a field.

    What a judge is shown of a symbol are facts about it and its bars. A part of evidence about anything else could only
    be graded by what an agent says, so it is not applicable, and its weight goes to the other parts of the axis in
    proportion (`ScoringPlan.without`). Of contexts that are partial nobody knows what else their agents saw: with one
    of them, and without any context, every part stays.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> from assaymark.judging.season.plans import load_scoring
    >>> from assaymark.records import Fact
    >>> now = datetime(2026, 3, 2, tzinfo=UTC)
    >>> facts = tuple(Fact(id=f, instrument="A", field=f, value=1.0, unit="price", available_at=now)
    ...               for f in ("price", "bookValue"))
    >>> shown = Context(completeness="complete", cutoff=now, cutoff_source="", prompt="", facts=facts)
    >>> plan = applicable(load_scoring("v0.4"), [shown])
    >>> [part.name for part in plan.not_applicable]
    ['analyst_use', 'sector_use']
    >>> round(next(part.weight for part in plan.evidence if part.name == "claim_support"), 2)
    31.25
    """
    fields: set[str] = set()
    bars = shown = False
    for context in contexts:
        if context.completeness != "complete":
            return plan
        shown, bars = True, bars or bool(context.series)
        fields.update(fact.field for fact in context.facts if fact.instrument)
    words = {word.lower() for field in fields for word in _WORDS.findall(field)}
    there = {name for name, needed in NEEDED.items() if any(map(needed.fullmatch, words))}
    if bars:
        there.add("momentum_use")
    return plan.without(NEEDED.keys() - there) if shown else plan
