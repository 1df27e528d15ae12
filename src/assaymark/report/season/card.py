"""The picture of a season for a preview: a supported sentence with its condition, and the points of the judges by tier.

It has no sentence that is not supported, and of agents that share a tier no more than their pages: dots by size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from html import escape
from typing import Final

import svg

from assaymark.records import Level
from assaymark.report.charts.canvas import Scale, label, line, num, rect
from assaymark.report.levels import LEVELS
from assaymark.report.season.edition import Edition
from assaymark.report.season.leaderboard import judged_points
from assaymark.report.season.levels import SaidClaim, said_levels, tally
from assaymark.report.text import short_hash, text_width
from assaymark.text import clean

CARD: Final = "share.svg"
_WIDTH, _HEIGHT, _LEFT, _RIGHT = 1200, 630, 68, 1108
_TOP, _BOTTOM, _MOST = 300, 560, 10
_COLOURS: Final[dict[Level, str]] = {"headline": "#14508c", "qualified": "#8a5300", "no-claim": "#5b6570"}
_STYLE: Final = (
    "text{font-family:Inter,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;fill:#14181d}"
    ".ae{text-anchor:end}.am{text-anchor:middle}.b{font-weight:700}.s{fill:#434c56}"
    ".q{font-family:Charter,Cambria,Georgia,serif;font-weight:700}"
    ".grid{stroke:#d8dde3;stroke-width:1.5}.cut{stroke:#7f8a95;stroke-width:1.5;stroke-dasharray:2 4}"
)


def share_card(edition: Edition) -> str:
    """The picture, 1200 by 630, as a drawing that stands alone."""
    book, words = edition.book, edition.words
    run, levels = book.run, said_levels(book, words)
    first = next((claim for one in levels for claim in (*one.shown, *one.more)), None)
    title = clean(run.title or run.name, 80)
    parts: list[svg.Element] = [
        rect(0, 0, _WIDTH, _HEIGHT, "bg", "#fff"),
        rect(0, 0, _WIDTH, 10, "top", "#14181d"),
        *_text([f"assaymark · {title}"], 19, 72, "b s"),
        *(_nothing(edition) if first is None else _claim(first, words("frame.say_also"), words.quoted(first.quote))),
        *_tiers(edition),
        *_text([_foot(edition)], 17, 596, "s"),
    ]  # fmt: skip
    return svg.SVG(
        viewBox=svg.ViewBoxSpec(0, 0, _WIDTH, _HEIGHT),
        width=_WIDTH,
        height=_HEIGHT,
        elements=[
            svg.Title(text=escape(title if first is None else f"{title}: {first.quote}")),
            svg.Style(text=_STYLE),
            *parts,
        ],
        extra={"role": "img"},
    ).as_str()


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


def _foot(edition: Edition) -> str:
    run, words, judges = edition.book.run, edition.words, edition.book.graders
    return words(
        "card.foot", days=words("index.days", n=run.days, count=words.count(run.days)),
        judges=words("panel.count", n=judges, few=words.few(judges)), plan=short_hash(clean(run.plan_hash)),
        day=words.day(run.last),
    )  # fmt: skip


def _text(lines: Sequence[str], size: float, y: float, kind: str, x: float = _LEFT) -> Iterator[svg.Element]:
    for at, text in enumerate(lines):
        found = label(x, y + 1.3 * size * at, text, kind)
        found.font_size = size
        yield found


def wrapped(text: str, size: float, width: float, first: float = 0.0) -> list[str]:
    """The lines of a text in a font of a size; ``first`` is taken from the room of the first line.

    >>> wrapped("one two three", 20, 80)
    ['one two', 'three']
    """
    lines, room = [""], width - first
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and text_width(longer, size) > room:
            lines.append(word)
            room = width
        else:
            lines[-1] = longer
    return lines


def _claim(claim: SaidClaim, say_also: str, quoted: str) -> Iterator[svg.Element]:
    """A sentence and the whole of its condition, in the largest type in which both have room."""
    room = _RIGHT - _LEFT
    for large, size in ((40, 23), (34, 20), (28, 17), (22, 14), (18, 11), (14, 8), (10, 6)):
        top, below = wrapped(quoted, large, room), wrapped(f"{say_also} {claim.condition}", size, room)
        below = below if claim.condition else []
        if 1.3 * (large * len(top) + size * len(below)) < _TOP - 112:
            break
    height = 1.3 * (large * len(top) + size * len(below)) + 12
    yield rect(_LEFT - 24, 98, 8, height, "m", _COLOURS[claim.level])
    yield from _text(top, large, 100 + large, "q")
    yield from _text(below, size, 108 + large * (1.3 * len(top)) + size, "s")


def _nothing(edition: Edition) -> Iterator[svg.Element]:
    """That nothing is supported, with the counts."""
    words = edition.words
    yield from _text([words("card.nothing")], 40, 140, "b")
    counts = ", ".join(f"{n} {what}" for _, n, what in tally(edition.book, words))
    yield from _text([counts], 22, 190, "s")


def _tiers(edition: Edition) -> Iterator[svg.Element]:
    """Agents tier by tier and by name, each with a line from its lowest to its highest judge."""
    book = edition.book
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
        points = [one.points for one in judged_points(book, name)]
        yield svg.Line(x1=num(scale(min(points))), y1=num(y), x2=num(scale(max(points))), y2=num(y),
                       stroke=_COLOURS[level], stroke_width=3)  # fmt: skip
        for one in points:
            filled = level in LEVELS[:1]
            yield svg.Circle(cx=num(scale(one)), cy=num(y), r=7, stroke=_COLOURS[level], stroke_width=2.5,
                             fill=_COLOURS[level] if filled else "#fff")  # fmt: skip
