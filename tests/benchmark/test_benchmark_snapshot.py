"""The market in prompts: no look-ahead, and each field against its slow definition."""

# ruff: noqa: I001  # names in packed lines

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pytest
from bench_worlds import bench_market, world
from hypothesis import given, settings
from hypothesis import strategies as st
from perturbed import later_changed

from assaymark.benchmark import BenchMarket, MarketState, choose_universe, market_numbers, own_regimes
from assaymark.errors import InputError
from assaymark.market import (
    CLASS_NAMES, pairwise_correlation, regimes, synthetic_history,
)  # fmt: skip
from assaymark.portfolio import max_drawdown

YEAR = 252
HISTORY = synthetic_history(0)


def window(name: str = "normal"):
    return world(name, "monthly", 81)


def close_of(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, 21, tzinfo=UTC)


def shown(known: MarketState) -> str:
    """Every byte that a prompt can be made of."""
    arrays = [known.part, known.times, known.closes, known.returns, known.covariance, known.correlation, known.between]
    return repr((known.day, known.lines, known.regimes, known.macro, known.news, [a.tobytes() for a in arrays]))


@settings(max_examples=8)
@given(st.integers(400, 2800))
def test_nothing_that_becomes_known_later_is_in_a_snapshot(row):
    close = close_of(HISTORY.days[row].astype(object))
    markets = [bench_market(24), BenchMarket(later_changed(HISTORY, close), bench_market(24).universe)]
    before, after = (one.known(row) for one in markets)
    assert shown(after) == shown(before)
    sent = [market_numbers(one.known(row), one.view(row).instruments) for one in markets]
    assert sent[0] == sent[1]


def test_the_day_itself_is_in_its_snapshot_and_days_that_are_none_are_refused():
    """The decision is at the close: a change of that day's bars must show, or the test above would prove nothing."""
    market = bench_market(24)
    row = market.row_of(date(2024, 3, 1))
    known, whole = market.known(row), bench_market().known(row)
    changed = BenchMarket(later_changed(HISTORY, close_of(date(2024, 2, 29))), market.universe)
    assert known.lines[0].close == HISTORY.bars["close"][row, 0]
    assert shown(changed.known(row)) != shown(known)
    assert (whole.day, len(whole.macro), whole.part.size) == (date(2024, 3, 1), 12, len(whole.lines))
    assert whole.between.shape == (6, 6)
    with pytest.raises(InputError, match="no instrument has 61 closes up to 2015-02-12"):
        market.known(30)
    with pytest.raises(InputError, match="2024-03-02 is not a weekday from 2015-01-01 to 2025-12-31"):
        market.row_of(date(2024, 3, 2))


@pytest.mark.parametrize("name", ["normal", "china-2015", "covid-2020", "crypto-2022"])
def test_the_eight_fields_by_their_definitions(name):
    known = window(name).known(window(name).decisions[-1])
    closes = bench_market().view(known.row).prices(252)
    equities = known.returns[:, [one == "equity" for one in known.classes]].mean(axis=1)
    assert len(known.lines) == known.part.size > 60
    for at, line in enumerate(known.lines):
        path = closes.values[:, closes.ids.index(line.ticker)]
        moves = path[-60:] / path[-61:-1] - 1
        assert moves == pytest.approx(known.returns[:, at])
        assert line.close == path[-1]
        told = line.return_20, line.return_60, line.volatility, line.sharpe, line.max_drawdown
        assert told == pytest.approx((
            path[-1] / path[-21] - 1, path[-1] / path[-61] - 1, moves.std(ddof=1) * np.sqrt(YEAR),
            moves.mean() / moves.std(ddof=1) * np.sqrt(YEAR), max_drawdown(path[-61:] / path[-61]).depth,
        ), abs=1e-12)  # fmt: skip
        interest = line.asset_class in ("bond", "cash")
        assert (line.beta is None, line.duration is None) == (interest, not interest)
        if not interest:
            assert line.beta == pytest.approx(np.cov(moves, equities)[0, 1] / equities.var(ddof=1))
        if np.isfinite(path).all():
            assert line.regime == regimes(path)[-1]


def test_the_duration_of_a_bond_is_the_slope_on_the_yields_that_are_out():
    """Yields are published the day after, so that of the decision date itself is not among them."""
    known = window().known(window().decisions[2])
    series = next(one for one in HISTORY.macro if one.id == "yield_10y")
    path = series.values[np.searchsorted(series.periods, bench_market().days[known.row - 60 : known.row])]
    at = known.classes.index("bond")
    slope = np.polyfit(np.diff(path), known.returns[:-1, at], 1)[0]
    assert known.lines[at].duration == pytest.approx(-100 * slope)
    assert known.lines[at].duration > 2


@pytest.mark.parametrize("name", ["normal", "covid-2020"])
def test_the_correlation_interface_is_the_market_s_own(name):
    known = window(name).known(window(name).decisions[0])
    assert known.correlation == pytest.approx(pairwise_correlation(known.returns), abs=1e-9)
    labels = bench_market().view(known.row).regimes()
    assert known.regimes == {CLASS_NAMES[one]: label for one, label in labels.items()}
    first, *_, last = (np.array(known.classes) == group for group in known.regimes)
    assert known.between[0, -1] == pytest.approx(known.correlation[np.ix_(first, last)].mean())


@given(st.integers(0, 2**32 - 1), st.floats(0.001, 0.03))
def test_own_regimes_are_those_of_the_market_and_need_history_unless_it_is_a_crisis(seed, size):
    moves = np.random.default_rng(seed).normal(0.0, size, (252, 6))
    closes = 100 * np.cumprod(1 + moves, axis=0)
    assert own_regimes(closes).tolist() == [regimes(closes[:, at])[-1] for at in range(6)]
    short, holes = np.linspace(100, 101, 150)[:, None].repeat(2, axis=1), np.full((252, 1), 100.0)
    short[-1, 1], holes[100:125] = 50.0, np.nan
    assert [own_regimes(one).tolist() for one in (short, holes)] == [["undefined", "crisis"], ["undefined"]]


def test_before_a_yield_is_out_there_is_no_duration_and_before_60_days_no_return_over_them():
    (full,) = [one for one in HISTORY.macro if one.id == "yield_10y"]
    late = replace(full, periods=full.periods[35:], values=full.values[35:], released=full.released[35:])
    store = replace(HISTORY, macro=(late,))
    known = BenchMarket(store, choose_universe(store, 12), lookback=20).known(32)
    assert {(one.duration, one.return_60, one.return_20 is None) for one in known.lines} == {(None, None, False)}
    assert known.macro[0][1].value is None
    without = replace(HISTORY, macro=())
    known = BenchMarket(without, choose_universe(without, 12)).known(2000)
    assert ({one.duration for one in known.lines}, known.macro) == ({None}, ())


def test_an_asset_that_does_not_move_has_no_sharpe_ratio_and_no_correlation():
    column = next(at for at, one in enumerate(HISTORY.listings) if one.asset_class == "CA")
    still = HISTORY.bars["close"].copy()
    still[:, column] = 100.0
    frozen = replace(HISTORY, bars={**HISTORY.bars, "close": still})
    known = BenchMarket(frozen, choose_universe(frozen, 24)).known(2000)
    at = known.tickers.index(HISTORY.listings[column].id)
    assert (known.lines[at].sharpe, known.lines[at].volatility) == (None, 0.0)
    assert np.delete(known.correlation[at], at).tolist() == [0.0] * (known.part.size - 1)


def test_one_that_lists_late_has_a_gap_or_is_gone_takes_no_part():
    late = next(one for one in HISTORY.listings if one.asset_class == "EQ" and one.listed > date(2018, 1, 1))
    gone = next(one for one in HISTORY.listings if one.delisted is not None)
    bench = BenchMarket(HISTORY, choose_universe(HISTORY, (late.id, gone.id, *choose_universe(HISTORY, 12).ids)))
    first, last = (int(np.searchsorted(HISTORY.days, np.datetime64(day))) for day in (late.listed, gone.delisted))
    assert [late.id in bench.known(first + days).tickers for days in (50, 75)] == [False, True]
    assert [gone.id in bench.known(last + days).tickers for days in (0, 1)] == [True, False]
    at = bench.universe.ids.index(gone.id)
    assert (bench.returns[last + 1 :, at] == 0).all()
    assert bench.closes[-1, at] == bench.closes[last, at]


def test_news_is_of_the_month_before_and_about_what_is_shown():
    for day in window().decisions[:4]:
        known, close = window().known(day), close_of(day)
        assert known.news
        for one in known.news:
            assert close - timedelta(days=30) <= one.published_at <= close
            assert not one.instruments or set(one.instruments) & set(known.tickers)


def test_returns_of_the_panel_are_of_the_closes_that_were():
    bench, ids = bench_market(), [one.id for one in HISTORY.listings]
    raw = HISTORY.bars["close"][:, [ids.index(one) for one in bench.universe.ids]]
    there = np.isfinite(raw[1:]) & np.isfinite(raw[:-1])
    np.testing.assert_allclose(bench.returns[1:][there], (raw[1:] / raw[:-1] - 1)[there], rtol=1e-6, atol=1e-12)
    assert np.isfinite(bench.returns).all()
    total = np.prod(1 + bench.returns[:, 0])
    assert total == pytest.approx(raw[-1, 0] / raw[np.isfinite(raw[:, 0])][0, 0])


def test_a_frozen_correlation_is_that_of_the_training_years_on_every_date():
    frozen, plain = (BenchMarket(HISTORY, choose_universe(HISTORY, 12), frozen=flag) for flag in (True, False))
    until = frozen.days <= np.datetime64("2022-12-31")
    expected = np.corrcoef(frozen.returns[until][1:], rowvar=False)
    for row in (1500, 2000, 2400):
        known, other = frozen.known(row), plain.known(row)
        assert known.scored_by == pytest.approx(expected[np.ix_(known.part, known.part)], abs=1e-12)
        assert known.correlation == pytest.approx(other.correlation)
        assert other.scored_by is other.correlation
