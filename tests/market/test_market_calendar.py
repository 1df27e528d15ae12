"""The weekday calendar and the gap rule, against slow definitions."""

from __future__ import annotations

from datetime import UTC, date, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from assaymark.errors import InputError
from assaymark.market import fill_gaps, sample_on, simple_returns, weekdays
from assaymark.market.instruments import all_days, instant

PRICES = arrays(
    float, st.tuples(st.integers(1, 30), st.integers(1, 3)), elements=st.sampled_from([np.nan, 1.0, 2.0, 3.0])
)


def filled_by_definition(prices: np.ndarray, limit: int) -> np.ndarray:
    found = prices.copy()
    for column in range(prices.shape[1]):
        row = 0
        while row < prices.shape[0]:
            if not np.isnan(prices[row, column]):
                row += 1
                continue
            stop = row
            while stop < prices.shape[0] and np.isnan(prices[stop, column]):
                stop += 1
            if row > 0 and stop - row <= limit:
                found[row:stop, column] = prices[row - 1, column]
            row = stop
    return found


@given(PRICES, st.integers(0, 6))
def test_gap_rule_equals_its_definition(prices, limit):
    np.testing.assert_array_equal(fill_gaps(prices, limit=limit), filled_by_definition(prices, limit))


@pytest.mark.parametrize(("length", "filled"), [(1, True), (5, True), (6, False), (20, False)])
def test_a_gap_is_filled_whole_or_not_at_all(length, filled):
    prices = np.full((40, 1), 7.0)
    prices[10 : 10 + length] = np.nan
    found = np.isnan(fill_gaps(prices)[:, 0])
    assert found.sum() == (0 if filled else length)


@given(PRICES)
def test_filling_changes_no_price_and_not_its_input(prices):
    before = prices.copy()
    found = fill_gaps(prices)
    np.testing.assert_array_equal(prices, before)
    there = ~np.isnan(prices)
    np.testing.assert_array_equal(found[there], prices[there])


def test_seven_day_series_are_sampled_on_weekdays():
    every, week = all_days(date(2024, 1, 1), date(2024, 1, 14)), weekdays(date(2024, 1, 1), date(2024, 1, 14))
    found = sample_on(week, every, np.arange(14.0))
    assert found.tolist() == [0, 1, 2, 3, 4, 7, 8, 9, 10, 11]
    assert np.isnan(sample_on(week, every[:3], np.arange(3.0))[3:]).all()


def test_a_repeated_day_is_refused():
    days = np.array(["2024-01-01", "2024-01-01"], dtype="datetime64[D]")
    with pytest.raises(InputError, match="each day once"):
        sample_on(days, days, np.zeros(2))


def test_a_year_has_about_261_returns():
    assert weekdays(date(2024, 1, 1), date(2024, 12, 31)).size == 262


def test_a_time_needs_a_zone():
    assert instant(datetime(1970, 1, 2, 0, 0, 0, 999_999, tzinfo=UTC)) == 86_400
    with pytest.raises(InputError, match="needs a time zone"):
        instant(datetime(2024, 1, 1))


def test_a_return_needs_both_prices():
    assert np.isnan(simple_returns(np.array([[1.0], [np.nan], [2.0]]))).all()
