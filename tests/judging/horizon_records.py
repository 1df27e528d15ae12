"""A made-up season for the tests of whole-horizon judging: a universe, steps with their books, answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from judged_records import AGENTS

from assaymark import records
from assaymark.judging import StepRecord, horizon_of, load_scoring
from assaymark.prompting import signature

PLAN = load_scoring("v0.4")
START = datetime(2026, 1, 5, 14, 30, tzinfo=UTC)
FIELDS = {"pe": ("ratio", 21.5), "margin": ("ratio", 0.25), "return_5d": ("ratio", 0.031)}
MANDATE = "Trade the list, long only."


@dataclass(frozen=True)
class Fill:
    symbol: str
    quantity: float
    price: float | None = None
    cost: float = 0.0


@dataclass(frozen=True)
class Book:
    cash: float
    positions: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Rejection:
    symbol: str
    reason: str


def instruments(n=4):
    named = records.Instrument(id="GOOGL", symbol="GOOGL", name="Alphabet Inc", aliases=("Google",))
    others = [f"S{at:03d}" for at in range(1, n)]
    return (named, *(records.Instrument(id=name, symbol=name, name=f"Company {name}") for name in others))


def context(day=0, n=4, **changes):
    now = START + timedelta(days=day)
    facts = tuple(
        records.Fact(
            id=f"{one.id}.{name}.{day}", instrument=one.id, field=name, unit=unit, available_at=now,
            value=round(value * (1 + at / 10 + day / 100), 4), as_of=now - timedelta(hours=20),
        )
        for at, one in enumerate(instruments(n))
        for name, (unit, value) in FIELDS.items()
    )  # fmt: skip
    bars = records.Series(instrument="S001", interval_s=86_400, times=(now - timedelta(days=1),), close=(12.5,))
    given = {
        "completeness": "complete", "cutoff": now, "cutoff_source": "clock", "prompt": MANDATE, "facts": facts,
        "instruments": instruments(n), "series": (bars,),
        "portfolio": records.Portfolio(currency="USD", cash=100_000.0, nav=100_000.0),
        "constraints": (records.Constraint(kind="max_weight", limit=0.4, unit="nav", scope="holding"),),
    }  # fmt: skip
    return records.Context(**given | changes)


def text_of(day):
    pe = round(21.5 * (1 + day / 100), 4)
    return f"GOOGL has a pe of {pe} and may still be cheap; risk is the earnings report. I keep S001 as ballast."


def step(day, of, *, agent=AGENTS[0], text=None, style="", **changes):
    said = f"{signature(style)} {text_of(day) if text is None else text}".strip()
    buy = records.Action(instrument="GOOGL", kind="buy", quantity=1.0)
    shown = {
        "fills": (Fill("GOOGL", 1.0, 100.0, 0.1),), "rejections": (),
        "book": Book(100_000.0 - 100.0 * (day + 1), {"GOOGL": day + 1.0, "S001": 3.0}),
    }  # fmt: skip
    shown = {name: changes.pop(name, value) for name, value in shown.items()}
    given = {
        "record_id": f"season-1/run7/{day:04d}", "episode_id": "season-1-run-7", "step": day,
        "cluster": f"2026-W{day // 5:02d}", "decided_at": START + timedelta(days=day, minutes=5), "agent": agent,
        "context_id": records.content_id(of), "actions": (buy, records.Action(instrument="S001", kind="hold")),
        "rationales": (records.Rationale(text=said, kind="summary"),), "format": "season",
        "provenance": records.Provenance(source="made-up"), "stages": {"run": "season-1/run7", "conviction": 0.7},
    }  # fmt: skip
    decision = records.Decision(**given | changes)
    return StepRecord(day=f"{decision.decided_at:%Y-%m-%d}", decision=decision, **shown)


def season(days=3, n=4, **changes):
    """So many steps, and their contexts by id."""
    contexts = [context(day, n) for day in range(days)]
    steps = [step(day, of, **changes) for day, of in enumerate(contexts)]
    return steps, {records.content_id(of): of for of in contexts}


def horizon(days=3, n=4, *, agents=AGENTS, **changes):
    steps, contexts = season(days, n, **changes)
    return horizon_of(steps, contexts, agents=agents, mandate=MANDATE)


def answer(plan=PLAN, *, points=60, **changes):
    """A reply as it was asked for."""
    return {
        "reasoning": {part.name: points for part in plan.reasoning},
        "evidence": {part.name: points for part in plan.evidence}, "data_reliability": 90,
        "claims": [{"quote": "pe of 21.5", "step": 1, "state": "supported", "fields": ["pe"]}],
        "lookahead_check": "pass", "lookahead_reason": "nothing later is used", "verdict": "Mixed, but steady",
        "summary": "Keeps to its thesis and says little about risk.", **changes,
    }  # fmt: skip


def answer_text(**changes):
    return json.dumps(answer(**changes))
