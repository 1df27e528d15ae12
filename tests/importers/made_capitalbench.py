"""Made-up rounds and decisions in CapitalBench's real formats, small enough to read."""

from __future__ import annotations

import gzip
import hashlib
import json
from typing import Any

PROMPT = "# Task\n\nAllocate over one week.\n"

BRIEFING = """# Briefing

Research cutoff: 2026-05-17T06:01:00Z. Decision deadline: 2026-05-18T01:00:00Z

- May CPI decreased 0.4% for the month and rose 3.5% over 12 months. The S&P 500 closed at 7,100.50.

| indicator | latest value | prior value | unit | date | status |
| --- | --- | --- | --- | --- | --- |
| payrolls | 172 | 179 | thousand | May 8, 2026 | observed |
| 10-year yield | 4.41 | not provided | % | 2026-05-15 | observed |
"""

OPTIONS = "options:\n" + "".join(
    f"  - id: {name.upper()}\n    name: {told}\n    symbol: {symbol}\n    tiingo_symbol: {symbol}\n"
    f"    asset_class: {kind}\n    option_group: {group}\n"
    for name, told, symbol, kind, group in (
        ("sp500", "S&P 500", "SPY", "equity", "broad"), ("gold", "Gold", "IAU", "commodity", "metals"),
        ("cash", "Cash", "null", "cash", "cash"),
    )
)  # fmt: skip

RETURNS = """option_id,symbol,name,asset_class,as_of_date_requested,as_of_price_date,as_of_adj_close,\
price_date_7d,return_7d,rank_7d,corr_to_sp500_1y,beta_to_sp500_1y,status,message
SP500,SPY,S&P 500,equity,2026-05-17,2026-05-15,710.5,2026-05-08,0.0125,1,1.0,1.0,pass,OK
GOLD,IAU,Gold,commodity,2026-05-17,2026-05-15,80.25,2026-05-08,-0.031,2,0.1,0.2,pass,OK
CASH,,Cash,cash,2026-05-17,2026-05-17,1.0,2026-05-10,0.0,3,,0.0,cash,none
"""

CONTEXT_TABLE = """option_id,symbol,economic_exposure_cluster,return_5s,active_return_21s,prior_105s_active_return,\
volatility_63s,max_drawdown_63s,volume_zscore_20v120,corr_spy_252s,beta_spy_252s,distance_52w_high
SP500,SPY,us,0.01,0.0,0.0,0.14,-0.02,-0.8,1.0,1.0,-0.01
GOLD,IAU,metals,-0.02,-0.03,0.05,0.2,-0.1,0.4,0.1,0.2,-0.2
CASH,,cash,0.0,0.01,-0.03,0.0,0.0,0.0,,0.0,
"""

SENTINEL = "987654.321"
EXIT = f"option_id,symbol,date,close,adj_close,source\nSP500,SPY,2026-05-22,{SENTINEL},{SENTINEL},made\n"
ENTRY = "option_id,symbol,date,close,adj_close,source\nSP500,SPY,2026-05-15,456789.123,456789.123,made\n"


def quality() -> str:
    ranks = {
        "low_volatility_rank": 1.0, "prior_active_rank": 0.5, "quality_evidence_score": 0.25,
        "recent_active_reversal_rank": 0.75, "shallow_drawdown_rank": 0.5,
    }  # fmt: skip
    return json.dumps({
        "as_of_date_requested": "2026-05-15", "complete_options": 2, "coverage": 1.0, "methodology_version": "v",
        "minimum_required_coverage": 0.9, "profile": "weekly",
        "rows": [{"option_id": "SP500", **ranks}, {"option_id": "GOLD", **ranks}], "total_active_options": 2,
        "version": "1", "weights": {"prior_active_rank": 1.0},
    })  # fmt: skip


def manifest(round_id: str, **changes: str) -> str:
    fields = {
        "round_id": round_id, "horizon": "one week", "decision_deadline": "'2026-05-18T01:00:00Z'",
        "entry_date": "'2026-05-15'", "exit_date": "'2026-05-22'", "created_at": "'2026-05-17T06:39:05+00:00'",
        "notes": "'Research cutoff is 2026-05-17T06:02:00Z.'",
        "portfolio_constraints": "{min_holdings: 1, max_holdings: 5, min_allocation_pct: 5, allow_cash: true, "
        "max_economic_exposure_pct: null}",
    } | changes  # fmt: skip
    return "".join(f"{key}: {value}\n" for key, value in fields.items())


def context(round_id: str = "CB-2026-05-17-1W", **changes: str | None) -> dict[str, str]:
    """A round's files by name; a change of None leaves the file out. Hashes are made last, over what is there."""
    files: dict[str, str | None] = {
        "round_id": round_id, "prompt.md": PROMPT, "briefing.md": BRIEFING, "options.yaml": OPTIONS,
        "manifest.yaml": manifest(round_id), "universe_trailing_returns.csv": RETURNS, "entry_prices.csv": ENTRY,
        "exit_prices.csv": EXIT,
    } | changes  # fmt: skip
    kept = {name: text for name, text in files.items() if text is not None}
    if "hashes.json" not in changes:
        kept["hashes.json"] = hashes(kept)
    return kept


def hashes(files: dict[str, str]) -> str:
    listed = {"market_data/universe_trailing_returns.md": "0" * 64}
    for name, text in files.items():
        if name not in ("round_id", "entry_prices.csv", "exit_prices.csv"):
            path = f"market_data/{name}" if name.startswith("universe") else name
            listed[path] = hashlib.sha256(text.encode()).hexdigest()
    return json.dumps({"algorithm": "sha256", "files": listed})


def record(
    shape: str = "weights-v1", round_id: str = "CB-2026-05-17-1W", agent: str = "acme-one", **changes: Any
) -> dict:
    """One line of the decisions file; ``changes`` go into the submission, ``call`` and ``outcome`` beside it."""
    call = {
        "api_model_name": agent.split("-")[-1], "started_at_utc": "2026-05-17T07:05:03+00:00",
        "completed_at_utc": "2026-05-17T07:05:24+00:00", "latency_seconds": 20.5, "input_tokens": 100,
        "output_tokens": 50, "reasoning_tokens": None, "total_tokens": 150, "raw_response_sha256": "ab" * 32,
        "validation_status": "valid",
    } | changes.pop("call", {})  # fmt: skip
    outcome = changes.pop("outcome", None)
    submission = {
        "confidence": 0.6, "is_official_score": True, "key_risks": ["Gold may fall 3%.", "Rates may rise."],
        "metadata": {}, "mode": "closed_capability", "model_id": agent, "provider": agent.split("-")[0],
        "rationale_summary": "Gold fell 3.1% in 7d and looks cheap.", "replicate_count": 1, "replicate_index": 1,
        "round_id": round_id, "run_type": "official", "usage": {"input_tokens": 100, "latency_seconds": 20.5},
        **SHAPES[shape],
    } | changes  # fmt: skip
    return {
        "round_id": round_id, "run_id": "run-1", "path": f"rounds/{round_id}/{agent}.json",
        "submission": {key: value for key, value in submission.items() if value is not ...}, "call": call,
        "outcome": outcome,
    }  # fmt: skip


CANDIDATE = {
    "option_id": "GOLD", "decision": "selected", "evidence": ["IAU return_7d was -3.1%."],
    "continuation_case": "Momentum holds.", "reversal_case": "Dollar falls.", "time_window_catalyst": "CPI on May 20",
    "invalidation_condition": "Close below 78", "forecast_low_pct": -2.0, "forecast_base_pct": 1.5,
    "forecast_high_pct": 4.0,
}  # fmt: skip
ASSESSMENT = {
    "option_id": "GOLD", "rank": 1, "mechanism": "reversal", "recent_return_interpretation": "overreaction",
    "origin_lanes": ["shock_reversal"], "evidence": ["IAU lost 3.1%."], "p_beat_spy_pct": 58, "p_top3_pct": 22,
    "excess_return_p10_pct": -3, "excess_return_p50_pct": 0.4, "excess_return_p90_pct": 4.2,
}  # fmt: skip
HELD = [
    {"option_id": "GOLD", "allocation_pct": 60, "rationale": "Gold lost 3.1%."},
    {"option_id": "SP500", "allocation_pct": 40, "rationale": "Broad exposure."},
]
HELD_V2 = [
    {**holding, "expected_return_pct": expected, "time_window_catalyst": "CPI on May 20",
     "invalidation_condition": condition}
    for holding, expected, condition in zip(HELD, (1.5, 0.5), ("Close below 78", "Index below 7,000"), strict=True)
]  # fmt: skip
V3 = {
    "candidate_assessments": [ASSESSMENT, {**ASSESSMENT, "option_id": "SP500", "rank": 2}],
    "candidate_slate_option_ids": ["GOLD", "SP500"], "confidence_derivation": "mean of the selected",
    "deterministic_allocation": {"allocation_pct": {"GOLD": 35.0, "SP500": 65.0}}, "dispersion_state": "normal",
    "dominant_pattern": "mixed", "market_rationale": "Gold fell 3.1% in 7d and looks cheap.",
    "methodology_version": "portfolio-v3.0", "prefer_spy": False, "top3_option_ids": ["GOLD", "SP500", "CASH"],
}  # fmt: skip
_FORECASTS = {
    "portfolio_expected_return_pct": 1.1, "benchmark_expected_return_pct": 0.5, "expected_alpha_vs_sp500_pct": 0.6,
    "portfolio_rationale": "Gold with a broad core.", "portfolio": HELD_V2,
}  # fmt: skip
SHAPES: dict[str, dict[str, Any]] = {
    "option": {"selected_option_id": "GOLD"},
    "weights-v1": {"portfolio": HELD, "portfolio_rationale": "Gold with a broad core."},
    "weights-v2": {
        **_FORECASTS, "candidate_ledger": [CANDIDATE, {**CANDIDATE, "option_id": "CASH", "decision": "rejected"}],
    },
    "weights-v3": {
        "portfolio": [{**HELD[0], "rationale": "V3 selected model rank 1."}, {**HELD[1], "rationale": "Fallback."}],
        "portfolio_rationale": "Gold with a broad core.", "metadata": {"portfolio_v3": V3},
    },
}  # fmt: skip

RESOLVED = {"portfolio_return": "0.03", "sp500_return": "0.01", "alpha_vs_sp500": "0.02", "beats_sp500": "True"}


def packed(contexts: list[Any], records: list[Any]) -> dict[str, bytes]:
    """The two files, gzip; a line given as bytes stands as it is."""
    return {"contexts.jsonl.gz": _lines(contexts), "decisions.jsonl.gz": _lines(records)}


def _lines(values: list[Any]) -> bytes:
    lines = [value if isinstance(value, bytes) else json.dumps(value).encode() for value in values]
    return gzip.compress(b"\n".join(lines) + b"\n", mtime=0)
