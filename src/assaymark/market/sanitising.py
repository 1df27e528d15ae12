"""Taking dates, names and level out of bars before an agent sees them (ValueBlindBench section 3.2), and the probe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import bdtrc

from assaymark.errors import InputError, NotMeasurableError, Problem


@dataclass(frozen=True, slots=True)
class Bars:
    """Bars of one instrument as they come: ``times`` (int64, seconds since 1970 in UTC), float prices and volume."""

    instrument: str
    times: np.ndarray
    open: np.ndarray
    high: np.ndarray
    low: np.ndarray
    close: np.ndarray
    volume: np.ndarray

    def part(self, rows: slice) -> Bars:
        """Some of the bars."""
        columns = (self.times, self.open, self.high, self.low, self.close, self.volume)
        return Bars(self.instrument, *(column[rows] for column in columns))


@dataclass(frozen=True, slots=True)
class Sanitised:
    """Bars without dates, names and level, and what was left out."""

    bars: tuple[Bars, ...]
    left_out: tuple[str, ...]


def neutral_names(count: int) -> tuple[str, ...]:
    """Names that say nothing."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    return tuple("Asset " + (letters[i // 26 - 1] if i >= 26 else "") + letters[i % 26] for i in range(count))


def sanitise(
    bars: Sequence[Bars], rng: np.random.Generator, *, base: float = 100.0
) -> tuple[Sanitised, Mapping[str, str]]:
    """Bars rebased, with times as offsets and instruments under neutral names in a drawn order."""
    kept = [one for one in bars if np.isfinite(one.close).any()]
    left_out = tuple(sorted(one.instrument for one in bars if not np.isfinite(one.close).any()))
    problems = [
        Problem(one.instrument, "has bars missing inside the period")
        for one in kept
        if not np.isfinite(one.close).all()
    ]
    problems += [
        Problem(one.instrument, "has other times than the first series")
        for one in kept
        if not np.array_equal(one.times, kept[0].times)
    ]
    if not kept or problems:
        raise InputError("sanitising", problems or ["no instrument has a price in the period"])
    names = neutral_names(len(kept))
    order = rng.permutation(len(kept))
    found = []
    for name, place in zip(names, order, strict=True):
        # Without level, date and name. Rounded, so that the level cannot be read off the last digits.
        one = kept[int(place)]
        scale, mean = base / one.close[0], float(one.volume.mean())
        opened, high, low, close = (np.round(p * scale, 4) for p in (one.open, one.high, one.low, one.close))
        volume = np.round(one.volume / mean if mean > 0 else one.volume, 3)
        found.append(Bars(name, one.times - one.times[-1], opened, high, low, close, volume))
    key = {name: kept[int(place)].instrument for name, place in zip(names, order, strict=True)}
    return Sanitised(tuple(found), left_out), key


@dataclass(frozen=True, slots=True)
class ProbeMatch:
    """Where a series fits its history best."""

    column: int
    row: int
    correlation: float
    runner_up: float
    found: bool


def date_probe(closes: np.ndarray, history: np.ndarray, *, limit: float = 0.95) -> ProbeMatch:
    """Look for a series in a history by the correlation of its returns with those of every place in every column."""
    if closes.size < 10 or not np.isfinite(closes).all() or np.ptp(closes) == 0:
        raise NotMeasurableError("the date probe needs at least 10 prices without holes that move")
    scores = _scores(np.diff(np.log(closes)), np.log(history))
    if not np.isfinite(scores).any():
        raise NotMeasurableError(f"the history has no complete stretch of {closes.size} prices that move")
    ranked = np.where(np.isfinite(scores), scores, -np.inf)
    row, column = np.unravel_index(int(ranked.argmax()), ranked.shape)
    best = float(ranked[row, column])
    ranked[row, column] = -np.inf
    other = float(ranked.max())
    return ProbeMatch(int(column), int(row), best, other if np.isfinite(other) else 0.0, best >= limit)


def _scores(wanted: np.ndarray, log_history: np.ndarray) -> np.ndarray:
    """Correlation of the wanted returns with every stretch of every column, shape (n_places, n_instruments)."""
    k = wanted.size
    moves = np.diff(log_history, axis=0)
    if moves.shape[0] < k:
        return np.empty((0, moves.shape[1]))
    standard = (wanted - wanted.mean()) / (wanted.std() * k)
    places = np.lib.stride_tricks.sliding_window_view(moves, k, axis=0)
    spread = places.std(axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        found: np.ndarray = np.where(spread > 1e-12, (places @ standard) / spread, np.nan)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class DailyRanges:
    """Lows and highs of a market, arrays of shape (n_days, n_instruments), NaN where there is no bar."""

    days: np.ndarray
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """How often a probe named the right day (or month), sanitised and not."""

    probe: str
    asked: int
    hits: int
    control_asked: int
    control_hits: int
    chance: float
    p: float
    alpha: float
    control: float

    @property
    def can_date(self) -> bool:
        """Whether the probe dates what was not sanitised."""
        return self.control_hits >= self.control * self.control_asked - 1e-9

    @property
    def passed(self) -> bool:
        """Whether the material may be used."""
        return self.can_date and self.p >= self.alpha

    def __str__(self) -> str:
        verdict = "PASS" if self.passed else "FAIL"
        return (
            f"{self.probe} date probe: {verdict}. It dated {self.hits} of {self.asked} sanitised cycles (chance "
            f"{self.chance:.2g}, p = {self.p:.2g}) and {self.control_hits} of {self.control_asked} unsanitised ones"
        )


def probe_result(
    probe: str, hits: Sequence[bool], control_hits: Sequence[bool], *, chance: float, alpha: float, control: float
) -> ProbeResult:
    """The result of a probe from its hits."""
    if not hits or not control_hits:
        raise NotMeasurableError(f"the {probe} date probe was asked about nothing")
    found = sum(map(bool, hits))
    p = 1.0 if not found else float(bdtrc(found - 1, len(hits), chance))
    return ProbeResult(
        probe=probe, asked=len(hits), hits=found, control_asked=len(control_hits),
        control_hits=sum(map(bool, control_hits)), chance=chance, p=p, alpha=alpha, control=control,
    )  # fmt: skip


def day_of(bars: Sequence[Bars], columns: Mapping[str, int], ranges: DailyRanges) -> np.datetime64 | None:
    """The day whose daily ranges hold an hour of bars best; None where no day holds any of them."""
    if unknown := [one.instrument for one in bars if one.instrument not in columns]:
        raise InputError("date probe", [f"no history of {', '.join(unknown)}"])
    inside = np.zeros(ranges.days.size)
    slack = np.zeros(ranges.days.size)
    for one in bars:
        low, high = ranges.low[:, columns[one.instrument]], ranges.high[:, columns[one.instrument]]
        fits = (low <= one.low.min() + 1e-9) & (high >= one.high.max() - 1e-9)
        inside += fits
        with np.errstate(invalid="ignore"):
            slack += np.where(fits, np.log(high / low), 0.0)
    best = np.flatnonzero((inside == inside.max()) & (inside > 0))
    return None if not best.size else ranges.days[best[int(slack[best].argmin())]]
