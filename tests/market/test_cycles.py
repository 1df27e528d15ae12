"""Cycles: an hour of the market without dates, names and levels, a portfolio within its limits, no look-ahead."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from perturbed import Later

from assaymark import market
from assaymark.errors import InputError, NotMeasurableError, UnknownNameError
from assaymark.portfolio import audit, settle
from assaymark.records import canonical_json, content_id, to_json

SOURCE = market.synthetic_minutes(0)


def cycles(regimes=market.REGIMES, *, count=3, seed=5, source=SOURCE):
    return list(market.cycles_of(source, regimes, cycles=count, bars=60, seed=seed))


def text_of(cycle) -> str:
    return canonical_json(to_json(cycle.context))


def refused(message, call, *given, error=InputError, **options):
    with pytest.raises(error, match=message):
        call(*given, **options)


def test_a_cycle_does_not_depend_on_how_many_others_are_made_and_leaves_out_what_lists_later():
    few, many = cycles(count=2), cycles(count=5)
    assert [text_of(one) for one in few] == [text_of(one) for one in many if one.number <= 2]
    found = {
        (one.regime, one.left_out, len(one.context.instruments)) for one in cycles(("liquidity", "recent"), count=4)
    }
    assert found == {("liquidity", ("KELRUV",), 5), ("recent", (), 6)}
    refused(r"unknown regime 'pandemi'\. Did you mean 'pandemic'", cycles, ("pandemi",), error=UnknownNameError)


def test_nothing_of_date_name_or_level_is_left_and_the_features_are_those_of_the_bars():
    for one in cycles():
        assert not [name for name in one.names.values() if name in text_of(one)]
        assert one.context.cutoff == market.NEUTRAL_NOW == max(one.context.series[0].times)
        assert {series.close[0] for series in one.context.series} == {100.0}
        assert set(one.names) == {item.id for item in one.context.instruments}
        facts = {fact.id: fact.value for fact in one.context.facts}
        for series in one.context.series:
            close, moves = np.array(series.close), np.diff(series.close) / np.array(series.close)[:-1]
            wanted = {
                "price": close[-1], "return_15m": close[-1] / close[-16] - 1, "return_60m": close[-1] / close[0] - 1,
                "volatility_60m": np.std(moves, ddof=1) * 60**0.5,
                "range_60m": (close[-1] - min(series.low)) / (max(series.high) - min(series.low)),
            }  # fmt: skip
            assert {name: facts[f"{series.instrument}.{name}"] for name in wanted} == pytest.approx(wanted, abs=1e-6)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000))
def test_every_book_keeps_its_own_limits_before_an_order(seed):
    for one in cycles(("recent",), count=3, seed=seed):
        book, prices = one.context.portfolio, {f.instrument: f.value for f in one.context.facts if f.field == "price"}
        before = settle(book, prices, ())
        assert before.equity == pytest.approx(book.nav, abs=0.011)
        assert [check.rule for check in audit(before, one.context.constraints) if not check.kept] == []


def test_the_key_leads_back_to_the_bars():
    (one,) = cycles(("pandemic",), count=1)
    key = market.key_of(one, content_id(one.context), "synthetic")
    shown, real = one.context.series[0], key.names[one.context.series[0].instrument]
    raw = next(bars for bars in one.raw if bars.instrument == real)
    assert np.array(shown.close) == pytest.approx(raw.close / raw.close[0] * 100, abs=1e-4)
    assert (key.last_bar - key.first_bar).total_seconds() == 59 * 60


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.integers(0, 1000), st.sampled_from(market.REGIMES))
def test_no_bar_after_the_cutoff_can_change_what_is_shown(seed, noise, regime):
    (one,) = cycles((regime,), count=1, seed=seed)
    cutoff = int(one.raw[0].times[-1])
    # The perturbation is one: a minute earlier it changes the last bar.
    for at, same in ((cutoff, True), (cutoff - 60, False)):
        (other,) = cycles((regime,), count=1, seed=seed, source=Later(SOURCE, at, noise))
        assert (text_of(other) == text_of(one)) == same


# Minutes from a file

WINDOWS = {"may": (date(2041, 5, 1), date(2041, 5, 31))}
HEAD = "time,instrument,open,high,low,close,volume"


def bar(minute, name, price, *, high=None, volume=5):
    at = f"2041-05-02T{12 + minute // 60:02d}:{minute % 60:02d}:00Z"
    return f"{at},{name},{price},{high or price + 0.5},{price - 0.5},{price + 0.1},{volume}"


def minutes(tmp_path, rows, head=HEAD, windows=WINDOWS):
    path = tmp_path / "bars.csv"
    path.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return market.minutes_from_file(path, windows)


ROWS = [bar(minute, name, base + minute % 7) for minute in range(90) for name, base in (("X", 50), ("Y", 60))]


def test_minutes_of_a_file_make_cycles_where_an_hour_is_complete(tmp_path):
    found = cycles(("may",), count=3, source=minutes(tmp_path, ROWS))
    assert ({len(one.context.series) for one in found}, set(found[0].names.values())) == ({2}, {"X", "Y"})
    broken = minutes(tmp_path, [row for minute, row in enumerate(ROWS) if minute // 2 % 40])
    message = "regime may: no complete stretch of 60 minutes of two instruments"
    refused(message, cycles, ("may",), count=1, source=broken, error=NotMeasurableError)
    source = minutes(tmp_path, ROWS, windows={"june": (date(2041, 6, 1), date(2041, 6, 30))})
    refused("june: contains no bar", source.days_of, "june")
    refused("unknown regime 'july'", source.days_of, "july", error=UnknownNameError)


@pytest.mark.parametrize(("rows", "head", "message"), [
    ([bar(0, "X", -4.0)], HEAD, "open: 1 prices are not positive and finite"),
    ([bar(0, "X", 5.0, volume=-1)], HEAD, "volume: 1 values are negative"),
    ([bar(0, "X", 5.0, high=4.9)], HEAD, "high, low: 1 bars do not hold their own open and close"),
    ([bar(0, "X", 5.0), bar(0, "X", 5.1)], HEAD, "X: has two bars at one time"),
    ([bar(0, "X", 5.0).replace("Z", "")], HEAD, "time: must be times with a zone"),
    ([bar(0, "X", 5.0).replace(",5.0,", ",five,")], HEAD, "open: contains a value that is not a number"),
    (["<html><body>Too many requests</body></html>"], "<!doctype html>", "is a web page"),
    ([bar(0, "X", 5.0) + ",shares"], HEAD + ",class", "X: class must be one of equity"),
])  # fmt: skip
def test_a_file_that_holds_no_minutes_is_refused(tmp_path, rows, head, message):
    refused(message, minutes, tmp_path, rows, head)


# Sanitised bars say neither when nor what, and the probe finds what has not been sanitised

MARKET = market.synthetic_market(0)
DAILY = market.fill_gaps(MARKET.close)
PARTS = ("open", "high", "low", "close", "volume")


def hour(column: int, last: int = 60) -> market.Bars:
    bars = market.minute_bars(MARKET, MARKET.listings[column].id, np.datetime64("2024-03-01"))
    return bars.part(slice(last))


def sanitised(*bars: market.Bars, seed: int = 0):
    return market.sanitise(list(bars), np.random.default_rng(seed))


def test_level_date_and_name_are_gone_and_returns_survive():
    bars = [hour(0), hour(1), hour(130)]
    found, key = sanitised(*bars, seed=3)
    assert [one.instrument for one in found] == ["Asset A", "Asset B", "Asset C"]
    assert sorted(key.values()) == sorted(one.instrument for one in bars)
    assert not any(one.instrument in repr(found) for one in bars)
    for one in found:
        assert (one.close[0], one.times[0], one.times[-1]) == (100.0, -59 * 60, 0)
        assert one.volume.mean() == pytest.approx(1.0, abs=1e-3)
    (found,), _ = sanitised(bars[0])
    np.testing.assert_allclose(np.diff(np.log(found.close)), np.diff(np.log(bars[0].close)), atol=3e-6)
    found, _ = sanitised(*(replace(bars[0], instrument=str(k)) for k in range(183)))  # names go on after Z
    assert len({one.instrument for one in found}) == 183
    holed = hour(0)
    holed.close[5] = np.nan
    refused("2 problems", sanitised, hour(2), holed, hour(1, 59))
    refused("no instrument", sanitised)


@settings(max_examples=20, deadline=None)
@given(st.floats(0.01, 1000), st.integers(-10_000, 10_000))
def test_level_and_date_leave_no_trace(scale, days):
    one = hour(0)
    scaled = {part: getattr(one, part) * (2 if part == "volume" else scale) for part in PARTS}
    (first,), _ = sanitised(one)
    (other,), _ = sanitised(replace(one, times=one.times + 86_400 * days, **scaled))
    np.testing.assert_array_equal(first.times, other.times)
    for part in PARTS:
        np.testing.assert_allclose(getattr(first, part), getattr(other, part), atol=1.01e-4)


def test_the_probe_finds_daily_bars_even_rebased_and_no_hour_of_minutes():
    history = DAILY[1000:1800, :40]
    for seed in range(5):
        rng = np.random.default_rng(seed)
        column = int(rng.choice(np.flatnonzero(np.isfinite(history).all(axis=0))))
        row = int(rng.integers(0, 740))
        found = market.date_probe(history[row : row + 60, column], history)
        assert (found.found, found.row, found.column) == (True, row, column)
        assert found.correlation == pytest.approx(1.0)
        assert found.runner_up < 0.95
    days = DAILY[1000:1500, :10]
    assert market.date_probe(np.round(days[100:160, 0] / days[100, 0] * 100, 4), days).found
    sane, _ = sanitised(hour(0), hour(10))
    assert not any(market.date_probe(one.close, DAILY[:, :60]).found for one in sane)


def test_the_probe_correlates_as_numpy_does():
    rng = np.random.default_rng(0)
    history = np.exp(np.cumsum(rng.standard_normal((40, 3)) * 0.01, axis=0))
    series = np.exp(np.cumsum(rng.standard_normal(15) * 0.01))
    best = max(
        (np.corrcoef(np.diff(np.log(series)), np.diff(np.log(history[row : row + 15, column])))[0, 1], row, column)
        for row in range(26) for column in range(3)
    )  # fmt: skip
    found = market.date_probe(series, history)
    assert (found.correlation, found.row, found.column) == (pytest.approx(best[0]), *best[1:])
    refused("at least 10", market.date_probe, np.ones(60), np.ones((100, 2)), error=NotMeasurableError)
    short = np.linspace(1, 2, 60), np.ones((20, 2))
    refused("no complete stretch", market.date_probe, *short, error=NotMeasurableError)


def test_raw_hours_and_a_leak_of_the_level_alone_are_dated_and_sanitised_hours_are_not():
    source = market.synthetic_minutes(3)
    lows, highs = source.ranges()
    made = list(market.cycles_of(source, market.REGIMES, cycles=5, bars=60, seed=9))

    def dated(hours):
        days = [np.datetime64(int(one.raw[0].times[-1]), "s").astype("datetime64[D]") for one in made]
        return [market.day_of(bars, lows, highs) == day for day, bars in zip(days, hours, strict=True)]

    shown = [
        [market.Bars(cycle.names[one.instrument], np.arange(60), *(np.array(getattr(one, part)) for part in PARTS))
         for one in cycle.context.series]
        for cycle in made
    ]  # fmt: skip
    assert sum(dated(one.raw for one in made)) >= 23
    assert sum(dated(shown)) == 0
    # Neutral names and clock, but prices as they were: exactly what the probe is there to refuse.
    hits = dated([replace(bars, times=np.arange(60)) for bars in one.raw] for one in made)
    result = market.probe_result("mechanical", hits, hits, chance=1 / 2870, alpha=0.01, control=0.8)
    assert result.hits >= 23
    assert (result.can_date, result.passed) == (True, False)
    assert str(result).startswith("date-leakage check by price ranges: FAIL. It dated 2")
    far = [replace(one, low=one.low * 1e6, high=one.high * 1e6) for one in made[0].raw]
    assert market.day_of(far, lows, highs) is None
    stranger = [replace(made[0].raw[0], instrument="Asset A")]
    refused("no history of Asset A", market.day_of, stranger, lows, highs)


def test_a_probe_that_dates_nothing_proves_nothing_and_lucky_guesses_are_as_often_as_chance_makes_them():
    limits = {"alpha": 0.01, "control": 0.8}
    none = market.probe_result("mechanical", [False] * 9, [True] * 7 + [False] * 2, chance=0.01, **limits)
    assert (none.p, none.can_date, none.passed) == (1.0, False, False)
    few, many = (
        market.probe_result("model", [True] * n + [False] * (25 - n), [True] * 25, chance=1 / 132, **limits)
        for n in (1, 3)
    )
    assert (few.passed, many.passed, few.p) == (True, False, pytest.approx(1 - (1 - 1 / 132) ** 25))
    nothing = market.probe_result, "mechanical", [], []
    refused("asked about nothing", *nothing, chance=0.1, **limits, error=NotMeasurableError)


# Minutes on demand: the same from their key, and true to their day


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2869), st.integers(0, 182))
def test_minutes_agree_with_their_day(row, column):
    day, name = MARKET.days[row], MARKET.listings[column].id
    if np.isnan(MARKET.close[row, column]):
        refused("no bar on", market.minute_bars, MARKET, name, day)
        return
    bars = market.minute_bars(MARKET, name, day)
    whole = bars.open[0], bars.high.max(), bars.low.min(), bars.close[-1], bars.volume.sum()
    assert whole == tuple(getattr(MARKET, part)[row, column] for part in PARTS)
    assert (bars.volume >= 0).all()
    assert (bars.low <= np.minimum(bars.open, bars.close)).all()
    assert (bars.high >= np.maximum(bars.open, bars.close)).all()
    np.testing.assert_array_equal(bars.open[1:], bars.close[:-1])


def test_one_key_gives_one_day_in_any_order_ending_at_its_close():
    days, names = MARKET.days[[700, 701]], [one.id for one in MARKET.listings]
    forward, backward = (
        [market.minute_bars(MARKET, names[0], day).close for day in order] for order in (days, days[::-1])
    )
    np.testing.assert_array_equal(forward, backward[::-1])
    assert not np.array_equal(np.diff(np.log(forward[0])), np.diff(np.log(forward[1])))
    crypto = names[market.class_members(MARKET.listings)["CR"][0]]
    for name, count in ((names[0], market.SESSION), (crypto, 1440)):
        times = market.minute_bars(MARKET, name, np.datetime64("2024-03-01")).times
        assert (times.size, set(np.diff(times).tolist())) == (count, {60})
        assert times[-1] == datetime(2024, 3, 1, 21, tzinfo=UTC).timestamp()
    refused("no day", market.minute_bars, MARKET, names[0], np.datetime64("2024-03-02"))
    refused("no instrument", market.minute_bars, MARKET, "NOBODY", np.datetime64("2024-03-01"))
