"""Made-up conversations of two models in Alpha Arena's real format: two coins, two calls each, one closed trade."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

NOW = "2025-10-28 07:03:51.230005"
START = datetime.fromisoformat(NOW).replace(tzinfo=UTC).timestamp()
HELD = (
    "{'symbol': 'ETH', 'quantity': 1.38, 'entry_price': 4043.7, 'current_price': 4116.25, 'leverage': 15, 'sl_oid': 1,"
    " 'liquidation_price': 3855.12, 'unrealized_pnl': 100.12, 'exit_plan': {'profit_target': 4265.0,"
    " 'stop_loss': 3920.0, 'invalidation_condition': '4-hour price closes below the 50-period EMA.'},"
    " 'confidence': 0.65, 'risk_usd': 157.96, 'tp_oid': 2, 'wait_for_fill': False, 'entry_oid': 3,"
    " 'notional_usd': 5680.42}"
)


def coin(name: str, price: float, interval: str) -> str:
    mids = ", ".join(f"{price * (1 - back / 1000):.2f}" for back in range(9, -1, -1))
    return f"""### ALL {name} DATA

current_price = {price}, current_ema20 = 3983.611, current_macd = 85.806, current_rsi (7 period) = 84.504

In addition, here is the latest {name} open interest and funding rate for perps:

Open Interest: Latest: 29909.65  Average: 29961.82

Funding Rate: 1.25e-05

**Intraday series ({interval}, oldest → latest):**

Mid prices: [{mids}]

MACD indicators: [-7.704, 7.816, 21.243]

**Longer‑term context (4‑hour timeframe):**

20‑Period EMA: 4067.672 vs. 50‑Period EMA: 4004.813

3‑Period ATR: 36.78 vs. 14‑Period ATR: 36.942

Current Volume: 277.865 vs. Average Volume: 98452.589

---

"""


def prompt(now: str = NOW, value: float = 3884.12, held: str = HELD) -> str:
    return f"""It has been 8274 minutes since you started trading. The current time is {now} and you've been invoked 3982 times. Below, we are providing you with a variety of state data.

{coin("BTC", 114207.5, "by minute")}{coin("ETH", 4116.25, "3‑minute intervals")}### HERE IS YOUR ACCOUNT INFORMATION & PERFORMANCE

Current Total Return (percent): -61.16%

Available Cash: 1791.5

**Current Account Value:** {value}

Current live positions & performance: 
{held}

Sharpe Ratio: -0.733"""  # noqa: E501, W291


def order(name: str, signal: str = "hold", **changed: Any) -> dict[str, Any]:
    return {
        "coin": name, "signal": signal, "quantity": 1.38, "leverage": 15, "stop_loss": 3920, "profit_target": 4265,
        "confidence": 0.65, "risk_usd": 157.96, "invalidation_condition": "4-hour close below 3900",
        "justification": "",
    } | changed  # fmt: skip


def conversation(model: str = "gpt-5", after: float = 46.0, **changed: Any) -> dict[str, Any]:
    """A call whose answer came ``after`` seconds."""
    return {
        "id": f"{model}_{START + after}", "user_prompt": prompt(), "cycle_id": 3982, "model_id": model,
        "llm_response": {"ETH": order("ETH")}, "inserted_at": START + after + 2, "timestamp": START + after,
        "cot_trace": "ETH trades at 4116.25, above its stop of 3920.", "cot_trace_summary": "I hold ETH.",
        "skill": "swing_trading", "run_id": "20251022130950",
    } | changed  # fmt: skip


def honest() -> list[dict[str, Any]]:
    """gpt-5 opens BTC beside its ETH and is called again; grok-4 answers with something that is no JSON."""
    later = prompt("2025-10-28 07:05:10.000000", 3980.0)
    bought = order("BTC", "buy_to_enter", quantity=0.02, justification="BTC broke out at 114207.5.")
    raw = {"failed_json_response_raw_text": "I hold everything."}
    return [
        conversation(llm_response={"ETH": order("ETH"), "BTC": bought}),
        conversation(after=110.0, user_prompt=later, cot_trace=None),
        conversation("grok-4", llm_response=raw, cot_trace=raw, cot_trace_summary=""),
    ]


def trade(after: float = 48.0, **changed: Any) -> dict[str, Any]:
    return {
        "id": "gpt-5_1", "model_id": "gpt-5", "symbol": "BTC", "side": "long", "entry_time": START + after,
        "exit_time": START + 4000, "entry_price": 114_000.0, "entry_sz": 0.02, "realized_net_pnl": -22.8,
        "exit_liquidation": None,
    } | changed  # fmt: skip


def files(conversations: list[dict[str, Any]], trades: list[dict[str, Any]] | None = None) -> dict[str, bytes]:
    made = {"conversations.json": json.dumps({"conversations": conversations}).encode()}
    return made if trades is None else made | {"trades.json": json.dumps({"trades": trades}).encode()}
