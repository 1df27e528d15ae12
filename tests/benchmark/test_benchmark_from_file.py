"""Prices of real dates: a file in the layout of PortBench's market table, with holidays and an index in it."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import portbench_examples
import portbench_table
import pytest

from assaymark import benchmark as bench
from assaymark.benchmark import SEED_WINDOWS, BenchMarket, MarketWindow, choose_universe, window_named
from assaymark.errors import InputError
from assaymark.market import History, history_of, snapshot_from_file, weekdays
from assaymark.plan import BiasRules, MissingLimits, OrderRules
from assaymark.protocol import EngineChoice
from assaymark.workflow import tracks

COLUMNS = {
    "equities": ("SPY", "QQQ", "^VIX"), "bonds": ("TLT", "IEF"), "commodities": ("GLD", "USO"),
    "real_estate": ("VNQ", "IYR"), "cryptocurrency": ("BTC", "ETH"), "cash": ("BIL", "SGOV"),
}  # fmt: skip
HOLIDAYS = [date(2015, 9, 7), date(2015, 11, 26), date(2015, 12, 25), date(2016, 1, 1), date(2016, 2, 1)]


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> History:
    """Thirteen series from February 2015 to April 2016; on holidays only crypto trades."""
    days = weekdays(date(2015, 2, 2), date(2016, 4, 29))
    names = [f"{kind}_{ticker}_close" for kind, tickers in COLUMNS.items() for ticker in tickers]
    moves = np.random.default_rng(3).normal(0.0002, 0.01, (days.size, len(names)))
    lines = ["Date," + ",".join(names)]
    for day, row in zip(days.tolist(), 100 * np.cumprod(1 + moves, axis=0), strict=True):
        shut = day in HOLIDAYS
        cells = ["" if shut and "crypto" not in name else f"{x:.4f}" for name, x in zip(names, row, strict=True)]
        lines.append(f"{day}," + ",".join(cells))
    path = tmp_path_factory.mktemp("portbench") / "market.csv"
    path.write_text("\n".join(lines) + "\n")
    return history_of(snapshot_from_file(path, now=datetime(2026, 1, 1, tzinfo=UTC)))


@pytest.fixture(scope="module")
def market(store) -> BenchMarket:
    return BenchMarket(store, choose_universe(store, 12))


def test_the_window_of_the_seed_runs_on_it_and_decides_on_trading_days(store, market):
    assert bench.windows_of(store) == SEED_WINDOWS
    assert "^VIX" not in market.universe.ids
    one = MarketWindow(market, window_named("china-2015", SEED_WINDOWS), "monthly")
    months = "2015-08-03 2015-09-01 2015-10-01 2015-11-02 2015-12-01 2016-01-04 2016-02-02"
    assert " ".join(map(str, one.decisions)) == months
    for found in map(one.known, one.decisions):
        assert (len(found.lines), [found.classes.count(name) for name in found.regimes]) == (12, [2] * 6)
        assert (found.macro, {line.duration for line in found.lines}) == ((), {None})
    what = r"needs trading days from 2020-02-01 .* \(the store has 2015-02-02 to 2016-04-29"
    with pytest.raises(InputError, match=what):
        MarketWindow(market, window_named("covid-2020", SEED_WINDOWS), "monthly")
    with pytest.raises(InputError, match=r"an index cannot be held \(\^VIX\)"):
        choose_universe(store, [one.id for one in store.listings])


def test_a_holiday_has_no_return_and_crypto_is_shown_at_the_close_of_the_day_before(market):
    """A bar of crypto is known at the end of its day, after the decision, and so is not in the snapshot of that day."""
    row, spy, btc = market.row_of(date(2015, 12, 25)), *map(market.universe.ids.index, ("SPY", "BTC"))
    assert not market.open_days[row]
    assert market.returns[row, spy] == 0.0
    assert 0.0 not in (market.returns[row + 1, spy], market.returns[row, btc])
    row = market.row_of(date(2015, 9, 1))
    closes = {line.ticker: line.close for line in market.known(row).lines}
    wanted = (market.closes[row - 1, btc], market.closes[row, spy])
    assert (closes["BTC"], closes["SPY"]) == pytest.approx(wanted)


# The page about the benchmark and its plan say what the code does

ROOT = Path(__file__).resolve().parents[2]
PLAN = (ROOT / "studies" / "portbench.toml").read_text(encoding="utf-8")
TABLES = {
    "": bench.BenchPlan, "market": bench.Market, "pipeline": bench.Pipeline, "questions": bench.Questions,
    "inference": OrderRules, "missing": MissingLimits, "claims": BiasRules, "engine": EngineChoice,
}  # fmt: skip


def test_the_shipped_plan_is_what_the_commands_run_and_has_every_field_with_a_comment():
    assert bench.parse_plan(PLAN) == bench.parse_plan(tracks.plan_text(None, {})[0])
    assert [line for line in PLAN.splitlines() if len(line) > 120] == []
    parts = re.split(r"^\[(\w+)\]$", PLAN, flags=re.M)
    tables = {"": parts[0]} | dict(zip(parts[1::2], parts[2::2], strict=True))
    fields = [(table, name) for table, kind in TABLES.items() for name in kind.model_fields]
    for table, name in (one for one in fields if one[1] not in (*TABLES, "version", "models")):
        found = [line for line in tables[table].splitlines() if re.match(rf"(?:# )?{name} = ", line)]
        assert len(found) == 1, name
        assert re.search(r" +# \S.{10,}$", found[0]), name


def test_the_worked_conventions_on_the_page_are_what_the_code_computes_and_differ():
    begin, end = portbench_table.marks("conventions")
    shown = (ROOT / "docs" / "portbench.md").read_text(encoding="utf-8").partition(begin)[2].partition(end)[0]
    assert shown.strip() == portbench_examples.conventions_table().strip()
    rows = list(portbench_examples.rows())
    assert len(rows) >= 12
    assert [what for what, _, paper, reference in rows if paper == reference] == []
