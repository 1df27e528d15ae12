"""Building a point-in-time price store from a snapshot, and its quality report and overviews."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from assaymark.errors import InputError, Problem, check_known
from assaymark.market.history import AsOf, History, WideBars, first_names, seconds_up, wide_bars
from assaymark.market.instruments import (
    CLASSES,
    GAP_LIMIT,
    AssetClass,
    CorporateAction,
    Limits,
    Listing,
    class_members,
    fill_gaps,
    price_findings,
)
from assaymark.market.macro import Filing, Fundamentals, MacroSeries, News, class_index, released_after
from assaymark.market.snapshot import Snapshot, cache_bars, cached_bars, check_files, read_manifest, read_table
from assaymark.records import duplicates, grouped

LONG_GAP = 30
"""A gap of up to this many weekdays is only a note, because it stays missing as a whole; a longer one is a problem."""


@dataclass(frozen=True, slots=True)
class QualityReport:
    """Quality report of a store, see `condition`. ``problems`` and ``notes`` are ordered by kind, then instrument."""

    problems: tuple[Problem, ...]
    notes: tuple[Problem, ...]


def condition(history: History, limits: Limits | None = None) -> QualityReport:
    """Check the quality of a store: bars in their newest version, macro series and filings."""
    bars = {name: np.array(values) for name, values in history.bars.items()}
    for name, values in bars.items():
        history.restated.apply(values, name, 0, np.iinfo(np.int64).max)
    ids, groups = [listing.id for listing in history.listings], [listing.asset_class for listing in history.listings]
    problems: list[Problem] = []
    notes: list[Problem] = []
    for finding in price_findings(history.days, ids, bars["close"], limits, groups):
        delisted = history.listings[finding.column].delisted
        if finding.kind == "stale" and delisted is not None:
            # Delisted within a gap's length of its last price: a regular end.
            last = history.days[history.days.size - 1 - finding.days]
            if int(np.busday_count(last, np.datetime64(delisted))) <= Limits().gap_days:
                continue
        light = finding.kind == "gap" and finding.days <= LONG_GAP
        light |= finding.kind == "frozen" and history.listings[finding.column].asset_class == "CA"
        (notes if light else problems).append(finding)
    there, filings = np.isfinite(bars["close"]), history.fundamentals.places
    wrong = []
    for edge, way, sign in (("high", "below", 1.0), ("low", "above", -1.0)):
        for other in ("open", "close") if edge in bars else ():
            if other in bars:  # relative tolerance 1e-9 for rounding
                beyond = sign * (bars[other] - bars[edge]) > 1e-9 * np.abs(bars[edge])
                wrong.append((beyond, f"the {edge} is {way} the {other}; {{}} days in all"))
    wrong.append((there & (history.days[:, None] < history.listed_on), "{} bars lie before it was listed"))
    wrong.append((there & (history.days[:, None] > history.gone_after), "{} bars lie after it was delisted"))
    for table, template in wrong:
        for column in np.flatnonzero(table.any(axis=0)):
            rows = np.flatnonzero(table[:, column])
            problems.append(Problem(f"{ids[column]}, {history.days[rows[0]]}", template.format(rows.size)))
    for name in sorted(set(filings) - set(ids)):
        problems.append(Problem(name, f"{len(filings[name])} filings of an instrument that is not there"))
    later = history.restated
    for column in np.unique(later.columns):
        rows = later.rows[later.columns == column]
        place = f"{ids[column]}, {history.days[rows.min()]}"
        notes.append(Problem(place, f"{rows.size} later versions of {np.unique(rows).size} bars"))
    # Macro series whose last value is older than their limit on the last day of bars, or of any series.
    ends = [(series, series.periods[-1]) for series in history.macro if series.periods.size]
    last = max([*(end for _, end in ends), *history.days[-1:]], default=None)
    for series, end in ends:
        if int((last - end).astype("timedelta64[D]").astype(int)) > series.stale_days:
            notes.append(Problem(series.id, f"has ended: its last value is of {end}; later it reads as stale"))
    return QualityReport(tuple(problems), tuple(notes))


_BACK = (1, 20, 60)


@dataclass(frozen=True, slots=True)
class ClassOverview:
    """One asset class: number of instruments, first and last day, numbers of bars and gaps, and its index."""

    asset_class: AssetClass
    instruments: int
    first: np.datetime64
    last: np.datetime64
    bars: int
    missing: int
    long_gaps: int
    index: np.ndarray


@dataclass(frozen=True, slots=True)
class PriceQuote:
    """One instrument at one time: last close, its day, changes over 1, 20 and 60 days (or None), and the price path."""

    listing: Listing
    close: float
    day: np.datetime64
    changes: tuple[float | None, ...]
    path: np.ndarray


def class_overviews(history: History) -> tuple[ClassOverview, ...]:
    """Return the overview of every class with a close, in the order of the classes; bars in their first version."""
    closes = history.bars["close"]
    index = class_index(fill_gaps(closes), history.listings) if closes.size else {}
    overviews = []
    for name, columns in class_members(history.listings).items():
        there = np.isfinite(closes[:, columns])
        rows = np.flatnonzero(there.any(axis=1))
        if rows.size:
            gaps = [days for column in columns for _, days in gaps_of(history, history.listings[column].id)]
            first, last = history.days[rows[0]], history.days[rows[-1]]
            missing, long = sum(gaps), sum(days > GAP_LIMIT for days in gaps)
            bars = int(there.sum())
            overviews.append(ClassOverview(name, columns.size, first, last, bars, missing, long, index[name]))
    return tuple(overviews)


def gaps_of(history: History, instrument: str) -> tuple[tuple[np.datetime64, int], ...]:
    """Return the first day and the length in days of each gap between two closes, oldest first."""
    ids = [listing.id for listing in history.listings]
    check_known("instrument", ids, instrument)
    there = np.flatnonzero(np.isfinite(history.bars["close"][:, ids.index(instrument)]))
    holes = np.diff(there) - 1
    return tuple((history.days[there[at] + 1], int(holes[at])) for at in np.flatnonzero(holes))


def quotes(view: AsOf) -> tuple[PriceQuote, ...]:
    """Return quotes of the instruments that can be held and have a close in the last 60 days, in the store's order."""
    prices, tradable = view.prices(max(_BACK) + 1), set(view.held())
    priced = []
    for column, listing in enumerate(view.instruments):
        path = prices.values[:, column]
        there = np.flatnonzero(np.isfinite(path))
        if there.size and listing.id in tradable:
            last = int(there[-1])
            # None if there is no close so far back.
            changes = tuple(
                float(path[last] / path[last - back] - 1.0) if last >= back and np.isfinite(path[last - back]) else None
                for back in _BACK
            )
            priced.append(PriceQuote(listing, float(path[last]), prices.days[last], changes, path[1:]))
    return tuple(priced)


SPACINGS: Final = (("day", 4, 1, 10), ("week", 10, 7, 21), ("month", 45, 45, 75), ("quarter", 120, 120, 200))
"""Frequencies of series without release times: name, largest spacing, release lag and staleness limit in days."""

_YEARLY: Final = ("year", 400, 365, 750)
_FOREVER: Final = np.iinfo(np.int64).max


def open_history(folder: Path, *, lags: Mapping[str, int] | None = None, cache: bool = True) -> History:
    """Open the store in a snapshot's folder; ``lags`` are release lags in days by series. Raises `InputError`."""
    manifest = read_manifest(folder)
    check_files(folder, manifest)
    tables = {name: read_table(folder, name, manifest) for name in manifest.files if name != "bars"}
    ids = _ids(manifest.id, tables["instruments"])
    bars = cached_bars(folder, manifest.digest) if cache else None
    if bars is None:
        with _named(manifest.id):
            bars = wide_bars(read_table(folder, "bars", manifest), ids)
        if cache:
            cache_bars(folder, manifest.digest, bars)
    return _store(manifest.id, manifest.origin.source, tables, bars, lags or {})


def history_of(snapshot: Snapshot, *, lags: Mapping[str, int] | None = None) -> History:
    """Make the store of a snapshot in memory. Parameters and errors as `open_history`."""
    ids = _ids(snapshot.id, snapshot.tables["instruments"])
    with _named(snapshot.id):
        bars = wide_bars(snapshot.tables["bars"], ids)
    return _store(snapshot.id, snapshot.origin.source, snapshot.tables, bars, lags or {})


@contextmanager
def _named(snapshot: str) -> Iterator[None]:
    """Name the snapshot in errors about a table of it."""
    try:
        yield
    except InputError as exc:
        problems = [Problem(", ".join(filter(None, (exc.source, one.where))), one.what) for one in exc.problems]
        raise InputError(f"snapshot {snapshot}", problems) from None


def _ids(name: str, table: Any) -> list[str]:
    """Return the ids of the instruments. Raises `InputError` unless they can form one store."""
    rows = table.to_pylist()
    ids = [row["id"] or "" for row in rows]
    twice = duplicates(filter(None, ids))
    problems = [Problem(one, "the instrument is in the table more than once") for one in twice]
    for number, row in enumerate(rows, start=1):
        if not row["id"]:
            problems.append(Problem(f"instruments, row {number}", "has no id"))
        if row["class"] not in CLASSES:
            text = f"has the class {row['class']!r}; classes are {', '.join(CLASSES)}"
            problems.append(Problem(row["id"] or f"instruments, row {number}", text))
    currencies = grouped((row for row in rows if row["currency"]), lambda row: str(row["currency"]))
    if len(currencies) > 1:
        named = "; ".join(
            f"{currency}: {first_names([str(row['id']) for row in of])}" for currency, of in sorted(currencies.items())
        )
        text = f"a store holds one, and there are no exchange rates here ({named})"
        problems.append(Problem("currency", f"{text}; make one snapshot a currency"))
    if problems:
        raise InputError(f"snapshot {name}", problems)
    return ids


def _store(name: str, source: str, tables: Mapping[str, Any], bars: WideBars, lags: Mapping[str, int]) -> History:
    """Build the store, or raise `InputError` with all problems of the tables other than bars."""
    rows, problems = tables["instruments"].to_pylist(), []
    there = np.isfinite(bars.bars["close"]).any(axis=0)
    for row, has_bar in zip(rows, there.tolist(), strict=True):
        if row["listed"] is None and not has_bar:
            problems.append(Problem(str(row["id"]), "has neither a day of listing nor a bar"))
    actions = tables.get("actions")
    for table, columns in (
        ("macro", ("series", "ref_period")),
        ("news", ("published_at", "text")),
        ("fundamentals", ("instrument", "period", "field", "value", "filed_at")),
        ("actions", ("instrument", "ex_date", "known_at")),
    ):
        for column in columns if table in tables else ():
            if count := tables[table][column].null_count:
                problems.append(Problem(f"{table}, {column}", f"is missing in {count} rows"))
    if actions is not None:  # of unknown instruments, or with invalid amounts
        if strangers := sorted(set(actions["instrument"].to_pylist()) - {row["id"] for row in rows} - {None}):
            problems.append(Problem(f"actions, {first_names(strangers)}", "is in no table of instruments"))
        for kind, rule in (("split", "must be positive"), ("dividend", "must not be negative")):
            values = actions[kind].to_numpy().astype(float)
            bad = values <= 0 if kind == "split" else values < 0
            if wrong := int((bad | np.isinf(values)).sum()):
                problems.append(Problem(f"actions, {kind}", f"{rule}, and finite ({wrong} rows are not)"))
    if problems:
        raise InputError(f"snapshot {name}", problems)
    macro = tables["macro"].filter(tables["macro"]["value"].is_valid())
    names = np.array(macro["series"].to_pylist(), dtype=object)
    series = []
    with _named(name):
        for code in dict.fromkeys(names.tolist()):
            # One macro series with its vintages in order; rows without a value were dropped above.
            vintages = macro.filter(pa.array(names == code))
            periods = vintages["ref_period"].to_numpy().astype("datetime64[D]")
            kinds = np.unique(periods)
            apart = float(np.median(np.diff(kinds).astype(int))) if kinds.size > 1 else 400.0
            every, _, lag, limit = next((spacing for spacing in SPACINGS if apart <= spacing[1]), _YEARLY)
            starts, ends = (vintages[f"realtime_{edge}"].cast(pa.int64()) for edge in ("start", "end"))
            usual = released_after(periods, lags.get(code, lag))
            stated = seconds_up(starts.fill_null(0).to_numpy())
            released = np.where(starts.is_valid().to_numpy(), stated, usual)
            until = np.where(ends.is_valid().to_numpy(), seconds_up(ends.fill_null(0).to_numpy()), _FOREVER)
            order = np.lexsort((released, periods))
            first = vintages.slice(int(released.argmin()), 1).to_pylist()[0]
            limit = limit if first["stale_days"] is None else first["stale_days"]
            parts = periods[order], vintages["value"].to_numpy()[order], released[order], until[order]
            series.append(MacroSeries(code, first["title"] or code, first["unit"] or "", every, limit, *parts))
        fundamentals = Fundamentals.of([
            Filing(row["instrument"], row["period"], row["field"], row["value"], row["unit"] or "",
                   row["filed_at"].astimezone(UTC))
            for row in tables["fundamentals"].to_pylist()
        ])  # fmt: skip
    listings = []
    for place, row in enumerate(rows):
        listed: date | None = row["listed"]
        if listed is None:
            # The day of the bar that was known first, since bars of earlier days may have arrived later.
            listed = bars.days[int(bars.known_at[:, place].argmin())].astype(object)
        words = row["name"] or row["id"]
        listings.append(Listing(row["id"], row["class"], row["sub"] or "", words, listed, row["delisted"]))
    news = tuple(
        News(row["published_at"].astimezone(UTC), tuple(row["instruments"] or ()), row["text"], row["source"] or "")
        for row in tables["news"].to_pylist()
    )
    micros = np.empty(0, np.int64) if actions is None else actions["known_at"].cast(pa.int64()).to_numpy()
    acted = [] if actions is None else actions.to_pylist()
    return History(
        *(tuple(listings), bars.days, bars.bars, bars.known_at, tuple(series), news, source, name),
        restated=bars.restated,
        fundamentals=fundamentals,
        actions=tuple(
            (moment, CorporateAction(row["instrument"], row["ex_date"], row["split"] or 1.0, row["dividend"] or 0.0))
            for row, moment in zip(acted, seconds_up(micros).tolist(), strict=True)
        ),
        unstated=frozenset(listing.id for listing, missing in zip(listings, bars.unstated, strict=True) if missing),
    )
