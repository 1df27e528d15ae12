"""From a snapshot to a store that can be asked what was known when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from assaymark.errors import InputError, Problem, UnknownNameError
from assaymark.market.actions import CorporateAction
from assaymark.market.calendar import GAP_LIMIT, fill_gaps
from assaymark.market.checks import Finding, Limits, price_findings
from assaymark.market.history import AsOf, History, WideBars, seconds_up, wide_bars
from assaymark.market.instruments import CLASSES, AssetClass, Listing, class_members
from assaymark.market.macro import Filing, Fundamentals, MacroSeries, News, released_after
from assaymark.market.regimes import class_index
from assaymark.market.snapshot import Snapshot, cached_bars, check_files, keep_bars, read_manifest, read_table

# What is wrong with a whole store, and what is only worth knowing about it.
#
# A problem is something after which numbers made from the store are wrong or a part of it is missing; a note is
# something that the store's own rules deal with.


LONG_GAP = 30
"""Weekdays: a gap inside a series of up to so many is a note, because it stays missing as a whole; a longer one is a
problem."""


@dataclass(frozen=True, slots=True)
class Condition:
    """What `condition` found. ``problems`` and ``notes`` are in the order of kinds, then instruments."""

    problems: tuple[Problem, ...]
    notes: tuple[Problem, ...]


def condition(history: History, limits: Limits | None = None) -> Condition:
    """Look over a store: bars in their newest version, macro series and filings."""
    bars = _newest(history)
    ids, groups = [one.id for one in history.listings], [one.asset_class for one in history.listings]
    found = price_findings(history.days, ids, bars["close"], limits, groups)
    found = [one for one in found if not (one.kind == "stale" and _ended_in_order(history, one))]
    light = [_is_note(history, one) for one in found]
    problems = [Problem(one.where, one.what) for one, note in zip(found, light, strict=True) if not note]
    problems += [*_impossible_bars(history, bars), *_outside_of_life(history, bars["close"]), *_strangers(history)]
    notes = [Problem(one.where, one.what) for one, note in zip(found, light, strict=True) if note]
    return Condition(tuple(problems), (*notes, *_restatements(history), *_ended_series(history)))


def _newest(history: History) -> dict[str, np.ndarray]:
    """All fields with the last version of every bar."""
    at = np.iinfo(np.int64).max
    found = {}
    for name, values in history.bars.items():
        found[name] = np.array(values)
        history.restated.apply(found[name], name, 0, at)
    return found


def _ended_in_order(history: History, finding: Finding) -> bool:
    """Whether a series that ends early was delisted within a gap's length of its last price."""
    delisted = history.listings[finding.column].delisted
    if delisted is None:
        return False
    last = history.days[history.days.size - 1 - finding.days]
    return int(np.busday_count(last, np.datetime64(delisted))) <= Limits().gap_days


def _is_note(history: History, finding: Finding) -> bool:
    """Whether the store's rules deal with it."""
    if finding.kind == "frozen":
        return history.listings[finding.column].asset_class == "CA"
    return finding.kind == "gap" and finding.days <= LONG_GAP


def _impossible_bars(history: History, bars: dict[str, np.ndarray]) -> Iterator[Problem]:
    """Highs below and lows above what lies between them; a share of 1e-9 is left to rounding."""
    high, low = bars.get("high"), bars.get("low")
    for name, edge, sign in (("high", high, 1.0), ("low", low, -1.0)):
        for other in ("open", "close"):
            if edge is not None and other in bars:
                beyond = sign * (bars[other] - edge) > 1e-9 * np.abs(edge)
                for column in np.flatnonzero(beyond.any(axis=0)):
                    rows = np.flatnonzero(beyond[:, column])
                    where = f"{history.listings[column].id}, {history.days[rows[0]]}"
                    way = "below" if sign > 0 else "above"
                    yield Problem(where, f"the {name} is {way} the {other}; {rows.size} days in all")


def _outside_of_life(history: History, closes: np.ndarray) -> Iterator[Problem]:
    """Bars of instruments that did not exist."""
    there = np.isfinite(closes)
    early = there & (history.days[:, None] < history.listed_on)
    late = there & (history.days[:, None] > history.gone_after)
    for wrong, what in ((early, "before it was listed"), (late, "after it was delisted")):
        for column in np.flatnonzero(wrong.any(axis=0)):
            rows = np.flatnonzero(wrong[:, column])
            yield Problem(f"{history.listings[column].id}, {history.days[rows[0]]}", f"{rows.size} bars lie {what}")


def _strangers(history: History) -> Iterator[Problem]:
    """Filings that belong to nothing."""
    known = {one.id for one in history.listings}
    for name in sorted(set(history.fundamentals.places) - known):
        yield Problem(name, f"{len(history.fundamentals.places[name])} filings of an instrument that is not there")


def _restatements(history: History) -> Iterator[Problem]:
    """How many bars have more than one version."""
    later = history.restated
    for column in np.unique(later.columns):
        rows = later.rows[later.columns == column]
        where = f"{history.listings[column].id}, {history.days[rows.min()]}"
        yield Problem(where, f"{rows.size} later versions of {np.unique(rows).size} bars")


def _ended_series(history: History) -> Iterator[Problem]:
    """Macro series whose last value is older than their limit on the last day of bars, or of any series."""
    ends = [one.periods[-1] for one in history.macro if one.periods.size]
    last = max([*ends, *history.days[-1:]], default=None)
    for one in history.macro:
        if one.periods.size and int((last - one.periods[-1]).astype("timedelta64[D]").astype(int)) > one.stale_days:
            yield Problem(one.id, f"has ended: its last value is of {one.periods[-1]}; later it reads as stale")


# What a store holds, class by class and instrument by instrument, as a person would ask for it.


_BACK = (1, 20, 60)


@dataclass(frozen=True, slots=True)
class ClassOverview:
    """One asset class: how many instruments, their first and last day, and how full their tables are."""

    asset_class: AssetClass
    instruments: int
    first: np.datetime64
    last: np.datetime64
    bars: int
    missing: int
    long_gaps: int
    index: np.ndarray


@dataclass(frozen=True, slots=True)
class Gap:
    """A run of days without a close, between two closes."""

    first: np.datetime64
    days: int


@dataclass(frozen=True, slots=True)
class Quote:
    """One instrument at one time: its last close, the day of it, and its changes over 1, 20 and 60 days (or None)."""

    listing: Listing
    close: float
    day: np.datetime64
    changes: tuple[float | None, ...]
    path: np.ndarray


def class_overviews(history: History) -> tuple[ClassOverview, ...]:
    """Every class that has a close, in the order of the classes; bars in their first version."""
    closes = history.bars["close"]
    index = class_index(fill_gaps(closes), history.listings) if closes.size else {}
    found = []
    for name, columns in class_members(history.listings).items():
        there = np.isfinite(closes[:, columns])
        rows = np.flatnonzero(there.any(axis=1))
        if rows.size:
            gaps = [gap for column in columns for gap in gaps_of(history, history.listings[column].id)]
            found.append(
                ClassOverview(
                    name,
                    columns.size,
                    history.days[rows[0]],
                    history.days[rows[-1]],
                    int(there.sum()),
                    sum(gap.days for gap in gaps),
                    sum(gap.days > GAP_LIMIT for gap in gaps),
                    index[name],
                )
            )
    return tuple(found)


def gaps_of(history: History, instrument: str) -> tuple[Gap, ...]:
    """The gaps of one instrument, oldest first."""
    ids = [one.id for one in history.listings]
    if instrument not in ids:
        raise UnknownNameError("instrument", instrument, ids)
    there = np.flatnonzero(np.isfinite(history.bars["close"][:, ids.index(instrument)]))
    holes = np.diff(there) - 1
    return tuple(Gap(history.days[there[at] + 1], int(holes[at])) for at in np.flatnonzero(holes))


def quotes(view: AsOf) -> tuple[Quote, ...]:
    """The instruments that can be held and have a close in the last 60 days, in the order of the store."""
    prices, held = view.prices(max(_BACK) + 1), set(view.held())
    found = []
    for column, listing in enumerate(view.instruments):
        path = prices.values[:, column]
        there = np.flatnonzero(np.isfinite(path))
        if there.size and listing.id in held:
            last = int(there[-1])
            changes = tuple(_change(path, last, back) for back in _BACK)
            found.append(Quote(listing, float(path[last]), prices.days[last], changes, path[1:]))
    return tuple(found)


def _change(path: np.ndarray, last: int, back: int) -> float | None:
    """The simple return over ``back`` days, or None where there is no close so far back."""
    if last < back or not np.isfinite(path[last - back]):
        return None
    return float(path[last] / path[last - back] - 1.0)


SPACINGS: Final = (("day", 4, 1, 10), ("week", 10, 7, 21), ("month", 45, 45, 75), ("quarter", 120, 120, 200))
"""For series without release times: name, largest usual distance of periods, release lag and staleness limit, in days.

A lag counts from the date that names the period. It is on the late side: a month is often named by its first day.
"""

_YEARLY: Final = ("year", 400, 365, 750)
_FOREVER: Final = np.iinfo(np.int64).max


def open_history(folder: Path, *, lags: Mapping[str, int] | None = None, cache: bool = True) -> History:
    """The store of a snapshot's folder."""
    manifest = read_manifest(folder)
    check_files(folder, manifest)
    tables = {name: read_table(folder, name, manifest) for name in manifest.files if name != "bars"}
    ids = _ids(manifest.id, tables["instruments"])
    bars = cached_bars(folder, manifest.digest) if cache else None
    if bars is None:
        bars = _bars(manifest.id, read_table(folder, "bars", manifest), ids)
        if cache:
            keep_bars(folder, manifest.digest, bars)
    return _store(manifest.id, manifest.origin.source, tables, bars, lags or {})


def history_of(snapshot: Snapshot, *, lags: Mapping[str, int] | None = None) -> History:
    """The store of a snapshot in memory. Parameters and errors as `open_history`."""
    bars = _bars(snapshot.id, snapshot.tables["bars"], _ids(snapshot.id, snapshot.tables["instruments"]))
    return _store(snapshot.id, snapshot.origin.source, snapshot.tables, bars, lags or {})


def _bars(name: str, table: Any, ids: Sequence[str]) -> WideBars:
    """The bars spread into tables; errors carry the name of the snapshot."""
    try:
        return wide_bars(table, ids)
    except InputError as exc:
        where = [Problem(f"{exc.source}, {one.where}" if one.where else exc.source, one.what) for one in exc.problems]
        raise InputError(f"snapshot {name}", where) from None


def _ids(name: str, table: Any) -> list[str]:
    """The names of the columns, if the instruments are those of one store."""
    rows = table.to_pylist()
    ids = [row["id"] or "" for row in rows]
    problems = [
        Problem(one, "the instrument is in the table more than once")
        for one in sorted({one for one in ids if one and ids.count(one) > 1})
    ]
    for number, row in enumerate(rows, start=1):
        if not row["id"]:
            problems.append(Problem(f"instruments, row {number}", "has no id"))
        if row["class"] not in CLASSES:
            what = f"has the class {row['class']!r}; classes are {', '.join(CLASSES)}"
            problems.append(Problem(row["id"] or f"instruments, row {number}", what))
    problems += _currencies(rows)
    if problems:
        raise InputError(f"snapshot {name}", problems)
    return ids


def _store(name: str, source: str, tables: Mapping[str, Any], bars: WideBars, lags: Mapping[str, int]) -> History:
    """Everything put together, or every problem of the other tables."""
    problems = [
        *_listing_problems(tables["instruments"], bars),
        *_missing(tables["macro"], "macro", ("series", "ref_period")),
        *_missing(tables["news"], "news", ("published_at", "text")),
        *_missing(tables["fundamentals"], "fundamentals", ("instrument", "period", "field", "value", "filed_at")),
        *(_action_problems(tables["actions"], tables["instruments"]) if "actions" in tables else ()),
    ]
    if problems:
        raise InputError(f"snapshot {name}", problems)
    try:
        macro, filed = tuple(_macro(tables["macro"], lags)), _fundamentals(tables["fundamentals"])
    except InputError as exc:
        raise InputError(f"snapshot {name}", [Problem(exc.source, one.what) for one in exc.problems]) from None
    listings, news = _listings(tables["instruments"], bars), _news(tables["news"])
    return History(
        *(listings, bars.days, bars.bars, bars.known_at, macro, news, source, name),
        restated=bars.restated,
        fundamentals=filed,
        actions=tuple(_actions(tables["actions"])) if "actions" in tables else (),
        unstated=frozenset(one.id for one, missing in zip(listings, bars.unstated, strict=True) if missing),
    )


def _missing(table: Any, name: str, columns: Sequence[str]) -> Iterator[Problem]:
    """Columns that every row must have."""
    for column in columns:
        if count := table[column].null_count:
            yield Problem(f"{name}, {column}", f"is missing in {count} rows")


def _action_problems(table: Any, instruments: Any) -> Iterator[Problem]:
    """Actions that cannot be: without a day or a time, of strangers, or with an amount that is none."""
    yield from _missing(table, "actions", ("instrument", "ex_date", "known_at"))
    if strangers := sorted(set(table["instrument"].to_pylist()) - set(instruments["id"].to_pylist()) - {None}):
        yield Problem(f"actions, {_some(strangers)}", "is in no table of instruments")
    for name, what in (("split", "must be positive"), ("dividend", "must not be negative")):
        values = table[name].to_numpy().astype(float)
        bad = values <= 0 if name == "split" else values < 0
        if wrong := int((bad | np.isinf(values)).sum()):
            yield Problem(f"actions, {name}", f"{what}, and finite ({wrong} rows are not)")


def _actions(table: Any) -> Iterator[tuple[int, CorporateAction]]:
    """The listed actions, each with the second from which it is known."""
    micros = table["known_at"].cast(pa.int64()).to_numpy()
    for row, known in zip(table.to_pylist(), seconds_up(micros).tolist(), strict=True):
        split, dividend = row["split"] or 1.0, row["dividend"] or 0.0
        yield known, CorporateAction(row["instrument"], row["ex_date"], split, dividend)


def _listing_problems(table: Any, bars: WideBars) -> Iterator[Problem]:
    """Instruments of which nothing says since when they are listed."""
    there = np.isfinite(bars.bars["close"]).any(axis=0)
    for column, row in enumerate(table.to_pylist()):
        if row["listed"] is None and not there[column]:
            yield Problem(str(row["id"]), "has neither a day of listing nor a bar")


def _currencies(rows: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    """More than one currency: prices could not be added up, since there are no exchange rates here."""
    of: dict[str, list[str]] = {}
    for row in rows:
        if row["currency"]:
            of.setdefault(row["currency"], []).append(str(row["id"]))
    if len(of) > 1:
        named = "; ".join(f"{currency}: {_some(of[currency])}" for currency in sorted(of))
        what = f"a store holds one, and there are no exchange rates here ({named})"
        yield Problem("currency", f"{what}; make one snapshot a currency")


def _some(names: Sequence[str]) -> str:
    """The first names, and how many more."""
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _listings(table: Any, bars: WideBars) -> tuple[Listing, ...]:
    """The listings; one without a day of listing is listed from its first bar on."""
    found = []
    for column, row in enumerate(table.to_pylist()):
        listed: date | None = row["listed"]
        if listed is None:
            # The day of the bar that was known first: bars of earlier days that came later were not there yet.
            listed = bars.days[int(bars.known_at[:, column].argmin())].astype(object)
        name = row["name"] or row["id"]
        found.append(Listing(row["id"], row["class"], row["sub"] or "", name, listed, row["delisted"]))
    return tuple(found)


def _macro(table: Any, lags: Mapping[str, int]) -> Iterator[MacroSeries]:
    """The series in the order in which they first appear; rows without a value are left out."""
    rows = table.filter(table["value"].is_valid())
    names = np.array(rows["series"].to_pylist(), dtype=object)
    for name in dict.fromkeys(names.tolist()):
        yield _series(name, rows.filter(pa.array(names == name)), lags.get(name))


def _series(name: str, rows: Any, lag: int | None) -> MacroSeries:
    """One series with its vintages in order."""
    periods = rows["ref_period"].to_numpy().astype("datetime64[D]")
    every, _, usual_lag, usual_limit = _spacing(periods)
    starts = rows["realtime_start"].cast(pa.int64())
    given = starts.is_valid().to_numpy()
    usual = released_after(periods, usual_lag if lag is None else lag)
    released = np.where(given, seconds_up(starts.fill_null(0).to_numpy()), usual)
    ends = rows["realtime_end"].cast(pa.int64())
    until = np.where(ends.is_valid().to_numpy(), seconds_up(ends.fill_null(0).to_numpy()), _FOREVER)
    order = np.lexsort((released, periods))
    first = rows.slice(int(released.argmin()), 1).to_pylist()[0]
    limit = usual_limit if first["stale_days"] is None else first["stale_days"]
    values = rows["value"].to_numpy()
    parts = periods[order], values[order], released[order], until[order]
    return MacroSeries(name, first["title"] or name, first["unit"] or "", every, limit, *parts)


def _spacing(periods: np.ndarray) -> tuple[str, int, int, int]:
    """How far the periods lie apart."""
    kinds = np.unique(periods)
    apart = float(np.median(np.diff(kinds).astype(int))) if kinds.size > 1 else 400.0
    return next((one for one in SPACINGS if apart <= one[1]), _YEARLY)


def _news(table: Any) -> tuple[News, ...]:
    """The items; the facts behind a text are not stored, so they have none."""
    return tuple(
        News(row["published_at"].astimezone(UTC), tuple(row["instruments"] or ()), row["text"], row["source"] or "", ())
        for row in table.to_pylist()
    )


def _fundamentals(table: Any) -> Fundamentals:
    """The filings."""
    return Fundamentals.of(
        [
            Filing(key[0], key[1], key[2], row["value"], row["unit"] or "", row["filed_at"].astimezone(UTC))
            for row in table.to_pylist()
            if (key := (row["instrument"], row["period"], row["field"]))
        ]
    )
