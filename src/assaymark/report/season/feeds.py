"""Files for other programs: feeds, a calendar, verdicts as JSON, tables as CSV, a picture, an archive."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import format_datetime
from functools import cache
from html import escape as escape_html
from typing import Any, Final
from xml.sax.saxutils import escape

from assaymark import __version__
from assaymark.records import Level, content_id
from assaymark.report.blocks import ClaimQuote, Inline, Linked, Page, Table, notes
from assaymark.report.charts.canvas import Element, Scale, csv_text, element, line, num, picture, rect
from assaymark.report.page import Site
from assaymark.report.season.decisions import order_count, order_texts, trades_words
from assaymark.report.season.index import SeasonIndex
from assaymark.report.season.leaderboard import judged_points
from assaymark.report.season.levels import reasons_of, season_levels, season_quote, season_subject, season_tally
from assaymark.report.text import LEVELS, short_hash, text_width
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


def feed_files(index: SeasonIndex, folder: str, site: Site) -> Iterator[Page | tuple[str, str]]:
    """Every file beside the pages of a language, as path and text; ``folder`` is the folder of these in the site."""
    run, words, now = index.run, index.words, verdict_records(index)
    editions = run.publications or (now,)
    # New claims and dropped ones; a sentence is quoted only if it is still supported.
    changes: list[tuple[Mapping[str, Any], Mapping[str, Any] | None, list[str]]] = []
    for edition, before in zip(editions, (None, *editions[:-1]), strict=True):
        lines, old, latest = (
            {} if version is None else {str(entry["about"]): entry for entry in version["verdicts"]}
            for version in (edition, before, now)
        )
        changed = list[str]()
        for key, entry in lines.items():
            shown, gone = latest.get(key, {}), entry["level"] == "no-claim"
            if entry["level"] == (old[key]["level"] if key in old else "no-claim"):
                continue
            if gone or "sentence" not in shown:
                subject = clean(str((shown if "not_supported" in shown else entry).get("not_supported", key)), 400)
                changed.append(words.say("feeds.gone" if gone else "feeds.then", claim=subject))
            else:
                condition = f" {words('frame.say_also')} {shown['condition']}" if shown["condition"] else ""
                changed.append(clean(f"{words.quoted(str(shown['sentence']))}{condition}", 900))
        changes.append((edition, before, changed))
    yield from _files(index, folder, changes)
    yield VERDICTS, json.dumps(now, indent=1) + "\n"
    if run.next_decision:  # future decisions, as one event that repeats on weekdays
        until = f"{run.plan.calendar.last}{run.next_decision[10:]}"
        stamp, first, last = (
            datetime.fromisoformat(text).astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
            for text in (run.decided_at, run.next_decision, until)
        )
        title = words.say("feeds.event", season=clean(run.plan.title or run.plan.name, 60))
        event = (
            "BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//assaymark//season//EN", "BEGIN:VEVENT",
            f"UID:{run.plan_hash[:32]}@assaymark", f"DTSTAMP:{stamp}", f"DTSTART:{first}",
            f"RRULE:FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;UNTIL={last}",
            "SUMMARY:" + "".join(f"\\{c}" if c in "\\;," else c for c in title), "END:VEVENT", "END:VCALENDAR",
        )  # fmt: skip
        yield CALENDAR, "\r\n".join((*event, ""))
    # Every publication with its tally, what changed, and its verdicts as a file; newest first.
    rows, files = list[tuple[Inline, ...]](), list[tuple[str, str]]()
    for at, (edition, before, changed) in enumerate(changes, 1):
        file = f"archive/{at:03d}-{clean(str(edition['day']), 10)}.json"
        files.append((file, json.dumps(edition, indent=1) + "\n"))
        counts = tuple(words.amount(edition["tally"][level]) for level in LEVELS)
        subject = (" ".join(changed) if before else words.say("archive.first")) or words.say("feeds.unchanged")
        link = Linked("JSON", index.up + file if run.publications else VERDICTS)
        rows.append((words.day(str(edition["day"])), words.amount(int(edition["days"])), *counts, subject, link))
    columns = (
        words.say("archive.day"), words.say("archive.days"), *(words(f"level.{level}.tally") for level in LEVELS),
        words.say("archive.changed"), words.say("archive.file"),
    )  # fmt: skip
    table = Table(columns, tuple(rows[::-1]), frozenset((1, 2, 3, 4)), "", stacked=True)
    other = Linked(words.say("archive.others"), site.home) if site.runs else ""
    title, lead = words.say("archive.title"), words.say("archive.lede")
    yield Page(ARCHIVE, title, lead, blocks=(table, *notes((other,))), here="archive")
    yield from files if run.publications and not folder else ()


def verdict_records(index: SeasonIndex) -> dict[str, Any]:
    """The verdicts in the words of the pages: for an unsupported claim its subject, with agents sorted by name."""
    run, entries = index.run, []
    for verdict in run.decided.verdicts:
        level, subjects = verdict.verdict.publication_level, sorted(verdict.verdict.claim.subjects)
        entry: dict[str, Any] = {"about": f"{verdict.kind}: {', '.join(subjects)}", "level": level}
        if level == "no-claim":
            entry["not_supported"] = season_subject(verdict, index.words)
        else:
            claim = season_quote(index, verdict)
            entry |= {"sentence": claim.sentence, "condition": claim.condition}
        entries.append({**entry, "reasons": [index.words.text(reason) for reason in reasons_of(index, verdict)]})
    entries.sort(key=lambda entry: (LEVELS.index(entry["level"]), entry["about"]))
    return {
        "format": FORMAT, "season": run.plan.name, "title": clean(run.plan.title or run.plan.name, 120),
        "plan_hash": run.plan_hash, "software": f"assaymark {__version__}", "day": run.last, "days": run.days,
        "tally": {level: sum(entry["level"] == level for entry in entries) for level in LEVELS},
        "tiers": [sorted(tier) for tier in run.decided.tiers], "verdicts": entries,
    }  # fmt: skip


def _files(
    index: SeasonIndex, folder: str, changes: Sequence[tuple[Mapping[str, Any], Mapping[str, Any] | None, list[str]]]
) -> Iterator[tuple[str, str]]:
    """Standings and decisions as CSV; the last days and every change of verdicts, newest first, as RSS and JSON."""
    run, words, rows, entries = index.run, index.words, list[tuple[str | float, ...]](), list[tuple[str, ...]]()
    steps = [(name, step) for name in index.agents for step in run.steps.get(name, ())]
    for name, agent in index.agents.items():
        place, row = index.run.decided.place(name), index.rows.get(name)
        tier = next((at for at, tier in enumerate(index.run.decided.tiers, 1) if name in tier), None)
        total = row.total if row is not None and place.shown else None
        spread = index.judged(name, "season.total") if row is not None and row.total is not None else None
        values = (
            place.first, place.last, tier, total, *(spread or (None, None)),
            index.value("season.return", agent=name), index.value("season.drawdown", agent=name),
        )  # fmt: skip
        numbers = ("" if value is None else float(value) for value in values)
        rows.append((name, agent.family, agent.model, place.level, *numbers))
    columns = "agent maker model level rank_first rank_last tier total judges_low judges_high return max_drawdown"
    yield STANDINGS, csv_text(columns.split(), rows)
    decided = (
        (
            step.day, name, float(step.number), "" if step.nav is None else step.nav,
            "" if step.book is None else step.book.cash, float(order_count(step)), "; ".join(order_texts(step)),
            float(sum(fill.kind == "order" for fill in step.fills)), float(len(step.rejections)),
            sum(fill.cost for fill in step.fills if fill.kind == "order"), "; ".join(step.decision.flags),
            "; ".join(step.mismatches), " ".join(rationale.text for rationale in step.decision.rationales),
        )
        for name, step in steps
    )  # fmt: skip
    columns = "day agent decision value cash orders order_texts fills rejected cost flags does_not_reconcile reason"
    yield DECISIONS, index.once((DECISIONS,), lambda: csv_text(columns.split(), decided))  # the same in every language
    for edition, before, changed in changes:
        if before is None or changed:
            levels = (f"{words.amount(edition['tally'][level])} {words(f'level.{level}.tally')}" for level in LEVELS)
            title = words.say("feeds.verdicts", day=words.day(str(edition["day"])), tally=", ".join(levels))
            text = "\n".join(changed) or words.say("feeds.unchanged")
            key = f"verdicts/{content_id([edition['day'], edition['tally'], text])[:12]}"
            entries.append((str(edition["day"]), "verdicts", key, title, text, "claims.html"))
    for day in sorted({step.day for _, step in steps})[-_DAYS:]:
        text = "\n".join(f"{clean(name, 60)}: {trades_words(index, step)}" for name, step in steps if step.day == day)
        title = words.say("feeds.day", day=words.day(day))
        entries.append((day, "decisions", f"day/{day}", title, text, "index.html#now"))
    entries.sort(key=lambda entry: entry[:2], reverse=True)
    # Full addresses of pages if that of the site is known; else none.
    top, urn, lines, items = f"{run.url.rstrip('/')}/{folder}", f"urn:assaymark:{run.plan_hash}", list[str](), []
    hour = run.decided_at[10:] if len(run.decided_at) > 10 else "T00:00:00+00:00"
    for day, tag, key, title, text, href in entries:
        try:
            at = datetime.fromisoformat(f"{day[:10]}{hour}").astimezone(UTC)
        except ValueError:  # a day that is not a date counts as the epoch
            at = datetime.fromtimestamp(0, UTC)
        link = f"<link>{escape(top + href)}</link>" if run.url else ""
        lines.append(
            f"<item><title>{escape(title)}</title>{link}<description>{escape(text)}</description>"
            f'<category>{tag}</category><guid isPermaLink="false">{escape(f"{urn}:{key}")}</guid>'
            f"<pubDate>{format_datetime(at)}</pubDate></item>\n"
        )
        item: dict[str, Any] = {"id": f"{urn}:{key}", "title": title, "content_text": text}
        item |= {"date_published": at.isoformat(), "tags": [tag], **({"url": top + href} if run.url else {})}
        items.append(item)
    title, about, language = clean(run.plan.title or run.plan.name, 120), words("feeds.about"), words.catalogue.language
    self_link = f'<atom:link href="{escape(top + RSS)}" rel="self" type="application/rss+xml"/>' if run.url else ""
    yield (
        RSS,
        (
            '<?xml version="1.0" encoding="UTF-8"?>\n<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel>'
            f"<title>{escape(title)}</title><link>{escape(top if run.url else urn)}</link>"
            f"<description>{escape(about)}</description><language>{language}</language>{self_link}\n{''.join(lines)}"
            "</channel></rss>\n"
        ),
    )
    urls = {"home_page_url": f"{top}index.html", "feed_url": f"{top}{JSON_FEED}"} if run.url else {}
    feed = {"version": "https://jsonfeed.org/version/1.1", "title": title, "description": about, "language": language}
    yield JSON_FEED, json.dumps({**feed, **urls, "items": items}, indent=1) + "\n"


# --- the picture for a preview: a supported sentence with its condition, and the points of the judges by tier ---------
#
# It has no unsupported sentence, and for agents that share a tier it shows only the dots, like their pages.


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


def share_card(index: SeasonIndex) -> str:
    """The preview picture, 1200 by 630, as a standalone drawing."""
    run, words, room, judges = index.run, index.words, _RIGHT - _LEFT, index.graders
    claim = next((c for part in season_levels(index) for c in part.claims if isinstance(c, ClaimQuote)), None)
    title = clean(run.plan.title or run.plan.name, 80)
    parts: list[Element] = [rect(0, 0, _WIDTH, _HEIGHT, "bg", "#fff"), rect(0, 0, _WIDTH, 10, "top", "#14181d")]
    parts += _text([f"assaymark · {title}"], 19, 72, "b s")
    if claim is None:  # nothing is supported: show the counts
        parts += _text([words("card.nothing")], 40, 140, "b")
        parts += _text([", ".join(f"{n} {noun}" for _, n, noun in season_tally(index))], 22, 190, "s")
    else:  # the sentence with its full condition, in the largest type in which both fit
        also = f"{words('frame.say_also')} {claim.condition}" if claim.condition else ""
        for large, size in _SIZES:
            top, below = wrap(words.quoted(claim.sentence), large, room), wrap(also, size, room) if also else []
            height = 1.3 * (large * len(top) + size * len(below))
            if height < _TOP - 112:
                break
        parts.append(rect(_LEFT - 24, 98, 8, height + 12, "m", _COLOURS[claim.level]))
        parts += _text(top, large, 100 + large, "q")
        parts += _text(below, size, 108 + large * (1.3 * len(top)) + size, "s")
    foot = words("card.foot", days=words("index.days", run.days, count=words.amount(run.days)),
                 judges=words("panel.count", judges, few=words.few(judges)), plan=short_hash(clean(run.plan_hash)),
                 day=words.day(run.last))  # fmt: skip
    # Agents tier by tier and by name, each with a line from its lowest to its highest judge.
    tiers = [sorted(tier) for tier in run.decided.tiers]
    agents = [(name, at) for at, tier in enumerate(tiers) for name in tier if judged_points(index, name)]
    agents = agents if len(agents) <= _MOST else []
    scale, bands, step = Scale(0, 100, 272, _RIGHT), run.scoring.bands, (_BOTTOM - 22 - _TOP) / max(len(agents), 1)
    for mark in (0, bands.mixed, bands.strong, 100) if agents else ():
        parts.append(line(scale(mark), _TOP, scale(mark), _BOTTOM - 22, "grid"))
        parts += _text([str(mark)], 16, _BOTTOM, "s am", scale(mark))
    for at, (name, tier) in enumerate(agents):
        y, level = _TOP + step * (at + 0.5), run.decided.place(name).level
        parts += _text([clean(name, 18)], min(22.0, 0.7 * step), y + 7, "b")
        if at and tier != agents[at - 1][1]:
            parts.append(line(_LEFT, y - step / 2, _RIGHT, y - step / 2, "cut"))
        points, colour = [value for value, _ in judged_points(index, name)], _COLOURS[level]
        parts.append(element("line", stroke=colour, stroke_width=3, x1=num(scale(min(points))), y1=num(y),
                             x2=num(scale(max(points))), y2=num(y)))  # fmt: skip
        for value in points:
            fill = colour if level == LEVELS[0] else "#fff"
            parts.append(element("circle", stroke=colour, stroke_width=2.5, cx=num(scale(value)), cy=num(y), r=7,
                                 fill=fill))  # fmt: skip
    parts += _text([foot], 17, 596, "s")
    named = escape_html(title if claim is None else f"{title}: {claim.sentence}")
    parts = [element("title", named), element("style", _STYLE), *parts]
    return picture((0, 0, _WIDTH, _HEIGHT), parts, alone=True, role="img")


def _text(lines: list[str], size: float, y: float, kind: str, x: float = _LEFT) -> Iterator[Element]:
    for at, text in enumerate(lines):
        yield element("text", escape_html(text), font_size=size, class_=kind, x=num(x), y=num(y + 1.3 * size * at))


def wrap(text: str, size: float, width: float) -> list[str]:
    """A text split into lines of at most ``width`` at a font size.

    >>> wrap("one two three", 20, 80)
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
    """A drawing as PNG, with the fonts of this machine."""
    import resvg_py  # optional; for publishing only

    return resvg_py.svg_to_bytes(svg_string=drawing, background="#fff")


@cache
def preview_name() -> str:
    """The file name of the preview picture: PNG, since few sites show SVG; else the SVG if no font is installed."""
    none, *letters = (
        preview(f'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9">{text}</svg>')
        for text in ("", *(f'<text y="9" font-family="{font}">a</text>' for font in ("serif", "sans-serif")))
    )
    return CARD if none in letters else "share.png"
