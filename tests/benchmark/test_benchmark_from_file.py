"""Prices of real dates: a file in the layout of PortBench's market table, with holidays and an index in it."""

from __future__ import annotations

from datetime import UTC, date, datetime

import numpy as np
import pytest

from assaymark.benchmark.episode import MarketWindow
from assaymark.benchmark.market import SEED_WINDOWS, BenchMarket, choose_universe, window_named, windows_of
from assaymark.errors import InputError
from assaymark.market import History, history_of, snapshot_from_file, weekdays

COLUMNS = {
    "equities": ("SPY", "QQQ", "^VIX"),
    "bonds": ("TLT", "IEF"),
    "commodities": ("GLD", "USO"),
    "real_estate": ("VNQ", "IYR"),
    "cryptocurrency": ("BTC", "ETH"),
    "cash": ("BIL", "SGOV"),
}
HOLIDAYS = [date(2015, 9, 7), date(2015, 11, 26), date(2015, 12, 25), date(2016, 1, 1), date(2016, 2, 1)]


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> History:
    """Thirteen series from February 2015 to April 2016; on holidays only crypto trades."""
    rng = np.random.default_rng(3)
    days = weekdays(date(2015, 2, 2), date(2016, 4, 29))
    names = [f"{kind}_{ticker}_close" for kind, tickers in COLUMNS.items() for ticker in tickers]
    closes = 100 * np.cumprod(1 + rng.normal(0.0002, 0.01, (days.size, len(names))), axis=0)
    lines = ["Date," + ",".join(names)]
    for day, row in zip(days.tolist(), closes, strict=True):
        shut = day in HOLIDAYS
        cells = ["" if shut and "crypto" not in name else f"{x:.4f}" for name, x in zip(names, row, strict=True)]
        lines.append(f"{day}," + ",".join(cells))
    path = tmp_path_factory.mktemp("portbench") / "market.csv"
    path.write_text("\n".join(lines) + "\n")
    return history_of(snapshot_from_file(path, now=datetime(2026, 1, 1, tzinfo=UTC)))


def test_the_window_of_the_seed_runs_on_it_and_decides_on_trading_days(store):
    assert windows_of(store) == SEED_WINDOWS
    market = BenchMarket(store, choose_universe(store, 12))
    assert "^VIX" not in market.universe.ids
    one = MarketWindow(market, window_named("china-2015", SEED_WINDOWS), "monthly")
    assert [str(day) for day in one.decisions] == [
        "2015-08-03",
        "2015-09-01",
        "2015-10-01",
        "2015-11-02",
        "2015-12-01",
        "2016-01-04",
        "2016-02-02",
    ]
    for day in one.decisions:
        found = one.known(day)
        assert len(found.lines) == 12
        assert [line.members for line in found.lines_by_class] == [2] * 6
        assert found.macro == ()
        assert {line.duration for line in found.lines} == {None}


def test_a_holiday_has_no_return_and_its_move_is_in_the_day_after(store):
    market = BenchMarket(store, choose_universe(store, 12))
    row, at = market.row_of(date(2015, 12, 25)), market.universe.ids.index("SPY")
    assert not market.open_days[row]
    assert market.returns[row, at] == 0.0
    assert market.returns[row + 1, at] != 0.0
    assert market.returns[row, market.universe.ids.index("BTC")] != 0.0


def test_the_other_windows_are_refused_with_what_the_file_has(store):
    market = BenchMarket(store, choose_universe(store, 12))
    with pytest.raises(
        InputError, match=r"needs trading days from 2020-02-01 .* \(the store has 2015-02-02 to 2016-04-29"
    ):
        MarketWindow(market, window_named("covid-2020", SEED_WINDOWS), "monthly")


def test_an_index_that_is_named_is_refused(store):
    with pytest.raises(InputError, match=r"an index cannot be held \(\^VIX\)"):
        choose_universe(store, [one.id for one in store.listings])


def test_crypto_is_shown_at_the_close_of_the_day_before(store):
    """A bar of crypto is known at the end of its day, after the decision, and so is not in the snapshot of that day."""
    market = BenchMarket(store, choose_universe(store, 12))
    row = market.row_of(date(2015, 9, 1))
    closes = {line.ticker: line.close for line in market.known(row).lines}
    for ticker, known in (("BTC", row - 1), ("SPY", row)):
        assert closes[ticker] == pytest.approx(market.closes[known, market.universe.ids.index(ticker)])
