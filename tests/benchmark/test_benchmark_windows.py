"""Windows and decision dates: the seed's, the embedded market's own, and what is refused."""

# ruff: noqa: I001

from __future__ import annotations

import dataclasses
from datetime import date, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark.benchmark import (
    HORIZONS, PROFILES, RISK_SAFE, SEED_WINDOWS, BenchMarket, Window, choose_universe, decision_rows, is_index,
    risk_safe, stress_gate, stress_score, window_named, windows_of,
)  # fmt: skip
from assaymark.errors import InputError, UnknownNameError
from assaymark.market import CLASS_NAMES, History, synthetic_history, synthetic_market, weekdays
from assaymark.portfolio import CLASSES

DAYS = weekdays(date(2019, 1, 1), date(2023, 12, 31))
OPEN = np.ones(DAYS.size, dtype=bool)
PACES = st.sampled_from(list(HORIZONS))
HISTORY = synthetic_history(0)
IDS = [one.id for one in HISTORY.listings]


def test_table_6():
    """Seed 002, section 3.1 and Table 6."""
    assert [(one.name, one.threshold) for one in SEED_WINDOWS if one.kind == "stress"] == list(RISK_SAFE.items())
    months = [f"{one.first:%b %Y} to {one.last:%b %Y}" for one in SEED_WINDOWS]
    assert months == [
        "Jan 2024 to Dec 2024", "Aug 2015 to Feb 2016", "Feb 2020 to May 2020", "May 2022 to Dec 2022",
    ]  # fmt: skip
    assert windows_of(dataclasses.replace(HISTORY, source="files")) == SEED_WINDOWS  # prices of real dates
    assert window_named("normal", SEED_WINDOWS).kind == "normal"
    with pytest.raises(UnknownNameError, match="Did you mean 'covid-2020'"):
        window_named("covid-2021", SEED_WINDOWS)


@pytest.mark.parametrize("seed", [0, 3])
def test_the_embedded_market_has_its_own_stress_under_the_seeds_names(seed):
    found = windows_of(synthetic_history(seed))
    assert [one.name for one in found] == [one.name for one in SEED_WINDOWS]
    own = [synthetic_market(seed).period(name) for name in ("liquidity", "pandemic", "tightening")]
    assert [(str(one.first), str(one.last)) for one in found[1:]] == own
    assert all("embedded market" in one.title for one in found[1:])


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


def test_a_holiday_is_no_decision_date_and_a_window_without_a_day_is_refused():
    open_days = np.array([one != date(2020, 1, 1) for one in DAYS.tolist()])
    rows = decision_rows(DAYS, open_days, Window("any", date(2020, 1, 1), date(2020, 2, 28)), "monthly")
    assert DAYS[rows].astype(str).tolist() == ["2020-01-02", "2020-02-03"]
    with pytest.raises(InputError, match=r"window any: needs trading days from 2030-01-01 .* 2019-01-01 to 2023-12-29"):
        decision_rows(DAYS, OPEN, Window("any", date(2030, 1, 1), date(2030, 6, 1)), "monthly")


def test_too_short_a_history_is_refused_with_what_is_needed():
    market = BenchMarket(HISTORY, choose_universe(HISTORY, 12))
    for first, last, what in (
        (date(2015, 1, 15), date(2015, 6, 1), r"61 days of prices up to 2015-01-15, the first decision \(got 11\)"),
        (date(2025, 12, 15), date(2025, 12, 31), r"21 days of prices after 2025-12-15, the last decision \(got 12\)"),
    ):
        with pytest.raises(InputError, match=f"must have {what}"):
            market.decisions(Window("any", first, last), "monthly")
    bars = {name: one[:60] for name, one in HISTORY.bars.items()}
    cut = dataclasses.replace(HISTORY, days=HISTORY.days[:60], bars=bars, known_at=HISTORY.known_at[:60])
    kept = [one.id for one in HISTORY.listings if one.listed <= date(2015, 1, 1)]
    with pytest.raises(InputError, match=r"needs more than 60 days of prices \(got 60\)"):
        BenchMarket(cut, choose_universe(HISTORY, kept))
    universe = dataclasses.replace(choose_universe(HISTORY, 6), ids=("SPY", "TLT", "GLD", "VNQ", "BTC", "BIL"))
    with pytest.raises(UnknownNameError, match="unknown instrument 'SPY'"):
        BenchMarket(HISTORY, universe)


def test_a_class_that_is_not_listed_yet_is_refused_with_its_dates():
    crypto = [one for one in HISTORY.listings if one.asset_class == "CR" and one.listed > date(2017, 1, 1)]
    others = [one.id for one in HISTORY.listings if one.asset_class != "CR"]
    market = BenchMarket(HISTORY, choose_universe(HISTORY, [*others, crypto[0].id]))
    with pytest.raises(InputError, match=r"2016-01-07: needs an instrument of each class .* \(none of: crypto\)"):
        market.decisions(window_named("china-2015", windows_of(HISTORY)), "monthly")


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


def with_listings(**changes) -> History:
    """The embedded market with the first equity changed."""
    whole = synthetic_history(0)
    return dataclasses.replace(whole, listings=(dataclasses.replace(whole.listings[0], **changes), *whole.listings[1:]))


def test_81_are_all_of_the_small_classes_and_24_equities_of_every_sub_sector():
    found = choose_universe(HISTORY)
    assert found.size == 81
    assert [found.classes.count(name) for name in CLASSES] == [24, 15, 16, 10, 12, 4]
    assert len({one.sub for one in HISTORY.listings if one.id in found.ids and one.asset_class == "EQ"}) == 14
    assert [one.id for one in HISTORY.listings if one.delisted and one.id in found.ids]  # later, which keeps none out


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


def test_everything_wrong_with_a_universe_is_said_at_once():
    for count, got in ((5, "got 5"), (184, "from 6 to 183"), (-1, "got -1")):
        with pytest.raises(InputError, match=got):
            choose_universe(HISTORY, count)
    with pytest.raises(InputError) as caught:
        choose_universe(with_listings(sub="index"), (IDS[0], IDS[0], IDS[130]))
    wrong = f"twice: {IDS[0]}", f"an index cannot be held ({IDS[0]}", "none of: commodity, real_estate, crypto, cash"
    assert [one for one in wrong if one not in str(caught.value)] == []
    with pytest.raises(UnknownNameError, match="Did you mean 'ALBIX'"):
        choose_universe(HISTORY, ("ALBIXX",))


@pytest.mark.parametrize(("changes", "index"), [({"id": "^VIX"}, True), ({"id": "vix"}, True), ({"id": "SPY"}, False)])
def test_an_index_is_told_by_its_name_and_never_dealt(changes, index):
    history = with_listings(**changes)
    assert is_index(history.listings[0]) is index
    assert (history.listings[0].id in choose_universe(history, 183 - index).ids) is not index


# The drawdown gate, its score, and the least CEPS of each stress scenario

depths = st.lists(st.floats(-1, 0), min_size=1, max_size=4)
tolerances = st.floats(0.01, 1)


@given(depths, tolerances)
def test_the_gate_looks_at_the_deepest_and_a_wider_profile_never_fails_what_a_narrower_one_passes(drawdowns, tolerance):
    passed = stress_gate(drawdowns, tolerance)
    assert passed == all(stress_gate([one], tolerance) for one in drawdowns)
    assert passed == stress_gate([-one for one in drawdowns], tolerance)
    assert passed == stress_gate(dict(enumerate(drawdowns)), tolerance)
    by_profile = [stress_gate(drawdowns, one.drawdown_tolerance) for one in PROFILES.values()]
    assert by_profile == sorted(by_profile)


def test_a_drawdown_of_just_the_tolerance_passes_and_no_loss_scores_1():
    assert stress_gate([0.3 - 0.2], 0.1)
    assert stress_gate([-0.1 - 9e-10], 0.1)
    assert not stress_gate([-0.1 - 2e-9], 0.1)
    assert stress_score(0.0, 0.1) == 1.0


@given(st.floats(-1, 1), tolerances)
def test_the_score_is_0_where_the_tolerance_is_used_up(drawdown, tolerance):
    score = stress_score(drawdown, tolerance)
    assert 0 <= score <= 1
    assert score == pytest.approx(max(0, 1 - abs(drawdown) / tolerance))
    assert score == 0 or stress_gate([drawdown], tolerance)


@pytest.mark.parametrize(
    ("drawdowns", "tolerance", "message"),
    [
        ([], 0.1, "at least one value"),
        ([-12.38], 0.1, "must be shares from -1 to 1, not percentages .1 value.s., first at index 0: -12.38."),
        ([float("nan")], 0.1, "must be shares"), ([-0.1], 0.0, "tolerance: must be above 0 and at most 1"),
        ([-0.1], 10.0, "tolerance: must be above 0 and at most 1"), ([-10.0], 10.0, "2 problems"),
    ],
)  # fmt: skip
def test_the_gate_refuses(drawdowns, tolerance, message):
    with pytest.raises(InputError, match=message):
        stress_gate(drawdowns, tolerance)


@pytest.mark.parametrize(("scenario", "least"), [("china-2015", 0.40), ("covid-2020", 0.45), ("crypto-2022", 0.50)])
def test_risk_safe_from_its_threshold_on(scenario, least):
    assert risk_safe(scenario, least)
    assert risk_safe(scenario, 1.0)
    assert not risk_safe(scenario, least - 1e-6)


def test_risk_safe_refuses():
    with pytest.raises(UnknownNameError, match=r"unknown stress scenario 'covid'\. Did you mean 'covid-2020'"):
        risk_safe("covid", 0.5)
    with pytest.raises(InputError, match="ceps: must be from 0 to 1"):
        risk_safe("covid-2020", 1.5)
    with pytest.raises(InputError, match=r"must be the name of a stress scenario: china-2015, .* \(got 0.45\)"):
        risk_safe(0.45, "covid-2020")
