"""Records as an importer leaves them: three agents with target weights, on daily figures of an invented market.

They are for tests that need records which no study made: each agent has a rule and a manner of its own, so that judges
who look for different things order them differently."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import numpy as np

from assaymark import records
from assaymark.workflow import RunFolder, store_records

CLIMATES = {
    "calm-advance": (0.02, 0.10), "late-rally": (0.05, 0.17), "range-bound": (0.00, 0.12), "rate-shock": (-0.03, 0.22),
    "sell-off": (-0.09, 0.38), "rebound": (0.06, 0.24),
}  # fmt: skip
"""The clusters: the mean return over 21 sessions, and the mean volatility."""

CYCLES = 4
"""Questions in each cluster; every agent answers every one."""

UNIVERSE = tuple(
    records.Instrument(id=short.upper(), name=f"{short} {rest}", asset_class=kind, aliases=(short,))
    for short, rest, kind in (
        ("Alder", "Broad Equity", "equity"), ("Briar", "Growth Equity", "equity"),
        ("Dunlin", "Sovereign Bonds", "bond"), ("Flintrock", "Metals", "commodity"),
        ("Heathfield", "Property", "real_estate"),
    )
)  # fmt: skip
RULES = (
    records.Constraint(kind="min_holdings", limit=3.0, unit="count"),
    records.Constraint(kind="max_weight", limit=0.40, unit="nav", scope="holding"),
)
BOOK = records.Portfolio(currency="USD", cash=65_000.0, nav=100_000.0, positions={"ALDER": 350.0})

AGENTS = tuple(
    records.Agent(id=name, family=family, model=f"elsewhere/{name}", fingerprint=f"{name}@1")
    for name, family in (("momentum", "trend"), ("minimum-variance", "risk"), ("equal-weight", "naive"))
)

_SOURCE = "records for tests"
_FIRST_DAY = datetime(2041, 1, 2, 21, tzinfo=UTC)


@cache
def imported_records() -> tuple[tuple[records.Decision, ...], dict[str, records.Context]]:
    """The decisions, and the contexts they name: always the same ones."""
    rng = np.random.default_rng(2041)
    decisions: list[records.Decision] = []
    contexts = {}
    for place, (regime, climate) in enumerate(CLIMATES.items()):
        for step in range(1, CYCLES + 1):
            context = _context(climate, _FIRST_DAY + timedelta(weeks=CYCLES * place + step), rng)
            contexts[records.content_id(context)] = context
            decisions += [_decision(regime, step, agent, context) for agent in AGENTS]
    return tuple(decisions), contexts


def store_imported(folder: Path) -> RunFolder:
    """A new run folder with these records in it and nothing else."""
    run = RunFolder(folder)
    run.path.mkdir(parents=True)
    decisions, contexts = imported_records()
    store_records(run, decisions, contexts, ())
    return run


def _context(climate: tuple[float, float], cutoff: datetime, rng: np.random.Generator) -> records.Context:
    mean, rough = climate
    facts = []
    for one in UNIVERSE:
        calm = 0.3 if one.asset_class == "bond" else 1.0
        volatility = round(rough * calm * rng.uniform(0.7, 1.4), 4)
        trend = round(mean * calm + volatility * 0.3 * rng.standard_normal(), 4)
        price = round(100 * (1 + trend), 2)
        values = ("price", price, "price"), ("return_21s", trend, "ratio"), ("volatility_21s", volatility, "ratio")
        facts += [
            records.Fact(f"{one.id}.{field}", one.id, field, value, unit, cutoff, cutoff, _SOURCE)
            for field, value, unit in values
        ]
    return records.Context(
        completeness="complete", cutoff=cutoff, cutoff_source="close of the last bar",
        prompt=f"Choose target weights at the close of {cutoff:%Y-%m-%d}, and say why.", facts=tuple(facts),
        instruments=UNIVERSE, portfolio=BOOK, constraints=RULES,
    )  # fmt: skip


def _decision(regime: str, step: int, agent: records.Agent, context: records.Context) -> records.Decision:
    seen = {(fact.instrument, fact.field): float(fact.value) for fact in context.facts}
    trend = {one.id: seen[one.id, "return_21s"] for one in UNIVERSE}
    rough = {one.id: seen[one.id, "volatility_21s"] for one in UNIVERSE}
    weights, texts, confidence = {"momentum": _momentum, "minimum-variance": _calm, "equal-weight": _equal}[agent.id](
        trend, rough
    )
    return records.Decision(
        record_id=f"{regime}-{step:02d}-{agent.id}", episode_id=regime, step=step, cluster=regime,
        decided_at=context.cutoff + timedelta(minutes=20), agent=agent, context_id=records.content_id(context),
        actions=tuple(
            records.Action(instrument=one, kind="target_weight", weight=weight) for one, weight in weights.items()
        ),
        rationales=tuple(
            records.Rationale(text=text, kind=kind)
            for text, kind in zip(texts, ("summary", "portfolio", "risk"), strict=True)
        ),
        confidence=confidence, format="weights-v1", provenance=records.Provenance(source=_SOURCE),
    )  # fmt: skip


Made = tuple[dict[str, float], tuple[str, str, str], float]


def _momentum(trend: dict[str, float], rough: dict[str, float]) -> Made:
    """The three that rose most, in many words and with much confidence."""
    first, second, third = sorted(trend, key=lambda name: -trend[name])[:3]
    last = min(trend, key=lambda name: trend[name])
    summary = (
        "The strongest trend leads this book, because what rose over the last month tends to go on rising. "
        f"{_name(first)} moved {trend[first]:+.1%} over 21 sessions, ahead of {_name(second)} with "
        f"{trend[second]:+.1%}, while {_name(last)} stands at {trend[last]:+.1%} and is therefore left out."
    )
    shares = (
        f"{_name(first)} gets 40% of the book, {_name(second)} 35% and {_name(third)} 25%, so that the weights follow "
        f"the order of the trends. If {_name(first)} falls below its level of a month ago, half of it goes."
    )
    risk = (
        f"The book is narrow: three names. Volatility of {_name(first)} is {rough[first]:.1%}, so a turn of the trend "
        "would cost more than a spread book, and it could come without warning."
    )
    return {first: 0.4, second: 0.35, third: 0.25}, (summary, shares, risk), 0.8


def _calm(trend: dict[str, float], rough: dict[str, float]) -> Made:
    """The four calmest, by their figures."""
    names = sorted(rough, key=lambda name: rough[name])[:4]
    most, least = _name(names[0]), names[3]
    summary = "Lowest volatility first: " + "; ".join(f"{_name(name)} {rough[name]:.1%}" for name in names) + "."
    shares = f"Weights of 40%, 25%, 20% and 15% fall as volatility rises; {most} is at the limit of 40%."
    risk = f"{_name(least)} has the highest volatility held, {rough[least]:.1%}, and moved {trend[least]:+.1%}."
    return dict(zip(names, (0.4, 0.25, 0.2, 0.15), strict=True)), (summary, shares, risk), 0.6


def _equal(trend: dict[str, float], rough: dict[str, float]) -> Made:
    """All alike, in few words."""
    most = max(rough, key=lambda name: rough[name])
    return (
        dict.fromkeys(rough, 0.2),
        ("Equal shares of 20%. No forecast.", "All five names.", f"Roughest: {_name(most)}, {rough[most]:.1%}."), 0.4,
    )  # fmt: skip


def _name(instrument: str) -> str:
    return next(one.name for one in UNIVERSE if one.id == instrument)
