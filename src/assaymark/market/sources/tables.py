"""From what a client library handed over to the tables of a snapshot, with every problem named."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from assaymark.errors import Problem
from assaymark.market.actions import CorporateAction
from assaymark.market.calendar import instant
from assaymark.market.history import CLOSE_OF_DAY, FIELDS
from assaymark.market.instruments import AssetClass
from assaymark.market.snapshot import SCHEMAS
from assaymark.market.store import content_digest
from assaymark.records import canonical_json

END_OF_DAY = 24 * 3600
"""Seconds after midnight UTC at which the day of a market that never closes is complete."""

PRICES = ("open", "high", "low", "close")


@dataclass(frozen=True, slots=True, kw_only=True)
class DailySeries:
    """The bars of one instrument as a source gave them.

    ``days`` are datetime64[D]; ``bars`` holds the fields of a bar, each of shape (n_days,), NaN where one is missing;
    ``close * adj_factor`` is the total-return price. ``complete_at`` is when a day is over, in seconds after its
    midnight UTC.
    """

    id: str
    asset_class: AssetClass
    sub: str
    name: str
    currency: str
    listed: date | None
    days: np.ndarray
    bars: Mapping[str, np.ndarray]
    adj_factor: np.ndarray
    actions: tuple[CorporateAction, ...] = ()
    complete_at: int = CLOSE_OF_DAY

    @property
    def known_at(self) -> np.ndarray:
        """When each bar became known, int64 seconds since 1970 in UTC."""
        found: np.ndarray = self.days.astype("datetime64[D]").astype(np.int64) * 86_400 + self.complete_at
        return found

    def within(self, first: date, last: date, now: datetime) -> DailySeries:
        """The bars of these days, without those whose day is not over yet at ``now``."""
        kept = (self.days >= np.datetime64(first)) & (self.days <= np.datetime64(last))
        kept &= self.known_at <= instant(now)
        bars = {name: values[kept] for name, values in self.bars.items()}
        return DailySeries(
            id=self.id, asset_class=self.asset_class, sub=self.sub, name=self.name, currency=self.currency,
            listed=self.listed, days=self.days[kept], bars=bars, adj_factor=self.adj_factor[kept],
            actions=tuple(one for one in self.actions if first <= one.ex_date <= last), complete_at=self.complete_at,
        )  # fmt: skip


def series_problems(series: DailySeries) -> list[Problem]:
    """What cannot be true of one series; each kind once, with its first place and how often."""
    if not series.days.size:
        return [Problem(series.id, "has no bar in the days asked for")]
    found = list(_wrong_days(series))
    for name in PRICES:
        values = series.bars[name]
        missing = "" if name == "close" else " where it is given"
        wrong = ~(values > 0) | np.isinf(values) if name == "close" else (values <= 0) | np.isinf(values)
        found += _first(series, wrong, values, f"a {name} must be positive{missing}")
    volume = series.bars["volume"]
    found += _first(series, (volume < 0) | np.isinf(volume), volume, "a volume cannot be negative")
    spread = series.bars["high"] - series.bars["low"]
    found += _first(series, spread < 0, spread, "the high is below the low")
    wrong = ~(series.adj_factor > 0) | np.isinf(series.adj_factor)
    return found + _first(series, wrong, series.adj_factor, "an adjustment factor must be positive")


def _wrong_days(series: DailySeries) -> Iterator[Problem]:
    """Days that repeat or go back."""
    steps = np.diff(series.days).astype(int)
    for place in np.flatnonzero(steps <= 0)[:1]:
        what = "is there twice" if steps[place] == 0 else f"comes after {series.days[place]}"
        yield Problem(f"{series.id}, {series.days[place + 1]}", f"the day {what}: days must increase")


def _first(series: DailySeries, wrong: np.ndarray, values: np.ndarray, what: str) -> list[Problem]:
    """The first place where something is wrong, with how many there are."""
    places = np.flatnonzero(wrong)
    if not places.size:
        return []
    more = f"; {places.size} days in all" if places.size > 1 else ""
    return [Problem(f"{series.id}, {series.days[places[0]]}", f"{what} (got {values[places[0]]:g}){more}")]


def set_problems(series: Sequence[DailySeries]) -> list[Problem]:
    """What cannot be true of series together: more than one currency, or a last day with half of them."""
    currencies: dict[str, list[str]] = {}
    for one in series:
        currencies.setdefault(one.currency, []).append(one.id)
    found = []
    if len(currencies) > 1:
        listed = "; ".join(f"{currency or 'none'}: {', '.join(ids)}" for currency, ids in sorted(currencies.items()))
        found.append(Problem("currency", f"one snapshot holds one currency, pull each by itself ({listed})"))
    ends = {one.id: one.days[-1] for one in series if one.days.size}
    last = max(ends.values(), default=None)
    there = [name for name, day in ends.items() if day == last]
    if 2 * len(there) < len(ends):
        what = f"only {len(there)} of {len(ends)} instruments have a bar ({', '.join(there)}): half a day? "
        found.append(Problem(str(last), what + "Ask again later, or with an earlier end"))
    return found


def bar_tables(series: Sequence[DailySeries], source: str) -> dict[str, Any]:
    """Bars and instruments as tables of a snapshot; the column of its name is filled in by `stamped`."""
    lengths = [one.days.size for one in series]
    whole: dict[str, Any] = {name: np.concatenate([one.bars[name] for one in series]) for name in FIELDS}
    whole |= {
        "instrument": np.repeat(np.array([one.id for one in series], dtype=object), lengths),
        "event_date": np.concatenate([one.days.astype("datetime64[D]") for one in series]),
        "known_at": np.concatenate([one.known_at for one in series]) * 1_000_000,
        "adj_factor": np.concatenate([one.adj_factor for one in series]),
        "source": [source] * sum(lengths),
        "snapshot": [""] * sum(lengths),
    }
    columns = [pa.array(whole[one.name], type=one.type, from_pandas=True) for one in SCHEMAS["bars"]]
    rows = [
        {
            "id": one.id, "class": one.asset_class, "sub": one.sub, "name": one.name, "currency": one.currency,
            "listed": one.listed or one.days[0].item(), "delisted": None,
            "calendar": "daily" if one.asset_class == "CR" else "weekdays",
        }
        for one in series
    ]  # fmt: skip
    acted = [
        {
            "instrument": one.id, "ex_date": action.ex_date, "split": action.split, "dividend": action.dividend,
            "known_at": datetime.combine(action.ex_date, time(), UTC) + timedelta(seconds=one.complete_at),
        }
        for one in series
        for action in one.actions
    ]  # fmt: skip
    return {
        "bars": pa.Table.from_arrays(columns, schema=SCHEMAS["bars"]),
        "instruments": pa.Table.from_pylist(rows, schema=SCHEMAS["instruments"]),
        **({"actions": pa.Table.from_pylist(acted, schema=SCHEMAS["actions"])} if acted else {}),
    }


def snapshot_id(source: str, day: date, tables: Mapping[str, Any]) -> str:
    """``<source>-<date>-<first 12 of the sha256 of the tables>``: the same answer on one day has one name.

    >>> snapshot_id("fred", date(2026, 1, 2), {})
    'fred-2026-01-02-44136fa355b3'
    """
    contents = {name: content_digest(table) for name, table in sorted(tables.items())}
    return f"{source}-{day.isoformat()}-{hashlib.sha256(canonical_json(contents).encode()).hexdigest()[:12]}"


def from_source(tables: Mapping[str, Any], source: str) -> dict[str, Any]:
    """The tables of a snapshot that was read from a file, as those of the source that the file is from."""
    bars = tables["bars"]
    return {**tables, "bars": _filled(_filled(bars, "source", source), "snapshot", "")}


def stamped(tables: Mapping[str, Any], snapshot: str) -> dict[str, Any]:
    """The tables with the name of their snapshot in each bar."""
    return {**tables, "bars": _filled(tables["bars"], "snapshot", snapshot)} if "bars" in tables else dict(tables)


def _filled(bars: Any, name: str, value: str) -> Any:
    """Bars in which one column holds one value."""
    place = bars.schema.get_field_index(name)
    return bars.set_column(place, SCHEMAS["bars"].field(place), pa.array([value] * bars.num_rows, pa.string()))
