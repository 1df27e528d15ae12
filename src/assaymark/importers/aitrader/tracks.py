"""The four tracks of the logs: their price files, clocks and capital, which the logs do not state themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from assaymark.errors import InputError

_HOUR: Final = timedelta(hours=1)
_YEARS: Final = (1970, 2200)


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """One market that the agents traded on.

    Attributes
    ----------
    name
        Ours; the episode of every decision on the track.
    prices
        The file with its bars.
    zone
        That of the exchange: stamps in the logs have none.
    opens, closes
        When a day of a daily track opens, and when its bar is complete, since its midnight. Decisions are made at the
        open. Both are None where stamps have a time of their own.
    lag
        How long after its stamp a bar with a time is complete: an hour where stamps are the bar's start, nothing where
        they are its end.
    capital, currency
        What each agent started with. The first fills of nearly all agents fit it to the cent.
    units
        Half the last printed digit of positions; 0 where units are whole.
    """

    name: str
    prices: str
    zone: str
    asset_class: str
    capital: float
    currency: str
    opens: timedelta | None = None
    closes: timedelta | None = None
    lag: timedelta = timedelta(0)
    suffix: str = ""
    units: float = 1e-6

    @property
    def daily(self) -> bool:
        """Whether a step is a day."""
        return self.opens is not None

    @property
    def interval_s(self) -> int:
        """Seconds from one bar to the next within a session."""
        return 86_400 if self.daily else 3_600

    def read(self, stamp: str) -> datetime:
        """A stamp of the log or of a price file as written: local, without a zone.

        Raises
        ------
        ValueError
            Not a day (daily tracks) or not a day and a time (the others).
        """
        wanted = "2025-10-09" if self.daily else "2025-10-09 10:30:00"
        try:
            found = datetime.strptime(stamp, "%Y-%m-%d" if self.daily else "%Y-%m-%d %H:%M:%S")
        except ValueError:
            found = datetime.min
        if not _YEARS[0] <= found.year <= _YEARS[1]:
            raise ValueError(f"must be a step such as {wanted} (got {stamp[:40]!r})")
        return found

    def decided_at(self, local: datetime) -> datetime:
        """The moment of a decision at a step: its bar's open is known, nothing later."""
        return self._utc(local + (self.opens or timedelta(0)))

    def complete_at(self, local: datetime) -> datetime:
        """When all of the bar with this stamp is known."""
        return self._utc(local + (self.closes if self.closes is not None else self.lag))

    def _utc(self, local: datetime) -> datetime:
        try:
            zone = ZoneInfo(self.zone)
        except ZoneInfoNotFoundError:
            what = f"this machine has no time zone data for {self.zone}; install the package tzdata"
            raise InputError("aitrader", [what]) from None
        return local.replace(tzinfo=zone).astimezone(UTC)


TRACKS: Final[Mapping[str, Track]] = MappingProxyType(
    {
        "agent_data": Track(
            name="us",
            prices="prices_us_hourly.csv",
            zone="America/New_York",
            asset_class="equity",
            capital=10_000.0,
            currency="USD",
            lag=_HOUR,
        ),
        "agent_data_astock_hour": Track(
            name="cn-hourly",
            prices="prices_astock_hourly.csv",
            zone="Asia/Shanghai",
            asset_class="equity",
            capital=100_000.0,
            currency="CNY",
            suffix="-astock-hour",
        ),
        "agent_data_astock": Track(
            name="cn-daily",
            prices="prices_astock_daily.csv",
            zone="Asia/Shanghai",
            asset_class="equity",
            capital=100_000.0,
            currency="CNY",
            opens=timedelta(hours=9, minutes=30),
            closes=timedelta(hours=15),
        ),
        "agent_data_crypto": Track(
            name="crypto",
            prices="prices_crypto_daily.csv",
            zone="UTC",
            asset_class="crypto",
            capital=50_000.0,
            currency="USDT",
            opens=timedelta(0),
            closes=timedelta(days=1),
            units=5.1e-5,
        ),
    }
)
"""The tracks by the name that the logs give them."""
