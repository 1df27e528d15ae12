"""A small universe, one context and decisions in it, made up for the tests of judging."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from assaymark import records
from assaymark.protocol import parse_study

CUTOFF = datetime(2026, 3, 2, 9, tzinfo=UTC)
DECIDED = CUTOFF + timedelta(minutes=5)
INSTRUMENTS = (
    records.Instrument(id="ENERGY", symbol="XLE", name="Energy Sector", asset_class="equity", group="sector"),
    records.Instrument("GOLD", "IAU", "Gold Trust", "commodity", group="metal", aliases=("bullion",)),
    records.Instrument(id="BILLS", symbol="BIL", name="Treasury Bills", asset_class="cash_like", group="cash"),
    records.Instrument(id="ALPHABET", symbol="GOOGL", name="Alphabet Inc", aliases=("Google",), group="tech"),
)
RETURNS = {
    "ENERGY": (0.0312, 0.1417, 0.2391), "GOLD": (-0.0126, 0.0538, 0.1273), "BILLS": (0.0007, 0.0028, 0.0011),
    "ALPHABET": (0.0219, -0.0361, 0.3128),
}  # fmt: skip


def fact(name, instrument, field, value, unit="ratio", **more):
    given = {"available_at": CUTOFF, "as_of": CUTOFF - timedelta(hours=9), "source": "table.csv"}
    return records.Fact(id=name, instrument=instrument, field=field, value=value, unit=unit, **given | more)


def facts():
    note = "- The ten-year yield closed at 4.37% on Friday, with crude at $87.25 a barrel."
    free = {"as_of": None, "source": "briefing.md", "note": note}
    return (
        *(
            fact(f"{instrument}.{field}", instrument, field, value)
            for instrument, values in RETURNS.items()
            for field, value in zip(("return_5d", "return_30d", "volatility_30d"), values, strict=True)
        ),
        fact("b1", "", "ten-year yield", 4.37, "percent", **free), fact("b2", "", "crude", 87.25, "usd", **free),
        fact("t1", "GOLD", "status", "pass\twith\nnotes \\ kept", "text"),
    )  # fmt: skip


def context(**changes):
    times = (CUTOFF - timedelta(days=2), CUTOFF - timedelta(days=1))
    bars = records.Series(instrument="GOLD", interval_s=86_400, times=times, close=(61.25, 60.5), volume=(1e6, 2.5e6))
    given = {
        "completeness": "partial", "cutoff": CUTOFF, "cutoff_source": "briefing, line 3",
        "prompt": "Allocate all of it over at most 3 options.\n\nCrude rose on Friday.", "facts": facts(),
        "instruments": INSTRUMENTS, "series": (bars,),
        "portfolio": records.Portfolio(currency="USD", cash=250.5, nav=1000.25, positions={"GOLD": 3.5}),
        "constraints": (
            records.Constraint(kind="max_holdings", limit=3.0, unit="count"),
            records.Constraint(kind="max_weight", limit=0.6, unit="nav", scope="holding"),
            records.Constraint(kind="weight_increment", limit=0.05, unit="nav", scope="holding"),
        ),
    }  # fmt: skip
    return records.Context(**given | changes)


AGENTS = (
    records.Agent(id="anthropic-claude-opus-4-8", family="anthropic", model="anthropic/claude-opus-4-8"),
    records.Agent(id="google-gemini-3-1-pro", family="google", model="gemini-3.1-pro-preview"),
    records.Agent(id="desk-zephyr", family="zephyr-labs", model="zephyr-labs/zephyr-9b"),
)
SUMMARY = (
    "Energy leads with +3.1% over 5d and 14.2% over 30d, so it gets half. Gold may hedge if crude breaks below $80: "
    "bullion is up 5.4% over 30d. Google could disappoint at its earnings meeting."
)
RISK = "The ten-year yield at 4.37% is a risk to gold; energy volatility of 23.9% is high."
SAID = {
    "risk": RISK,
    "arena": "written by the venue", "summary": SUMMARY, "holding": "XLE because of momentum",
}  # fmt: skip
WEIGHTS = (("ENERGY", 0.5, 0.012), ("GOLD", 0.3, 0.008), ("BILLS", 0.2, 0.001))
STAGES = {
    "run": "made-up-run7-secret", "selected": ["ENERGY", "GOLD", "BILLS"],
    "forecast": {"portfolio_pct": 0.86, "benchmark_pct": 0.3, "alpha_pct": 0.56},
    "candidates": [
        {"option_id": "ENERGY", "decision": "selected", "forecast_low_pct": -2.0, "forecast_high_pct": 4.0},
        {"option_id": "ALPHABET", "decision": "rejected", "evidence": ["long text"], "forecast_low_pct": -3.0},
    ],
}  # fmt: skip


def decision(number=0, text=SUMMARY, of=None, **changes):
    given = {
        "record_id": f"made-up-run7/record-{number}", "episode_id": "EP-2026-03-02-1W", "step": 0,
        "cluster": "2026-W10", "decided_at": DECIDED, "agent": AGENTS[number % len(AGENTS)],
        "context_id": records.content_id(of or context()), "format": "weights", "confidence": 0.6, "stages": STAGES,
        "actions": tuple(
            records.Action(instrument=name, kind="target_weight", weight=weight, expected_return=expected)
            for name, weight, expected in WEIGHTS
        ),
        "rationales": tuple(
            records.Rationale(text=said, kind=kind) for kind, said in (SAID | {"summary": text}).items()
        ),
        "provenance": records.Provenance(source="made-up"),
    }  # fmt: skip
    return records.Decision(**given | changes)


def study(*, trials=1, args="", extra=""):
    judges = "\n".join(
        f'[[judges]]\nname = "{name}"\nmodel = "reference/{name}"\nfamily = "{family}"\ntrials = {trials}\n{args}'
        for name, family in (("auditor", "ledger"), ("reader", "prose"), ("allocator", "desk"))
    )
    return parse_study(f'name = "made-up"\nseed = 7\n{extra}\n{judges}')


def by_id(*contexts):
    return {records.content_id(one): one for one in contexts}


def with_text(one, text):
    return replace(one, rationales=(records.Rationale(text=text, kind="summary"),))
