"""The embedded market: 183 synthetic instruments in six classes from 2015 to 2025, drawn from a seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from assaymark.errors import InputError
from assaymark.market.instruments import (
    CLASSES,
    FIRST_DAY,
    LAST_DAY,
    SUBSECTORS,
    AssetClass,
    Listing,
    ShownHistory,
    all_days,
    class_members,
    universe,
    weekdays,
)

# All random parts are standardised on calm days: factors have unit variance and exactly the target correlation, so
# that the calibration does not vary with the seed. Stress windows are added on top.
_SLOW, _FAST = 0.5 ** (1 / 120), 0.5 ** (1 / 6)  # half-lives of 120 and 6 days
_SLOW_SD, _FAST_SD = 0.16, 0.22

BULL, SIDEWAYS, BEAR = 0, 1, 2
_MEAN_DAYS = np.array([210.0, 110.0, 70.0])
_NEXT = np.array([[0.0, 0.6, 0.4], [0.65, 0.0, 0.35], [0.5, 0.5, 0.0]])
SHARPE = np.array([1.3, 0.5, -1.1])
"""Annual drift of each regime in units of a class's volatility."""


def semi_markov(rng: np.random.Generator, n: int) -> np.ndarray:
    """Draw bull, sideways and bear spells, int array of shape (n,)."""
    states = np.empty(n, dtype=np.int8)
    state, day = int(rng.choice(3, p=[0.5, 0.3, 0.2])), 0
    while day < n:
        length = max(int(rng.gamma(4.0, _MEAN_DAYS[state] / 4.0)), 10)
        states[day : day + length] = state
        state, day = int(rng.choice(3, p=_NEXT[state])), day + length
    return states


def two_speed_volatility(rng: np.random.Generator, shocks: np.ndarray, leverage: np.ndarray) -> np.ndarray:
    """Draw volatility multipliers with a slow and a fast component, both AR(1) in logs, shape as ``shocks``."""
    if not (np.abs(leverage) < 1).all():
        raise InputError("leverage", ["must be between -1 and 1"])
    n, k = shocks.shape
    draws = rng.standard_normal((2, n, k))
    past = np.vstack([np.zeros((1, k)), np.clip(shocks[:-1], -4, 4)])
    fast = leverage * past + np.sqrt(1 - leverage**2) * draws[1]
    log = _ar1(draws[0], _SLOW) * _SLOW_SD + _ar1(fast, _FAST) * _FAST_SD
    return np.exp(log)


def _ar1(draws: np.ndarray, decay: float) -> np.ndarray:
    """Return the stationary AR(1) path of unit variance."""
    path: np.ndarray = draws * np.sqrt(1 - decay**2)
    path[0] = draws[0]
    # scipy.signal.lfilter gives the same bits but takes half a second to load; this loop takes 4 ms.
    for day in range(1, path.shape[0]):
        path[day] += decay * path[day - 1]
    return path


def multivariate_t(rng: np.random.Generator, n: int, correlation: np.ndarray, *, dof: float = 5.0) -> np.ndarray:
    """Draw correlated t variables of unit variance, shape (n, k), with one mixing variable per day for all columns."""
    normal = rng.standard_normal((n, correlation.shape[0])) @ np.linalg.cholesky(correlation).T
    mixing = np.sqrt((dof - 2) / rng.chisquare(dof, n))
    return np.asarray(normal * mixing[:, None])


def independent_t(rng: np.random.Generator, shape: tuple[int, ...], *, dof: float = 4.5) -> np.ndarray:
    """Draw independent t variables of unit variance."""
    return np.asarray(rng.standard_t(dof, shape) * np.sqrt((dof - 2) / dof))


def recolour(draws: np.ndarray, correlation: np.ndarray, calm: np.ndarray) -> np.ndarray:
    """Transform ``draws`` linearly to mean 0, variance 1 and exactly ``correlation`` on calm days."""
    centred = draws - draws[calm].mean(axis=0)
    factor = np.linalg.cholesky(centred[calm].T @ centred[calm] / calm.sum())
    return np.asarray(centred @ np.linalg.solve(factor.T, np.linalg.cholesky(correlation).T))


def standardise(draws: np.ndarray, calm: np.ndarray) -> np.ndarray:
    """Scale columns to mean 0 and variance 1 on calm days."""
    sample = draws[calm]
    return np.asarray((draws - sample.mean(axis=0)) / sample.std(axis=0))


def loadings(rng: np.random.Generator, n: int, target: float, sub: float, same_sub: float) -> np.ndarray:
    """Draw class factor loadings of n instruments with an average pair correlation of ``target``, shape (n,)."""
    wanted = target - sub * same_sub
    spread = rng.uniform(0.88, 1.08, n)
    top = np.sqrt(0.97 - sub)
    betas = spread * np.sqrt(wanted)
    for _ in range(20):  # iterate, because capping and scaling affect each other
        betas = np.minimum(betas, top)
        pairs = (betas.sum() ** 2 - (betas**2).sum()) / (n * (n - 1))
        betas = betas * np.sqrt(wanted / pairs)
    return np.asarray(np.minimum(betas, top))


# Calibration targets per class: the figures that PortBench publishes (appendix F.1, section 4). Figures that it does
# not publish (sub-sector shares, other correlations, sizes of the legs of stress windows) are our choice.
INTRA: dict[AssetClass, float] = {"EQ": 0.48, "BO": 0.77, "CO": 0.23, "CR": 0.60, "RE": 0.77, "CA": 0.21}
"""Mean correlation between two instruments of one class."""

DESIGN: dict[AssetClass, float] = {"EQ": 0.495, "BO": 0.795, "CO": 0.23, "CR": 0.61, "RE": 0.795, "CA": 0.21}
"""Target correlation of the generator within a class: 41-day windows with changing volatility give 2 to 4 % less."""

WITH_EQUITIES: dict[AssetClass, float] = {"BO": -0.18, "CO": 0.12, "CR": 0.20, "RE": 0.53, "CA": -0.07}
"""Mean correlation between an instrument of the class and an equity."""

VOLATILITY: dict[AssetClass, tuple[float, float]] = {
    "EQ": (0.09, 0.22), "BO": (0.05, 0.15), "CO": (0.13, 0.58), "CR": (0.49, 0.72), "RE": (0.16, 0.18),
    "CA": (0.001, 0.003),
}  # fmt: skip
"""Lowest and highest annual volatility of an instrument on calm days."""

CRYPTO_DRAWDOWN = (0.50, 0.70)
"""Fall of the crypto class in the tightening window, as shares of the peak."""

EQUAL_WEIGHT_VOLATILITY = 0.10
"""Approximate annual volatility of the equal-weight portfolio of all instruments on calm days."""

SUB_SHARE: dict[AssetClass, float] = {"EQ": 0.08, "BO": 0.04, "CO": 0.20, "CR": 0.04, "RE": 0.03, "CA": 0.10}
"""Share of an instrument's variance that it shares with its sub-sector only."""

# Correlations of class factors that PortBench leaves open, for the six classes in the order of CLASSES.
# fmt: off
_OTHERS: dict[tuple[AssetClass, AssetClass], float] = {
    ("BO", "CO"): -0.10, ("BO", "CR"): -0.08, ("BO", "RE"): -0.12, ("BO", "CA"): 0.25, ("CO", "CR"): 0.15,
    ("CO", "RE"): 0.38, ("CO", "CA"): -0.05, ("CR", "RE"): 0.34, ("CR", "CA"): -0.05, ("RE", "CA"): -0.18,
}

SUB_VOLATILITY: dict[str, tuple[float, float]] = {
    "large caps": (0.105, 0.14), "small caps": (0.16, 0.21), "growth": (0.145, 0.19), "value": (0.11, 0.15),
    "technology": (0.16, 0.215), "health care": (0.115, 0.155), "financials": (0.14, 0.185),
    "energy companies": (0.17, 0.215), "industrials": (0.13, 0.17), "staples": (0.095, 0.125),
    "discretionary": (0.15, 0.19), "utilities": (0.11, 0.145), "developed abroad": (0.12, 0.16),
    "emerging": (0.14, 0.20), "government": (0.055, 0.145), "corporate": (0.055, 0.09),
    "inflation-linked": (0.055, 0.08), "mortgage": (0.055, 0.075), "energy": (0.26, 0.57),
    "precious metals": (0.135, 0.28), "industrial metals": (0.16, 0.26), "agriculture": (0.15, 0.30),
    "major coins": (0.495, 0.58), "platforms": (0.58, 0.69), "payments": (0.55, 0.69), "diversified": (0.166, 0.174),
    "residential": (0.166, 0.174), "commercial": (0.166, 0.174), "bills": (0.0011, 0.0018),
    "money market": (0.0018, 0.0027),
}
# fmt: on
"""Range of calm annual volatility of each sub-sector's instruments, inside the range of their class."""


@dataclass(frozen=True, slots=True)
class StressWindow:
    """One stress window: bounds of its first day, its length in days, volatility multipliers and pinned legs, and the
    row of its ``first`` day once drawn."""

    name: str
    earliest: str
    latest: str
    days: int
    common: float
    own: float
    legs: dict[AssetClass, tuple[tuple[float, float], ...]]
    first: int = 0

    @property
    def last(self) -> int:
        """The row of the last day."""
        return self.first + self.days - 1

    @property
    def rows(self) -> slice:
        """The rows of the window."""
        return slice(self.first, self.first + self.days)


# fmt: off
STRESS: tuple[StressWindow, ...] = (
    StressWindow("liquidity", "2015-05-01", "2016-12-01", 140, 1.6, 1.15, {
        "EQ": ((0.2, -0.12), (0.45, -0.06), (0.9, -0.18), (1.0, -0.15)), "BO": ((1.0, 0.01),),
        "CO": ((0.9, -0.17), (1.0, -0.16)), "CR": ((0.3, -0.20), (1.0, 0.05)),
        "RE": ((0.2, -0.08), (0.9, -0.11), (1.0, -0.08)),
    }),
    StressWindow("pandemic", "2018-06-01", "2020-09-01", 75, 3.0, 1.9, {
        "EQ": ((0.35, -0.36), (1.0, -0.15)), "BO": ((0.25, 0.04), (0.35, 0.0), (1.0, 0.05)),
        "CO": ((0.35, -0.32), (1.0, -0.22)), "CR": ((0.35, -0.48), (1.0, -0.10)), "RE": ((0.35, -0.42), (1.0, -0.25)),
    }),
    StressWindow("tightening", "2021-06-01", "2022-12-01", 165, 1.5, 1.1, {
        "EQ": ((0.3, -0.14), (0.5, -0.06), (0.8, -0.20), (1.0, -0.14)),
        "BO": ((0.3, -0.04), (0.8, -0.13), (1.0, -0.11)), "CO": ((0.2, 0.03), (1.0, -0.14)),
        "CR": ((0.25, -0.58), (0.5, -0.50), (0.8, -0.76), (1.0, -0.80)),
        "RE": ((0.3, -0.12), (0.5, -0.08), (0.8, -0.28), (1.0, -0.24)),
    }),
)  # fmt: skip
# fmt: on
"""The three windows of PortBench section C.2, in kind and length. They end before 2024, its normal year."""


# Direction of the common shock of all classes in a window, in the order of CLASSES, and its share of their factor.
_TOGETHER = np.array([1.0, -0.6, 0.9, 0.8, 1.0, 0.0])
_SHARE = 0.30


def draw_windows(rng: np.random.Generator, days: np.ndarray) -> tuple[StressWindow, ...]:
    """Draw the first day of each of the three windows uniformly between its bounds."""
    windows = []
    for window in STRESS:
        low, high = np.searchsorted(days, np.array([window.earliest, window.latest], dtype="datetime64[D]"))
        windows.append(replace(window, first=int(rng.integers(low, high + 1))))
    return tuple(windows)


def stress_factors(rng: np.random.Generator, factors: np.ndarray, windows: Sequence[StressWindow]) -> np.ndarray:
    """Add the common shock and the higher volatility of the windows to class factors, shape (n_days, 6)."""
    stressed = factors.copy()
    for window in windows:
        shared = rng.standard_normal((window.days, 1)) * _TOGETHER
        weight = np.abs(_TOGETHER) * _SHARE
        mixed = np.sqrt(1 - weight) * stressed[window.rows] + np.sqrt(_SHARE) * shared * np.sqrt(np.abs(_TOGETHER))
        stressed[window.rows] = mixed * _class_multipliers(window.common)
    return stressed


def _class_multipliers(multiple: float) -> np.ndarray:
    """Return the volatility multiplier of each class; crypto, volatile already, and cash take only a part of it."""
    part = np.array([1.0, 0.7, 1.0, 0.3, 1.0, 0.5])
    return 1.0 + (multiple - 1.0) * part


MEETING_EVERY = 32
"""Weekdays from one meeting to the next, about eight a year."""


def policy_rate(rng: np.random.Generator, days: np.ndarray, windows: Sequence[StressWindow]) -> np.ndarray:
    """Draw the policy rate in percent on each day, shape (n_days,); it changes at meetings, by quarters of a point."""
    _, pandemic, tightening = windows
    rate, floor = 0.5, 0.25
    rates = np.empty(days.size)
    first = int(rng.integers(5, MEETING_EVERY))
    meetings = set(range(first, days.size, MEETING_EVERY))
    meetings |= {pandemic.first + 8, pandemic.first + 16}  # emergency meetings
    for day in range(days.size):
        if day in meetings:
            step = 0.0
            if pandemic.first <= day <= pandemic.last:
                step = -1.0 if rate > 1.0 else -0.5
            elif day < pandemic.first:
                step = 0.25 if rng.random() < 0.3 and rate < 2.5 else 0.0
            elif tightening.first - 60 <= day <= tightening.last:
                step = float(rng.choice([0.5, 0.75]))
            elif day > tightening.last + 220:
                step = -0.25 if rng.random() < 0.5 and rate > 2.5 else 0.0
            rate = max(rate + step, floor)
        rates[day] = rate
    return rates


def pin_legs(
    log_returns: np.ndarray, volatility: np.ndarray, members: Mapping[AssetClass, np.ndarray], alive: np.ndarray,
    windows: Sequence[StressWindow],
) -> np.ndarray:  # fmt: skip
    """Shift log returns so that class means add up to the pinned legs of every window, (n_days, n_instruments)."""
    pinned = log_returns.copy()
    for window in windows:
        for name, knots in window.legs.items():
            columns = members[name]
            start, level = window.first, 0.0
            for share, target in knots:
                stop = window.first + max(round(share * window.days), 1)
                rows = slice(start, stop)
                here = alive[rows][:, columns]
                weight = here * volatility[columns]
                weight = weight / (weight.sum(axis=1) / here.sum(axis=1))[:, None]
                mean = (pinned[rows][:, columns] * here).sum(axis=1) / here.sum(axis=1)
                pinned[rows, columns] += weight * ((target - level - mean.sum()) / (stop - start))
                start, level = stop, target
    return pinned


_YEAR = 252
# Correlation of a fall with the next day's volatility, in the order of CLASSES.
_LEVERAGE = np.array([-0.65, -0.05, -0.30, -0.15, -0.60, 0.0])
_MONDAY = np.sqrt(1.5)  # crypto's Monday return on the weekday calendar includes the weekend
_DECIMALS = 4
# Append new parts at the end: the position of a name determines its generator.
_STREAMS = (
    *("windows", "volatility", "factors", "own", "sizes", "regimes"),
    *("gaps", "bars", "weekend", "rates", "macro", "filings"),
)


@dataclass(frozen=True, slots=True, repr=False)
class SyntheticMarket(ShownHistory):
    """One simulated market. Arrays are (n_days, n_instruments) on weekdays; NaN without a bar."""

    seed: int
    listings: tuple[Listing, ...]
    days: np.ndarray
    open: np.ndarray
    high: np.ndarray
    low: np.ndarray
    close: np.ndarray
    volume: np.ndarray
    windows: tuple[StressWindow, ...]
    policy: np.ndarray
    equity_volatility: np.ndarray
    states: np.ndarray
    spot_days: np.ndarray
    spot: np.ndarray

    def _name(self) -> str:
        return f"Synthetic market, seed {self.seed}"

    @property
    def calm(self) -> np.ndarray:
        """True for days outside all stress windows, bool array of shape (n_days,)."""
        quiet = np.ones(self.days.size, dtype=bool)
        for window in self.windows:
            quiet[window.rows] = False
        return quiet

    def period(self, window: str) -> tuple[str, str]:
        """Return the first and last day of a stress window, in ISO form."""
        for candidate in self.windows:
            if candidate.name == window:
                return str(self.days[candidate.first]), str(self.days[candidate.last])
        raise InputError("stress window", [f"unknown {window!r}; known: {[window.name for window in self.windows]}"])


def streams(seed: int) -> dict[str, np.random.Generator]:
    """Return an independent generator for each part of the market, so that changes of one do not affect others."""
    if seed < 0:
        raise InputError("market.seed", [f"must be 0 or more (got {seed})"])
    children = np.random.SeedSequence([seed, 0x4D4B54]).spawn(len(_STREAMS))
    return {name: np.random.Generator(np.random.PCG64(child)) for name, child in zip(_STREAMS, children, strict=True)}


@lru_cache(maxsize=2)
def synthetic_market(seed: int = 0) -> SyntheticMarket:
    """Simulate the market of one seed, calibrated to PortBench's published figures."""
    rng = streams(seed)
    listings = universe()
    days = weekdays(FIRST_DAY, LAST_DAY)
    windows = draw_windows(rng["windows"], days)
    members = class_members(listings)
    calm, class_of = np.ones(days.size, dtype=bool), np.array([CLASSES.index(one.asset_class) for one in listings])
    for window in windows:
        calm[window.rows] = False
    begins = np.array([listing.listed for listing in listings], dtype="datetime64[D]")
    ends = np.array([listing.delisted or LAST_DAY for listing in listings], dtype="datetime64[D]")
    alive: np.ndarray = (days[:, None] >= begins) & (days[:, None] <= ends)
    sizes = np.array([rng["sizes"].uniform(*SUB_VOLATILITY[listing.sub]) for listing in listings])

    shared, specific, equity_volatility, loading = _random_parts(rng, days, listings, windows, calm, class_of)
    # Moves of mean 0 and unit variance over each instrument's own calm days.
    moves, use = shared + specific, alive & calm[:, None]
    days_used = use.sum(axis=0)
    centred = moves - np.where(use, moves, 0.0).sum(axis=0) / days_used
    noise = centred / np.sqrt(np.where(use, centred**2, 0.0).sum(axis=0) / days_used)
    states = np.stack([semi_markov(rng["regimes"], days.size) for _ in CLASSES], axis=1)
    drift = SHARPE[states][:, class_of] * loading * sizes / _YEAR
    policy = policy_rate(rng["rates"], days, windows)
    cash = members["CA"]
    drift[:, cash] = policy[:, None] / 100.0 / 261.0
    log_returns = noise * (sizes / np.sqrt(_YEAR)) + drift
    log_returns = pin_legs(log_returns, sizes, members, alive, windows)
    # Closes from an initial price on the first day of each listing.
    start = np.exp(rng["sizes"].uniform(np.log(25.0), np.log(250.0), len(listings)))
    start[cash] = 100.0
    exact: np.ndarray = start * np.exp(np.cumsum(np.where(alive, log_returns, 0.0), axis=0))

    spot_days, spot = _seven_days(rng["weekend"], days, exact[:, members["CR"]], sizes[members["CR"]])
    # Open, high, low, close and volume: the range contains open and close, and volume grows with the day's move.
    daily, before = sizes / np.sqrt(_YEAR), np.vstack([exact[:1], exact[:-1]])
    jump, up, down, crowd = rng["bars"].standard_normal((4, *exact.shape))
    opened = before * np.exp(0.25 * daily * jump)
    high = np.maximum(opened, exact) * np.exp(0.45 * daily * np.abs(up))
    low = np.minimum(opened, exact) * np.exp(-0.45 * daily * np.abs(down))
    move = np.abs(np.log(exact / before)) / daily
    usual = np.exp(np.linspace(11.0, 15.0, exact.shape[1]))
    volume = np.round(usual * np.exp(0.3 * crowd + 0.25 * np.minimum(move, 6.0)))
    # Rounding preserves the order of open, high, low and close, and hides last-bit differences between machines.
    least = 10.0**-_DECIMALS
    opened, high, low, close = (np.maximum(np.round(price, _DECIMALS), least) for price in (opened, high, low, exact))
    bars = opened, high, low, close, volume
    # Days without a bar: some gaps of one to five days in every instrument, a longer one in every sixth.
    for column in range(len(listings)):
        there = np.flatnonzero(alive[:, column])
        lengths = [(1, 6)] * int(rng["gaps"].poisson(there.size / 400))
        for low_end, high_end in (*lengths, (7, 19)):
            if low_end == 7 and rng["gaps"].random() >= 1 / 6:
                break
            first = int(rng["gaps"].choice(there[5:-25]))
            alive[first : first + int(rng["gaps"].integers(low_end, high_end)), column] = False
    for bar in bars:
        bar[~alive] = np.nan
    spot[np.isin(spot_days, days)] = bars[3][:, members["CR"]]
    for array in (days, *bars, policy, equity_volatility, states, spot_days, spot):
        array.setflags(write=False)
    return SyntheticMarket(seed, listings, days, *bars, windows, policy, equity_volatility, states, spot_days, spot)


def _random_parts(
    rng: Mapping[str, np.random.Generator], days: np.ndarray, listings: tuple[Listing, ...],
    windows: tuple[StressWindow, ...], calm: np.ndarray, class_of: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Draw the class part and the own part of returns, the relative volatility of equities, and the class loadings."""
    n, members = days.size, class_members(listings)
    weight = np.empty(len(listings))
    for name, columns in members.items():
        # The share of pairs of a class that are in the same sub-sector.
        same_sub = sum(n * (n - 1) for n in SUBSECTORS[name].values()) / (columns.size * (columns.size - 1))
        weight[columns] = loadings(rng["sizes"], columns.size, DESIGN[name], SUB_SHARE[name], same_sub)
    # The correlation of the six class factors that gives the target correlations with equities
    place = {name: at for at, name in enumerate(CLASSES)}
    upper = np.zeros((len(CLASSES), len(CLASSES)))
    for name, target in WITH_EQUITIES.items():
        upper[0, place[name]] = target / (weight[members["EQ"]].mean() * weight[members[name]].mean())
    for (first, other), value in _OTHERS.items():
        upper[place[first], place[other]] = value
    correlation = np.eye(len(CLASSES)) + upper + upper.T
    shocks = multivariate_t(rng["factors"], n, correlation)
    speed = two_speed_volatility(rng["volatility"], shocks, _LEVERAGE)
    moved = shocks * speed
    mondays = (days.astype(int) + 3) % 7 == 0
    moved[mondays, CLASSES.index("CR")] *= _MONDAY
    class_factors = stress_factors(rng["factors"], recolour(moved, correlation, calm), windows)

    names = sorted({(CLASSES.index(listing.asset_class), listing.sub) for listing in listings})
    sub_of = np.array([names.index((CLASSES.index(listing.asset_class), listing.sub)) for listing in listings])
    sub = standardise(independent_t(rng["factors"], (n, len(names))), calm)
    alone = independent_t(rng["own"], (n, len(listings)))
    alone *= two_speed_volatility(rng["own"], alone, np.full(len(listings), -0.2))
    alone[mondays] *= np.where(class_of == CLASSES.index("CR"), _MONDAY, 1.0)
    sub_weight = np.array([SUB_SHARE[name] for name in CLASSES])[class_of]
    rest = np.sqrt(1.0 - weight**2 - sub_weight)
    beside = np.sqrt(sub_weight) * sub[:, sub_of] + rest * standardise(alone, calm)
    level = speed[:, 0] / speed[calm, 0].mean()
    for window in windows:
        level[window.rows] *= window.common
        beside[window.rows] *= _class_multipliers(window.own)[class_of]
    return class_factors[:, class_of] * weight, beside, level, weight


def _seven_days(
    rng: np.random.Generator, days: np.ndarray, close: np.ndarray, sizes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return crypto closes on every calendar day: weekdays as given, weekends by a bridge from Friday to Monday."""
    every = all_days(FIRST_DAY, LAST_DAY)
    at = np.searchsorted(every, days)
    log = np.empty((every.size, close.shape[1]))
    # Linear interpolation from Friday to Monday, plus a random bridge of three steps at its inner points.
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
    listed = np.array([listing.listed for listing in universe() if listing.asset_class == "CR"], dtype="datetime64[D]")
    gone = np.array([one.delisted or LAST_DAY for one in universe() if one.asset_class == "CR"], dtype="datetime64[D]")
    spot[(every[:, None] < listed) | (every[:, None] > gone)] = np.nan
    return every, spot
