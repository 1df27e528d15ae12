"""A made-up log in AI-Trader's real format: three hours of two A-shares, one day of crypto, small enough to read."""

from __future__ import annotations

import gzip
import json
from typing import Any

HEADER = "symbol,ts,open,high,low,close,volume\n"

HOURLY = f"""{HEADER}\
600036.SH,2025-10-09 10:30:00,40.0,41.0,39.5,40.5,1000
600036.SH,2025-10-09 11:30:00,40.5,42.0,40.0,41.5,1100
600036.SH,2025-10-09 14:00:00,41.5,,,,
601318.SH,2025-10-09 10:30:00,55.0,55.5,54.0,54.5,2000
601318.SH,2025-10-09 11:30:00,54.5,56.0,54.0,55.5,2100
601318.SH,2025-10-09 14:00:00,55.5,,,,
"""
CRYPTO = f"""{HEADER}\
BTC-USDT,2025-11-01,99000,102000,98000,100000,10.5
BTC-USDT,2025-11-02,100000,104000,99000,103000,11.5
BTC-USDT,2025-11-03,103000,,,,
"""

TRACK = "agent_data_astock_hour"
GPT, CLAUDE = "gpt-5-astock-hour", "claude-3.7-sonnet-astock-hour"
STEPS = ("2025-10-09 10:30:00", "2025-10-09 11:30:00", "2025-10-09 14:00:00")


def action(kind: str, symbol: str = "", amount: float = 0, **more: Any) -> dict[str, Any]:
    return {"action": kind, "symbol": symbol, "amount": amount, **more}


def line(step: str = STEPS[0], model: str = GPT, **changed: Any) -> dict[str, Any]:
    return {
        "track": TRACK, "model": model, "step": step, "rationale": "I hold.\n<FINISH_SIGNAL>", "n_messages": 2,
        "timestamps": ["2025-11-17T06:44:32.000000", "2025-11-17T06:45:06.500000"], "actions": [action("no_trade")],
        "positions_after": {"CASH": 100000.0},
    } | changed  # fmt: skip


def honest() -> list[dict[str, Any]]:
    """Two agents whose books follow from their actions."""
    bought, after = {"600036.SH": 1000, "CASH": 60000.0}, {"600036.SH": 500, "601318.SH": 100, "CASH": 74800.0}
    sold = [action("sell", "600036.SH", 500), action("buy", "601318.SH", 100)]
    return [
        line(actions=[action("buy", "600036.SH", 1000)], positions_after=bought),
        line(STEPS[1], actions=sold, positions_after=after), line(STEPS[2], positions_after={**after}),
        line(model=CLAUDE), line(STEPS[1], CLAUDE),
    ]  # fmt: skip


def crypto(**changed: Any) -> dict[str, Any]:
    """One day of crypto: positions are rounded to four decimals, cash is not."""
    bought, after = [action("buy_crypto", "BTC-USDT", 0.18252)], {"BTC-USDT": 0.1825, "CASH": 31748.0}
    told = {"track": "agent_data_crypto", "timestamps": [], "actions": bought, "positions_after": after}
    return line("2025-11-02", "gpt-5", **told) | changed


def files(*lines: dict[str, Any], packed: bool = False, **changed: str) -> dict[str, bytes]:
    """The files of a log; ``changed`` replaces price files by their name without folder and suffix."""
    found = {
        "decisions.jsonl": "\n".join(json.dumps(one) for one in lines or honest()),
        "prices_astock_hourly.csv": changed.get("hourly", HOURLY),
        "prices_crypto_daily.csv": changed.get("crypto", CRYPTO),
    }
    if packed:
        return {f"{name}.gz": gzip.compress(text.encode()) for name, text in found.items()}
    return {name: text.encode() for name, text in found.items()}
