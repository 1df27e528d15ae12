"""Cycles are an hour of the market without dates, names and levels, a book within its limits, and nothing later."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from perturbed import Later

from assaymark.errors import InputError, NotMeasurableError, UnknownNameError
from assaymark.market import (
    NEUTRAL_NOW,
    REGIMES,
    SESSION,
    Bars,
    class_members,
    cycles_of,
    date_probe,
    day_of,
    fill_gaps,
    key_of,
    minute_bars,
    minutes_from_file,
    probe_result,
    sanitise,
    synthetic_market,
    synthetic_minutes,
)
from assaymark.portfolio import audit, settle
from assaymark.records import canonical_json, content_id, to_json

SOURCE = synthetic_minutes(0)


def cycles(regimes=REGIMES, *, count=3, seed=5, source=SOURCE, bars=60):
    return list(cycles_of(source, regimes, cycles=count, bars=bars, seed=seed))


def test_a_cycle_does_not_depend_on_how_many_others_are_made():
    few, many = cycles(count=2), cycles(count=5)
    assert [canonical_json(to_json(one.context)) for one in few] == [
        canonical_json(to_json(one.context)) for one in many if one.number <= 2
    ]


def test_an_instrument_that_lists_later_is_left_out_and_listed():
    found = cycles(("liquidity", "recent"), count=4)
    early, late = [one for one in found if one.regime == "liquidity"], [one for one in found if one.regime == "recent"]
    assert {one.left_out for one in early} == {("KELRUV",)}
    assert {len(one.context.instruments) for one in early} == {5}
    assert {one.left_out for one in late} == {()}


def test_nothing_of_date_name_or_level_is_left():
    for one in cycles():
        text = canonical_json(to_json(one.context))
        assert not [name for name in one.names.values() if name in text]
        assert one.context.cutoff == NEUTRAL_NOW == max(one.context.series[0].times)
        assert {series.close[0] for series in one.context.series} == {100.0}
        assert set(one.names) == {item.id for item in one.context.instruments}


def test_the_features_are_those_of_the_bars_that_are_shown():
    for one in cycles(count=1):
        facts = {fact.id: fact.value for fact in one.context.facts}
        for series in one.context.series:
            close = np.array(series.close)
            name = series.instrument
            moves = np.diff(close) / close[:-1]
            place = (close[-1] - min(series.low)) / (max(series.high) - min(series.low))
            assert facts[f"{name}.price"] == close[-1]
            assert facts[f"{name}.return_15m"] == pytest.approx(close[-1] / close[-16] - 1, abs=1e-6)
            assert facts[f"{name}.return_60m"] == pytest.approx(close[-1] / close[0] - 1, abs=1e-6)
            assert facts[f"{name}.volatility_60m"] == pytest.approx(np.std(moves, ddof=1) * 60**0.5, abs=1e-6)
            assert facts[f"{name}.range_60m"] == pytest.approx(place, abs=1e-6)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000))
def test_every_book_keeps_its_own_limits_before_an_order(seed):
    for one in cycles(("recent",), count=3, seed=seed):
        book, prices = one.context.portfolio, {f.instrument: f.value for f in one.context.facts if f.field == "price"}
        before = settle(book, prices, ())
        assert before.equity == pytest.approx(book.nav, abs=0.011)
        assert [check.rule for check in audit(before, one.context.constraints) if not check.kept] == []


def test_the_key_leads_back_to_the_bars():
    one = cycles(("pandemic",), count=1)[0]
    key = key_of(one, content_id(one.context), "synthetic")
    shown, real = one.context.series[0], key.names[one.context.series[0].instrument]
    raw = next(bars for bars in one.raw if bars.instrument == real)
    assert np.array(shown.close) == pytest.approx(raw.close / raw.close[0] * 100, abs=1e-4)
    assert (key.last_bar - key.first_bar).total_seconds() == 59 * 60


def test_an_unknown_regime_is_named():
    with pytest.raises(UnknownNameError, match=r"unknown regime 'pandemi'\. Did you mean 'pandemic'"):
        cycles(("pandemi",), count=1)


# --- the future -------------------------------------------------------------------------------------------------------


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.integers(0, 1000), st.sampled_from(REGIMES))
def test_no_bar_after_the_cutoff_can_change_what_is_shown(seed, noise, regime):
    one = cycles((regime,), count=1, seed=seed)[0]
    cutoff = int(one.raw[0].times[-1])
    other = cycles((regime,), count=1, seed=seed, source=Later(SOURCE, cutoff, noise))[0]
    assert canonical_json(to_json(other.context)) == canonical_json(to_json(one.context))
    # The perturbation is one: a minute earlier it changes the last bar.
    moved = cycles((regime,), count=1, seed=seed, source=Later(SOURCE, cutoff - 60, noise))[0]
    assert canonical_json(to_json(moved.context)) != canonical_json(to_json(one.context))


# --- minutes from a file ----------------------------------------------------------------------------------------------

WINDOWS = {"may": (date(2041, 5, 1), date(2041, 5, 31))}
HEAD = "time,instrument,open,high,low,close,volume"


def bar(minute, name, price, *, day=2, hour=12, high=None, volume=5):
    at = f"2041-05-{day:02d}T{hour + minute // 60:02d}:{minute % 60:02d}:00Z"
    return f"{at},{name},{price},{high or price + 0.5},{price - 0.5},{price + 0.1},{volume}"


def written(tmp_path, rows, name="bars.csv", head=HEAD):
    path = tmp_path / name
    path.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return path


def rows_of(names=("X", "Y"), minutes=90):
    return [
        bar(minute, name, 50 + place * 10 + minute % 7) for minute in range(minutes) for place, name in enumerate(names)
    ]


def test_minutes_of_a_file_make_cycles(tmp_path):
    source = minutes_from_file(written(tmp_path, rows_of()), WINDOWS)
    found = cycles(("may",), count=3, source=source)
    assert {len(one.context.series) for one in found} == {2}
    assert set(found[0].names.values()) == {"X", "Y"}


def test_a_file_whose_minutes_are_broken_has_no_complete_hour(tmp_path):
    rows = [row for minute, row in enumerate(rows_of(("X", "Y"), 90)) if minute // 2 % 40]
    with pytest.raises(NotMeasurableError, match="regime may: no complete stretch of 60 minutes of two instruments"):
        cycles(("may",), count=1, source=minutes_from_file(written(tmp_path, rows), WINDOWS))


@pytest.mark.parametrize(("rows", "head", "message"), [
    ([bar(0, "X", -4.0)], HEAD, "open: 1 prices are not positive and finite"),
    ([bar(0, "X", 5.0, volume=-1)], HEAD, "volume: 1 values are negative"),
    ([bar(0, "X", 5.0, high=4.9)], HEAD, "high, low: 1 bars do not hold their own open and close"),
    ([bar(0, "X", 5.0), bar(0, "X", 5.1)], HEAD, "X: has two bars at one time"),
    ([bar(0, "X", 5.0).replace("Z", "")], HEAD, "time: must be times with a zone"),
    ([bar(0, "X", 5.0).replace(",5.0,", ",five,")], HEAD, "open: holds something that is not a number"),
    (["<html><body>Too many requests</body></html>"], "<!doctype html>", "is a web page"),
    ([bar(0, "X", 5.0) + ",shares"], HEAD + ",class", "X: class must be one of equity"),
])  # fmt: skip
def test_a_file_that_holds_no_minutes_is_refused(tmp_path, rows, head, message):
    with pytest.raises(InputError, match=message):
        minutes_from_file(written(tmp_path, rows, head=head), WINDOWS)


def test_a_window_without_bars_is_named(tmp_path):
    source = minutes_from_file(written(tmp_path, rows_of()), {"june": (date(2041, 6, 1), date(2041, 6, 30))})
    with pytest.raises(InputError, match="june: holds no bar"):
        source.days_of("june")
    with pytest.raises(UnknownNameError, match="unknown regime 'july'"):
        source.days_of("july")


# Sanitised bars say neither when nor what, and the probe finds what has not been sanitised

DAY = np.datetime64("2024-03-01")


def hour(column: int, last: int = 60) -> Bars:
    market = synthetic_market(0)
    return minute_bars(market, market.listings[column].id, DAY).part(slice(last))


def test_level_date_and_name_are_gone():
    bars = [hour(0), hour(1), hour(130)]
    found, key = sanitise(bars, np.random.default_rng(3))
    assert [one.instrument for one in found] == ["Asset A", "Asset B", "Asset C"]
    assert sorted(key.values()) == sorted(one.instrument for one in bars)
    assert not any(one.instrument in repr(found) for one in bars)
    for one in found:
        assert one.close[0] == 100.0
        assert one.times[-1] == 0
        assert one.times[0] == -59 * 60
        assert one.volume.mean() == pytest.approx(1.0, abs=1e-3)


@settings(max_examples=20, deadline=None)
@given(st.floats(0.01, 1000), st.integers(-10_000, 10_000))
def test_level_and_date_leave_no_trace(scale, days):
    one = hour(0)
    moved = Bars(
        one.instrument, one.times + 86_400 * days, *(p * scale for p in (one.open, one.high, one.low, one.close)),
        one.volume * 2,
    )  # fmt: skip
    first, _ = sanitise([one], np.random.default_rng(0))
    other, _ = sanitise([moved], np.random.default_rng(0))
    np.testing.assert_array_equal(first[0].times, other[0].times)
    for part in ("open", "high", "low", "close", "volume"):
        np.testing.assert_allclose(getattr(first[0], part), getattr(other[0], part), atol=1.01e-4)


def test_returns_survive_and_names_go_on_after_z():
    one = hour(0)
    found, _ = sanitise([one], np.random.default_rng(0))
    np.testing.assert_allclose(np.diff(np.log(found[0].close)), np.diff(np.log(one.close)), atol=3e-6)
    found, _ = sanitise([replace(one, instrument=str(k)) for k in range(183)], np.random.default_rng(0))
    assert len({bars.instrument for bars in found}) == 183
    holed, other = hour(0), hour(1, 59)
    holed.close[5] = np.nan
    with pytest.raises(InputError, match="2 problems"):
        sanitise([hour(2), holed, other], np.random.default_rng(0))
    with pytest.raises(InputError, match="no instrument"):
        sanitise([], np.random.default_rng(0))


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


def test_rebasing_daily_bars_does_not_hide_them_and_an_hour_of_minutes_is_not_in_the_daily_history():
    history = fill_gaps(synthetic_market(0).close)
    days = history[1000:1500, :10]
    assert date_probe(np.round(days[100:160, 0] / days[100, 0] * 100, 4), days).found
    sane, _ = sanitise([hour(0), hour(10)], np.random.default_rng(0))
    assert not any(date_probe(one.close, history[:, :60]).found for one in sane)


def test_the_probe_correlates_as_numpy_does():
    rng = np.random.default_rng(0)
    history = np.exp(np.cumsum(rng.standard_normal((40, 3)) * 0.01, axis=0))
    series = np.exp(np.cumsum(rng.standard_normal(15) * 0.01))
    moves = np.diff(np.log(series))
    best = max(
        (np.corrcoef(moves, np.diff(np.log(history[row : row + 15, column])))[0, 1], row, column)
        for row in range(26)
        for column in range(3)
    )
    found = date_probe(series, history)
    assert (found.row, found.column, found.correlation) == (*best[1:], pytest.approx(best[0]))
    with pytest.raises(NotMeasurableError, match="at least 10"):
        date_probe(np.ones(60), np.ones((100, 2)))
    with pytest.raises(NotMeasurableError, match="no complete stretch"):
        date_probe(np.linspace(1, 2, 60), np.ones((20, 2)))


# The mechanical date probe finds what was not sanitised, and only that

LEVEL_PROBE_SOURCE = synthetic_minutes(3)
RANGES, COLUMNS = LEVEL_PROBE_SOURCE.ranges()
CYCLES = list(cycles_of(LEVEL_PROBE_SOURCE, REGIMES, cycles=5, bars=60, seed=9))


def true_day(cycle):
    return np.datetime64(int(cycle.raw[0].times[-1]), "s").astype("datetime64[D]")


def shown(cycle):
    return [
        Bars(cycle.names[one.instrument], np.arange(60), *(np.array(getattr(one, name)) for name in
             ("open", "high", "low", "close", "volume")))
        for one in cycle.context.series
    ]  # fmt: skip


def dated(hours):
    return [day_of(bars, COLUMNS, RANGES) == true_day(one) for one, bars in zip(CYCLES, hours, strict=True)]


def test_raw_hours_and_a_leak_of_the_level_alone_are_dated_and_sanitised_hours_are_not():
    assert sum(dated(one.raw for one in CYCLES)) >= 23
    assert sum(dated(map(shown, CYCLES))) == 0
    # Neutral names and clock, but prices as they were: exactly what the probe is there to refuse.
    hits = dated([replace(bars, times=np.arange(60)) for bars in one.raw] for one in CYCLES)
    result = probe_result("mechanical", hits, hits, chance=1 / 2870, alpha=0.01, control=0.8)
    assert result.hits >= 23
    assert (result.can_date, result.passed) == (True, False)
    assert str(result).startswith("mechanical date probe: FAIL. It dated 2")


def test_a_probe_that_dates_nothing_proves_nothing_and_lucky_guesses_are_as_often_as_chance_makes_them():
    result = probe_result("mechanical", [False] * 9, [True] * 7 + [False] * 2, chance=0.01, alpha=0.01, control=0.8)
    assert (result.p, result.can_date, result.passed) == (1.0, False, False)
    few, many = (
        probe_result("model", [True] * n + [False] * (25 - n), [True] * 25, chance=1 / 132, alpha=0.01, control=0.8)
        for n in (1, 3)
    )
    assert (few.passed, many.passed) == (True, False)
    assert few.p == pytest.approx(1 - (1 - 1 / 132) ** 25)
    far = [replace(one, low=one.low * 1e6, high=one.high * 1e6) for one in CYCLES[0].raw]
    assert day_of(far, COLUMNS, RANGES) is None
    with pytest.raises(InputError, match="no history of Asset A"):
        day_of([replace(CYCLES[0].raw[0], instrument="Asset A")], COLUMNS, RANGES)
    with pytest.raises(NotMeasurableError, match="asked about nothing"):
        probe_result("mechanical", [], [], chance=0.1, alpha=0.01, control=0.8)


# Minutes on demand: the same from their key, and true to their day


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


def test_times_end_at_the_close_of_the_day_and_unknown_days_and_instruments_are_named():
    market = synthetic_market(0)
    crypto = market.listings[class_members(market.listings)["CR"][0]].id
    for name, count in ((market.listings[0].id, SESSION), (crypto, 1440)):
        bars = minute_bars(market, name, np.datetime64("2024-03-01"))
        assert bars.times.size == count
        assert set(np.diff(bars.times).tolist()) == {60}
        assert bars.times[-1] == datetime(2024, 3, 1, 21, tzinfo=UTC).timestamp()
    for name, day, what in (
        (market.listings[0].id, "2024-03-02", "no day"), ("NOBODY", "2024-03-01", "no instrument")
    ):  # fmt: skip
        with pytest.raises(InputError, match=what):
            minute_bars(market, name, np.datetime64(day))
