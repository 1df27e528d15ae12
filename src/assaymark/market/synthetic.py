"""The embedded market: 183 invented instruments in six classes from 2015 to 2025, drawn from a seed.

It carries no licence and no model can have memorised it. One seed gives one market, the same on every run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from assaymark.errors import InputError
from assaymark.market import factors as parts
from assaymark.market.calendar import all_days, weekdays
from assaymark.market.instruments import (
    CLASSES,
    FIRST_DAY,
    LAST_DAY,
    SUBSECTORS,
    AssetClass,
    Listing,
    class_members,
    universe,
)
from assaymark.market.rates import policy_rate
from assaymark.market.shown import ShownHistory
from assaymark.market.stress import Window, calm_days, draw_windows, pin_legs, stress_factors, stress_own
from assaymark.market.targets import DESIGN, SUB_SHARE, SUB_VOLATILITY, factor_correlation

_YEAR = 252
# Correlation of a fall with the next day's volatility, in the order of CLASSES.
_LEVERAGE = np.array([-0.65, -0.05, -0.30, -0.15, -0.60, 0.0])
_MONDAY = np.sqrt(1.5)  # crypto's Monday return on the weekday calendar holds the weekend
_DECIMALS = 4
# New parts go to the end: the place of a name decides its generator.
_STREAMS = (
    *("windows", "volatility", "factors", "own", "sizes", "regimes"),
    *("gaps", "bars", "weekend", "rates", "macro", "filings"),
)


@dataclass(frozen=True, slots=True, repr=False)
class SyntheticMarket(ShownHistory):
    """One drawn market. Arrays are (n_days, n_instruments) on weekdays; NaN where there is no bar.

    ``spot_days`` and ``spot`` are the crypto closes on all seven days; on weekdays they equal ``close``.
    ``equity_volatility`` (n_days,) is the volatility a year of the equity factor that rules each day, known the day
    before; the volatility index is made from it. ``seed`` names the market.
    """

    seed: int
    listings: tuple[Listing, ...]
    days: np.ndarray
    open: np.ndarray
    high: np.ndarray
    low: np.ndarray
    close: np.ndarray
    volume: np.ndarray
    windows: tuple[Window, ...]
    policy: np.ndarray
    equity_volatility: np.ndarray
    states: np.ndarray
    spot_days: np.ndarray
    spot: np.ndarray

    def _name(self) -> str:
        return f"Synthetic market, seed {self.seed}"

    @property
    def calm(self) -> np.ndarray:
        """Which days lie in no stress window, bool array of shape (n_days,)."""
        return calm_days(self.windows, self.days.size)

    def period(self, window: str) -> tuple[str, str]:
        """First and last day of a stress window, in ISO form."""
        for one in self.windows:
            if one.name == window:
                return str(self.days[one.first]), str(self.days[one.last])
        raise InputError("stress window", [f"unknown {window!r}; known: {[one.name for one in self.windows]}"])


def streams(seed: int) -> dict[str, np.random.Generator]:
    """One independent generator for each part of the market, so that a change in one part leaves the others alone."""
    if seed < 0:
        raise InputError("market.seed", [f"must be 0 or more (got {seed})"])
    children = np.random.SeedSequence([seed, 0x4D4B54]).spawn(len(_STREAMS))
    return {name: np.random.Generator(np.random.PCG64(child)) for name, child in zip(_STREAMS, children, strict=True)}


@lru_cache(maxsize=2)
def synthetic_market(seed: int = 0) -> SyntheticMarket:
    """The market of one seed, calibrated to PortBench's printed figures (`assaymark.market.targets`).

    Class factors are correlated multivariate t with two-speed stochastic volatility and leverage; instruments add a
    sub-sector part and a t part of their own. Bull, sideways and bear spells are semi-Markov and set the drift. Three
    stress windows with pinned class legs lie where the seed puts them. Cash earns the policy rate. Closes are total
    returns, so no adjustment factor is needed. The arrays are read-only: the two last markets are kept and shared.

    Raises
    ------
    InputError
        The seed is negative.

    Examples
    --------
    >>> market = synthetic_market(7)
    >>> market.close.shape
    (2870, 183)
    >>> [window.name for window in market.windows]
    ['liquidity', 'pandemic', 'tightening']
    """
    rng = streams(seed)
    listings = universe()
    days = weekdays(FIRST_DAY, LAST_DAY)
    windows = draw_windows(rng["windows"], days)
    members = class_members(listings)
    calm, alive = calm_days(windows, days.size), _alive(days, listings)
    sizes = np.array([rng["sizes"].uniform(*SUB_VOLATILITY[one.sub]) for one in listings])

    shared, own, equity_volatility, loading = _random_parts(rng, days, listings, windows, calm)
    noise = _unit_on_calm(shared + own, calm, alive)
    states = np.stack([parts.semi_markov(rng["regimes"], days.size) for _ in CLASSES], axis=1)
    drift = parts.SHARPE[states][:, _class_of(listings)] * loading * sizes / _YEAR
    policy = policy_rate(rng["rates"], days, windows)
    cash = members["CA"]
    drift[:, cash] = policy[:, None] / 100.0 / 261.0
    log_returns = noise * (sizes / np.sqrt(_YEAR)) + drift
    log_returns = pin_legs(log_returns, sizes, members, alive, windows)
    exact = _prices(rng["sizes"], log_returns, alive, listings)

    spot_days, spot = _seven_days(rng["weekend"], days, exact[:, members["CR"]], sizes[members["CR"]])
    bars = _bars(rng["bars"], exact, sizes)
    gaps = _gaps(rng["gaps"], alive, listings)
    for bar in bars:
        bar[gaps | ~alive] = np.nan
    spot[np.isin(spot_days, days)] = bars[3][:, members["CR"]]
    for array in (days, *bars, policy, equity_volatility, states, spot_days, spot):
        array.setflags(write=False)
    return SyntheticMarket(seed, listings, days, *bars, windows, policy, equity_volatility, states, spot_days, spot)


def _alive(days: np.ndarray, listings: tuple[Listing, ...]) -> np.ndarray:
    """Whether each instrument is listed on each day."""
    first = np.array([one.listed for one in listings], dtype="datetime64[D]")
    last = np.array([one.delisted or LAST_DAY for one in listings], dtype="datetime64[D]")
    found: np.ndarray = (days[:, None] >= first) & (days[:, None] <= last)
    return found


def _class_of(listings: tuple[Listing, ...]) -> np.ndarray:
    """The place of each instrument's class in `CLASSES`."""
    return np.array([CLASSES.index(one.asset_class) for one in listings])


def _random_parts(
    rng: Mapping[str, np.random.Generator],
    days: np.ndarray,
    listings: tuple[Listing, ...],
    windows: tuple[Window, ...],
    calm: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """What instruments share, what each has alone, the equity factor's volatility a year, and the class loadings."""
    n, class_of = days.size, _class_of(listings)
    members = class_members(listings)
    weight = np.empty(len(listings))
    for name, columns in members.items():
        weight[columns] = parts.loadings(
            rng["sizes"], columns.size, DESIGN[name], SUB_SHARE[name], _same_sub(name, columns.size)
        )
    correlation = factor_correlation(np.array([weight[columns].mean() for columns in members.values()]))
    shocks = parts.multivariate_t(rng["factors"], n, correlation)
    speed = parts.two_speed_volatility(rng["volatility"], shocks, _LEVERAGE)
    moved = shocks * speed
    mondays = (days.astype(int) + 3) % 7 == 0
    moved[mondays, CLASSES.index("CR")] *= _MONDAY
    class_factors = stress_factors(rng["factors"], parts.recolour(moved, correlation, calm), windows)

    names = sorted({(CLASSES.index(one.asset_class), one.sub) for one in listings})
    sub_of = np.array([names.index((CLASSES.index(one.asset_class), one.sub)) for one in listings])
    sub = parts.standardise(parts.independent_t(rng["factors"], (n, len(names))), calm)
    alone = parts.independent_t(rng["own"], (n, len(listings)))
    alone *= parts.two_speed_volatility(rng["own"], alone, np.full(len(listings), -0.2))
    alone[mondays] *= np.where(class_of == CLASSES.index("CR"), _MONDAY, 1.0)
    sub_weight = np.array([SUB_SHARE[name] for name in CLASSES])[class_of]
    rest = np.sqrt(1.0 - weight**2 - sub_weight)
    beside = np.sqrt(sub_weight) * sub[:, sub_of] + rest * parts.standardise(alone, calm)
    level = speed[:, 0] / speed[calm, 0].mean()
    for window in windows:
        level[window.rows] *= window.plan.common
    return class_factors[:, class_of] * weight, stress_own(beside, class_of, windows), level, weight


def _same_sub(name: AssetClass, n: int) -> float:
    """The share of pairs of one class that are in one sub-sector."""
    return sum(count * (count - 1) for count in SUBSECTORS[name].values()) / (n * (n - 1))


def _unit_on_calm(moves: np.ndarray, calm: np.ndarray, alive: np.ndarray) -> np.ndarray:
    """Moves scaled to unit variance over each instrument's own calm days, with mean zero there."""
    use = alive & calm[:, None]
    count = use.sum(axis=0)
    mean = np.where(use, moves, 0.0).sum(axis=0) / count
    spread = np.sqrt(np.where(use, (moves - mean) ** 2, 0.0).sum(axis=0) / count)
    found: np.ndarray = (moves - mean) / spread
    return found


def _prices(
    rng: np.random.Generator, log_returns: np.ndarray, alive: np.ndarray, listings: tuple[Listing, ...]
) -> np.ndarray:
    """Closes from log returns, from a starting price on the first day of each listing."""
    start = np.exp(rng.uniform(np.log(25.0), np.log(250.0), len(listings)))
    start[[one.asset_class == "CA" for one in listings]] = 100.0
    begun = np.cumsum(np.where(alive, log_returns, 0.0), axis=0)
    found: np.ndarray = start * np.exp(begun)
    return found


def _bars(
    rng: np.random.Generator, close: np.ndarray, sizes: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Open, high, low, close and volume: the range holds open and close, and volume grows with the day's move."""
    daily = sizes / np.sqrt(_YEAR)
    before = np.vstack([close[:1], close[:-1]])
    gap, up, down, crowd = rng.standard_normal((4, *close.shape))
    opened = before * np.exp(0.25 * daily * gap)
    high = np.maximum(opened, close) * np.exp(0.45 * daily * np.abs(up))
    low = np.minimum(opened, close) * np.exp(-0.45 * daily * np.abs(down))
    move = np.abs(np.log(close / before)) / daily
    usual = np.exp(np.linspace(11.0, 15.0, close.shape[1]))
    volume = np.round(usual * np.exp(0.3 * crowd + 0.25 * np.minimum(move, 6.0)))
    # Rounding keeps the order of open, high, low and close, and hides last-bit differences between machines.
    opened, high, low, close = (
        np.maximum(np.round(p, _DECIMALS), 10.0**-_DECIMALS) for p in (opened, high, low, close)
    )
    return opened, high, low, close, volume


def _gaps(rng: np.random.Generator, alive: np.ndarray, listings: tuple[Listing, ...]) -> np.ndarray:
    """Days without a bar: some gaps of one to five days in every instrument, a longer one in one of six."""
    found = np.zeros_like(alive)
    for column in range(len(listings)):
        there = np.flatnonzero(alive[:, column])
        inside = there[5:-25]
        for _ in range(rng.poisson(there.size / 400)):
            first = int(rng.choice(inside))
            found[first : first + int(rng.integers(1, 6)), column] = True
        if rng.random() < 1 / 6:
            first = int(rng.choice(inside))
            found[first : first + int(rng.integers(7, 19)), column] = True
    return found


def _seven_days(
    rng: np.random.Generator, days: np.ndarray, close: np.ndarray, sizes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Crypto closes on every calendar day: weekdays as given, weekends bridged from Friday to Monday."""
    every = all_days(FIRST_DAY, LAST_DAY)
    at = np.searchsorted(every, days)
    log = np.empty((every.size, close.shape[1]))
    # Straight lines between Friday and Monday, then the deviation of a bridge of three steps at its inner points.
    for column in range(close.shape[1]):
        log[:, column] = np.interp(np.arange(every.size), at, np.log(close[:, column]))
    steps = rng.standard_normal((every.size, 3, close.shape[1])) * (0.55 * sizes / np.sqrt(_YEAR))
    walk = np.cumsum(steps, axis=1)
    for place, weekday in enumerate((5, 6)):
        rows = np.flatnonzero((every.astype(int) + 3) % 7 == weekday)
        rows = rows[(rows > at[0]) & (rows < at[-1])]
        saturday = rows - place
        log[rows] += walk[saturday, place] - walk[saturday, 2] * (place + 1) / 3
    spot = np.round(np.exp(log), _DECIMALS)
    listed = np.array([one.listed for one in universe() if one.asset_class == "CR"], dtype="datetime64[D]")
    gone = np.array([one.delisted or LAST_DAY for one in universe() if one.asset_class == "CR"], dtype="datetime64[D]")
    spot[(every[:, None] < listed) | (every[:, None] > gone)] = np.nan
    return every, spot
