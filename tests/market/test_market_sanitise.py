"""Sanitised bars say neither when nor what, and the probe finds what has not been sanitised."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assaymark.errors import InputError, NotMeasurableError
from assaymark.market import Bars, date_probe, fill_gaps, minute_bars, sanitise, synthetic_market
from assaymark.market.cycles import neutral_names

DAY = np.datetime64("2024-03-01")


def hour(column: int, last: int = 60) -> Bars:
    market = synthetic_market(0)
    bars = minute_bars(market, market.listings[column].id, DAY)
    parts = (bars.open, bars.high, bars.low, bars.close, bars.volume)
    return Bars(bars.instrument, bars.times[:last], *(part[:last] for part in parts))


def nowhere(name: str) -> Bars:
    nothing = np.full(60, np.nan)
    return Bars(name, hour(0).times, nothing, nothing, nothing, nothing, nothing)


def test_level_date_and_name_are_gone():
    bars = [hour(0), hour(1), hour(130)]
    found, key = sanitise(bars, np.random.default_rng(3))
    assert [one.instrument for one in found.bars] == ["Asset A", "Asset B", "Asset C"]
    assert sorted(key.values()) == sorted(one.instrument for one in bars)
    assert not any(one.instrument in repr(found) for one in bars)
    for one in found.bars:
        assert one.close[0] == 100.0
        assert one.times[-1] == 0
        assert one.times[0] == -59 * 60
        assert one.volume.mean() == pytest.approx(1.0, abs=1e-3)


@settings(max_examples=20, deadline=None)
@given(st.floats(0.01, 1000), st.integers(-10_000, 10_000))
def test_level_and_date_leave_no_trace(scale, days):
    one = hour(0)
    moved = Bars(
        one.instrument,
        one.times + 86_400 * days,
        *(p * scale for p in (one.open, one.high, one.low, one.close)),
        one.volume * 2,
    )
    first, _ = sanitise([one], np.random.default_rng(0))
    other, _ = sanitise([moved], np.random.default_rng(0))
    np.testing.assert_array_equal(first.bars[0].times, other.bars[0].times)
    for part in ("open", "high", "low", "close", "volume"):
        np.testing.assert_allclose(getattr(first.bars[0], part), getattr(other.bars[0], part), atol=1.01e-4)


def test_returns_survive():
    found, _ = sanitise([hour(0)], np.random.default_rng(0))
    np.testing.assert_allclose(np.diff(np.log(found.bars[0].close)), np.diff(np.log(hour(0).close)), atol=3e-6)


def test_what_did_not_exist_is_left_out_and_listed():
    found, _ = sanitise([hour(0), nowhere("YOUNG")], np.random.default_rng(0))
    assert found.left_out == ("YOUNG",)
    assert len(found.bars) == 1


def test_holes_and_other_times_are_refused_together():
    holed, other = hour(0), hour(1, 59)
    holed.close[5] = np.nan
    with pytest.raises(InputError, match="2 problems"):
        sanitise([hour(2), holed, other], np.random.default_rng(0))
    with pytest.raises(InputError, match="no instrument"):
        sanitise([nowhere("A")], np.random.default_rng(0))


def test_names_go_on_after_z():
    assert len(set(neutral_names(183))) == 183


@pytest.mark.parametrize("seed", range(5))
def test_the_probe_finds_what_is_not_sanitised(seed):
    market = synthetic_market(0)
    history = fill_gaps(market.close)[1000:1800, :40]
    rng = np.random.default_rng(seed)
    column = int(rng.choice(np.flatnonzero(np.isfinite(history).all(axis=0))))
    row = int(rng.integers(0, 740))
    found = date_probe(history[row : row + 60, column], history)
    assert found.found
    assert (found.row, found.column) == (row, column)
    assert found.correlation == pytest.approx(1.0)
    assert found.runner_up < 0.95


def test_rebasing_daily_bars_does_not_hide_them():
    history = fill_gaps(synthetic_market(0).close)[1000:1500, :10]
    assert date_probe(np.round(history[100:160, 0] / history[100, 0] * 100, 4), history).found


def test_an_hour_of_minutes_is_not_in_the_daily_history():
    history = fill_gaps(synthetic_market(0).close)[:, :60]
    sane, _ = sanitise([hour(0), hour(10)], np.random.default_rng(0))
    for one in sane.bars:
        assert not date_probe(one.close, history).found


def test_the_probe_correlates_as_numpy_does():
    rng = np.random.default_rng(0)
    history = np.exp(np.cumsum(rng.standard_normal((40, 3)) * 0.01, axis=0))
    series = np.exp(np.cumsum(rng.standard_normal(15) * 0.01))
    best = max(
        (np.corrcoef(np.diff(np.log(series)), np.diff(np.log(history[row : row + 15, column])))[0, 1], row, column)
        for row in range(26)
        for column in range(3)
    )
    found = date_probe(series, history)
    assert (found.row, found.column) == best[1:]
    assert found.correlation == pytest.approx(best[0])


def test_what_cannot_be_probed():
    with pytest.raises(NotMeasurableError, match="at least 10"):
        date_probe(np.ones(60), np.ones((100, 2)))
    with pytest.raises(NotMeasurableError, match="no complete stretch"):
        date_probe(np.linspace(1, 2, 60), np.ones((20, 2)))
