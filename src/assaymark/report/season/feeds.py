"""What a season hands on: feeds, a calendar, verdicts as JSON, tables as CSV, a picture, what it claimed before."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from functools import cache
from html import escape as escape_html
from typing import Any, Final
from xml.sax.saxutils import escape

import svg

from assaymark import __version__
from assaymark.encoding import content_id
from assaymark.records import Level
from assaymark.report.blocks import Inline, Linked, Page, Table, notes
from assaymark.report.charts.canvas import Scale, csv_text, label, line, num, rect
from assaymark.report.levels import LEVELS
from assaymark.report.page import Site
from assaymark.report.season.decisions import order_count, trades_words
from assaymark.report.season.index import SeasonIndex, SeasonRun
from assaymark.report.season.leaderboard import judged_points
from assaymark.report.season.levels import reasons_of, said_claim, said_levels, tally, withheld_text
from assaymark.report.text import short_hash, text_width
from assaymark.text import clean

RSS: Final = "feed.xml"
JSON_FEED: Final = "feed.json"
CALENDAR: Final = "calendar.ics"
VERDICTS: Final = "verdicts.json"
STANDINGS: Final = "standings.csv"
DECISIONS: Final = "decisions.csv"
ARCHIVE: Final = "archive.html"
CARD: Final = "share.svg"
FORMAT: Final = "assaymark season verdicts 1"
_DAYS: Final = 30


def handed_on(book: SeasonIndex, folder: str, site: Site) -> Iterator[Page | tuple[str, str]]:
    """Every file beside the pages of a language, as path and text; ``folder`` is where these lie below the site."""
    run, now = book.run, verdicts_of(book)
    known = run.publications or (now,)
    changes = [
        (one, before, _changed(book, one, before, now)) for one, before in zip(known, (None, *known[:-1]), strict=True)
    ]
    entries = _entries(book, changes)
    yield RSS, _rss(book, folder, entries)
    yield JSON_FEED, _json_feed(book, folder, entries)
    yield VERDICTS, json.dumps(now, indent=1) + "\n"
    yield STANDINGS, _standings(book)
    yield DECISIONS, _decisions(book)
    if run.next_decision:
        yield CALENDAR, _calendar(book)
    yield _archive(book, changes, site)
    if not folder:
        for at, one in enumerate(run.publications):
            yield _file(at, one), json.dumps(one, indent=1) + "\n"


def _file(at: int, one: Mapping[str, Any]) -> str:
    return f"archive/{at + 1:03d}-{clean(str(one['day']), 10)}.json"


# --- verdicts and tables ----------------------------------------------------------------------------------------------


def verdicts_of(book: SeasonIndex) -> dict[str, Any]:
    """What is claimed, in the words of the pages: of an unsupported claim what it is about, its agents by name."""
    run, found = book.run, []
    for verdict in run.decided.verdicts:
        level, subjects = verdict.verdict.publication_level, sorted(verdict.verdict.claim.subjects)
        entry: dict[str, Any] = {"about": f"{verdict.kind}: {', '.join(subjects)}", "level": level}
        if level == "no-claim":
            entry["not_supported"] = withheld_text(verdict, book.words)
        else:
            claim = said_claim(book, verdict)
            entry |= {"sentence": claim.sentence, "condition": claim.condition}
        found.append({**entry, "reasons": [book.words.text(reason) for reason in reasons_of(book, verdict)]})
    found.sort(key=lambda one: (LEVELS.index(one["level"]), one["about"]))
    return {
        "format": FORMAT, "season": run.plan.name, "title": clean(run.plan.title or run.plan.name, 120),
        "plan_hash": run.plan_hash,
        "software": f"assaymark {__version__}", "day": run.last, "days": run.days,
        "tally": {level: sum(one["level"] == level for one in found) for level in LEVELS},
        "tiers": [sorted(tier) for tier in run.decided.tiers],
        "verdicts": found,
    }  # fmt: skip


def _standings(book: SeasonIndex) -> str:
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


def _decisions(book: SeasonIndex) -> str:
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

    day: str
    tag: str
    key: str
    title: str
    text: str
    href: str


Verdicts = Mapping[str, Any]
Changes = list[tuple[Verdicts, Verdicts | None, list[str]]]
"""Every publication with the one before it, and what changed; the verdicts of now where none is recorded."""


def _changed(book: SeasonIndex, one: Verdicts, before: Verdicts | None, now: Verdicts) -> list[str]:
    """What was claimed and not before, and what no longer; a sentence only while it is supported ``now``."""
    lines, old, latest = (
        {} if made is None else {str(entry["about"]): entry for entry in made["verdicts"]}
        for made in (one, before, now)
    )
    words, found = book.words, []
    for key, entry in lines.items():
        was = old[key]["level"] if key in old else "no-claim"
        if entry["level"] == was:
            continue
        shown = latest.get(key, {})
        if entry["level"] == "no-claim" or "sentence" not in shown:
            what = clean(str((shown if "not_supported" in shown else entry).get("not_supported", key)), 400)
            found.append(words.say("feeds.gone" if entry["level"] == "no-claim" else "feeds.then", claim=what))
        else:
            condition = f" {words('frame.say_also')} {shown['condition']}" if shown["condition"] else ""
            found.append(clean(f"{words.quoted(str(shown['sentence']))}{condition}", 900))
    return found


def _entries(book: SeasonIndex, changes: Changes) -> list[_Entry]:
    """The last days and every change of the verdicts, newest first."""
    words, found, days = book.words, list[_Entry](), dict[str, list[str]]()
    for one, before, changed in changes:
        if before is None or changed:
            levels = (f"{words.amount(one['tally'][level])} {words(f'level.{level}.tally')}" for level in LEVELS)
            title = words.say("feeds.verdicts", day=words.day(str(one["day"])), tally=", ".join(levels))
            text = "\n".join(changed) or words.say("feeds.unchanged")
            key = f"verdicts/{content_id([one['day'], one['tally'], text])[:12]}"
            found.append(_Entry(str(one["day"]), "verdicts", key, title, text, "claims.html"))
    for name in book.agents:
        for step in book.run.steps.get(name, ()):
            days.setdefault(step.day, []).append(f"{clean(name, 60)}: {trades_words(words, step)}")
    for day in sorted(days)[-_DAYS:]:
        title = words.say("feeds.day", day=words.day(day))
        found.append(_Entry(day, "decisions", f"day/{day}", title, "\n".join(days[day]), "index.html#now"))
    return sorted(found, key=lambda one: (one.day, one.tag), reverse=True)


def _moment(run: SeasonRun, day: str) -> datetime:
    """When a day was decided on; a day that is no date counts as the epoch."""
    hour = run.decided_at[10:] if len(run.decided_at) > 10 else "T00:00:00+00:00"
    try:
        return datetime.fromisoformat(f"{day[:10]}{hour}").astimezone(UTC)
    except ValueError:
        return datetime.fromtimestamp(0, UTC)


def _address(run: SeasonRun, folder: str, path: str = "") -> str:
    """The address of a page where that of the site is known; else nothing."""
    return f"{run.url.rstrip('/')}/{folder}{path}" if run.url else ""


def _rss(book: SeasonIndex, folder: str, entries: list[_Entry]) -> str:
    run, name, items = book.run, f"urn:assaymark:{book.run.plan_hash}", []
    for entry in entries:
        link = f"<link>{escape(_address(run, folder, entry.href))}</link>" if run.url else ""
        items.append(
            f"<item><title>{escape(entry.title)}</title>{link}<description>{escape(entry.text)}</description>"
            f'<category>{entry.tag}</category><guid isPermaLink="false">{escape(f"{name}:{entry.key}")}</guid>'
            f"<pubDate>{format_datetime(_moment(run, entry.day))}</pubDate></item>\n"
        )
    own = _address(run, folder, RSS)
    self_link = f'<atom:link href="{escape(own)}" rel="self" type="application/rss+xml"/>' if own else ""
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel>'
        f"<title>{escape(clean(run.plan.title or run.plan.name, 120))}</title>"
        f"<link>{escape(_address(run, folder) or name)}</link>"
        f"<description>{escape(book.words('feeds.about'))}</description>"
        f"<language>{book.words.catalogue.language}</language>{self_link}\n{''.join(items)}</channel></rss>\n"
    )


def _json_feed(book: SeasonIndex, folder: str, entries: list[_Entry]) -> str:
    run, words = book.run, book.words
    where = {"home_page_url": _address(run, folder, "index.html"), "feed_url": _address(run, folder, JSON_FEED)}
    items = [
        {
            "id": f"urn:assaymark:{run.plan_hash}:{entry.key}", "title": entry.title, "content_text": entry.text,
            "date_published": _moment(run, entry.day).isoformat(), "tags": [entry.tag],
            **({"url": _address(run, folder, entry.href)} if run.url else {}),
        }
        for entry in entries
    ]  # fmt: skip
    feed = {
        "version": "https://jsonfeed.org/version/1.1", "title": clean(run.plan.title or run.plan.name, 120),
        "description": words("feeds.about"), "language": words.catalogue.language, **(where if run.url else {}),
        "items": items,
    }  # fmt: skip
    return json.dumps(feed, indent=1) + "\n"


def _calendar(book: SeasonIndex) -> str:
    """The decisions that are still to come, as one event that repeats on weekdays."""
    run = book.run

    def at(text: str) -> str:
        return datetime.fromisoformat(text).astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")

    title = book.words.say("feeds.event", season=clean(run.plan.title or run.plan.name, 60))
    lines = (
        "BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//assaymark//season//EN", "BEGIN:VEVENT",
        f"UID:{run.plan_hash[:32]}@assaymark", f"DTSTAMP:{at(run.decided_at)}", f"DTSTART:{at(run.next_decision)}",
        f"RRULE:FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;UNTIL={at(f'{run.plan.calendar.last}{run.next_decision[10:]}')}",
        "SUMMARY:" + "".join(f"\\{c}" if c in "\\;," else c for c in title), "END:VEVENT", "END:VCALENDAR",
    )  # fmt: skip
    return "\r\n".join((*lines, ""))


def _archive(book: SeasonIndex, changes: Changes, site: Site) -> Page:
    """Every publication with its tally, what changed, and its verdicts as a file; newest first."""
    words, rows = book.words, list[tuple[Inline, ...]]()
    for at, (one, before, changed) in enumerate(changes):
        counts = tuple(words.amount(one["tally"][level]) for level in LEVELS)
        file = book.up + _file(at, one) if book.run.publications else VERDICTS
        what = (" ".join(changed) if before else words.say("archive.first")) or words.say("feeds.unchanged")
        rows.append((words.day(str(one["day"])), words.amount(int(one["days"])), *counts, what, Linked("JSON", file)))
    heads = (
        words.say("archive.day"), words.say("archive.days"), *(words(f"level.{level}.tally") for level in LEVELS),
        words.say("archive.changed"), words.say("archive.file"),
    )  # fmt: skip
    table = Table(heads, tuple(rows[::-1]), frozenset((1, 2, 3, 4)), "", stacked=True)
    other = Linked(words.say("archive.others"), site.home) if site.runs else ""
    title, lead = words.say("archive.title"), words.say("archive.lede")
    return Page(ARCHIVE, title, lead, blocks=(table, *notes((other,))), here="archive")


# --- the picture for a preview: a supported sentence with its condition, and the points of the judges by tier ---------
#
# It has no sentence that is not supported, and of agents that share a tier no more than their pages: dots by size.


_WIDTH, _HEIGHT, _LEFT, _RIGHT = 1200, 630, 68, 1108
_TOP, _BOTTOM, _MOST = 300, 560, 10
_SIZES: Final = ((40, 23), (34, 20), (28, 17), (22, 14), (18, 11), (14, 8), (10, 6))
_COLOURS: Final[dict[Level, str]] = {"headline": "#14508c", "qualified": "#8a5300", "no-claim": "#5b6570"}
_STYLE: Final = (
    "text{font-family:Inter,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;fill:#14181d}"
    ".ae{text-anchor:end}.am{text-anchor:middle}.b{font-weight:700}.s{fill:#434c56}"
    ".q{font-family:Charter,Cambria,Georgia,serif;font-weight:700}"
    ".grid{stroke:#d8dde3;stroke-width:1.5}.cut{stroke:#7f8a95;stroke-width:1.5;stroke-dasharray:2 4}"
)


def share_card(book: SeasonIndex) -> str:
    """The picture, 1200 by 630, as a drawing that stands alone."""
    run, words, room, judges = book.run, book.words, _RIGHT - _LEFT, book.graders
    claim = next((claim for level in said_levels(book) for claim in (*level.shown, *level.more)), None)
    title = clean(run.plan.title or run.plan.name, 80)
    parts: list[svg.Element] = [rect(0, 0, _WIDTH, _HEIGHT, "bg", "#fff"), rect(0, 0, _WIDTH, 10, "top", "#14181d")]
    parts += _text([f"assaymark · {title}"], 19, 72, "b s")
    if claim is None:  # nothing is supported: the counts
        parts += _text([words("card.nothing")], 40, 140, "b")
        parts += _text([", ".join(f"{n} {what}" for _, n, what in tally(book))], 22, 190, "s")
    else:  # the sentence and the whole of its condition, in the largest type in which both have room
        also = f"{words('frame.say_also')} {claim.condition}" if claim.condition else ""
        for large, size in _SIZES:
            top, below = wrapped(words.quoted(claim.sentence), large, room), wrapped(also, size, room) if also else []
            height = 1.3 * (large * len(top) + size * len(below))
            if height < _TOP - 112:
                break
        parts.append(rect(_LEFT - 24, 98, 8, height + 12, "m", _COLOURS[claim.level]))
        parts += _text(top, large, 100 + large, "q")
        parts += _text(below, size, 108 + large * (1.3 * len(top)) + size, "s")
    foot = words("card.foot", days=words("index.days", n=run.days, count=words.amount(run.days)),
                 judges=words("panel.count", n=judges, few=words.few(judges)), plan=short_hash(clean(run.plan_hash)),
                 day=words.day(run.last))  # fmt: skip
    parts += [*_tiers(book), *_text([foot], 17, 596, "s")]
    named = escape_html(title if claim is None else f"{title}: {claim.sentence}")
    return svg.SVG(
        viewBox=svg.ViewBoxSpec(0, 0, _WIDTH, _HEIGHT), width=_WIDTH, height=_HEIGHT,
        elements=[svg.Title(text=named), svg.Style(text=_STYLE), *parts], extra={"role": "img"},
    ).as_str()  # fmt: skip


def _tiers(book: SeasonIndex) -> Iterator[svg.Element]:
    """Agents tier by tier and by name, each with a line from its lowest to its highest judge."""
    tiers = [sorted(tier) for tier in book.run.decided.tiers]
    agents = [(name, at) for at, tier in enumerate(tiers) for name in tier if judged_points(book, name)]
    if not agents or len(agents) > _MOST:
        return
    scale, bands = Scale(0, 100, 272, _RIGHT), book.run.scoring.bands
    for mark in (0, bands.mixed, bands.strong, 100):
        yield line(scale(mark), _TOP, scale(mark), _BOTTOM - 22, "grid")
        yield from _text([str(mark)], 16, _BOTTOM, "s am", scale(mark))
    step = (_BOTTOM - 22 - _TOP) / len(agents)
    for at, (name, tier) in enumerate(agents):
        y, level = _TOP + step * (at + 0.5), book.run.decided.place(name).level
        yield from _text([clean(name, 18)], min(22.0, 0.7 * step), y + 7, "b")
        if at and tier != agents[at - 1][1]:
            yield line(_LEFT, y - step / 2, _RIGHT, y - step / 2, "cut")
        points, colour = [value for value, _ in judged_points(book, name)], _COLOURS[level]
        yield svg.Line(x1=num(scale(min(points))), y1=num(y), x2=num(scale(max(points))), y2=num(y),
                       stroke=colour, stroke_width=3)  # fmt: skip
        for value in points:
            yield svg.Circle(cx=num(scale(value)), cy=num(y), r=7, stroke=colour, stroke_width=2.5,
                             fill=colour if level == LEVELS[0] else "#fff")  # fmt: skip


def _text(lines: list[str], size: float, y: float, kind: str, x: float = _LEFT) -> Iterator[svg.Element]:
    for at, text in enumerate(lines):
        found = label(x, y + 1.3 * size * at, text, kind)
        found.font_size = size
        yield found


def wrapped(text: str, size: float, width: float) -> list[str]:
    """The lines of a text in a font of a size.

    >>> wrapped("one two three", 20, 80)
    ['one two', 'three']
    """
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and text_width(longer, size) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def preview(drawing: str) -> bytes:
    """A drawing as PNG, in the fonts of this machine."""
    import resvg_py  # by those alone who publish

    return resvg_py.svg_to_bytes(svg_string=drawing, background="#fff")


@cache
def preview_name() -> str:
    """The picture for previews: PNG, since few sites show drawings; the drawing where no font is installed."""
    none, *letters = (
        preview(f'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9">{one}</svg>')
        for one in ("", *(f'<text y="9" font-family="{font}">a</text>' for font in ("serif", "sans-serif")))
    )
    return CARD if none in letters else "share.png"
