"""The weekday calendar and the gap rule, corporate actions, regimes and correlation, against slow definitions."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from assaymark import market
from assaymark.errors import InputError
from assaymark.market.instruments import all_days, implied_action, instant

PRICES = arrays(
    float, st.tuples(st.integers(1, 30), st.integers(1, 3)), elements=st.sampled_from([np.nan, 1.0, 2.0, 3.0])
)


def refused(message, call, *given, error=InputError, **options):
    with pytest.raises(error, match=message):
        call(*given, **options)


def filled_by_definition(prices: np.ndarray, limit: int) -> np.ndarray:
    found = prices.copy()
    for column in range(prices.shape[1]):
        row = 0
        while row < prices.shape[0]:
            stop = row
            while stop < prices.shape[0] and np.isnan(prices[stop, column]):
                stop += 1
            if row > 0 and stop - row <= limit:
                found[row:stop, column] = prices[row - 1, column]
            row = max(stop, row + 1)
    return found


@given(PRICES, st.integers(0, 6))
def test_gap_rule_equals_its_definition_and_changes_no_price_and_not_its_input(prices, limit):
    before, there = prices.copy(), ~np.isnan(prices)
    found = market.fill_gaps(prices, limit=limit)
    np.testing.assert_array_equal(found, filled_by_definition(prices, limit))
    np.testing.assert_array_equal(prices, before)
    np.testing.assert_array_equal(found[there], prices[there])


def test_a_gap_is_filled_whole_or_not_at_all():
    for length, missing in ((1, 0), (5, 0), (6, 6), (20, 20)):
        prices = np.full((40, 1), 7.0)
        prices[10 : 10 + length] = np.nan
        assert np.isnan(market.fill_gaps(prices)).sum() == missing


def test_seven_day_series_are_sampled_on_weekdays_and_times_need_a_zone():
    every, week = all_days(date(2024, 1, 1), date(2024, 1, 14)), market.weekdays(date(2024, 1, 1), date(2024, 1, 14))
    assert market.sample_on(week, every, np.arange(14.0)).tolist() == [0, 1, 2, 3, 4, 7, 8, 9, 10, 11]
    assert np.isnan(market.sample_on(week, every[:3], np.arange(3.0))[3:]).all()
    days = np.array(["2024-01-01", "2024-01-01"], dtype="datetime64[D]")
    refused("each day once", market.sample_on, days, days, np.zeros(2))
    assert market.weekdays(date(2024, 1, 1), date(2024, 12, 31)).size == 262
    assert instant(datetime(1970, 1, 2, 0, 0, 0, 999_999, tzinfo=UTC)) == 86_400
    refused("needs a time zone", instant, datetime(2024, 1, 1))
    assert np.isnan(market.simple_returns(np.array([[1.0], [np.nan], [2.0]]))).all()


# Corporate actions: inferred from factors, listed by a file, known from their ex-date, and kept on disk

EX = date(2024, 3, 12)
NOW = datetime(2024, 4, 1, tzinfo=UTC)
CLOSED = datetime(2024, 3, 13, 22, tzinfo=UTC)


@pytest.mark.parametrize(("ratio", "split", "dividend"), [
    (10.0, 10.0, 0.0), (1.5, 1.5, 0.0), (1 / 8, 1 / 8, 0.0), (0.95, 0.95, 0.0), (1 / (1 - 0.5 / 100), 1.0, 0.5),
    (1 / (1 - 30.0 / 100), 1.0, 30.0), (10 / (1 - 0.2 / 10), 10.0, 0.2), (1.5 / (1 - 0.6 / (100 / 1.5)), 1.5, 0.6),
    (2.5 / (1 - 0.2 / 40), 2.5, 0.2), (1 / 8 / (1 - 5.0 / 800), 1 / 8, 5.0),
])  # fmt: skip
def test_what_a_change_of_the_factor_implies(ratio, split, dividend):
    found = implied_action("A", EX, ratio, 100.0)
    assert (found.split, found.dividend) == (pytest.approx(split), pytest.approx(dividend))
    # the value of a holding at the last close is the same after it
    assert found.split * (100.0 / ratio) + found.split * found.dividend / 1.0 == pytest.approx(100.0, rel=0.1)
    assert implied_action("A", EX, 1.0 + 1e-7, 100.0) is None


ROWS = """instrument,date,open,close,volume,split,dividend
A,2024-03-08,99,100,5,,
A,2024-03-11,101,102,5,1,0
A,2024-03-12,10.1,10,50,10,
A,2024-03-13,9.9,10,50,,0.25
B,2024-03-08,20,20,5,,
B,2024-03-11,20,20,5,,
B,2024-03-12,20,20,5,,
B,2024-03-13,20,20,5,,
"""


def made(path: Path, text: str = ROWS):
    file = path / "prices.csv"
    file.write_text(text)
    return market.snapshot_from_file(file, now=NOW)


def test_a_file_that_lists_actions_gets_factors_and_keeps_what_was_traded(tmp_path):
    history = market.history_of(made(tmp_path))
    view = history.as_of(CLOSED)
    later = market.CorporateAction("A", date(2024, 3, 13), dividend=0.25)
    assert view.actions() == {"A": (market.CorporateAction("A", EX, split=10.0), later)}
    wanted = [10.0 * (1 - 0.25 / 10), 10.2 * (1 - 0.25 / 10), 10.0 * (1 - 0.25 / 10), 10.0]
    assert view.prices(4).values[:, 0] == pytest.approx(wanted)
    clock = market.Clock(history, ["A", "B"], date(2024, 3, 8), date(2024, 3, 13))
    day, before = clock.day(EX), clock.day(date(2024, 3, 11))
    assert (day.quotes["A"].open, day.quotes["A"].close) == (10.1, 10.0)
    assert day.bars["close"][:, 0] == pytest.approx([10.0, 10.2, 10.0])
    assert (day.bars["volume"][:, 0].tolist(), history.unstated) == ([50.0, 50.0, 50.0], frozenset())
    # An action is known from its ex-date on.
    assert (before.quotes["A"].close, before.bars["close"][-1, 0]) == (102.0, pytest.approx(102.0))
    assert history.as_of(datetime(2024, 3, 11, 22, tzinfo=UTC)).actions() == {}
    assert [one.ex_date for one in history.as_of(datetime(2024, 3, 12, 22, tzinfo=UTC)).actions()["A"]] == [EX]


def test_actions_traded_prices_and_no_word_on_adjustment_go_through_disk_and_a_cache(tmp_path):
    snapshot = made(tmp_path)
    market.write_snapshot(tmp_path / "there", snapshot)
    assert market.read_manifest(tmp_path / "there").files["actions"].rows == 2
    first, again = (market.open_history(tmp_path / "there").as_of(CLOSED) for _ in range(2))
    copy = market.history_of(market.snapshot_of(market.history_of(snapshot), "copy", snapshot.origin)).as_of(CLOSED)
    assert first.digest() == again.digest() == copy.digest()
    assert first.actions() == again.actions() == copy.actions() != {}
    snapshot = made(tmp_path, "\n".join(line.rsplit(",", 2)[0] for line in ROWS.splitlines()))
    market.write_snapshot(tmp_path / "silent", snapshot)
    found = [market.history_of(snapshot), *(market.open_history(tmp_path / "silent") for _ in range(2))]
    assert [one.unstated for one in found] == [{"A", "B"}] * 3
    assert "actions" not in market.read_manifest(tmp_path / "silent").files


def test_actions_and_prices_that_cannot_be_are_refused(tmp_path):
    for old, new, words in (
        ("50,10,", "50,-10,", "prices.csv: row 3, split: must be above 0"),
        ("50,10,", "50,,-1", "row 3, dividend: must be 0 or"),
        ("A,2024-03-11,101,", "A,2024-03-11,-101,", r"A, 2024-03-11, open: a price must be positive \(got -101\)"),
    ):
        refused(words, made, tmp_path, ROWS.replace(old, new))
    snapshot, known = made(tmp_path), int(datetime(2024, 3, 12, 21, tzinfo=UTC).timestamp())
    for action, words in (
        (("A", EX, -10.0, 0.0), "actions, split: must be positive"),
        (("A", EX, 1.0, -1.0), "actions, dividend: must not be negative"),
        (("Z", EX, 2.0), "actions, Z: is in no table of instruments"),
    ):
        wrong = replace(market.history_of(snapshot), actions=((known, market.CorporateAction(*action)),))
        refused(words, market.history_of, market.snapshot_of(wrong, "wrong", snapshot.origin))


def test_factors_that_count_forward_imply_the_same(tmp_path):
    backward = "instrument,date,close,adj_factor\nA,2024-03-11,1000,0.1\nA,2024-03-12,101,1\nA,2024-03-13,102,1\n"
    forward = backward.replace(",0.1\n", ",1\n").replace("101,1\n", "101,10\n").replace("102,1\n", "102,10\n")
    for text in (backward, forward):
        view = market.history_of(made(tmp_path, text)).as_of(CLOSED)
        assert [(one.split, one.dividend, one.ex_date) for one in view.actions()["A"]] == [(10.0, 0.0, EX)]
        assert np.diff(np.log(view.prices(3).values[:, 0])) == pytest.approx(np.log([1.01, 102 / 101]))


# Regimes against a day-by-day definition and on planted paths; pairwise-complete correlation against pandas


def regime_by_definition(path: np.ndarray, crisis: float, window: int, fast: int, slow: int, band: float) -> str:
    if 1 - path[-1] / max(path[-window:]) > crisis:
        return "crisis"
    if path.size < slow:
        return "undefined"
    ratio = np.mean(path[-fast:]) / np.mean(path[-slow:])
    return "bull" if ratio > 1 + band else "bear" if ratio < 1 - band else "sideways"


def walk(seed: int, n: int, size: float) -> np.ndarray:
    return 100 * np.exp(np.cumsum(np.random.default_rng(seed).standard_normal(n) * size))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 90), st.sampled_from([0.002, 0.01, 0.03]), st.integers(2, 9))
def test_equals_the_definition_day_by_day_so_later_days_change_no_earlier_label(seed, n, size, window):
    path = walk(seed, n, size)
    options = {"crisis": 0.05, "window": window, "fast": 5, "slow": 12, "band": 0.01}
    wanted = [regime_by_definition(path[: day + 1], *options.values()) for day in range(n)]
    assert market.regimes(path, **options).tolist() == wanted


def test_drawdown_bands_crises_and_indexes():
    found = market.drawdown(np.array([100.0, *[80.0] * 252]))
    assert (found[251], found[252]) == (pytest.approx(0.2), 0)  # a peak is forgotten after the window
    path = walk(1, 900, 0.005)
    np.testing.assert_array_equal(market.regimes(path)[:205], market.regimes(path[:205]))
    assert "sideways" not in market.regimes(path, band=0.0)[199:]
    assert (market.regimes(path)[199:] == "sideways").mean() > 0.5
    flat = np.full(300, 100.0)  # a fall of sixteen percent is a crisis, and of fourteen is not
    assert [market.regimes(np.append(flat, last))[-1] for last in (84.0, 86.0)] == ["crisis", "sideways"]
    refused("positive index", market.regimes, np.array([1.0, np.nan]))
    closes = np.array([[100.0, np.nan], [110.0, 50.0], [121.0, 45.0], [np.nan, np.nan]])
    np.testing.assert_allclose(market.class_index(closes, market.universe()[:2])["EQ"], [100, 110, 110, 110])


def with_holes(seed: int, days: int, n: int, share: float) -> np.ndarray:
    rng = np.random.default_rng(seed)
    found = (rng.standard_normal((days, n)) + rng.standard_normal(n)) * 10.0 ** rng.uniform(-5, 1, n)
    found[rng.random(found.shape) < share] = np.nan
    return found


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 80), st.integers(1, 12), st.floats(0, 0.9))
def test_equals_pandas(seed, days, n, share):
    import pandas as pd

    returns = with_holes(seed, days, n, share)
    wanted, found = pd.DataFrame(returns).corr(min_periods=2).to_numpy(), market.pairwise_correlation(returns)
    off = ~np.eye(n, dtype=bool)  # two points are always perfectly correlated; the diagonal is 1 by definition
    np.testing.assert_array_equal(np.isnan(found[off]), np.isnan(wanted[off]))
    np.testing.assert_allclose(found[off], wanted[off], atol=1e-12, rtol=0)


def test_equals_pandas_on_late_listings_and_the_whole_size():
    import pandas as pd

    returns = with_holes(3, 2000, 60, 0.02)
    returns[:1500, 5], returns[1700:, 6] = np.nan, np.nan
    wanted = pd.DataFrame(returns).corr().to_numpy()
    np.testing.assert_allclose(market.pairwise_correlation(returns), wanted, atol=1e-12, rtol=0)


def test_a_column_constant_on_the_common_days_is_undefined_and_a_nearly_constant_one_keeps_its_digits():
    found = market.pairwise_correlation(np.array([[1.0, 1.0], [2.0, 1.0], [3.0, 1.0], [np.nan, 5.0], [np.nan, 2.0]]))
    assert np.isnan(found).tolist() == [[False, True], [True, False]]
    rng = np.random.default_rng(5)
    returns = rng.standard_normal((200, 2))
    returns[:50, 0] = 3.0 + 1e-7 * rng.standard_normal(50)
    returns[50:, 1] = np.nan
    wanted = np.corrcoef(returns[:50].T)[0, 1]
    assert market.pairwise_correlation(returns)[0, 1] == pytest.approx(wanted, abs=1e-8)


@given(st.integers(0, 1000), st.integers(3, 30))
def test_scale_and_shift_change_nothing(seed, days):
    returns = with_holes(seed, days, 4, 0.1)
    there = market.pairwise_correlation(returns)
    moved = market.pairwise_correlation(returns * np.array([2.0, 3.0, 0.5, 100.0]) + 1.0)
    np.testing.assert_allclose(moved[~np.isnan(there)], there[~np.isnan(there)], atol=1e-6)


def test_too_few_common_days_and_columns_that_do_not_move_have_no_correlation():
    for returns, least in ((np.ones((1, 2)), 2), (np.ones((5, 2)), 2), (with_holes(0, 10, 3, 0.0), 11)):
        assert np.isnan(market.pairwise_correlation(returns, min_overlap=least)).all()


@given(st.lists(st.sampled_from("abc"), min_size=2, max_size=9), st.integers(0, 2**32 - 1))
def test_means_of_groups_by_the_slow_definition(groups, seed):
    n, rng, names = len(groups), np.random.default_rng(seed), list(dict.fromkeys(groups))
    corr = np.where(rng.random((n, n)) < 0.1, np.nan, np.corrcoef(rng.normal(size=(n, 30))))
    means = market.group_correlations(corr, np.array([[of == name for name in names] for of in groups], dtype=float))
    for i, a in enumerate(names):
        for j, b in enumerate(names):
            pairs = [corr[k, m] for k in range(n) for m in range(n) if k != m and (groups[k], groups[m]) == (a, b)]
            pairs = [value for value in pairs if not np.isnan(value)]
            assert means[i, j] == pytest.approx(np.mean(pairs) if pairs else np.nan, abs=1e-12, nan_ok=True)
