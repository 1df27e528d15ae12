"""Windows and decision dates: the seed's, the embedded market's own, and what is refused."""

# ruff: noqa: I001  # names in packed lines

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark import benchmark as bench
from assaymark.benchmark import (
    HORIZONS, SEED_WINDOWS, BenchMarket, Window, choose_universe, decision_rows, stress_gate, stress_score,
    window_named, windows_of,
)  # fmt: skip
from assaymark.errors import InputError, UnknownNameError
from assaymark.market import CLASS_NAMES, History, synthetic_history, synthetic_market, weekdays
from assaymark.portfolio import CLASSES

DAYS = weekdays(date(2019, 1, 1), date(2023, 12, 31))
OPEN = np.ones(DAYS.size, dtype=bool)
HISTORY = synthetic_history(0)
IDS = [one.id for one in HISTORY.listings]


def refused(message, call, *given, error=InputError):
    with pytest.raises(error, match=message):
        call(*given)


def test_table_6_and_the_embedded_market_has_its_own_stress_under_the_seeds_names():
    """Seed 002, section 3.1 and Table 6."""
    stress = [(one.name, one.threshold) for one in SEED_WINDOWS if one.kind == "stress"]
    wanted = [("china-2015", 0.40), ("covid-2020", 0.45), ("crypto-2022", 0.50)]
    assert stress == list(bench.RISK_SAFE.items()) == wanted
    months = [f"{one.first:%b %Y} to {one.last:%b %Y}" for one in SEED_WINDOWS]
    assert months == [
        "Jan 2024 to Dec 2024", "Aug 2015 to Feb 2016", "Feb 2020 to May 2020", "May 2022 to Dec 2022",
    ]  # fmt: skip
    assert windows_of(replace(HISTORY, source="files")) == SEED_WINDOWS  # prices of real dates
    assert window_named("normal", SEED_WINDOWS).kind == "normal"
    refused("Did you mean 'covid-2020'", window_named, "covid-2021", SEED_WINDOWS, error=UnknownNameError)
    for seed in (0, 3):
        found = windows_of(synthetic_history(seed))
        assert [one.name for one in found] == [one.name for one in SEED_WINDOWS]
        own = [synthetic_market(seed).period(name) for name in ("liquidity", "pandemic", "tightening")]
        assert [(str(one.first), str(one.last)) for one in found[1:]] == own
        assert all("embedded market" in one.title for one in found[1:])


PERIODS = {
    "weekly": lambda one: one.isocalendar()[:2], "monthly": lambda one: (one.year, one.month),
    "quarterly": lambda one: (one.year, (one.month - 1) // 3),
}  # fmt: skip


@given(st.dates(date(2019, 1, 1), date(2022, 12, 1)), st.integers(20, 380), st.sampled_from(list(HORIZONS)))
def test_decisions_are_the_first_trading_days_of_their_periods(first, length, pace):
    window, key = Window("any", first, first + timedelta(days=length)), PERIODS[pace]
    rows = decision_rows(DAYS, OPEN, window, pace)
    days, inside = DAYS[rows].tolist(), [one for one in DAYS.tolist() if window.first <= one <= window.last]
    firsts = {one for before, one in zip([None, *inside[:-1]], inside, strict=True)
              if before is None or key(before) != key(one)}  # fmt: skip
    assert days[0] == inside[0]
    assert set(days) <= firsts
    assert all(inside.index(one) < HORIZONS[pace] / 2 for one in firsts - set(days))
    assert rows.size == 1 or rows[1] - rows[0] >= HORIZONS[pace] / 2


def test_a_holiday_is_no_decision_date_and_a_window_without_a_day_is_refused():
    open_days = np.array([one != date(2020, 1, 1) for one in DAYS.tolist()])
    rows = decision_rows(DAYS, open_days, Window("any", date(2020, 1, 1), date(2020, 2, 28)), "monthly")
    assert DAYS[rows].astype(str).tolist() == ["2020-01-02", "2020-02-03"]
    what = r"window any: needs trading days from 2030-01-01 .* 2019-01-01 to 2023-12-29"
    refused(what, decision_rows, DAYS, OPEN, Window("any", date(2030, 1, 1), date(2030, 6, 1)), "monthly")


def test_too_short_a_history_is_refused_with_what_is_needed():
    market = BenchMarket(HISTORY, choose_universe(HISTORY, 12))
    for first, last, what in (
        (date(2015, 1, 15), date(2015, 6, 1), r"61 days of prices up to 2015-01-15, the first decision \(got 11\)"),
        (date(2025, 12, 15), date(2025, 12, 31), r"21 days of prices after 2025-12-15, the last decision \(got 12\)"),
    ):
        refused(f"must have {what}", market.decisions, Window("any", first, last), "monthly")
    bars = {name: one[:60] for name, one in HISTORY.bars.items()}
    cut = replace(HISTORY, days=HISTORY.days[:60], bars=bars, known_at=HISTORY.known_at[:60])
    kept = [one.id for one in HISTORY.listings if one.listed <= date(2015, 1, 1)]
    refused(r"needs more than 60 days of prices \(got 60\)", BenchMarket, cut, choose_universe(HISTORY, kept))
    universe = replace(choose_universe(HISTORY, 6), ids=("SPY", "TLT", "GLD", "VNQ", "BTC", "BIL"))
    refused("unknown instrument 'SPY'", BenchMarket, HISTORY, universe, error=UnknownNameError)
    # a class that is not listed yet
    crypto = next(one.id for one in HISTORY.listings if one.asset_class == "CR" and one.listed > date(2017, 1, 1))
    others = [one.id for one in HISTORY.listings if one.asset_class != "CR"]
    market = BenchMarket(HISTORY, choose_universe(HISTORY, [*others, crypto]))
    what = r"2016-01-07: needs an instrument of each class .* \(none of: crypto\)"
    refused(what, market.decisions, window_named("china-2015", windows_of(HISTORY)), "monthly")


def test_a_gap_of_the_only_one_of_its_class_stops_nothing_once_begun():
    """In the embedded market of seed 10 the first of the cash funds has a long gap in the window of 2021."""
    history = synthetic_history(10)
    market = BenchMarket(history, choose_universe(history, 6))
    rows = market.decisions(window_named("crypto-2022", windows_of(history)), "monthly")
    classes = [set(market.known(row).classes) for row in rows.tolist()]
    assert "cash" in classes[0]
    assert any("cash" not in one for one in classes)
    assert all(len(one) >= 5 for one in classes)


# Which instruments a benchmark is about: the fixed rule, named ones, and what is refused


def with_first(**changes) -> History:
    """The embedded market with the first equity changed."""
    return replace(HISTORY, listings=(replace(HISTORY.listings[0], **changes), *HISTORY.listings[1:]))


def test_81_are_all_of_the_small_classes_and_24_equities_of_every_sub_sector():
    found = choose_universe(HISTORY)
    assert (found.size, [found.classes.count(name) for name in CLASSES]) == (81, [24, 15, 16, 10, 12, 4])
    chosen = [one for one in HISTORY.listings if one.id in found.ids]
    assert len({one.sub for one in chosen if one.asset_class == "EQ"}) == 14
    assert any(one.delisted for one in chosen)  # later, which keeps none out


@given(st.integers(6, 182))
def test_the_rule_gives_what_is_asked_for_in_the_order_of_the_store(count):
    found = choose_universe(HISTORY, count)
    assert found.size == len(set(found.ids)) == count
    assert [IDS.index(one) for one in found.ids] == sorted(IDS.index(one) for one in found.ids)
    assert set(found.classes) == set(CLASSES)
    counts = [found.classes.count(name) for name in CLASSES]
    there = [sum(CLASS_NAMES[one.asset_class] == name for one in HISTORY.listings) for name in CLASSES]
    unfilled = [got for got, most in zip(counts, there, strict=True) if got < most]
    assert not unfilled or max(unfilled) - min(unfilled) <= 1
    assert set(found.ids) < set(choose_universe(HISTORY, count + 1).ids)
    assert choose_universe(HISTORY, tuple(reversed(found.ids))).ids == found.ids  # named ones come in its order too


def test_everything_wrong_with_a_universe_is_said_at_once_and_an_index_is_never_dealt():
    for count, got in ((5, "got 5"), (184, "from 6 to 183"), (-1, "got -1")):
        refused(got, choose_universe, HISTORY, count)
    wrong = f"twice: {IDS[0]}", rf"an index cannot be held \({IDS[0]}", "none of: commodity, real_estate, crypto, cash"
    every = "(?s)" + "".join(f"(?=.*{what})" for what in wrong)
    refused(every, choose_universe, with_first(sub="index"), (IDS[0], IDS[0], IDS[130]))
    refused("Did you mean 'ALBIX'", choose_universe, HISTORY, ("ALBIXX",), error=UnknownNameError)
    for name, index in (("^VIX", True), ("vix", True), ("SPY", False)):
        history = with_first(id=name)
        assert bench.is_index(history.listings[0]) is index
        assert (name in choose_universe(history, 183 - index).ids) is not index


# The drawdown gate, its score, and the least CEPS of each stress scenario


@given(st.lists(st.floats(-1, 0), min_size=1, max_size=4), st.floats(0.01, 1))
def test_the_gate_looks_at_the_deepest_and_a_wider_profile_never_fails_what_a_narrower_one_passes(drawdowns, tolerance):
    passed = stress_gate(drawdowns, tolerance)
    assert passed == all(stress_gate([one], tolerance) for one in drawdowns)
    assert passed == stress_gate([-one for one in drawdowns], tolerance)
    assert passed == stress_gate(dict(enumerate(drawdowns)), tolerance)
    by_profile = [stress_gate(drawdowns, one.drawdown_tolerance) for one in bench.PROFILES.values()]
    assert by_profile == sorted(by_profile)
    score = stress_score(drawdowns[0], tolerance)  # 0 where the tolerance is used up
    assert 0 <= score <= 1
    assert score == stress_score(-drawdowns[0], tolerance) == pytest.approx(max(0, 1 - abs(drawdowns[0]) / tolerance))
    assert score == 0 or stress_gate(drawdowns[:1], tolerance)


def test_a_drawdown_of_just_the_tolerance_passes_and_what_is_none_is_refused():
    assert [stress_gate([one], 0.1) for one in (0.3 - 0.2, -0.1 - 9e-10, -0.1 - 2e-9)] == [True, True, False]
    assert stress_score(0.0, 0.1) == 1.0
    for scenario, least in bench.RISK_SAFE.items():
        assert [bench.risk_safe(scenario, ceps) for ceps in (least, 1.0, least - 1e-6)] == [True, True, False]
    for drawdowns, tolerance, message in (
        ([], 0.1, "at least one value"), ([float("nan")], 0.1, "must be shares"), ([-10.0], 10.0, "2 problems"),
        ([-12.38], 0.1, "must be shares from -1 to 1, not percentages .1 value.s., first at index 0: -12.38."),
        ([-0.1], 0.0, "tolerance: must be above 0 and at most 1"), ([-0.1], 10.0, "tolerance: must be above 0"),
    ):  # fmt: skip
        refused(message, stress_gate, drawdowns, tolerance)
    what = r"unknown stress scenario 'covid'\. Did you mean 'covid-2020'"
    refused(what, bench.risk_safe, "covid", 0.5, error=UnknownNameError)
    refused("ceps: must be from 0 to 1", bench.risk_safe, "covid-2020", 1.5)
    what = r"must be the name of a stress scenario: china-2015, .* \(got 0.45\)"
    refused(what, bench.risk_safe, 0.45, "covid-2020")
