"""Regimes, correlation, macro series with the release time of each value, filings and news; synthetic ones of each."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np

from assaymark.errors import InputError
from assaymark.market.instruments import (
    CLASS_NAMES,
    CLASSES,
    AssetClass,
    Listing,
    class_members,
    fill_gaps,
    known_from,
    simple_returns,
)
from assaymark.market.synthetic import (
    CRYPTO_DRAWDOWN,
    EQUAL_WEIGHT_VOLATILITY,
    INTRA,
    VOLATILITY,
    WITH_EQUITIES,
    SyntheticMarket,
    streams,
    synthetic_market,
)
from assaymark.records import grouped

# Bull, bear, sideways or crisis, per asset class and day (PortBench section B.3)

REGIMES = ("bull", "sideways", "bear", "crisis")
"""The four regime labels."""

UNDEFINED = "undefined"
"""The label of days with too little history for the slow average, unless the drawdown already means crisis."""


def class_index(closes: np.ndarray, listings: Sequence[Listing]) -> dict[AssetClass, np.ndarray]:
    """Compute the equal-weight index of each class, 100 at the start, from the returns available on each day."""
    returns = simple_returns(closes)
    there = np.isfinite(returns)
    filled = np.where(there, returns, 0.0)
    indices: dict[AssetClass, np.ndarray] = {}
    for name, members in class_members(listings).items():
        count = there[:, members].sum(axis=1)
        mean = filled[:, members].sum(axis=1) / np.maximum(count, 1)
        indices[name] = 100.0 * np.concatenate([[1.0], np.cumprod(1.0 + mean)])
    return indices


def drawdown(index: np.ndarray, window: int = 252) -> np.ndarray:
    """Compute the fall from the highest value of the last ``window`` days, today included, as a share in [0, 1)."""
    # scipy.ndimage does the same, and takes 80 ms to load.
    days = np.lib.stride_tricks.sliding_window_view(np.concatenate([np.full(window, -np.inf), index]), window)
    peak = days[1:].max(axis=1)
    return np.asarray(np.round(1.0 - index / peak, 12))


def regimes(
    index: np.ndarray, *, crisis: float = 0.15, window: int = 252, fast: int = 50, slow: int = 200, band: float = 0.05
) -> np.ndarray:
    """Label the regime of each day of one class from that day and earlier days only (PortBench section B.3)."""
    if not (np.isfinite(index).all() and (index > 0).all()):
        raise InputError("index", ["regimes need a positive index without gaps"])
    labels = np.full(index.size, UNDEFINED, dtype="U9")
    if index.size >= slow:
        ratio = _moving_average(index, fast)[slow - fast :] / _moving_average(index, slow)
        labels[slow - 1 :] = np.where(ratio > 1 + band, "bull", np.where(ratio < 1 - band, "bear", "sideways"))
    labels[drawdown(index, window) > crisis] = "crisis"
    return labels


def _moving_average(index: np.ndarray, days: int) -> np.ndarray:
    """Compute the moving average over ``days`` values, shape (n - days + 1,)."""
    total = np.concatenate([[0.0], np.cumsum(index)])
    return np.asarray((total[days:] - total[:-days]) / days)


# Pairwise-complete Pearson correlation by masked matrix products (PortBench section B.3).
#
# Every pair uses the days on which both have a return, so that a late listing does not shorten the other pairs. The
# matrix may therefore not be positive semidefinite: it is descriptive and must not be passed to an optimiser.


def pairwise_correlation(returns: np.ndarray, *, min_overlap: int = 2) -> np.ndarray:
    """Compute the Pearson correlation of every pair of columns over the rows in which both are present.

    A pair with fewer than ``min_overlap`` common rows, or with a column that is constant on them, is NaN.
    """
    mask = np.isfinite(returns)
    # Columns centred and scaled, zero if missing; constant columns are flat.
    count = np.maximum(mask.sum(axis=0), 1)
    filled = np.where(mask, returns, 0.0)
    top = np.where(mask, returns, -np.inf).max(axis=0, initial=-np.inf)
    bottom = np.where(mask, returns, np.inf).min(axis=0, initial=np.inf)
    flat = ~(top > bottom)
    scale = np.where(flat, 1.0, np.maximum(np.abs(filled).max(axis=0, initial=0.0), np.finfo(float).tiny))
    filled = filled / scale  # by the largest first, so that squares of tiny numbers do not underflow
    centred = np.where(mask, filled - filled.sum(axis=0) / count, 0.0)
    deviation = np.sqrt((centred * centred).sum(axis=0) / count)
    x = centred / np.where(flat | (deviation == 0), 1.0, deviation)
    m = mask.astype(float)
    overlap = m.T @ m
    with np.errstate(divide="ignore", invalid="ignore"):
        sums, squares = x.T @ m, (x * x).T @ m
        spread = squares - sums * sums / overlap
        values = (x.T @ x - sums * sums.T / overlap) / np.sqrt(spread * spread.T)
        # If a column hardly moves on the common days, the difference above has lost its precision.
        lost = spread < 1e-3 * squares
    defined = (overlap >= max(min_overlap, 2)) & ~(flat[:, None] | flat[None, :])
    for i, j in zip(*np.nonzero(np.triu((lost | lost.T) & defined)), strict=True):
        both = mask[:, i] & mask[:, j]
        # Two-pass correlation of one pair, None if one of the two is constant.
        a = returns[both, i]
        b = returns[both, j]
        if np.ptp(a) == 0 or np.ptp(b) == 0:
            exact = None
        else:
            a, b = a / np.abs(a).max(), b / np.abs(b).max()
            a, b = a - a.mean(), b - b.mean()
            norm = float(np.sqrt((a * a).sum())) * float(np.sqrt((b * b).sum()))
            exact = float((a * b).sum()) / norm if norm > 0 else None
        values[i, j] = values[j, i] = np.nan if exact is None else exact
        defined[i, j] = defined[j, i] = exact is not None
    values = np.where(defined, np.clip(values, -1.0, 1.0), np.nan)
    diagonal = np.arange(values.shape[0])
    values[diagonal, diagonal] = np.where(defined[diagonal, diagonal], 1.0, np.nan)
    return values


def group_correlations(correlation: np.ndarray, member: np.ndarray) -> np.ndarray:
    """Compute the mean correlation within each group and between each two, over the defined pairs of distinct members.

    Parameters
    ----------
    correlation : float array of shape (n, n)
        NaN for a pair without a correlation.
    member : float array of shape (n, n_groups)
        1 for the members of each group, else 0.

    Returns
    -------
    float array of shape (n_groups, n_groups)
        NaN without a defined pair, as within a group of one.
    """
    defined = np.isfinite(correlation)
    np.fill_diagonal(defined, False)
    sums = member.T @ np.where(defined, correlation, 0.0) @ member
    counts = member.T @ defined @ member
    return np.asarray(np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0))


# Measured figures of the synthetic market next to its calibration targets, for the documentation

WINDOW = 41
"""Returns in one correlation window, as in PortBench's published correlations from a trailing window."""

_YEAR = 252

CalibrationRow = tuple[str, str, str, float, float, tuple[float, ...]]
"""A calibrated figure: name, class, target as text, lower and upper bound, and the value of each seed's market."""


def calibration(seeds: Sequence[int] = (0, 1, 2)) -> list[CalibrationRow]:
    """Return every calibration target with the values measured in the markets of these seeds."""
    measured = [measure(synthetic_market(seed)) for seed in seeds]
    targets: list[tuple[str, str, str, float, float]] = []
    for figure, wanted in (("correlation within", INTRA), ("correlation with equities", WITH_EQUITIES)):
        targets += [(figure, name, f"{value:.2f}", value - 0.06, value + 0.06) for name, value in wanted.items()]
    for name in CLASSES:
        low, high = VOLATILITY[name]
        text = f"{100 * low:.3g} to {100 * high:.3g} %"
        targets += [(f"{end} volatility", name, text, low, high) for end in ("lowest", "highest")]
    low, high = CRYPTO_DRAWDOWN
    targets.append(("drawdown in the tightening window", "CR", f"{100 * low:.0f} to {100 * high:.0f} %", low, high))
    about = EQUAL_WEIGHT_VOLATILITY
    targets.append(("equal-weight volatility", "all", f"about {100 * about:.0f} %", about - 0.015, about + 0.015))
    return [(*target, tuple(figures[target[:2]] for figures in measured)) for target in targets]


def measure(market: SyntheticMarket) -> dict[tuple[str, str], float]:
    """Measure the calibrated figures of one market, by (figure, class)."""
    closes = fill_gaps(market.close)
    returns, calm = simple_returns(closes), market.calm[1:]
    figures: dict[tuple[str, str], float] = {}
    starts = [at for at in range(0, returns.shape[0] - WINDOW + 1, WINDOW) if calm[at : at + WINDOW].all()]
    member = np.stack([[one.asset_class == name for one in market.listings] for name in CLASSES], axis=1).astype(float)
    each = [
        group_correlations(pairwise_correlation(returns[at : at + WINDOW], min_overlap=WINDOW // 2), member)
        for at in starts
    ]
    means = np.nanmean(each, axis=0)
    for at, name in enumerate(CLASSES):
        figures["correlation within", name] = float(means[at, at])
        figures["correlation with equities", name] = float(means[at, CLASSES.index("EQ")])
    volatility = np.nanstd(returns[calm], axis=0, ddof=1) * np.sqrt(_YEAR)
    for name, columns in class_members(market.listings).items():
        figures["lowest volatility", name] = float(volatility[columns].min())
        figures["highest volatility", name] = float(volatility[columns].max())
    index, window = class_index(closes, market.listings)["CR"], market.windows[-1]
    path = index[window.first - 1 : window.last + 1]
    figures["drawdown in the tightening window", "CR"] = float((1 - path / np.maximum.accumulate(path)).max())
    equal = np.nanmean(returns[calm], axis=1)
    figures["equal-weight volatility", "all"] = float(equal.std(ddof=1) * np.sqrt(_YEAR))
    return figures


def calibration_table(seeds: Sequence[int] = (0, 1, 2)) -> str:
    """Return the calibration as a Markdown table, one row per figure and class, one column per seed."""
    head = ["figure", "class", "target", *(f"seed {seed}" for seed in seeds)]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for name, asset_class, target, _, _, measured in calibration(seeds):
        as_share = "%" in target
        values = [f"{100 * v:.3g} %" if as_share else f"{v:.2f}".replace("-0.00", "0.00") for v in measured]
        lines.append("| " + " | ".join([name, asset_class, target, *values]) + " |")
    return "\n".join(lines) + "\n"


_NOON = 12 * 3600
_DAY = 86_400


@dataclass(frozen=True, slots=True)
class MacroSeries:
    """One macro series: values by period with their release times; ``until`` is the end of each vintage."""

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
        sizes = {array.size for array in (self.periods, self.values, self.released, self.until) if array is not None}
        if len(sizes) > 1:
            raise InputError(f"macro series {self.id}", [f"its arrays must be of one length (got {sorted(sizes)})"])
        steps, later = np.diff(self.periods).astype(int), np.diff(self.released) > 0
        if not ((steps > 0) | ((steps == 0) & later)).all():
            raise InputError(f"macro series {self.id}", ["periods must increase, and the vintages of one by release"])


@dataclass(frozen=True, slots=True)
class MacroReading:
    """The reading of a series at one time. ``value`` is None exactly when ``state`` is not ``ok``."""

    id: str
    unit: str
    state: str
    value: float | None = None
    period: np.datetime64 | None = None
    released: int | None = None


def read_series(series: MacroSeries, at: int) -> MacroReading:
    """Return the reading of a series at ``at`` (seconds since 1970 in UTC): the newest period published by then."""
    current = series.released <= at
    if series.until is not None:
        current &= series.until > at
    places = np.flatnonzero(current)
    if not places.size:
        return MacroReading(series.id, series.unit, "not published: no value was out yet")
    last = places[-1]
    age = at // _DAY - int(series.periods[last].astype("datetime64[D]").astype(int))
    if age > series.stale_days:
        reason = f"stale: the last value is {age} days old, the limit is {series.stale_days}"
        return MacroReading(series.id, series.unit, reason)
    return MacroReading(
        series.id, series.unit, "ok", float(series.values[last]), series.periods[last], int(series.released[last])
    )


def released_after(periods: np.ndarray, lag_days: int) -> np.ndarray:
    """Return noon UTC, ``lag_days`` days after the end of each period, as seconds since 1970."""
    return np.asarray((periods.astype("datetime64[D]").astype(np.int64) + lag_days) * _DAY + _NOON)


def linked_macro(market: SyntheticMarket) -> tuple[MacroSeries, ...]:
    """Make twelve macro series that move with the market of the same seed."""
    rng, n = streams(market.seed)["macro"], market.days.size
    index, noise = class_index(market.close, market.listings), rng.standard_normal((3, n))
    fall = drawdown(index["EQ"])
    vix = np.clip(13.0 * market.equity_volatility**0.9 + 35.0 * fall, 9.0, 85.0) * np.exp(0.03 * noise[0])
    # Bonds with a duration of about seven years: the yield rises with losses of the class beyond its carry.
    moved = np.concatenate([[0.0], np.cumsum(np.diff(np.log(index["BO"])) - market.policy[1:] / 100 / 261)])
    smooth = np.convolve(np.pad(market.policy, (130, 0), mode="edge"), np.ones(131) / 131, mode="valid")
    ten = np.maximum(1.6 + 0.55 * smooth - 100.0 * (moved - np.linspace(0, moved[-1], n)) / 7.0 * 0.5, 0.4)
    two = np.maximum(0.25 * ten + 0.72 * market.policy + 0.15 + 0.03 * noise[1], 0.1)
    spread = np.maximum(2.3 + 0.055 * (vix - 12.0) + 9.0 * fall + 0.04 * noise[2], 2.0)
    # Unemployment jumps in the pandemic, inflation peaks in the tightening.
    _, pandemic, tightening = market.windows
    day = np.arange(n)
    since = np.maximum(day - pandemic.first - 15, 0)
    unemployment = 5.5 - 2.0 * day / n + 7.5 * (1 - np.exp(-since / 12)) * np.exp(-since / 220)
    inflation = 2.0 + 5.0 * np.exp(-(((day - tightening.first) / 200.0) ** 2))
    drift = np.cumsum(rng.standard_normal((2, n)), axis=1) * 0.004
    unemployment = np.maximum(unemployment + drift[0], 2.5)
    inflation = np.maximum(inflation + drift[1] * 3, -0.5)
    dead = int(np.searchsorted(market.days, np.datetime64("2022-02-01")))
    specs = (
        ("policy_rate", "Policy rate, monthly mean", "percent", "month", 1, market.policy),
        ("volatility_index", "Equity volatility index", "index", "day", 1, vix),
        ("yield_2y", "Two-year yield", "percent", "day", 1, two),
        ("yield_10y", "Ten-year yield", "percent", "day", 1, ten),
        ("curve_10y_2y", "Ten-year less two-year yield", "percent", "day", 1, ten - two),
        ("mortgage_30y", "Thirty-year mortgage rate", "percent", "week", 1, ten + 1.8 + noise[1] * 0.05),
        ("hy_spread", "High-yield spread", "percent", "day", 1, spread),
        ("ig_spread", "Investment-grade spread", "percent", "day", 1, 0.35 + 0.22 * spread),
        ("breakeven_10y", "Ten-year breakeven inflation", "percent", "day", 1, 1.3 + 0.32 * inflation),
        ("interbank_spread", "Interbank spread", "percent", "day", 1, 0.05 + 0.006 * vix),
        ("inflation_yoy", "Consumer prices, change on the year", "percent", "month", 12, inflation),
        ("unemployment", "Unemployment rate", "percent", "month", 5, unemployment),
    )
    ends = {"interbank_spread": dead}
    # Each series from its daily path, sampled by period; a monthly value is the mean of the month.
    series: list[MacroSeries] = []
    for name, title, unit, every, lag, path in specs:
        part = path[: ends.get(name, n)]
        days = market.days[: ends.get(name, n)]
        if every == "day":
            periods, values = days, part
        elif every == "week":
            fridays = (days.astype(int) + 3) % 7 == 4
            periods, values = days[fridays], part[fridays]
        else:
            months = days.astype("datetime64[M]")
            distinct, at = np.unique(months, return_inverse=True)
            values = np.bincount(at, part) / np.bincount(at)
            periods = (distinct + 1).astype("datetime64[D]") - 1
        stale = {"day": 10, "week": 21, "month": 75}[every]
        arrays = periods.copy(), np.round(values, 2), released_after(periods, lag)
        for array in arrays:
            array.setflags(write=False)
        series.append(MacroSeries(name, title, unit, every, stale, *arrays))
    return tuple(series)


_AFTER_CLOSE = 21 * 3600 + 1800


@dataclass(frozen=True, slots=True)
class Filing:
    """One filed value: instrument, period (``2024-Q1``), field, unit, and ``filed_at``, from which on it is known."""

    instrument: str
    period: str
    field: str
    value: float
    unit: str
    filed_at: datetime


@dataclass(frozen=True, slots=True, eq=False)
class Fundamentals:
    """All filings of a store in the order of filing. Made by `Fundamentals.of`."""

    filings: tuple[Filing, ...]
    known_at: np.ndarray
    values: np.ndarray
    places: dict[str, list[int]]
    newest: dict[str, tuple[int, tuple[Filing, ...]]] = field(default_factory=dict)  # the last answers of `known`

    @staticmethod
    def of(filings: Sequence[Filing]) -> Fundamentals:
        """Make the table of filings, which may be in any order."""
        ordered = tuple(sorted(filings, key=lambda filing: filing.filed_at))
        twice = len({(one.instrument, one.period, one.field, one.filed_at) for one in ordered}) - len(ordered)
        if twice:
            raise InputError("fundamentals", [f"{-twice} values were filed twice at one time"])
        places = grouped(range(len(ordered)), lambda place: ordered[place].instrument)
        known_at = np.array([known_from(filing.filed_at) for filing in ordered], dtype=np.int64)
        return Fundamentals(ordered, known_at, np.array([filing.value for filing in ordered], dtype=float), places)

    def known(self, instrument: str, at: int) -> tuple[Filing, ...]:
        """Return the newest version by ``at`` of each value of one instrument, by period and field."""
        places = self.places.get(instrument, [])
        upto = bisect_left(places, int(np.searchsorted(self.known_at, at, side="right")))  # in order of time
        if self.newest.get(instrument, (0,))[0] != upto:
            newest = {(filing.period, filing.field): filing for filing in map(self.filings.__getitem__, places[:upto])}
            self.newest[instrument] = upto, tuple(newest[key] for key in sorted(newest))
        return self.newest[instrument][1] if upto else ()


def synthetic_fundamentals(market: SyntheticMarket) -> Fundamentals:
    """Draw quarterly earnings and book value per share of every equity of the synthetic market."""
    rng, days = streams(market.seed)["filings"], market.days
    quarters = days.astype("datetime64[M]").astype(int) // 3
    ends, last = np.flatnonzero(np.diff(quarters, append=quarters[-1] + 1)), days[-1].astype(object)
    filings: list[Filing] = []
    for column, listing in enumerate(market.listings):
        if listing.asset_class != "EQ":
            continue
        closes = market.close[:, column]
        ratio, earning = np.exp(rng.normal(0.9, 0.35)), rng.normal(0.11, 0.04)
        for end in ends:  # by quarter; none for a quarter in which it did not trade
            lag, moved, fixed, later = int(rng.integers(20, 51)), rng.normal(), rng.random(), int(rng.integers(60, 121))
            year = closes[max(end - 251, 0) : end + 1]
            if np.isfinite(year[-40:]).sum() < 20:
                continue
            book_value = float(np.nanmean(year)) / ratio
            eps = book_value * (earning + 0.03 * moved) / 4.0
            day = str(days[end])
            period = f"{day[:4]}-Q{(int(day[5:7]) + 2) // 3}"
            values = [("book_value", book_value, lag), ("earnings", eps, lag)]
            values += [("earnings", eps * 0.9, lag + later)] if fixed < 1 / 40 else []
            for name, value, after in values:
                at = (int(days[end].astype("datetime64[D]").astype(int)) + after) * _DAY + _AFTER_CLOSE
                filed = datetime.fromtimestamp(at, UTC)
                if filed.date() <= last:
                    filings.append(Filing(listing.id, period, name, float(round(value, 4)), "per share", filed))
    return Fundamentals.of(filings)


SUMMARY_DAYS = 21
"""Days over which the class summaries look back."""

_LARGE = 4.0  # a move that is reported, in standard deviations of the 60 days before
_BACK = 60


@dataclass(frozen=True, slots=True)
class News:
    """One news item: publication time, instruments, text and source."""

    published_at: datetime
    instruments: tuple[str, ...]
    text: str
    source: str


def templated_news(market: SyntheticMarket, macro: Sequence[MacroSeries], closes_at: np.ndarray) -> tuple[News, ...]:
    """Make news of large moves, class summaries at month ends and monthly releases, in order of publication."""
    items: list[News] = []
    after_close = [datetime.fromtimestamp(int(at) + 900, UTC) for at in closes_at]
    # the largest move of each day, if it is large for the instrument
    close = market.close
    change = close[1:] / close[:-1] - 1.0
    filled = np.nan_to_num(change)
    total = np.cumsum(np.vstack([np.zeros(close.shape[1]), filled**2]), axis=0)
    usual = np.sqrt((total[_BACK:-1] - total[: -_BACK - 1]) / _BACK)
    size = np.where(usual > 1e-6, np.abs(filled[_BACK:]) / np.maximum(usual, 1e-6), 0.0)
    best = size.argmax(axis=1)
    for at in np.flatnonzero(size.max(axis=1) > _LARGE):
        column, row = int(best[at]), int(at) + _BACK + 1
        price, moved = float(close[row, column]), float(change[row - 1, column])
        listing, way = market.listings[column], "up" if moved > 0 else "down"
        text = f"{listing.name} ({listing.id}) closed at {price:,.2f}, {way} {100 * abs(moved):.1f} % on the day."
        items.append(News(after_close[row], (listing.id,), text, "market report"))
    months = market.days.astype("datetime64[M]")
    ends = np.flatnonzero(months[1:] != months[:-1])
    for row in ends[ends >= SUMMARY_DAYS].tolist():
        for name, columns in class_members(market.listings).items():
            moves = close[row, columns] / close[row - SUMMARY_DAYS, columns] - 1.0
            there = np.isfinite(moves)
            if there.any():
                ids, moves = tuple(market.listings[i].id for i in columns[there]), moves[there]
                label, change_of = CLASS_NAMES[name].replace("_", " ").capitalize(), 100 * float(moves.mean())
                counts = f"{(moves > 0).sum()} of {moves.size} instruments higher"
                text = f"{label} month in review: mean change {change_of:+.1f} %, {counts}."
                items.append(News(after_close[row], ids, text, "monthly review"))
    for series in (series for series in macro if series.every == "month"):
        for now in range(1, series.values.size):
            value, before = series.values[now], series.values[now - 1]
            text = f"{series.title}: {value:.2f} {series.unit} after {before:.2f} in the month before."
            published = datetime.fromtimestamp(int(series.released[now]), UTC)
            items.append(News(published, (), text, "statistics office"))
    return tuple(sorted(items, key=lambda item: (item.published_at, item.text)))
