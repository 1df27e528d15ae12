"""The embedded market as a benchmark sees it, made once for all tests of episodes."""

from __future__ import annotations

from functools import cache

from assaymark.benchmark import BenchMarket, MarketWindow, Pace, choose_universe, window_named, windows_of
from assaymark.market import synthetic_history
from assaymark.protocol import AgentSpec

AGENT = AgentSpec(name="one", family="maker", model="reference/portbench-literal", seed=3, temperature=0.0)


@cache
def bench_market(instruments: int = 81) -> BenchMarket:
    history = synthetic_history(0)
    return BenchMarket(history, choose_universe(history, instruments))


@cache
def world(window: str = "normal", pace: Pace = "quarterly", instruments: int = 24) -> MarketWindow:
    market = bench_market(instruments)
    return MarketWindow(market, window_named(window, windows_of(market.history)), pace)
