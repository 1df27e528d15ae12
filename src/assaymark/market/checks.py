"""What may be wrong with prices from outside: every problem of a table is found and named at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from assaymark.errors import Problem
from assaymark.market.calendar import GAP_LIMIT


@dataclass(frozen=True, slots=True)
class Limits:
    """From when on a price table counts as wrong.

    ``stale_days`` is how many equal closes in a row make a series frozen, ``jump`` and ``fall`` the largest rise and
    fall of one day that are believed, as shares of the price before, ``gap_days`` the longest run of missing days
    inside a series, and ``half_day`` the share of the usual number of instruments below which a day counts as cut off.
    """

    stale_days: int = 10
    jump: float = 5.0
    fall: float = 0.95
    gap_days: int = GAP_LIMIT
    half_day: float = 0.5


def price_problems(
    days: np.ndarray, ids: Sequence[str], closes: np.ndarray, limits: Limits | None = None
) -> list[Problem]:
    """Every problem of a table of closes.

    Long gaps, series that end before the table does, frozen series, impossible returns, prices that are not positive,
    days with only part of the instruments, and repeated or unordered days and names.

    Parameters
    ----------
    days : datetime64[D] array of shape (n_days,)
    ids : sequence of n_instruments names
    closes : float array of shape (n_days, n_instruments)
        NaN where missing.
    limits : Limits

    Returns
    -------
    list of Problem
        In the order of kinds, then instruments. Empty: nothing was found.
    """
    at = limits or Limits()
    found = list(_order(days, ids))
    for column, name in enumerate(ids):
        found += _series(days, name, closes[:, column], at)
    found += _part_days(days, closes, at)
    return found


def _order(days: np.ndarray, ids: Sequence[str]) -> Iterator[Problem]:
    """Days and names: each once, days in order."""
    steps = np.diff(days).astype(int)
    kinds, counts = np.unique(days, return_counts=True)
    for day in kinds[counts > 1]:
        yield Problem(str(day), "the day is in the table more than once")
    for at in np.flatnonzero(steps < 0):
        yield Problem(str(days[at + 1]), f"comes after {days[at]}: days must increase")
    for name in sorted({one for one in ids if list(ids).count(one) > 1}):
        yield Problem(name, "the instrument is in the table more than once")


def _series(days: np.ndarray, name: str, closes: np.ndarray, at: Limits) -> Iterator[Problem]:
    """The problems of one series."""
    there = np.flatnonzero(np.isfinite(closes))
    if not there.size:
        yield Problem(name, "has no price at all")
        return
    for row in np.flatnonzero(closes <= 0):
        yield Problem(f"{name}, {days[row]}", f"a price must be positive (got {closes[row]:g})")
    holes = np.diff(there) - 1
    for place in np.flatnonzero(holes > at.gap_days):
        first = days[there[place] + 1]
        yield Problem(f"{name}, {first}", f"{holes[place]} days in a row are missing (up to {at.gap_days} are carried)")
    if (behind := days.size - 1 - int(there[-1])) > at.gap_days:
        yield Problem(name, f"is stale: its last price is of {days[there[-1]]}, {behind} days before the table ends")
    prices = closes[there]
    for start, length in _runs(prices, at.stale_days):
        yield Problem(f"{name}, {days[there[start]]}", f"is frozen: {length} equal closes in a row")
    both = (prices[1:] > 0) & (prices[:-1] > 0)
    moves = np.where(both, prices[1:] / np.where(both, prices[:-1], 1.0) - 1.0, 0.0)
    for place in np.flatnonzero((moves > at.jump) | (moves < -at.fall)):
        day = days[there[place + 1]]
        yield Problem(f"{name}, {day}", f"a return of {100 * moves[place]:+.0f} % cannot be believed")


def _runs(prices: np.ndarray, shortest: int) -> Iterator[tuple[int, int]]:
    """Start and length of runs of equal prices of at least this length."""
    edges = np.flatnonzero(np.concatenate([[True], np.diff(prices) != 0, [True]]))
    for start, stop in pairwise(edges):
        if stop - start >= shortest:
            yield int(start), int(stop - start)


def _part_days(days: np.ndarray, closes: np.ndarray, at: Limits) -> Iterator[Problem]:
    """Days on which many instruments that trade before and after are missing: a download that was cut off."""
    there = np.isfinite(closes)
    rows = np.arange(days.size)[:, None]
    first = np.where(there, rows, days.size).min(axis=0, initial=days.size)
    last = np.where(there, rows, -1).max(axis=0, initial=-1)
    # The last row counts as due for whatever had a price the day before: half a day is mostly today's.
    due = (rows >= first) & ((rows <= last) | (rows == last + 1))
    expected, present = due.sum(axis=1), there.sum(axis=1)
    for row in np.flatnonzero((present > 0) & (present < at.half_day * expected)):
        yield Problem(str(days[row]), f"only {present[row]} of {expected[row]} instruments have a price: half a day?")


def snapshot_problems(snapshots: Sequence[tuple[str, str, np.ndarray, np.ndarray]]) -> list[Problem]:
    """Instruments and days that more than one snapshot has, with whether they agree.

    Parameters
    ----------
    snapshots : sequence of (snapshot, instrument, days, closes)
        One entry for each series of each snapshot.
    """
    found = []
    by_instrument: dict[str, list[tuple[str, np.ndarray, np.ndarray]]] = {}
    for snapshot, instrument, days, closes in snapshots:
        for other, other_days, other_closes in by_instrument.setdefault(instrument, []):
            _, mine, theirs = np.intersect1d(days, other_days, return_indices=True)
            if mine.size:
                differ = int((closes[mine] != other_closes[theirs]).sum())
                what = f"snapshots {other} and {snapshot} overlap on {mine.size} days and differ on {differ}"
                found.append(Problem(instrument, f"{what}; a store holds one snapshot"))
        by_instrument[instrument].append((snapshot, days, closes))
    return found
