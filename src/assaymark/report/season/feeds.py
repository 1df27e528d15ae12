"""What a season hands on: feeds, a calendar, its verdicts as JSON, its tables as CSV, and what it claimed before.

None of it holds more than the pages: of an unsupported claim only what it is about, of an agent that shares its tier
the range of its judges.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any, Final
from xml.sax.saxutils import escape

from assaymark import __version__
from assaymark.encoding import content_id
from assaymark.report.blocks import Inline, Linked, Page, Table, notes
from assaymark.report.charts.canvas import csv_text
from assaymark.report.levels import LEVELS
from assaymark.report.season.decisions import order_count, trades_words
from assaymark.report.season.edition import Edition
from assaymark.report.season.index import ModelWords, SeasonLookup
from assaymark.report.season.inputs import SeasonRun
from assaymark.report.season.levels import reasons_of, said_claim, withheld_text
from assaymark.report.season.words import Words
from assaymark.text import clean

RSS: Final = "feed.xml"
JSON_FEED: Final = "feed.json"
CALENDAR: Final = "calendar.ics"
VERDICTS: Final = "verdicts.json"
STANDINGS: Final = "standings.csv"
DECISIONS: Final = "decisions.csv"
ARCHIVE: Final = "archive.html"
FORMAT: Final = "assaymark season verdicts 1"
_DAYS: Final = 30


def handed_on(edition: Edition) -> Iterator[tuple[str, str]]:
    """Every file beside the pages of a language, as path and text."""
    book, words = edition.book, ModelWords(edition.words.catalogue)
    entries = tuple(_entries(book, words))
    yield RSS, _rss(edition, entries)
    yield JSON_FEED, _json_feed(edition, entries)
    yield VERDICTS, json.dumps(verdicts_of(book, words), indent=1) + "\n"
    yield STANDINGS, _standings(book)
    yield DECISIONS, _decisions(book)
    if book.run.next_decision:
        yield CALENDAR, _calendar(book.run, words)
    yield ARCHIVE, edition.page(_archive(edition))
    if not edition.folder:
        for at, one in enumerate(book.run.publications):
            yield _file(at, one), json.dumps(one, indent=1) + "\n"


def _file(at: int, one: Mapping[str, Any]) -> str:
    return f"archive/{at + 1:03d}-{clean(str(one['day']), 10)}.json"


# --- verdicts and tables ----------------------------------------------------------------------------------------------


def verdicts_of(book: SeasonLookup, words: Words) -> dict[str, Any]:
    """What is claimed, in the words of the pages: of an unsupported claim what it is about, its agents by name."""
    run, found = book.run, []
    for one in run.decided.verdicts:
        level, subjects = one.verdict.publication_level, sorted(one.verdict.claim.subjects)
        line: dict[str, Any] = {"about": f"{one.kind}: {', '.join(subjects)}", "level": level}
        if level == "no-claim":
            line["not_supported"] = withheld_text(one, words)
        else:
            claim = said_claim(book, one, words)
            line |= {"sentence": claim.quote, "condition": claim.condition}
        found.append({**line, "reasons": [words.text(reason) for reason in reasons_of(book, one)]})
    found.sort(key=lambda line: (LEVELS.index(line["level"]), line["about"]))
    return {
        "format": FORMAT, "season": run.name, "title": clean(run.title or run.name, 120), "plan_hash": run.plan_hash,
        "software": f"assaymark {__version__}", "day": run.last, "days": run.days,
        "tally": {level: sum(line["level"] == level for line in found) for level in LEVELS},
        "tiers": [sorted(tier) for tier in run.decided.tiers],
        "verdicts": found,
    }  # fmt: skip


def _standings(book: SeasonLookup) -> str:
    rows: list[tuple[str | float, ...]] = []
    for name, agent in book.agents.items():
        place, row = book.run.decided.place(name), book.rows.get(name)
        tier = next((at for at, tier in enumerate(book.run.decided.tiers, 1) if name in tier), None)
        total = row.total if row is not None and place.shown else None
        spread = book.judged(name, "season.total") if row is not None and row.total is not None else None
        values = (
            place.first, place.last, tier, total, *(spread or (None, None)),
            book.value("season.return", agent=name), book.value("season.drawdown", agent=name),
        )  # fmt: skip
        numbers = ("" if value is None else float(value) for value in values)
        rows.append((name, agent.family, agent.model, place.level, *numbers))
    heads = ("agent", "maker", "model", "level", "rank_first", "rank_last", "tier", "total", "judges_low",
             "judges_high", "return", "max_drawdown")  # fmt: skip
    return csv_text(heads, rows)


def _decisions(book: SeasonLookup) -> str:
    rows = [
        (
            step.day, name, float(step.number), "" if step.nav is None else step.nav,
            "" if step.cash is None else step.cash, float(order_count(step)), "; ".join(step.orders),
            float(sum(fill.kind == "order" for fill in step.fills)), float(len(step.refusals)),
            sum(fill.cost for fill in step.fills if fill.kind == "order"), "; ".join(step.flags),
            "; ".join(step.mismatches), " ".join(text for _, text in step.texts),
        )
        for name in book.agents
        for step in book.run.steps.get(name, ())
    ]  # fmt: skip
    heads = ("day", "agent", "decision", "value", "cash", "orders", "order_texts", "fills", "rejected", "cost",
             "flags", "does_not_reconcile", "reason")  # fmt: skip
    return csv_text(heads, rows)


# --- feeds ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Entry:
    """An entry of a feed: a day of decisions, or verdicts that changed."""

    key: str
    title: str
    text: str
    day: str
    href: str
    tag: str


def _entries(book: SeasonLookup, words: ModelWords) -> Iterator[_Entry]:
    """The last days and every change of the verdicts, newest first."""
    run = book.run
    now = verdicts_of(book, words)
    found = [
        _verdict_entry(one, before, now, words)
        for one, before in _changes(run, now)
        if before is None or _changed(one, before, now, words)
    ]
    days: dict[str, list[str]] = {}
    for name in book.agents:
        for step in run.steps.get(name, ()):
            days.setdefault(step.day, []).append(f"{clean(name, 60)}: {trades_words(words, step)}")
    for day in sorted(days)[-_DAYS:]:
        title = words.say("feeds.day", day=words.day(day))
        found.append(_Entry(f"day/{day}", title, "\n".join(days[day]), day, "index.html#now", "decisions"))
    yield from sorted(found, key=lambda one: (one.day, one.tag), reverse=True)


def _changes(run: SeasonRun, now: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any] | None]]:
    """Every publication with the one before it; the verdicts of now where none is recorded."""
    known = run.publications or (now,)
    yield from zip(known, (None, *known), strict=False)


def _levels(one: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {str(line["about"]): line for line in one["verdicts"]}


def _changed(
    one: Mapping[str, Any], before: Mapping[str, Any] | None, now: Mapping[str, Any], words: ModelWords
) -> list[str]:
    """What was claimed and not before, and what no longer; a sentence only while it is supported ``now``."""
    old, latest = {} if before is None else _levels(before), _levels(now)
    found = []
    for key, line in _levels(one).items():
        was = old[key]["level"] if key in old else "no-claim"
        if line["level"] == was:
            continue
        shown = latest.get(key, {})
        if line["level"] == "no-claim" or "sentence" not in shown:
            known = shown if "not_supported" in shown else line
            what = clean(str(known.get("not_supported", key)), 400)
            found.append(words.say("feeds.gone" if line["level"] == "no-claim" else "feeds.then", claim=what))
        else:
            condition = f" {words('frame.say_also')} {shown['condition']}" if shown["condition"] else ""
            found.append(clean(f"{words.quoted(str(shown['sentence']))}{condition}", 900))
    return found


def _tally(one: Mapping[str, Any], words: Words) -> str:
    return ", ".join(f"{words.count(one['tally'][level])} {words(f'level.{level}.tally')}" for level in LEVELS)


def _verdict_entry(
    one: Mapping[str, Any], before: Mapping[str, Any] | None, now: Mapping[str, Any], words: ModelWords
) -> _Entry:
    title = words.say("feeds.verdicts", day=words.day(str(one["day"])), tally=_tally(one, words))
    text = "\n".join(_changed(one, before, now, words)) or words.say("feeds.unchanged")
    key = content_id([one["day"], one["tally"], text])[:12]
    return _Entry(f"verdicts/{key}", title, text, str(one["day"]), "claims.html", "verdicts")


def _moment(run: SeasonRun, day: str) -> datetime:
    """When a day was decided on; a day that is no date counts as the epoch."""
    hour = run.decided_at[10:] if len(run.decided_at) > 10 else "T00:00:00+00:00"
    try:
        return datetime.fromisoformat(f"{day[:10]}{hour}").astimezone(UTC)
    except ValueError:
        return datetime.fromtimestamp(0, UTC)


def _address(edition: Edition, path: str = "") -> str:
    """The address of a page where that of the site is known; else a name that is no address."""
    run = edition.book.run
    return f"{run.url.rstrip('/')}/{edition.folder}{path}" if run.url else ""


def _title(edition: Edition) -> str:
    return edition.frame.study or clean(edition.book.run.name, 120)


def _rss(edition: Edition, entries: tuple[_Entry, ...]) -> str:
    run, name = edition.book.run, f"urn:assaymark:{edition.book.run.plan_hash}"
    items = []
    for one in entries:
        link = f"<link>{escape(_address(edition, one.href))}</link>" if run.url else ""
        items.append(
            f"<item><title>{escape(one.title)}</title>{link}<description>{escape(one.text)}</description>"
            f'<category>{one.tag}</category><guid isPermaLink="false">{escape(f"{name}:{one.key}")}</guid>'
            f"<pubDate>{format_datetime(_moment(run, one.day))}</pubDate></item>\n"
        )
    own = _address(edition, RSS)
    self_link = f'<atom:link href="{escape(own)}" rel="self" type="application/rss+xml"/>' if own else ""
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel>'
        f"<title>{escape(_title(edition))}</title><link>{escape(_address(edition) or name)}</link>"
        f"<description>{escape(edition.words('feeds.about'))}</description>"
        f"<language>{edition.words.catalogue.language}</language>{self_link}\n{''.join(items)}</channel></rss>\n"
    )


def _json_feed(edition: Edition, entries: tuple[_Entry, ...]) -> str:
    run, words = edition.book.run, edition.words
    where = {"home_page_url": _address(edition, "index.html"), "feed_url": _address(edition, JSON_FEED)}
    items = [
        {
            "id": f"urn:assaymark:{run.plan_hash}:{one.key}", "title": one.title, "content_text": one.text,
            "date_published": _moment(run, one.day).isoformat(), "tags": [one.tag],
            **({"url": _address(edition, one.href)} if run.url else {}),
        }
        for one in entries
    ]  # fmt: skip
    feed = {
        "version": "https://jsonfeed.org/version/1.1", "title": _title(edition), "description": words("feeds.about"),
        "language": words.catalogue.language, **(where if run.url else {}), "items": items,
    }  # fmt: skip
    return json.dumps(feed, indent=1) + "\n"


def _calendar(run: SeasonRun, words: ModelWords) -> str:
    """The decisions that are still to come, as one event that repeats on weekdays."""

    def at(text: str) -> str:
        return datetime.fromisoformat(text).astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")

    until = at(f"{run.closes}{run.next_decision[10:]}")
    title = words.say("feeds.event", season=clean(run.title or run.name, 60))
    lines = (
        "BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//assaymark//season//EN", "BEGIN:VEVENT",
        f"UID:{run.plan_hash[:32]}@assaymark", f"DTSTAMP:{at(run.decided_at)}", f"DTSTART:{at(run.next_decision)}",
        f"RRULE:FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;UNTIL={until}",
        "SUMMARY:" + "".join(f"\\{c}" if c in "\\;," else c for c in title), "END:VEVENT", "END:VCALENDAR",
    )  # fmt: skip
    return "\r\n".join((*lines, ""))


# --- what was published before ----------------------------------------------------------------------------------------


def _archive(edition: Edition) -> Page:
    """Every publication with its tally, what changed, and its verdicts as a file; newest first."""
    book, words = edition.book, ModelWords(edition.words.catalogue)
    run, rows = book.run, list[tuple[Inline, ...]]()
    now = verdicts_of(book, words)
    for at, (one, before) in enumerate(_changes(run, now)):
        counts = tuple(words.count(one["tally"][level]) for level in LEVELS)
        file = edition.to_root + _file(at, one) if run.publications else VERDICTS
        changed = " ".join(_changed(one, before, now, words)) if before else words.say("archive.first")
        what = changed or words.say("feeds.unchanged")
        rows.append((words.day(str(one["day"])), words.count(int(one["days"])), *counts, what, Linked("JSON", file)))
    heads = (
        words.say("archive.day"), words.say("archive.days"), *(words(f"level.{level}.tally") for level in LEVELS),
        words.say("archive.changed"), words.say("archive.file"),
    )  # fmt: skip
    table = Table(heads, tuple(rows[::-1]), frozenset((1, 2, 3, 4)), "", stacked=True)
    other = Linked(words.say("archive.others"), edition.frame.site.home) if edition.frame.site.runs else ""
    return Page(
        ARCHIVE, words.say("archive.title"), words.say("archive.lede"), blocks=(table, *notes((other,))), here="archive"
    )
