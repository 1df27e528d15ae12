"""The mechanical date probe finds what was not sanitised, and only that."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from assaymark.errors import InputError, NotMeasurableError
from assaymark.market import Bars
from assaymark.market.cycles import REGIMES, cycles_of, day_of, probe_result, synthetic_minutes

SOURCE = synthetic_minutes(3)
RANGES, COLUMNS = SOURCE.ranges()
CYCLES = list(cycles_of(SOURCE, REGIMES, cycles=5, bars=60, seed=9))


def true_day(cycle):
    return np.datetime64(int(cycle.raw[0].times[-1]), "s").astype("datetime64[D]")


def shown(cycle):
    return [
        Bars(cycle.names[one.instrument], np.arange(60), *(np.array(getattr(one, name)) for name in
             ("open", "high", "low", "close", "volume")))
        for one in cycle.context.series
    ]  # fmt: skip


def test_raw_hours_are_dated_and_sanitised_ones_are_not():
    assert sum(day_of(one.raw, COLUMNS, RANGES) == true_day(one) for one in CYCLES) >= 23
    assert sum(day_of(shown(one), COLUMNS, RANGES) == true_day(one) for one in CYCLES) == 0


def test_a_leak_of_the_level_alone_is_found():
    """Neutral names and clock, but prices as they were: exactly what the probe is there to refuse."""
    hits = [day_of([replace(bars, times=np.arange(60)) for bars in one.raw], COLUMNS, RANGES) == true_day(one)
            for one in CYCLES]  # fmt: skip
    result = probe_result("mechanical", hits, hits, chance=1 / 2870, alpha=0.01, control=0.8)
    assert result.hits >= 23
    assert result.can_date
    assert not result.passed
    assert str(result).startswith("mechanical date probe: FAIL. It dated 2")


def test_a_probe_that_dates_nothing_proves_nothing():
    result = probe_result("mechanical", [False] * 9, [True] * 7 + [False] * 2, chance=0.01, alpha=0.01, control=0.8)
    assert result.p == 1.0
    assert not result.can_date
    assert not result.passed


def test_lucky_guesses_are_allowed_as_often_as_chance_makes_them():
    few = probe_result("model", [True] + [False] * 24, [True] * 25, chance=1 / 132, alpha=0.01, control=0.8)
    many = probe_result("model", [True] * 3 + [False] * 22, [True] * 25, chance=1 / 132, alpha=0.01, control=0.8)
    assert (few.passed, many.passed) == (True, False)
    assert few.p == pytest.approx(1 - (1 - 1 / 132) ** 25)


def test_prices_that_no_day_holds_have_no_day():
    far = [replace(one, low=one.low * 1e6, high=one.high * 1e6) for one in CYCLES[0].raw]
    assert day_of(far, COLUMNS, RANGES) is None


def test_an_instrument_without_history_is_named():
    with pytest.raises(InputError, match="no history of Asset A"):
        day_of([replace(CYCLES[0].raw[0], instrument="Asset A")], COLUMNS, RANGES)
    with pytest.raises(NotMeasurableError, match="asked about nothing"):
        probe_result("mechanical", [], [], chance=0.1, alpha=0.01, control=0.8)
