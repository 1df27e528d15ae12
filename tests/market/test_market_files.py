"""Prices from files: both layouts, and every planted fault found, all of them in one message."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from assaymark.errors import InputError
from assaymark.market import Limits, history_from_file, price_findings, snapshot_problems, weekdays

DAYS = weekdays(date(2024, 1, 1), date(2024, 6, 28))
IDS = ("ONE", "TWO", "THREE", "FOUR")


def sound(seed: int = 0) -> np.ndarray:
    return 100 * np.exp(np.cumsum(np.random.default_rng(seed).standard_normal((DAYS.size, len(IDS))) * 0.01, axis=0))


def wide_csv(path: Path, closes: np.ndarray, days: np.ndarray = DAYS) -> Path:
    lines = ["Date," + ",".join(IDS)]
    for day, row in zip(days, closes, strict=True):
        lines.append(f"{day}," + ",".join("" if np.isnan(one) else repr(float(one)) for one in row))
    path.write_text("\n".join(lines) + "\n")
    return path


def long_parquet(path: Path, closes: np.ndarray, **columns: list[object]) -> Path:
    days = np.repeat(DAYS, len(IDS))
    table = {"instrument": list(IDS) * DAYS.size, "event_date": pa.array(days), "close": closes.ravel(), **columns}
    pa.parquet.write_table(pa.table(table), path)
    return path


def test_both_layouts_read_alike(tmp_path):
    closes = sound()
    closes[40:42, 1] = np.nan
    history, problems = history_from_file(wide_csv(tmp_path / "prices.csv", closes))
    long, _ = history_from_file(long_parquet(tmp_path / "b.parquet", closes))
    np.testing.assert_array_equal(history.known_at, long.known_at)
    np.testing.assert_array_equal(history.bars["close"], long.bars["close"])
    assert problems == []
    np.testing.assert_array_equal(history.bars["close"], closes)
    np.testing.assert_array_equal(history.days, DAYS)
    assert tuple(one.id for one in history.listings) == IDS
    assert history.snapshot == "prices"


def test_days_are_those_of_the_file(tmp_path):
    """Also those that fall on a weekend, or on which nothing has a price."""
    days, closes = DAYS.copy(), sound()
    days[4], closes[7] = np.datetime64("2024-01-06"), np.nan
    history, _ = history_from_file(wide_csv(tmp_path / "a.csv", closes, days), strict=False)
    np.testing.assert_array_equal(history.days, np.unique(days))
    np.testing.assert_array_equal(history.bars["close"], closes[np.argsort(days)])


def test_known_at_is_kept_and_must_be_a_time_and_not_early(tmp_path):
    late = [datetime(2024, 7, 1, tzinfo=UTC)] * (DAYS.size * len(IDS))
    history, _ = history_from_file(long_parquet(tmp_path / "a.parquet", sound(), known_at=late))
    assert np.isnan(history.as_of(datetime(2024, 6, 30, tzinfo=UTC)).prices(5).values).all()
    assert np.isfinite(history.as_of(datetime(2024, 7, 1, tzinfo=UTC)).prices(5).values).all()
    for value, message in (("2024-07-01T00:00:00", "time with a zone"), ("2023-01-01T00:00:00Z", "before their day")):
        with pytest.raises(InputError, match=message):
            history_from_file(long_parquet(tmp_path / "a.parquet", sound(), known_at=[value] * len(late)))


PLANTED = {
    "days in a row are missing": lambda c: c.__setitem__((slice(30, 37), 0), np.nan),
    "is stale": lambda c: c.__setitem__((slice(110, None), 1), np.nan),
    "is frozen: 12 equal closes": lambda c: c.__setitem__((slice(50, 62), 2), 77.0),
    "cannot be believed": lambda c: c.__setitem__((70, 3), c[69, 3] * 10),
    "must be positive": lambda c: c.__setitem__((90, 0), -1.0),
    "half a day": lambda c: c.__setitem__((20, slice(0, 3)), np.nan),
}


@pytest.mark.parametrize("what", PLANTED)
def test_each_planted_fault_is_found_and_nothing_else(what):
    closes = sound()
    PLANTED[what](closes)
    found = [f"{one.where}: {one.what}" for one in price_findings(DAYS, IDS, closes)]
    kinds = {"cannot be believed": 2, "must be positive": 1}
    assert sum(what in one for one in found) >= 1
    assert len(found) <= kinds.get(what, 1)


def test_all_faults_are_named_at_once(tmp_path):
    closes = sound()
    for plant in PLANTED.values():
        plant(closes)
    with pytest.raises(InputError) as caught:
        history_from_file(wide_csv(tmp_path / "a.csv", closes))
    assert all(what in str(caught.value) for what in PLANTED)
    history, problems = history_from_file(wide_csv(tmp_path / "a.csv", closes), strict=False)
    assert len(problems) == len(caught.value.problems)
    assert history.bars["close"].shape == closes.shape


def test_sound_prices_have_no_problem_the_last_day_may_be_half_and_limits_are_fields():
    assert [price_findings(DAYS, IDS, sound(seed)) for seed in range(5)] == [[]] * 5
    closes = sound()
    closes[-1, :3] = np.nan
    assert "half a day" in str(price_findings(DAYS, IDS, closes)[0])
    closes = sound()
    closes[50:62, 2] = 77.0
    assert price_findings(DAYS, IDS, closes, Limits(stale_days=13)) == []


def test_repeated_days_and_names_are_refused_even_when_lenient(tmp_path):
    days = DAYS.copy()
    days[1] = days[0]
    assert [f"{one.where}: {one.what}" for one in price_findings(days, ("A", "A", "B", "C"), sound())] == [
        f"{days[0]}: the day is in the table more than once",
        "A: the instrument is in the table more than once",
    ]
    with pytest.raises(InputError, match="more than once"):
        history_from_file(wide_csv(tmp_path / "a.csv", sound(), days), strict=False)


def test_snapshots_are_never_mixed_and_overlapping_ones_are_named(tmp_path):
    half = DAYS.size * len(IDS) // 2
    column = ["s1"] * half + ["s2"] * (DAYS.size * len(IDS) - half)
    with pytest.raises(InputError, match="holds one snapshot"):
        history_from_file(long_parquet(tmp_path / "a.parquet", sound(), snapshot=column))
    first, second = sound()[:60, 0], sound()[40:, 0].copy()
    second[3] += 1
    given = [("s1", "ONE", DAYS[:60], first), ("s2", "ONE", DAYS[40:], second), ("s2", "TWO", DAYS, second)]
    assert [str(one) for one in snapshot_problems(given)] == [
        "ONE: snapshots s1 and s2 overlap on 20 days and differ on 1; a store holds one snapshot"
    ]
