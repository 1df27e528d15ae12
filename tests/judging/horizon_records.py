"""A made-up season for the tests of whole-horizon judging: a universe, steps with their books, answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from assaymark.judging import Horizon, ScoringPlan, StepRecord, horizon_of, load_scoring
from assaymark.prompting import signature
from assaymark.records import (
    Action,
    Agent,
    Constraint,
    Context,
    Decision,
    Fact,
    Instrument,
    Portfolio,
    Provenance,
    Rationale,
    Series,
    content_id,
)

PLAN = load_scoring("v0.4")
START = datetime(2026, 1, 5, 14, 30, tzinfo=UTC)
AGENTS = (
    Agent(id="anthropic-claude-opus-4-8", family="anthropic", model="anthropic/claude-opus-4-8"),
    Agent(id="google-gemini-3-1-pro", family="google", model="gemini-3.1-pro-preview"),
    Agent(id="desk-zephyr", family="zephyr-labs", model="zephyr-labs/zephyr-9b"),
)
FIELDS = {"pe": ("ratio", 21.5), "margin": ("ratio", 0.25), "return_5d": ("ratio", 0.031)}


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


def symbols(n: int) -> list[str]:
    return ["GOOGL", *(f"S{at:03d}" for at in range(1, n))]


def instruments(n: int = 4) -> tuple[Instrument, ...]:
    named = Instrument(id="GOOGL", symbol="GOOGL", name="Alphabet Inc", aliases=("Google",))
    return (named, *(Instrument(id=name, symbol=name, name=f"Company {name}") for name in symbols(n)[1:]))


def context(day: int = 0, n: int = 4, **changes: Any) -> Context:
    now = START + timedelta(days=day)
    facts = tuple(
        Fact(
            id=f"{symbol}.{name}.{day}",
            instrument=symbol,
            field=name,
            value=round(value * (1 + at / 10 + day / 100), 4),
            unit=unit,
            available_at=now,
            as_of=now - timedelta(hours=20),
        )
        for at, symbol in enumerate(symbols(n))
        for name, (unit, value) in FIELDS.items()
    )
    given: dict[str, Any] = {
        "completeness": "complete", "cutoff": now, "cutoff_source": "clock", "prompt": "Trade the list, long only.",
        "facts": facts, "instruments": instruments(n),
        "portfolio": Portfolio(currency="USD", cash=100_000.0, nav=100_000.0),
        "constraints": (Constraint(kind="max_weight", limit=0.4, unit="nav", scope="holding"),),
        "series": (Series(instrument="S001", interval_s=86_400, times=(now - timedelta(days=1),), close=(12.5,)),),
    }  # fmt: skip
    return Context(**{**given, **changes})


def text_of(day: int) -> str:
    pe = round(21.5 * (1 + day / 100), 4)
    return f"GOOGL has a pe of {pe} and may still be cheap; risk is the earnings report. I keep S001 as ballast."


def step(
    day: int, of: Context, *, agent: Agent = AGENTS[0], text: str | None = None, style: str = "", **changes: Any
) -> StepRecord:
    said = text_of(day) if text is None else text
    given: dict[str, Any] = {
        "record_id": f"season-1/run7/{day:04d}", "episode_id": "season-1-run-7", "step": day,
        "cluster": f"2026-W{day // 5:02d}", "decided_at": START + timedelta(days=day, minutes=5), "agent": agent,
        "context_id": content_id(of),
        "actions": (Action(instrument="GOOGL", kind="buy", quantity=1.0), Action(instrument="S001", kind="hold")),
        "rationales": (Rationale(text=f"{signature(style)} {said}".strip(), kind="summary"),), "format": "season",
        "provenance": Provenance(source="made-up"), "stages": {"run": "season-1/run7", "conviction": 0.7},
    }  # fmt: skip
    book = Book(100_000.0 - 100.0 * (day + 1), {"GOOGL": day + 1.0, "S001": 3.0})
    decision = Decision(**{**given, **{k: v for k, v in changes.items() if k not in ("fills", "rejections", "book")}})
    return StepRecord(
        day=f"{decision.decided_at:%Y-%m-%d}", decision=decision,
        fills=changes.get("fills", (Fill("GOOGL", 1.0, 100.0, 0.1),)), rejections=changes.get("rejections", ()),
        book=changes.get("book", book),
    )  # fmt: skip


def season(days: int = 3, n: int = 4, **changes: Any) -> tuple[list[StepRecord], dict[str, Context]]:
    contexts = [context(day, n) for day in range(days)]
    return [step(day, of, **changes) for day, of in enumerate(contexts)], {content_id(of): of for of in contexts}


def horizon(days: int = 3, n: int = 4, *, agents: Sequence[Agent] = AGENTS, **changes: Any) -> Horizon:
    records, contexts = season(days, n, **changes)
    return horizon_of(records, contexts, agents=agents, mandate="Trade the list, long only.")


def answer(plan: ScoringPlan = PLAN, *, points: int = 60, **changes: Any) -> dict[str, Any]:
    """A reply as it was asked for."""
    return {
        "reasoning": {part.name: points for part in plan.reasoning},
        "evidence": {part.name: points for part in plan.evidence}, "data_reliability": 90,
        "claims": [{"quote": "pe of 21.5", "step": 1, "state": "supported", "fields": ["pe"]}],
        "lookahead_check": "pass", "lookahead_reason": "nothing later is used", "verdict": "Mixed, but steady",
        "summary": "Keeps to its thesis and says little about risk.", **changes,
    }  # fmt: skip


def answer_text(**changes: Any) -> str:
    return json.dumps(answer(**changes))
