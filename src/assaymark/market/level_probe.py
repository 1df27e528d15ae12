"""The mechanical date probe: does an hour of bars still say which day it was cut from?

Whoever owns the daily history can look for the day whose ranges hold the hour's prices, in every instrument at once. It
must find the day of bars that were not sanitised, or its silence about the others proves nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import bdtrc

from assaymark.errors import InputError, NotMeasurableError
from assaymark.market.sanitise import Bars


@dataclass(frozen=True, slots=True, kw_only=True)
class DailyRanges:
    """Lows and highs of a market, arrays of shape (n_days, n_instruments), NaN where there is no bar."""

    days: np.ndarray
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """How often a probe named the right day (or month), sanitised and not.

    ``chance`` is the rate of a blind guess, ``p`` the probability of at least so many hits by guessing. ``passed``:
    the sanitised cycles are not dated more often than by chance at ``alpha``, and the unsanitised ones are dated in at
    least the share ``control`` of all cases, so that the probe can date anything at all.
    """

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
    """The result of a probe from its hits.

    Raises
    ------
    NotMeasurableError
        Nothing was asked.
    """
    if not hits or not control_hits:
        raise NotMeasurableError(f"the {probe} date probe was asked about nothing")
    found = sum(map(bool, hits))
    return ProbeResult(
        probe=probe,
        asked=len(hits),
        hits=found,
        control_asked=len(control_hits),
        control_hits=sum(map(bool, control_hits)),
        chance=chance,
        p=1.0 if not found else float(bdtrc(found - 1, len(hits), chance)),
        alpha=alpha,
        control=control,
    )


def day_of(bars: Sequence[Bars], columns: Mapping[str, int], ranges: DailyRanges) -> np.datetime64 | None:
    """The day whose daily ranges hold an hour of bars best; None where no day holds any of them.

    For each day, the instruments whose prices all lie between its low and high are counted; among the days with the
    most of them, the one whose ranges are tightest around the hour wins.

    Parameters
    ----------
    bars : sequence of Bars
        Of one hour, under names that are keys of ``columns``.
    columns : mapping of name to column of ``ranges``
    ranges : DailyRanges

    Raises
    ------
    InputError
        A name has no column.
    """
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
