"""Windows and decision dates: the seed's, the embedded market's own, and what is refused."""

from __future__ import annotations

import dataclasses
from datetime import date, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark.benchmark import RISK_SAFE
from assaymark.benchmark.market import (
    HORIZONS,
    SEED_WINDOWS,
    BenchMarket,
    Window,
    choose_universe,
    decision_rows,
    window_named,
    windows_of,
)
from assaymark.errors import InputError, UnknownNameError
from assaymark.market import synthetic_history, synthetic_market, weekdays

DAYS = weekdays(date(2019, 1, 1), date(2023, 12, 31))
OPEN = np.ones(DAYS.size, dtype=bool)
PACES = st.sampled_from(list(HORIZONS))


def test_table_6():
    """Seed 002, section 3.1 and Table 6."""
    assert [(one.name, one.threshold) for one in SEED_WINDOWS if one.kind == "stress"] == list(RISK_SAFE.items())
    assert [(one.first.strftime("%b %Y"), one.last.strftime("%b %Y")) for one in SEED_WINDOWS] == [
        ("Jan 2024", "Dec 2024"),
        ("Aug 2015", "Feb 2016"),
        ("Feb 2020", "May 2020"),
        ("May 2022", "Dec 2022"),
    ]


@pytest.mark.parametrize("seed", [0, 3])
def test_the_embedded_market_has_its_own_stress_under_the_seeds_names(seed):
    found = windows_of(synthetic_history(seed))
    assert [one.name for one in found] == [one.name for one in SEED_WINDOWS]
    own = [synthetic_market(seed).period(name) for name in ("liquidity", "pandemic", "tightening")]
    assert [(str(one.first), str(one.last)) for one in found[1:]] == own
    assert all("embedded market" in one.title for one in found[1:])


def test_prices_of_real_dates_get_the_seeds_windows():
    assert windows_of(dataclasses.replace(synthetic_history(0), source="files")) == SEED_WINDOWS


def test_an_unknown_window_is_named_with_the_known_ones():
    with pytest.raises(UnknownNameError, match="Did you mean 'covid-2020'"):
        window_named("covid-2021", SEED_WINDOWS)
    assert window_named("normal", SEED_WINDOWS).kind == "normal"


@given(st.dates(date(2019, 1, 1), date(2022, 12, 1)), st.integers(20, 380), PACES)
def test_decisions_are_the_first_trading_days_of_their_periods(first, length, pace):
    window = Window("any", first, first + timedelta(days=length))
    rows = decision_rows(DAYS, OPEN, window, pace)
    days = DAYS[rows].tolist()
    inside = [one for one in DAYS.tolist() if window.first <= one <= window.last]
    key = {
        "weekly": lambda one: one.isocalendar()[:2],
        "monthly": lambda one: (one.year, one.month),
        "quarterly": lambda one: (one.year, (one.month - 1) // 3),
    }[pace]
    assert days[0] == inside[0]
    firsts = [one for before, one in zip([None, *inside[:-1]], inside, strict=True)
              if before is None or key(before) != key(one)]  # fmt: skip
    assert set(days) <= set(firsts)
    assert all(inside.index(one) < HORIZONS[pace] / 2 for one in set(firsts) - set(days))
    assert rows.size == 1 or rows[1] - rows[0] >= HORIZONS[pace] / 2


def test_a_holiday_is_no_decision_date():
    open_days = np.array([one != date(2020, 1, 1) for one in DAYS.tolist()])
    rows = decision_rows(DAYS, open_days, Window("any", date(2020, 1, 1), date(2020, 2, 28)), "monthly")
    assert DAYS[rows].astype(str).tolist() == ["2020-01-02", "2020-02-03"]


def test_a_window_without_a_day_is_refused_with_what_the_store_has():
    with pytest.raises(InputError, match=r"window any: needs trading days from 2030-01-01 .* 2019-01-01 to 2023-12-29"):
        decision_rows(DAYS, OPEN, Window("any", date(2030, 1, 1), date(2030, 6, 1)), "monthly")


@pytest.mark.parametrize(
    ("window", "what"),
    [
        (
            Window("any", date(2015, 1, 15), date(2015, 6, 1)),
            r"must have 61 days of prices up to 2015-01-15, the first decision \(got 11\)",
        ),
        (
            Window("any", date(2025, 12, 15), date(2025, 12, 31)),
            r"must have 21 days of prices after 2025-12-15, the last decision \(got 12\)",
        ),
    ],
)
def test_too_short_a_history_is_refused_with_what_is_needed(window, what):
    history = synthetic_history(0)
    market = BenchMarket(history, choose_universe(history, 12))
    with pytest.raises(InputError, match=what):
        market.decisions(window, "monthly")


def test_a_class_that_is_not_listed_yet_is_refused_with_its_dates():
    history = synthetic_history(0)
    crypto = [one for one in history.listings if one.asset_class == "CR" and one.listed > date(2017, 1, 1)]
    others = [one.id for one in history.listings if one.asset_class != "CR"]
    market = BenchMarket(history, choose_universe(history, [*others, crypto[0].id]))
    with pytest.raises(InputError, match=r"2016-01-07: needs an instrument of each class .* \(none of: crypto\)"):
        market.decisions(window_named("china-2015", windows_of(history)), "monthly")


def test_a_store_shorter_than_a_lookback_is_refused():
    history = synthetic_history(0)
    cut = dataclasses.replace(
        history,
        days=history.days[:60],
        bars={name: one[:60] for name, one in history.bars.items()},
        known_at=history.known_at[:60],
    )
    kept = [one.id for one in history.listings if one.listed <= date(2015, 1, 1)]
    with pytest.raises(InputError, match=r"needs more than 60 days of prices \(got 60\)"):
        BenchMarket(cut, choose_universe(history, kept))


def test_a_universe_of_another_store_is_refused():
    history = synthetic_history(0)
    universe = dataclasses.replace(choose_universe(history, 6), ids=("SPY", "TLT", "GLD", "VNQ", "BTC", "BIL"))
    with pytest.raises(UnknownNameError, match="unknown instrument 'SPY'"):
        BenchMarket(history, universe)


def test_a_gap_of_the_only_one_of_its_class_stops_nothing_once_begun():
    """In the embedded market of seed 10 the first of the cash funds has a long gap in the window of 2021."""
    history = synthetic_history(10)
    market = BenchMarket(history, choose_universe(history, 6))
    rows = market.decisions(window_named("crypto-2022", windows_of(history)), "monthly")
    classes = [set(market.known(row).classes) for row in rows.tolist()]
    assert "cash" in classes[0]
    assert any("cash" not in one for one in classes)
    assert all(len(one) >= 5 for one in classes)
