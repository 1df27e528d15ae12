"""Which orders are supported? A chart of all pairs for each score, and the same as a table.

It shows levels and no sizes: the differences of two agents from a third, side by side, would order the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from assaymark.records import Level
from assaymark.report.blocks import HATCHED, Beside, Block, Figure, Section, Table, notes
from assaymark.report.charts.grids import heat
from assaymark.report.levels import TAGS
from assaymark.report.lookup import Book, score_words
from assaymark.report.study.controls import supported_orders
from assaymark.report.text import counted, listing, plural
from assaymark.text import clean, count

MOST = 14
"""With more agents the chart has no room for its cells, and the table is alone."""

_CAPTION: Final = (
    "The agent of a row scores above the agent of a filled column. S: supported. C: only with its condition. Hatched: "
    "no supported order."
)


def gaps_section(book: Book) -> Section:
    """Every supported order of every score. Only supported orders have a mark anywhere in it."""
    scored, title = [d for d in book.dimensions if book.on(d, "pair")], "Which orders are supported?"
    agents = book.agents
    if not scored or len(agents) < 2:
        return Section("gaps", title, "No difference between two agents was tested.")
    allowed = {d: supported_orders(book, d) for d in scored}
    shown = sum(len(found) for found in allowed.values())
    total = len(scored) * len(agents) * (len(agents) - 1) // 2
    drawn = [d for d in scored if allowed[d]] if len(agents) <= MOST else []
    silent = [score_words(d) for d in scored if not allowed[d]]
    said = notes(
        [f"No order is supported on {listing(silent, last='or')}." if silent else "", _CAPTION if drawn else ""]
    )
    charts = tuple((_chart(book, d, allowed[d], at),) for at, d in enumerate(drawn))
    blocks: list[Block] = [Beside(charts, "tri")] if charts else []
    blocks += [_table(book, scored, allowed)] if shown else []
    return Section("gaps", title, f"{counted(shown, 'order')} of {count(total)} supported.", (*said, *blocks))


def _chart(book: Book, dimension: str, allowed: Mapping[tuple[str, str], Level], at: int) -> Figure:
    agents = book.agents
    place = {agent: row for row, agent in enumerate(agents)}
    cells = {(place[high], place[low]): level for (high, low), level in allowed.items()}
    title = book.title(dimension)
    pairs = len(agents) * (len(agents) - 1) // 2
    said = "; ".join(_said(pair, level) for pair, level in sorted(allowed.items()))
    desc = f"{said}; {plural(pairs - len(allowed), 'pair')} without a supported order"
    names = [clean(agent, 60) for agent in agents]
    svg = heat(f"heat{at}", names, cells, f"Supported orders of agents: {title}", desc)
    rows = tuple((clean(high, 60), clean(low, 60), level) for (high, low), level in sorted(allowed.items()))
    values = Table(("Above", "Below", "Level"), rows)
    note = f"{counted(len(allowed), 'order')} of {counted(pairs, 'pair')}"
    return Figure(title, "", svg, "", note=note, values=values)


def _said(pair: tuple[str, str], level: Level) -> str:
    return f"{clean(pair[0], 60)} above {clean(pair[1], 60)} ({TAGS[level].lower()})"


def _table(book: Book, scored: list[str], allowed: Mapping[str, Mapping[tuple[str, str], Level]]) -> Table:
    """A row for each pair that any verdict orders; the agents of a row in alphabetical order."""
    pairs = sorted({(min(pair), max(pair)) for found in allowed.values() for pair in found})
    rows = []
    for one, other in pairs:
        both = ((one, other), (other, one))
        cells = [next((_said(p, allowed[d][p]) for p in both if p in allowed[d]), HATCHED) for d in scored]
        rows.append((f"{clean(one, 60)} and {clean(other, 60)}", *cells))
    return Table(("Pair", *(book.title(d) for d in scored)), tuple(rows))
