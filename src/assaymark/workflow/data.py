"""`assaymark data`: market snapshots made, fetched, shown and checked. A folder holds one snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from assaymark import market
from assaymark.errors import InputError, Problem, UnknownNameError
from assaymark.market.instruments import CLASSES, Listing
from assaymark.market.open import Condition, condition, quotes
from assaymark.notebook import Told
from assaymark.report.market_terminal import origin_summary, store_summary, view_summary
from assaymark.workflow.progress import note, watching
from assaymark.workflow.run_folder import missing

LISTED: Final = 40
"""Problems, and notes, that a check prints; the rest is counted."""

LOCAL: Final[Mapping[str, Sequence[str]]] = {"files": ("path", "licence", "currency", "class"), "synthetic": ("seed",)}
"""The sources that ask nobody, with the options they take."""


@dataclass(frozen=True, slots=True, repr=False)
class Checked(Told):
    """What a check found, whole and as lines to print, of which there are fewer."""

    found: Condition
    lines: tuple[str, ...]


def synth(folder: Path, seed: int) -> str:
    """Write the embedded market of a seed into a folder, and say in one line what is there now."""
    note("market", 0, 2)
    snapshot = market.synthetic_snapshot(seed)
    note("market", 1, 2)
    line = _written(folder, snapshot)
    note("market", 2, 2)
    return line


def pull(
    folder: Path, source: str, symbols: Sequence[str] = (), start: str | None = None, end: str | None = None,
    *, options: Sequence[str] = (), now: datetime, environment: Mapping[str, str],
) -> str:  # fmt: skip
    """Fetch a snapshot into a folder, and say in one line what is there now: days in ISO form, options as KEY=VALUE."""
    given: dict[str, str] = {}
    for number, pair in enumerate(options, start=1):
        name, sign, value = (part.strip() for part in pair.partition("="))
        # A value is never repeated in a message, because it may be a key to a service.
        if not sign or not name:
            raise InputError("--option", [f"number {number} must be KEY=VALUE"])
        if name in given:
            raise InputError("--option", [f"{name} is given more than once"])
        given[name] = value
    first, last = _day("--start", start), _day("--end", end)
    if source in LOCAL:
        # A snapshot from this machine.
        known, synthetic = LOCAL[source], source == "synthetic"
        unknown = f"is unknown; {source} takes {', '.join(known)}"
        problems = [Problem(f"option {name}", unknown) for name in given if name not in known]
        if source == "files" and "path" not in given:
            problems.append(Problem("option path", "is needed: --option path=FILE, a CSV or Parquet file"))
        if synthetic and (symbols or first or last):
            problems.append(Problem("", "the synthetic market comes whole; --symbol, --start and --end are for others"))
        if problems:
            raise InputError(f"source {source}", problems)
        if synthetic:
            seed = given.get("seed", "0")
            if not seed.isascii() or not seed.isdigit():
                raise InputError("option seed", [f"must be a whole number, 0 or more (got {seed!r})"])
            local = market.synthetic_snapshot(int(seed))
        else:
            kind = given.get("class", "EQ")
            if kind not in CLASSES:
                raise UnknownNameError("class", kind, CLASSES)
            local = market.snapshot_from_file(
                Path(given["path"]), now, licence=given.get("licence", "not stated"),
                currency=given.get("currency", ""), asset_class=kind, symbols=symbols, start=first, end=last,
            )  # fmt: skip
        return _written(folder, local)
    # Here, because the networked sources are needed by nothing else and their package takes time to load.
    from assaymark.market import sources

    if source not in sources.SOURCES:
        raise UnknownNameError("source", source, [*LOCAL, *sources.SOURCES])
    asked = sources.SOURCES[source]
    if asked.key_option and asked.key_variable and environment.get(asked.key_variable):
        given.setdefault(asked.key_option, environment[asked.key_variable])
    request = sources.Request(symbols=tuple(symbols), start=first, end=last, options=given)
    return _written(folder, sources.pull(source, request, now=now, progress=watching()))


def show(folder: Path, at: str | None = None, instrument: str | None = None) -> RenderableType:
    """What a folder holds or, with ``at``, what could be known from it at that time."""
    moment = None if at is None else parse_moment(at)
    manifest, history = _manifest(folder), market.open_history(folder)
    if moment is None:
        return store_summary(manifest, history, instrument)
    # Without the summary of the store, which knows what came later.
    return Group(origin_summary(manifest), Text(), view_summary(history.as_of(moment), instrument))


def facts(folder: Path, at: str | None = None, instrument: str | None = None) -> dict[str, object]:
    """The same as `show`, for a program: what the folder is and its instruments, or with ``at`` closes and readings."""
    moment = None if at is None else parse_moment(at)
    manifest, history = _manifest(folder), market.open_history(folder)
    listings = history.listings if moment is None else history.as_of(moment).instruments
    known = [listing.id for listing in listings]
    if instrument is not None and instrument not in known:
        raise UnknownNameError("instrument", instrument, known)
    wanted = [listing for listing in listings if instrument in (None, listing.id)]
    if moment is None:
        return {"snapshot": manifest, "instruments": [_listing(one) for one in wanted]}
    view = history.as_of(moment)
    closes = {quote.listing.id: {"close": quote.close, "day": str(quote.day)} for quote in quotes(view)}
    return {
        "snapshot": manifest.id,
        "as_of": moment,
        "instruments": [_listing(one) | closes.get(one.id, {}) for one in wanted],
        "macro": [
            {"id": one.id, "unit": one.unit, "state": one.state, "value": one.value}
            for one in ([] if instrument is not None else view.all_macro())
        ],
    }


def _listing(one: Listing) -> dict[str, object]:
    ended = None if one.delisted is None else one.delisted.isoformat()
    return {"id": one.id, "class": one.asset_class, "name": one.name, "listed": one.listed.isoformat(), "ended": ended}


def check(folder: Path) -> Checked:
    """Look a folder's snapshot over: digests, tables, then everything that `assaymark.market.open` names."""
    manifest = _manifest(folder)
    found = condition(market.open_history(folder, cache=False))
    lines = []
    for kind, items in (("problem", found.problems), ("note", found.notes)):
        lines += [f"{kind}: {item}" for item in items[:LISTED]]
        if len(items) > LISTED:
            lines.append(f"and {len(items) - LISTED} more {kind}s")
    return Checked(found, (*lines, f"{manifest.id}: {len(found.problems)} problems, {len(found.notes)} notes"))


def _manifest(folder: Path) -> market.Manifest:
    if not folder.exists():
        raise missing(folder, "folder of a market snapshot", "make one with: assaymark data synth --out FOLDER")
    return market.read_manifest(folder)


def parse_moment(text: str) -> datetime:
    """A time from the command line."""
    try:
        if len(text) == len("2024-03-01"):
            return datetime.combine(date.fromisoformat(text), time(23, 59, 59), UTC)
        found = datetime.fromisoformat(text)
    except ValueError:
        raise InputError("--at", [f"must be a day or a time such as 2024-03-01T21:00:00Z (got {text!r})"]) from None
    if found.tzinfo is None:
        raise InputError("--at", [f"a time needs a zone, such as {text}Z or {text}-05:00 (got {text!r})"])
    return found


def _day(option: str, text: str | None) -> date | None:
    """A day from an option."""
    try:
        return None if text is None else date.fromisoformat(text)
    except ValueError:
        raise InputError(option, [f"must be a day such as 2024-03-01 (got {text!r})"]) from None


def _written(folder: Path, snapshot: market.Snapshot) -> str:
    """Write a snapshot, and say what is in it."""
    market.write_snapshot(folder, snapshot)
    nouns = {"bars": "bars", "instruments": "instruments", "macro": "macro values", "news": "news items",
             "fundamentals": "filed values"}  # fmt: skip
    parts = [f"{snapshot.tables[name].num_rows:,} {noun}" for name, noun in nouns.items()]
    acted = snapshot.tables["actions"].num_rows
    parts += [f"{acted:,} splits and dividends"] if acted else []
    return f"{snapshot.id} in {folder}: {', '.join(parts)}"
