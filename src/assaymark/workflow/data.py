"""`assaymark data`: generate, fetch, show and check market snapshots, one to a folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from itertools import groupby
from pathlib import Path
from typing import Final

import numpy as np
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

import assaymark.market as market
from assaymark.errors import InputError, Problem, UnknownNameError
from assaymark.market.history import AsOf, History
from assaymark.market.instruments import CLASS_NAMES, CLASSES, GAP_LIMIT, Listing
from assaymark.market.open import QualityReport, class_overviews, condition, gaps_of, quotes
from assaymark.market.snapshot import Manifest
from assaymark.notebook import CommandResult
from assaymark.report.text import counted
from assaymark.text import MINUS, clean, count
from assaymark.workflow.progress import note, watching
from assaymark.workflow.run_folder import missing

# --- Summaries of a snapshot for the terminal -------------------------------------------------------------------------


_BARS: Final = "▁▂▃▄▅▆▇█"
_A_CLASS: Final = 4  # instruments that are listed of each class
_ITEMS: Final = 6
_WIDTH: Final = 20


def origin_summary(manifest: Manifest) -> RenderableType:
    """Summarise a snapshot: its source, the request, the licence, and notes on pitfalls."""
    origin = manifest.origin
    text = Text()
    text.append(clean(manifest.id, 80), style="bold")
    text.append(f"\nfrom {clean(origin.source, 60)}, asked {_minute(origin.retrieved_at)}")
    text.append(f"\nlicence: {clean(origin.licence, 200)}")
    query = ", ".join(f"{name} {value}" for name, value in origin.query.items() if value not in (None, "", [], {}))
    if query:
        text.append(f"\nasked for: {clean(query, 300)}")
    for remark in origin.notes:
        text.append(f"\nnote: {clean(remark, 300)}", style="yellow")
    return text


def store_summary(manifest: Manifest, history: History, instrument: str | None = None) -> RenderableType:
    """Summarise a snapshot: origin and licence, one row a class, counts of the rest; with ``instrument``, its gaps."""
    parts: list[RenderableType] = [origin_summary(manifest)]
    if overviews := class_overviews(history):
        # One row a class.
        table = Table(box=None, pad_edge=False)
        table.add_column("Class")
        for title in ("number", "first day", "last day", "closes", "missing", "long\ngaps"):
            table.add_column(title, justify="right")
        table.add_column("index")
        for overview in overviews:
            name = CLASS_NAMES[overview.asset_class].replace("_", " ")
            numbers = (count(overview.bars), count(overview.missing), count(overview.long_gaps))
            line = sparkline(np.log(np.where(overview.index > 0, overview.index, np.nan)), 10)
            table.add_row(name, str(overview.instruments), str(overview.first), str(overview.last), *numbers, line)
        parts += [Text(), table]
    rest = (
        counted(len(history.macro), "macro series", "macro series"),
        counted(len(history.news), "news item"),
        counted(len(history.fundamentals.filings), "filed value"),
        counted(int(history.restated.rows.size), "later version of a bar", "later versions of bars"),
    )
    parts += [Text(), Text(", ".join(rest))]
    if instrument is not None:
        gaps = gaps_of(history, instrument)
        listing = next(listing for listing in history.listings if listing.id == instrument)
        end = f"delisted {listing.delisted}" if listing.delisted else "not delisted"
        lines = [f"{clean(instrument, 40)}: {clean(listing.name, 80)}, listed {listing.listed}, {end}"]
        long = [f"{days} days from {first}" for first, days in gaps if days > GAP_LIMIT]
        lines.append(f"{counted(len(gaps), 'gap')}; too long to be carried: {', '.join(long) or 'none'}")
        parts += [Text(), Text("\n".join(lines))]
    return Group(*parts)


def view_summary(view: AsOf, instrument: str | None = None) -> RenderableType:
    """Summarise the data known at the view's time: last closes, macro series with their states, and the newest news."""
    names = [listing.id for listing in view.instruments]
    if instrument is not None and instrument not in names:
        raise UnknownNameError("instrument", instrument, names)
    parts: list[RenderableType] = [
        Text(f"As of {view.t.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC, knowing nothing later", style="bold")
    ]
    chosen = [quote for quote in quotes(view) if instrument in (None, quote.listing.id)]
    # Last closes, a few of each class. A text from a source is printed as it is: square brackets in it are no markup.
    closes = Table(box=None, pad_edge=False)
    closes.add_column("Last closes", overflow="fold")
    for title in ("close", "of day", "1 day", "20 days", "60 days"):
        closes.add_column(title, justify="right")
    closes.add_column("60 days")
    for name, group in groupby(chosen, key=lambda quote: quote.listing.asset_class):
        members = list(group)
        for member in members if instrument is not None else members[:_A_CLASS]:
            changes = [
                Text("none", style="dim") if value is None else
                Text(f"{MINUS if value < 0 else '+'}{100 * abs(value):.1f} %", style="red" if value < 0 else "green")
                for value in member.changes
            ]  # fmt: skip
            close = f"{member.close:,.2f}" if abs(member.close) >= 1 else f"{member.close:.4g}"
            closes.add_row(Text(clean(member.listing.id, 24)), close, str(member.day), *changes,
                           sparkline(member.path, 14))  # fmt: skip
        if instrument is None and len(members) > _A_CLASS:
            more = f"  and {len(members) - _A_CLASS} more of {CLASS_NAMES[name].replace('_', ' ')}"
            closes.add_row(Text(more, style="dim"), *[""] * 6)
    parts += [Text(), closes] if chosen else [Text("No close was known.")]
    if instrument is not None:
        filed, filings = view.fundamentals(instrument), Table(box=None, pad_edge=False)  # the newest filed values
        for title in ("Filed", "for", "value", "unit", "known since"):
            filings.add_column(title, justify="right" if title == "value" else "left")
        for filing in filed[-8:]:
            filings.add_row(Text(clean(filing.field, 40)), Text(clean(filing.period, 20)), f"{filing.value:,.4g}",
                            Text(clean(filing.unit, 20)), _minute(filing.filed_at))  # fmt: skip
        parts += [Text(), filings if filed else Text("Nothing had been filed.")]
    elif readings := view.all_macro():
        # Macro series with their readings, or why they have none.
        table = Table(box=None, pad_edge=False)
        table.add_column("Macro series")
        table.add_column("reads", justify="right")
        for title in ("unit", "for", "out since", "state"):
            table.add_column(title, overflow="fold")
        for read in sorted(readings, key=lambda reading: reading.id):
            value = "" if read.value is None else f"{read.value:,.2f}".replace("-", MINUS)
            out = "" if read.released is None else _minute(datetime.fromtimestamp(read.released, UTC))
            state = Text(read.state, style="" if read.state == "ok" else "yellow")
            period = "" if read.period is None else str(read.period)
            table.add_row(Text(clean(read.id, 30)), value, Text(clean(read.unit, 20)), period, out, state)
        parts += [Text(), table]
    news = view.news(30, instrument)
    if news:
        parts += [Text(), Text(f"{counted(len(news), 'news item')} in the last 30 days, the newest first")]
        for item in reversed(news[-_ITEMS:]):  # time first
            line = Text(f"{_minute(item.published_at)}  ", style="dim")
            parts.append(Padding(line.append(clean(item.text, 400), style="default not dim"), (0, 0, 0, 2)))
    return Group(*parts)


def sparkline(values: np.ndarray, width: int = _WIDTH) -> str:
    """Return a path as blocks of eight heights, oldest first; a space where a value is missing.

    >>> sparkline(np.array([1.0, 2.0, np.nan, 8.0]))
    '▁▂ █'
    """
    places = np.unique(np.linspace(0, values.size - 1, min(width, values.size)).astype(int))
    chosen = values[places] if values.size else values
    finite = chosen[np.isfinite(chosen)]
    if not finite.size:
        return " " * chosen.size
    low, spread = finite.min(), float(np.ptp(finite)) or 1.0
    return "".join(_BARS[int((price - low) / spread * 7)] if np.isfinite(price) else " " for price in chosen)


def _minute(moment: datetime) -> str:
    """Format a time to the minute in UTC, rounded up: nothing may appear as known before it was."""
    at = moment.astimezone(UTC)
    minute = at.replace(second=0, microsecond=0)
    shown = minute if at == minute else minute + timedelta(minutes=1)
    return f"{shown:%Y-%m-%d %H:%M} UTC"


LISTED: Final = 40
"""Problems, and notes, that a check prints; the rest are counted."""

LOCAL: Final[Mapping[str, Sequence[str]]] = {"files": ("path", "licence", "currency", "class"), "synthetic": ("seed",)}
"""The sources that need no network, with the options that they take."""


def synth(folder: Path, seed: int) -> str:
    """Write the synthetic market of a seed into a folder; returns one line on its contents."""
    note("market", 0, 2)
    snapshot = market.synthetic_snapshot(seed)
    note("market", 1, 2)
    line = _write(folder, snapshot)
    note("market", 2, 2)
    return line


def pull(
    folder: Path, source: str, symbols: Sequence[str] = (), start: str | None = None, end: str | None = None,
    *, options: Sequence[str] = (), now: datetime, environment: Mapping[str, str],
) -> str:  # fmt: skip
    """Fetch a snapshot into a folder; returns one line on its contents. Days are ISO dates, options KEY=VALUE."""
    fields: dict[str, str] = {}
    for number, pair in enumerate(options, start=1):
        name, sign, value = (part.strip() for part in pair.partition("="))
        # No message repeats a value, because it may be the key of a service.
        if not sign or not name:
            raise InputError("--option", [f"number {number} must be KEY=VALUE"])
        if name in fields:
            raise InputError("--option", [f"{name} is given more than once"])
        fields[name] = value
    first, last = _parse_day("--start", start), _parse_day("--end", end)
    if source in LOCAL:
        # A snapshot from this machine.
        accepted, synthetic = LOCAL[source], source == "synthetic"
        unknown = f"is unknown; {source} takes {', '.join(accepted)}"
        problems = [Problem(f"option {name}", unknown) for name in fields if name not in accepted]
        if source == "files" and "path" not in fields:
            problems.append(Problem("option path", "is needed: --option path=FILE, a CSV or Parquet file"))
        if synthetic and (symbols or first or last):
            problems.append(Problem("", "the synthetic market comes whole; --symbol, --start and --end are for others"))
        if problems:
            raise InputError(f"source {source}", problems)
        if synthetic:
            seed = fields.get("seed", "0")
            if not seed.isascii() or not seed.isdigit():
                raise InputError("option seed", [f"must be a whole number, 0 or more (got {seed!r})"])
            local = market.synthetic_snapshot(int(seed))
        else:
            kind = fields.get("class", "EQ")
            if kind not in CLASSES:
                raise UnknownNameError("class", kind, CLASSES)
            local = market.snapshot_from_file(
                Path(fields["path"]), now, licence=fields.get("licence", "not stated"),
                currency=fields.get("currency", ""), asset_class=kind, symbols=symbols, start=first, end=last,
            )  # fmt: skip
        return _write(folder, local)
    # Imported here, because only fetching needs the networked sources, and their package takes time to load.
    from assaymark.market import sources

    if source not in sources.SOURCES:
        raise UnknownNameError("source", source, [*LOCAL, *sources.SOURCES])
    fetcher = sources.SOURCES[source]
    if fetcher.key_option and fetcher.key_variable and environment.get(fetcher.key_variable):
        fields.setdefault(fetcher.key_option, environment[fetcher.key_variable])
    request = sources.Request(symbols=tuple(symbols), start=first, end=last, options=fields)
    return _write(folder, sources.pull(source, request, now=now, progress=watching()))


def show(folder: Path, at: str | None = None, instrument: str | None = None) -> RenderableType:
    """Summarise the snapshot of a folder or, with ``at``, the data known at that time."""
    moment = None if at is None else parse_moment(at)
    manifest, history = _manifest(folder), market.open_history(folder)
    if moment is None:
        return store_summary(manifest, history, instrument)
    # Without the summary of the store, which knows what came later.
    return Group(origin_summary(manifest), Text(), view_summary(history.as_of(moment), instrument))


def facts(folder: Path, at: str | None = None, instrument: str | None = None) -> dict[str, object]:
    """Return the contents of `show` as JSON: the instruments of a folder or, with ``at``, closes and macro readings."""
    moment = None if at is None else parse_moment(at)
    manifest, history = _manifest(folder), market.open_history(folder)
    listings = history.listings if moment is None else history.as_of(moment).instruments
    names = [listing.id for listing in listings]
    if instrument is not None and instrument not in names:
        raise UnknownNameError("instrument", instrument, names)
    selected = [listing for listing in listings if instrument in (None, listing.id)]
    if moment is None:
        return {"snapshot": manifest, "instruments": [_listing(listing) for listing in selected]}
    view = history.as_of(moment)
    closes = {quote.listing.id: {"close": quote.close, "day": str(quote.day)} for quote in quotes(view)}
    return {
        "snapshot": manifest.id,
        "as_of": moment,
        "instruments": [_listing(listing) | closes.get(listing.id, {}) for listing in selected],
        "macro": [
            {"id": reading.id, "unit": reading.unit, "state": reading.state, "value": reading.value}
            for reading in ([] if instrument is not None else view.all_macro())
        ],
    }


def _listing(one: Listing) -> dict[str, object]:
    ended = None if one.delisted is None else one.delisted.isoformat()
    return {"id": one.id, "class": one.asset_class, "name": one.name, "listed": one.listed.isoformat(), "ended": ended}


def check(folder: Path) -> CommandResult[QualityReport]:
    """Check the snapshot of a folder: digests, tables, then every check of `assaymark.market.open`.

    The lines list at most `LISTED` problems and as many notes.
    """
    manifest = _manifest(folder)
    quality = condition(market.open_history(folder, cache=False))
    lines = []
    for kind, items in (("problem", quality.problems), ("note", quality.notes)):
        lines += [f"{kind}: {item}" for item in items[:LISTED]]
        if len(items) > LISTED:
            lines.append(f"and {len(items) - LISTED} more {kind}s")
    lines.append(f"{manifest.id}: {len(quality.problems)} problems, {len(quality.notes)} notes")
    return CommandResult(quality, tuple(lines))


def _manifest(folder: Path) -> market.Manifest:
    if not folder.exists():
        raise missing(folder, "folder of a market snapshot", "make one with: assaymark data synth --out FOLDER")
    return market.read_manifest(folder)


def parse_moment(text: str) -> datetime:
    """Parse a time from the command line; a day means its last second, UTC."""
    try:
        if len(text) == len("2024-03-01"):
            return datetime.combine(date.fromisoformat(text), time(23, 59, 59), UTC)
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise InputError("--at", [f"must be a day or a time such as 2024-03-01T21:00:00Z (got {text!r})"]) from None
    if parsed.tzinfo is None:
        raise InputError("--at", [f"a time needs a zone, such as {text}Z or {text}-05:00 (got {text!r})"])
    return parsed


def _parse_day(option: str, text: str | None) -> date | None:
    """Parse a day from an option."""
    try:
        return None if text is None else date.fromisoformat(text)
    except ValueError:
        raise InputError(option, [f"must be a day such as 2024-03-01 (got {text!r})"]) from None


def _write(folder: Path, snapshot: market.Snapshot) -> str:
    """Write a snapshot, and return one line on its contents."""
    market.write_snapshot(folder, snapshot)
    nouns = {"bars": "bars", "instruments": "instruments", "macro": "macro values", "news": "news items",
             "fundamentals": "filed values"}  # fmt: skip
    parts = [f"{snapshot.tables[name].num_rows:,} {noun}" for name, noun in nouns.items()]
    acted = snapshot.tables["actions"].num_rows
    parts += [f"{acted:,} splits and dividends"] if acted else []
    return f"{snapshot.id} in {folder}: {', '.join(parts)}"
