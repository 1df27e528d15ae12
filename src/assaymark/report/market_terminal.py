"""A market store for a terminal: what it holds, and what could be known from it at one time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Final

import numpy as np
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from assaymark.errors import UnknownNameError
from assaymark.market.history import AsOf, History
from assaymark.market.instruments import CLASS_NAMES, GAP_LIMIT
from assaymark.market.open import class_overviews, gaps_of, quotes
from assaymark.market.snapshot import Manifest
from assaymark.report.text import counted
from assaymark.text import MINUS, clean, count

_BARS: Final = "▁▂▃▄▅▆▇█"
_A_CLASS: Final = 4  # instruments of a class that are shown; one can be asked for by name
_ITEMS: Final = 6
_WIDTH: Final = 20


def origin_summary(manifest: Manifest) -> RenderableType:
    """Where a snapshot is from, what was asked for, what may be done with it, and the traps to know."""
    origin = manifest.origin
    text = Text()
    text.append(clean(manifest.id, 80), style="bold")
    text.append(f"\nfrom {clean(origin.source, 60)}, asked {_when(origin.retrieved_at)}")
    text.append(f"\nlicence: {clean(origin.licence, 200)}")
    asked = ", ".join(f"{name} {value}" for name, value in origin.query.items() if value not in (None, "", [], {}))
    if asked:
        text.append(f"\nasked for: {clean(asked, 300)}")
    for note in origin.notes:
        text.append(f"\nnote: {clean(note, 300)}", style="yellow")
    return text


def store_summary(manifest: Manifest, history: History, instrument: str | None = None) -> RenderableType:
    """Origin, licence and notes, then one row a class, then what else there is; with ``instrument``, its gaps."""
    parts: list[RenderableType] = [origin_summary(manifest)]
    if found := class_overviews(history):
        # One row a class.
        table = Table(box=None, pad_edge=False)
        table.add_column("Class")
        for title in ("number", "first day", "last day", "closes", "missing", "long gaps"):
            table.add_column(title, justify="right")
        table.add_column("index")
        for one in found:
            name = CLASS_NAMES[one.asset_class].replace("_", " ")
            numbers = (count(one.bars), count(one.missing), count(one.long_gaps))
            line = sparkline(np.log(np.where(one.index > 0, one.index, np.nan)), 16)
            table.add_row(name, str(one.instruments), str(one.first), str(one.last), *numbers, line)
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
        listing = next(one for one in history.listings if one.id == instrument)
        end = f"delisted {listing.delisted}" if listing.delisted else "not delisted"
        lines = [f"{clean(instrument, 40)}: {clean(listing.name, 80)}, listed {listing.listed}, {end}"]
        long = [f"{days} days from {first}" for first, days in gaps if days > GAP_LIMIT]
        lines.append(f"{counted(len(gaps), 'gap')}; too long to be carried: {', '.join(long) or 'none'}")
        parts += [Text(), Text("\n".join(lines))]
    return Group(*parts)


def view_summary(view: AsOf, instrument: str | None = None) -> RenderableType:
    """What could be known at the view's time: last closes, macro readings with their states, and the newest news."""
    known = [one.id for one in view.instruments]
    if instrument is not None and instrument not in known:
        raise UnknownNameError("instrument", instrument, known)
    parts: list[RenderableType] = [
        Text(f"As of {view.t.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC, knowing nothing later", style="bold")
    ]
    found = [quote for quote in quotes(view) if instrument in (None, quote.listing.id)]
    # Last closes, a few of each class. A text from a source is printed as it is: square brackets in it are no markup.
    closes = Table(box=None, pad_edge=False)
    closes.add_column("Last closes", overflow="fold")
    for title in ("close", "of day", "1 day", "20 days", "60 days"):
        closes.add_column(title, justify="right")
    closes.add_column("60 days")
    for name, group in groupby(found, key=lambda one: one.listing.asset_class):
        members = list(group)
        for member in members if instrument is not None else members[:_A_CLASS]:
            changes = [
                Text("none", style="dim") if value is None else
                Text(f"{MINUS if value < 0 else '+'}{100 * abs(value):.1f} %", style="red" if value < 0 else "green")
                for value in member.changes
            ]  # fmt: skip
            close = f"{member.close:,.2f}" if abs(member.close) >= 1 else f"{member.close:.4g}"
            closes.add_row(Text(clean(member.listing.id, 24)), close, str(member.day), *changes,
                           sparkline(member.path))  # fmt: skip
        if instrument is None and len(members) > _A_CLASS:
            more = f"  and {len(members) - _A_CLASS} more of {CLASS_NAMES[name].replace('_', ' ')}"
            closes.add_row(Text(more, style="dim"), *[""] * 6)
    parts += [Text(), closes] if found else [Text("No close was known.")]
    if instrument is not None:
        filed, filings = view.fundamentals(instrument), Table(box=None, pad_edge=False)  # the newest filed values
        for title in ("Filed", "for", "value", "unit", "known since"):
            filings.add_column(title, justify="right" if title == "value" else "left")
        for one in filed[-8:]:
            filings.add_row(Text(clean(one.field, 40)), Text(clean(one.period, 20)), f"{one.value:,.4g}",
                            Text(clean(one.unit, 20)), _when(one.filed_at))  # fmt: skip
        parts += [Text(), filings if filed else Text("Nothing had been filed.")]
    elif readings := view.all_macro():
        # Macro series with what they read, or why they read nothing.
        table = Table(box=None, pad_edge=False)
        table.add_column("Macro series")
        table.add_column("reads", justify="right")
        for title in ("unit", "for", "out since", "state"):
            table.add_column(title, overflow="fold")
        for read in sorted(readings, key=lambda reading: reading.id):
            value = "" if read.value is None else f"{read.value:,.2f}".replace("-", MINUS)
            out = "" if read.released is None else _when(datetime.fromtimestamp(read.released, UTC))
            state = Text(read.state, style="" if read.state == "ok" else "yellow")
            period = "" if read.period is None else str(read.period)
            table.add_row(Text(clean(read.id, 30)), value, Text(clean(read.unit, 20)), period, out, state)
        parts += [Text(), table]
    news = view.news(30, instrument)
    if news:
        parts += [Text(), Text(f"{counted(len(news), 'news item')} in the last 30 days, the newest first")]
        for item in reversed(news[-_ITEMS:]):  # its time first
            line = Text(f"{_when(item.published_at)}  ", style="dim")
            parts.append(Padding(line.append(clean(item.text, 400), style="default not dim"), (0, 0, 0, 2)))
    return Group(*parts)


def sparkline(values: np.ndarray, width: int = _WIDTH) -> str:
    """A path as blocks of eight heights, oldest first; a space where nothing is known.

    >>> sparkline(np.array([1.0, 2.0, np.nan, 8.0]))
    '▁▂ █'
    """
    places = np.unique(np.linspace(0, values.size - 1, min(width, values.size)).astype(int))
    chosen = values[places] if values.size else values
    known = chosen[np.isfinite(chosen)]
    if not known.size:
        return " " * chosen.size
    low, spread = known.min(), float(np.ptp(known)) or 1.0
    return "".join(_BARS[int((one - low) / spread * 7)] if np.isfinite(one) else " " for one in chosen)


def _when(moment: datetime) -> str:
    """A time to the minute, in UTC, rounded up: nothing is shown as known before it was."""
    at = moment.astimezone(UTC)
    whole = at.replace(second=0, microsecond=0)
    shown = whole if at == whole else whole + timedelta(minutes=1)
    return f"{shown:%Y-%m-%d %H:%M} UTC"
