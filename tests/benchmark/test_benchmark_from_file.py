"""Prices of real dates: a file in the layout of PortBench's market table, with holidays and an index in it."""

# ruff: noqa: I001

from __future__ import annotations

import importlib.util
import re
from datetime import UTC, date, datetime
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from pydantic import BaseModel

from assaymark.benchmark import (
    SEED_WINDOWS, BenchMarket, BenchPlan, Market, MarketWindow, Pipeline, Questions, choose_universe, parse_plan,
    window_named, windows_of,
)  # fmt: skip
from assaymark.errors import InputError
from assaymark.market import History, history_of, snapshot_from_file, weekdays
from assaymark.plan import BiasRules, Missing, OrderRules
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


@pytest.fixture(scope="module")
def market(store) -> BenchMarket:
    return BenchMarket(store, choose_universe(store, 12))


def test_the_window_of_the_seed_runs_on_it_and_decides_on_trading_days(store, market):
    assert windows_of(store) == SEED_WINDOWS
    assert "^VIX" not in market.universe.ids
    one = MarketWindow(market, window_named("china-2015", SEED_WINDOWS), "monthly")
    months = "2015-08-03 2015-09-01 2015-10-01 2015-11-02 2015-12-01 2016-01-04 2016-02-02"
    assert " ".join(map(str, one.decisions)) == months
    for found in map(one.known, one.decisions):
        assert len(found.lines) == 12
        assert [line.members for line in found.lines_by_class] == [2] * 6
        assert (found.macro, {line.duration for line in found.lines}) == ((), {None})


def test_a_holiday_has_no_return_and_its_move_is_in_the_day_after(market):
    row, at = market.row_of(date(2015, 12, 25)), market.universe.ids.index("SPY")
    assert not market.open_days[row]
    assert market.returns[row, at] == 0.0
    assert market.returns[row + 1, at] != 0.0
    assert market.returns[row, market.universe.ids.index("BTC")] != 0.0


def test_other_windows_and_a_named_index_are_refused(store, market):
    what = r"needs trading days from 2020-02-01 .* \(the store has 2015-02-02 to 2016-04-29"
    with pytest.raises(InputError, match=what):
        MarketWindow(market, window_named("covid-2020", SEED_WINDOWS), "monthly")
    with pytest.raises(InputError, match=r"an index cannot be held \(\^VIX\)"):
        choose_universe(store, [one.id for one in store.listings])


def test_crypto_is_shown_at_the_close_of_the_day_before(market):
    """A bar of crypto is known at the end of its day, after the decision, and so is not in the snapshot of that day."""
    row = market.row_of(date(2015, 9, 1))
    closes = {line.ticker: line.close for line in market.known(row).lines}
    for ticker, known in (("BTC", row - 1), ("SPY", row)):
        assert closes[ticker] == pytest.approx(market.closes[known, market.universe.ids.index(ticker)])


# The page about the benchmark and its plan say what the code does

ROOT = Path(__file__).resolve().parents[2]
PLAN = (ROOT / "studies" / "portbench.toml").read_text(encoding="utf-8")

TABLES: dict[str, type[BaseModel]] = {
    "": BenchPlan, "market": Market, "pipeline": Pipeline, "questions": Questions, "inference": OrderRules,
    "missing": Missing, "claims": BiasRules, "engine": EngineChoice,
}  # fmt: skip


def test_the_shipped_plan_is_what_the_commands_run_when_nothing_is_said():
    assert parse_plan(PLAN) == parse_plan(tracks.plan_text(None, {})[0])
    assert [line for line in PLAN.splitlines() if len(line) > 120] == []


def test_every_field_stands_in_the_plan_with_a_comment():
    parts = re.split(r"^\[(\w+)\]$", PLAN, flags=re.M)
    tables = {"": parts[0]} | dict(zip(parts[1::2], parts[2::2], strict=True))
    fields = [(table, name) for table, kind in TABLES.items() for name in kind.model_fields]
    for table, name in (one for one in fields if one[1] not in (*TABLES, "version", "models")):
        found = [line for line in tables[table].splitlines() if re.match(rf"(?:# )?{name} = ", line)]
        assert len(found) == 1, name
        assert re.search(r" +# \S.{10,}$", found[0]), name


def beside_the_page(name: str) -> ModuleType:
    """A module of ``docs``, which is no part of the package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_worked_conventions_on_the_page_are_what_the_code_computes_and_differ():
    begin, end = beside_the_page("portbench_table").marks("conventions")
    page, worked = (ROOT / "docs" / "portbench.md").read_text(encoding="utf-8"), beside_the_page("portbench_examples")
    shown = page.partition(begin)[2].partition(end)[0]
    assert shown.strip() == worked.conventions_table().strip()
    rows = list(worked.rows())
    assert len(rows) >= 12
    assert [what for what, _, paper, reference in rows if paper == reference] == []
