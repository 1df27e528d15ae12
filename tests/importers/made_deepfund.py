"""A made-up DeepFund database: two experiments on one ticker and day, one of them run twice."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

TABLES = {
    "config": "id, exp_name, updated_at, tickers, has_planner, llm_model, llm_provider",
    "portfolio": "id, config_id, updated_at, trading_date, cashflow, total_assets, positions",
    "decision": "id, portfolio_id, updated_at, trading_date, ticker, llm_prompt, action, shares, price, justification",
    "signal": "id, portfolio_id, updated_at, ticker, llm_prompt, analyst, signal, justification",
}
PROMPT = "You are a manager.\nCurrent Price: 387.81\nHolding Shares: 0\nRemaining Shares: 90\nDecide."


def decision(name: str, portfolio: str, **changed: Any) -> dict[str, Any]:
    return {
        "id": name, "portfolio_id": portfolio, "updated_at": "2025-04-15T05:25:46+00:00", "ticker": "MSFT",
        "trading_date": "2025-04-14T00:00:00", "llm_prompt": PROMPT, "action": "Buy", "shares": 90, "price": 387.81,
        "justification": "Room for 90 shares at 387.81.",
    } | changed  # fmt: skip


def honest() -> dict[str, list[dict[str, Any]]]:
    """The rows of each table."""
    day, written = "2025-04-14T00:00:00", "2025-04-15T05:26:01+00:00"
    models, at = {"a": "grok-3-mini", "b": "accounts/x/models/glm-4"}, {"updated_at": written}
    signal = {**at, "ticker": "MSFT"}
    return {
        "config": [{"id": f"c{one}", "exp_name": f"exp-{one}", **at, "tickers": '["MSFT"]', "has_planner": 0,
                    "llm_model": model, "llm_provider": "x"} for one, model in models.items()],
        "portfolio": [{"id": f"p{one}", "config_id": f"c{one[0]}", **at, "trading_date": day, "cashflow": 1.0,
                       "total_assets": 1.0, "positions": "{}"} for one in ("a1", "a2", "b1", "b2")],
        "decision": [decision("d1", "pa1"), decision("d3", "pb1", justification=""),
                     decision("d2", "pa2", updated_at="2025-04-17 05:25:46", action="Hold", shares=0)],
        "signal": [
            {"id": "s1", "portfolio_id": "pa1", **signal, "llm_prompt": "RSI is 71.2.", "analyst": "technical",
             "signal": "Bearish", "justification": "An RSI of 71.2 is high."},
            {"id": "s2", "portfolio_id": "pb2", **signal, "llm_prompt": "News.", "analyst": "news",
             "signal": "Neutral", "justification": "Nothing new."},
        ],
    }  # fmt: skip


def files(rows: dict[str, list[dict[str, Any]]], tables: dict[str, str] = TABLES) -> dict[str, bytes]:
    with closing(sqlite3.connect(":memory:")) as base:
        for name, columns in tables.items():
            base.execute(f"create table {name} ({columns})")
            for row in rows.get(name, []):
                places = ", ".join("?" * len(row))
                base.execute(f"insert into {name} ({', '.join(row)}) values ({places})", [*row.values()])
        base.commit()
        return {"deepfund.db": base.serialize()}
