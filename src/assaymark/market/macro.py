"""The economy at large: series with the instant at which each value was published, and twelve linked synthetic ones.

A value belongs to a period and is published later; a reader at t sees the last value published by t, and not even
that once it is older than the series' staleness limit. So the rate for March is not visible in March, and a series
that died is not carried on for ever. A value that is published again, revised, is another vintage of its period: a
reader at t sees the newest vintage that was out by t.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assaymark.errors import InputError
from assaymark.market.regimes import class_index, drawdown
from assaymark.market.synthetic import SyntheticMarket, streams

_NOON = 12 * 3600
_DAY = 86_400


@dataclass(frozen=True, slots=True)
class MacroSeries:
    """One series: values by period with their release times.

    ``periods`` (datetime64[D]) are the last days of the periods, in order; a period with several vintages is there
    once for each, in the order of ``released`` (int64, seconds since 1970 in UTC), when each was published. ``until``
    (int64) is when each ceased to be the current one; None: never, except for a later vintage. ``stale_days`` is how
    long after the end of its period the last value may still be shown.

    Raises
    ------
    InputError
        Periods, or the vintages of one, are not in order, or the arrays are not of one length.
    """

    id: str
    title: str
    unit: str
    every: str
    stale_days: int
    periods: np.ndarray
    values: np.ndarray
    released: np.ndarray
    until: np.ndarray | None = None

    def __post_init__(self) -> None:
        sizes = {one.size for one in (self.periods, self.values, self.released, self.until) if one is not None}
        if len(sizes) > 1:
            raise InputError(f"macro series {self.id}", [f"its arrays must be of one length (got {sorted(sizes)})"])
        steps, later = np.diff(self.periods).astype(int), np.diff(self.released) > 0
        if not ((steps > 0) | ((steps == 0) & later)).all():
            raise InputError(f"macro series {self.id}", ["periods must increase, and the vintages of one by release"])


@dataclass(frozen=True, slots=True)
class MacroReading:
    """What a series shows at one time. ``value`` is None exactly when ``state`` is not ``ok``.

    ``state`` is ``ok``, ``stale: ...`` or ``not published: ...``.
    """

    id: str
    unit: str
    state: str
    value: float | None = None
    period: np.datetime64 | None = None
    released: int | None = None


def read(series: MacroSeries, at: int) -> MacroReading:
    """The series as it reads at ``at`` (seconds since 1970 in UTC): the newest period of those published by then."""
    current = series.released <= at
    if series.until is not None:
        current &= series.until > at
    known = np.flatnonzero(current)
    if not known.size:
        return MacroReading(series.id, series.unit, "not published: no value was out yet")
    last = known[-1]
    age = at // _DAY - int(series.periods[last].astype("datetime64[D]").astype(int))
    if age > series.stale_days:
        why = f"stale: the last value is {age} days old, the limit is {series.stale_days}"
        return MacroReading(series.id, series.unit, why)
    return MacroReading(
        series.id,
        series.unit,
        "ok",
        float(series.values[last]),
        series.periods[last],
        int(series.released[last]),
    )


def released_after(periods: np.ndarray, lag_days: int) -> np.ndarray:
    """Noon UTC, ``lag_days`` days after the end of each period, as seconds since 1970.

    >>> released_after(np.array(["2024-03-31"], dtype="datetime64[D]"), 1).astype("datetime64[s]").astype(str).tolist()
    ['2024-04-01T12:00:00']
    """
    found: np.ndarray = (periods.astype("datetime64[D]").astype(np.int64) + lag_days) * _DAY + _NOON
    return found


def linked_macro(market: SyntheticMarket) -> tuple[MacroSeries, ...]:
    """Twelve series that move with the market of the same seed.

    Yields answer to the bond class, the volatility index and spreads to the volatility and fall of equities, the
    policy rate is the one that cash earns, unemployment jumps in the pandemic window. ``interbank_spread`` is
    discontinued on the way, as such series are.
    """
    rng, n = streams(market.seed)["macro"], market.days.size
    paths = _daily_paths(rng, market, n)
    unemployment, inflation = _slow_paths(rng, market, n)
    dead = int(np.searchsorted(market.days, np.datetime64("2022-02-01")))
    specs = (
        ("policy_rate", "Policy rate, monthly mean", "percent", "month", 1, market.policy),
        ("volatility_index", "Equity volatility index", "index", "day", 1, paths["vix"]),
        ("yield_2y", "Two-year yield", "percent", "day", 1, paths["two"]),
        ("yield_10y", "Ten-year yield", "percent", "day", 1, paths["ten"]),
        ("curve_10y_2y", "Ten-year less two-year yield", "percent", "day", 1, paths["ten"] - paths["two"]),
        ("mortgage_30y", "Thirty-year mortgage rate", "percent", "week", 1, paths["ten"] + 1.8 + paths["noise"] * 0.05),
        ("hy_spread", "High-yield spread", "percent", "day", 1, paths["spread"]),
        ("ig_spread", "Investment-grade spread", "percent", "day", 1, 0.35 + 0.22 * paths["spread"]),
        ("breakeven_10y", "Ten-year breakeven inflation", "percent", "day", 1, 1.3 + 0.32 * inflation),
        ("interbank_spread", "Interbank spread", "percent", "day", 1, 0.05 + 0.006 * paths["vix"]),
        ("inflation_yoy", "Consumer prices, change on the year", "percent", "month", 12, inflation),
        ("unemployment", "Unemployment rate", "percent", "month", 5, unemployment),
    )
    ends = {"interbank_spread": dead}
    return tuple(
        _series(name, title, unit, every, lag, path[: ends.get(name, n)], market.days[: ends.get(name, n)])
        for name, title, unit, every, lag, path in specs
    )


def _series(name: str, title: str, unit: str, every: str, lag: int, path: np.ndarray, days: np.ndarray) -> MacroSeries:
    """One series from its daily path, cut into its periods; a monthly value is the mean of the month."""
    if every == "day":
        periods, values = days, path
    elif every == "week":
        fridays = (days.astype(int) + 3) % 7 == 4
        periods, values = days[fridays], path[fridays]
    else:
        months = days.astype("datetime64[M]")
        kept, at = np.unique(months, return_inverse=True)
        values = np.bincount(at, path) / np.bincount(at)
        periods = (kept + 1).astype("datetime64[D]") - 1
    stale = {"day": 10, "week": 21, "month": 75}[every]
    found = periods.copy(), np.round(values, 2), released_after(periods, lag)
    for array in found:
        array.setflags(write=False)
    return MacroSeries(name, title, unit, every, stale, *found)


def _daily_paths(rng: np.random.Generator, market: SyntheticMarket, n: int) -> dict[str, np.ndarray]:
    """Volatility index, yields and spread of each day."""
    index = class_index(market.close, market.listings)
    noise = rng.standard_normal((3, n))
    fall = drawdown(index["EQ"])
    vix = np.clip(13.0 * market.equity_volatility**0.9 + 35.0 * fall, 9.0, 85.0) * np.exp(0.03 * noise[0])
    # Bonds of about seven years: what the class loses beyond the rate it carries, the yield gains.
    moved = np.concatenate([[0.0], np.cumsum(np.diff(np.log(index["BO"])) - market.policy[1:] / 100 / 261)])
    smooth = np.convolve(np.pad(market.policy, (130, 0), mode="edge"), np.ones(131) / 131, mode="valid")
    ten = np.maximum(1.6 + 0.55 * smooth - 100.0 * (moved - np.linspace(0, moved[-1], n)) / 7.0 * 0.5, 0.4)
    two = np.maximum(0.25 * ten + 0.72 * market.policy + 0.15 + 0.03 * noise[1], 0.1)
    spread = np.maximum(2.3 + 0.055 * (vix - 12.0) + 9.0 * fall + 0.04 * noise[2], 2.0)
    return {"vix": vix, "ten": ten, "two": two, "spread": spread, "noise": noise[1]}


def _slow_paths(rng: np.random.Generator, market: SyntheticMarket, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Unemployment and inflation of each day: unemployment jumps in the pandemic, inflation peaks in the tightening."""
    _, pandemic, tightening = market.windows
    day = np.arange(n)
    since = np.maximum(day - pandemic.first - 15, 0)
    unemployment = 5.5 - 2.0 * day / n + 7.5 * (1 - np.exp(-since / 12)) * np.exp(-since / 220)
    inflation = 2.0 + 5.0 * np.exp(-(((day - tightening.first) / 200.0) ** 2))
    drift = np.cumsum(rng.standard_normal((2, n)), axis=1) * 0.004
    return np.maximum(unemployment + drift[0], 2.5), np.maximum(inflation + drift[1] * 3, -0.5)
