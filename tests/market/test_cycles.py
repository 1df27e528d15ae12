"""Cycles are an hour of the market without dates, names and levels, a book within its limits, and nothing later."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from perturbed import Later

from assaymark.errors import InputError, NotMeasurableError, UnknownNameError
from assaymark.market.cycles import NEUTRAL_NOW, REGIMES, cycles_of, key_of, minutes_from_file, synthetic_minutes
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


@pytest.mark.parametrize(
    ("rows", "head", "message"),
    [
        ([bar(0, "X", -4.0)], HEAD, "open: 1 prices are not positive and finite"),
        ([bar(0, "X", 5.0, volume=-1)], HEAD, "volume: 1 values are negative"),
        ([bar(0, "X", 5.0, high=4.9)], HEAD, "high, low: 1 bars do not hold their own open and close"),
        ([bar(0, "X", 5.0), bar(0, "X", 5.1)], HEAD, "X: has two bars at one time"),
        ([bar(0, "X", 5.0).replace("Z", "")], HEAD, "time: must be times with a zone"),
        ([bar(0, "X", 5.0).replace(",5.0,", ",five,")], HEAD, "open: holds something that is not a number"),
        (["<html><body>Too many requests</body></html>"], "<!doctype html>", "time: this column is needed"),
        ([bar(0, "X", 5.0) + ",shares"], HEAD + ",class", "X: class must be one of equity"),
    ],
)
def test_a_file_that_holds_no_minutes_is_refused(tmp_path, rows, head, message):
    with pytest.raises(InputError, match=message):
        minutes_from_file(written(tmp_path, rows, head=head), WINDOWS)


def test_a_window_without_bars_is_named(tmp_path):
    source = minutes_from_file(written(tmp_path, rows_of()), {"june": (date(2041, 6, 1), date(2041, 6, 30))})
    with pytest.raises(InputError, match="june: holds no bar"):
        source.days_of("june")
    with pytest.raises(UnknownNameError, match="unknown regime 'july'"):
        source.days_of("july")
