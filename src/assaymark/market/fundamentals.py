"""What companies file: values of a period, known only from the day of filing, and sometimes corrected later."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

import numpy as np

from assaymark.errors import InputError
from assaymark.market.calendar import known_from
from assaymark.market.synthetic import SyntheticMarket, streams

if TYPE_CHECKING:
    from collections.abc import Iterator

_DAY = 86_400
_AFTER_CLOSE = 21 * 3600 + 1800


class _Digest(Protocol):
    def update(self, data: bytes, /) -> None: ...


@dataclass(frozen=True, slots=True)
class Filing:
    """One value: of an instrument, for a period (``2024-Q1``), of a field, in a unit, known from ``filed_at`` on."""

    instrument: str
    period: str
    field: str
    value: float
    unit: str
    filed_at: datetime


@dataclass(frozen=True, slots=True, eq=False)
class Fundamentals:
    """All filings of a store in the order in which they were filed. Made by `Fundamentals.of`.

    ``known_at`` (int64, seconds since 1970 in UTC) and ``values`` (float64) run along ``filings``.

    Examples
    --------
    >>> first = Filing("A", "2024-Q1", "book_value", 10.0, "per share", datetime(2024, 5, 1, tzinfo=UTC))
    >>> corrected = Filing("A", "2024-Q1", "book_value", 9.0, "per share", datetime(2024, 8, 1, tzinfo=UTC))
    >>> table = Fundamentals.of([corrected, first])
    >>> [one.value for one in table.known("A", known_from(datetime(2024, 6, 1, tzinfo=UTC)))]
    [10.0]
    >>> [one.value for one in table.known("A", known_from(datetime(2024, 9, 1, tzinfo=UTC)))]
    [9.0]
    """

    filings: tuple[Filing, ...]
    known_at: np.ndarray
    values: np.ndarray
    places: dict[str, list[int]]

    @staticmethod
    def none() -> Fundamentals:
        """Nothing was filed."""
        return Fundamentals.of(())

    @staticmethod
    def of(filings: Sequence[Filing]) -> Fundamentals:
        """The table of these filings, in any order.

        Raises
        ------
        InputError
            A time has no zone, or one value was filed twice at one time: which of the two holds cannot be known.
        """
        ordered = tuple(sorted(filings, key=lambda one: one.filed_at))
        twice = len({(one.instrument, one.period, one.field, one.filed_at) for one in ordered}) - len(ordered)
        if twice:
            raise InputError("fundamentals", [f"{-twice} values were filed twice at one time"])
        places: dict[str, list[int]] = {}
        for place, one in enumerate(ordered):
            places.setdefault(one.instrument, []).append(place)
        known_at = np.array([known_from(one.filed_at) for one in ordered], dtype=np.int64)
        return Fundamentals(ordered, known_at, np.array([one.value for one in ordered], dtype=float), places)

    def known(self, instrument: str, at: int) -> tuple[Filing, ...]:
        """The newest version by ``at`` of each value of one instrument, by period and field."""
        places = self.places.get(instrument, [])
        upto = bisect_left(places, int(np.searchsorted(self.known_at, at, side="right")))  # they come in order of time
        newest = {(one.period, one.field): one for one in map(self.filings.__getitem__, places[:upto])}
        return tuple(newest[key] for key in sorted(newest))

    def digest_into(self, whole: _Digest, at: int) -> None:
        """Add everything that was filed by ``at`` to a running hash."""
        count = int(np.searchsorted(self.known_at, at, side="right"))
        whole.update(self.known_at[:count].tobytes())
        whole.update(self.values[:count].tobytes())
        keys = ("\0".join((one.instrument, one.period, one.field, one.unit)) for one in self.filings[:count])
        whole.update("\n".join(keys).encode("utf-8", "surrogatepass"))


def synthetic_fundamentals(market: SyntheticMarket) -> Fundamentals:
    """Quarterly earnings and book value per share of every equity of the synthetic market.

    Book value is the mean close of the four quarters before, over a price-to-book ratio that the instrument keeps, so
    it says something about the price and less than the price does. Earnings are a quarter of a return on it. Both rest
    on closes up to the end of the quarter only, and are filed 20 to 50 days after it; one filing in forty is corrected
    some months later.

    Examples
    --------
    >>> from assaymark.market.synthetic import synthetic_market
    >>> synthetic_fundamentals(synthetic_market(0)).filings[0].period
    '2015-Q1'
    """
    rng = streams(market.seed)["filings"]
    quarters = market.days.astype("datetime64[M]").astype(int) // 3
    ends = np.flatnonzero(np.diff(quarters, append=quarters[-1] + 1))
    found: list[Filing] = []
    for column, one in enumerate(market.listings):
        if one.asset_class == "EQ":
            found += _quarters(rng, one.id, market.days, market.close[:, column], ends)
    last = market.days[-1].astype(object)
    return Fundamentals.of([one for one in found if one.filed_at.date() <= last])


def _quarters(
    rng: np.random.Generator, name: str, days: np.ndarray, closes: np.ndarray, ends: np.ndarray
) -> Iterator[Filing]:
    """The filings of one instrument, a quarter after the other; none for a quarter in which it did not trade."""
    ratio, earning = np.exp(rng.normal(0.9, 0.35)), rng.normal(0.11, 0.04)
    for end in ends:
        lag, moved, fixed, later = int(rng.integers(20, 51)), rng.normal(), rng.random(), int(rng.integers(60, 121))
        year = closes[max(end - 251, 0) : end + 1]
        if np.isfinite(year[-40:]).sum() < 20:
            continue
        book = float(np.nanmean(year)) / ratio
        eps = book * (earning + 0.03 * moved) / 4.0
        day = days[end]
        period = f"{str(day)[:4]}-Q{(int(str(day)[5:7]) + 2) // 3}"
        yield from _filed(name, period, {"book_value": book, "earnings": eps}, _moment(day, lag))
        if fixed < 1 / 40:
            yield from _filed(name, period, {"earnings": eps * 0.9}, _moment(day, lag + later))


def _filed(name: str, period: str, values: dict[str, float], at: datetime) -> list[Filing]:
    """The values of one filing, in money a share, rounded as they are written."""
    return [Filing(name, period, what, float(round(value, 4)), "per share", at) for what, value in values.items()]


def _moment(day: np.datetime64, later: int) -> datetime:
    """Half an hour after the close, so many days after ``day``."""
    return datetime.fromtimestamp((int(day.astype("datetime64[D]").astype(int)) + later) * _DAY + _AFTER_CLOSE, UTC)
