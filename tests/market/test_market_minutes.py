"""Minutes on demand: the same from their key, and true to their day."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assaymark.errors import InputError
from assaymark.market import class_members, minute_bars, synthetic_market
from assaymark.market.cycles import SESSION


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2869), st.integers(0, 182))
def test_minutes_agree_with_their_day(row, column):
    market = synthetic_market(0)
    day, name = market.days[row], market.listings[column].id
    if np.isnan(market.close[row, column]):
        with pytest.raises(InputError, match="no bar on"):
            minute_bars(market, name, day)
        return
    bars = minute_bars(market, name, day)
    assert bars.open[0] == market.open[row, column]
    assert bars.close[-1] == market.close[row, column]
    assert bars.high.max() == market.high[row, column]
    assert bars.low.min() == market.low[row, column]
    assert bars.volume.sum() == market.volume[row, column]
    assert (bars.volume >= 0).all()
    assert (bars.low <= np.minimum(bars.open, bars.close)).all()
    assert (bars.high >= np.maximum(bars.open, bars.close)).all()
    np.testing.assert_array_equal(bars.open[1:], bars.close[:-1])


def test_one_key_gives_one_day_in_any_order():
    market = synthetic_market(1)
    days, name = market.days[[700, 701]], market.listings[0].id
    forward = [minute_bars(market, name, day).close for day in days]
    backward = [minute_bars(market, name, day).close for day in days[::-1]][::-1]
    np.testing.assert_array_equal(forward, backward)
    assert not np.array_equal(np.diff(np.log(forward[0])), np.diff(np.log(forward[1])))


def test_times_end_at_the_close_of_the_day():
    market = synthetic_market(0)
    crypto = market.listings[class_members(market.listings)["CR"][0]].id
    for name, count in ((market.listings[0].id, SESSION), (crypto, 1440)):
        bars = minute_bars(market, name, np.datetime64("2024-03-01"))
        assert bars.times.size == count
        assert set(np.diff(bars.times).tolist()) == {60}
        assert bars.times[-1] == datetime(2024, 3, 1, 21, tzinfo=UTC).timestamp()


def test_unknown_days_and_instruments():
    market = synthetic_market(0)
    with pytest.raises(InputError, match="no day"):
        minute_bars(market, market.listings[0].id, np.datetime64("2024-03-02"))
    with pytest.raises(InputError, match="no instrument"):
        minute_bars(market, "NOBODY", np.datetime64("2024-03-01"))
