"""A small universe, one context and decisions in it, made up for the tests of judging."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from assaymark.protocol import Study, parse_study
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

CUTOFF = datetime(2026, 3, 2, 9, tzinfo=UTC)
DECIDED = CUTOFF + timedelta(minutes=5)

INSTRUMENTS = (
    Instrument(id="ENERGY", symbol="XLE", name="Energy Sector", asset_class="equity", group="sector"),
    Instrument(
        id="GOLD", symbol="IAU", name="Gold Trust", asset_class="commodity", group="metal", aliases=("bullion",)
    ),
    Instrument(id="BILLS", symbol="BIL", name="Treasury Bills", asset_class="cash_like", group="cash"),
    Instrument(id="ALPHABET", symbol="GOOGL", name="Alphabet Inc", aliases=("Google",), group="tech"),
)

RETURNS = {
    "ENERGY": (0.0312, 0.1417, 0.2391), "GOLD": (-0.0126, 0.0538, 0.1273), "BILLS": (0.0007, 0.0028, 0.0011),
    "ALPHABET": (0.0219, -0.0361, 0.3128),
}  # fmt: skip


def fact(name: str, instrument: str, field: str, value: float | str, unit: str = "ratio", **more: Any) -> Fact:
    given: dict[str, Any] = {"available_at": CUTOFF, "as_of": CUTOFF - timedelta(hours=9), "source": "table.csv"}
    return Fact(id=name, instrument=instrument, field=field, value=value, unit=unit, **{**given, **more})


def facts() -> tuple[Fact, ...]:
    wide = [
        fact(f"{instrument}.{field}", instrument, field, value)
        for instrument, values in RETURNS.items()
        for field, value in zip(("return_5d", "return_30d", "volatility_30d"), values, strict=True)
    ]
    note = "- The ten-year yield closed at 4.37% on Friday, with crude at $87.25 a barrel."
    free = {"as_of": None, "source": "briefing.md", "note": note}
    return (
        *wide,
        fact("b1", "", "ten-year yield", 4.37, "percent", **free),
        fact("b2", "", "crude", 87.25, "usd", **free),
        fact("t1", "GOLD", "status", "pass\twith\nnotes \\ kept", "text"),
    )


def context(**changes: Any) -> Context:
    given: dict[str, Any] = {
        "completeness": "partial", "cutoff": CUTOFF, "cutoff_source": "briefing, line 3",
        "prompt": "Allocate all of it over at most 3 options.\n\nCrude rose on Friday.", "facts": facts(),
        "instruments": INSTRUMENTS,
        "portfolio": Portfolio(currency="USD", cash=250.5, nav=1000.25, positions={"GOLD": 3.5}),
        "constraints": (
            Constraint(kind="max_holdings", limit=3.0, unit="count"),
            Constraint(kind="max_weight", limit=0.6, unit="nav", scope="holding"),
            Constraint(kind="weight_increment", limit=0.05, unit="nav", scope="holding"),
        ),
        "series": (
            Series(
                instrument="GOLD", interval_s=86_400, times=(CUTOFF - timedelta(days=2), CUTOFF - timedelta(days=1)),
                close=(61.25, 60.5), volume=(1e6, 2.5e6),
            ),
        ),
    }  # fmt: skip
    return Context(**{**given, **changes})


AGENTS = (
    Agent(id="anthropic-claude-opus-4-8", family="anthropic", model="anthropic/claude-opus-4-8"),
    Agent(id="google-gemini-3-1-pro", family="google", model="gemini-3.1-pro-preview"),
    Agent(id="desk-zephyr", family="zephyr-labs", model="zephyr-labs/zephyr-9b"),
)

SUMMARY = (
    "Energy leads with +3.1% over 5d and 14.2% over 30d, so it gets half. Gold may hedge if crude breaks below $80: "
    "bullion is up 5.4% over 30d. Google could disappoint at its earnings meeting."
)
RISK = "The ten-year yield at 4.37% is a risk to gold; energy volatility of 23.9% is high."


def decision(number: int = 0, text: str = SUMMARY, of: Context | None = None, **changes: Any) -> Decision:
    given: dict[str, Any] = {
        "record_id": f"made-up-run7/record-{number}", "episode_id": "EP-2026-03-02-1W", "step": 0,
        "cluster": "2026-W10", "decided_at": DECIDED, "agent": AGENTS[number % len(AGENTS)],
        "context_id": content_id(of or context()),
        "actions": (
            Action(instrument="ENERGY", kind="target_weight", weight=0.5, expected_return=0.012),
            Action(instrument="GOLD", kind="target_weight", weight=0.3, expected_return=0.008),
            Action(instrument="BILLS", kind="target_weight", weight=0.2, expected_return=0.001),
        ),
        "rationales": (
            Rationale(text=RISK, kind="risk"),
            Rationale(text="written by the venue", kind="arena"),
            Rationale(text=text, kind="summary"),
            Rationale(text="XLE because of momentum", kind="holding"),
        ),
        "format": "weights", "provenance": Provenance(source="made-up"), "confidence": 0.6,
        "stages": {
            "run": "made-up-run7-secret", "selected": ["ENERGY", "GOLD", "BILLS"],
            "forecast": {"portfolio_pct": 0.86, "benchmark_pct": 0.3, "alpha_pct": 0.56},
            "candidates": [
                {"option_id": "ENERGY", "decision": "selected", "forecast_low_pct": -2.0, "forecast_high_pct": 4.0},
                {"option_id": "ALPHABET", "decision": "rejected", "evidence": ["long text"], "forecast_low_pct": -3.0},
            ],
        },
    }  # fmt: skip
    return Decision(**{**given, **changes})


def study(*, trials: int = 1, args: str = "", extra: str = "") -> Study:
    judges = "\n".join(
        f'[[judges]]\nname = "{name}"\nmodel = "reference/{name}"\nfamily = "{family}"\ntrials = {trials}\n{args}'
        for name, family in (("auditor", "ledger"), ("reader", "prose"), ("allocator", "desk"))
    )
    return parse_study(f'name = "made-up"\nseed = 7\n{extra}\n{judges}')


def by_id(*contexts: Context) -> dict[str, Context]:
    return {content_id(one): one for one in contexts}


def with_text(one: Decision, text: str) -> Decision:
    return replace(one, rationales=(Rationale(text=text, kind="summary"),))
