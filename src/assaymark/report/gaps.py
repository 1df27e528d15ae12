"""How large are the gaps that may be named? A chart of all pairs for each score, and the same as a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from assaymark.records import Level, Measurement
from assaymark.report.book import Book, measure_words
from assaymark.report.figures import HeatCell, heat
from assaymark.report.formats import WITHHELD, clean, count, counted, in_mde, listing, mde_words, plural, signed
from assaymark.report.licence import permitted_orders
from assaymark.report.tables import Table

MOST = 14
"""With more agents the chart has no room for its cells, and the table stands alone."""

_CAPTION: Final = (
    "An agent in a row scores above the agent in a tinted column. Number: the gap in units of the detectable effect "
    "(MDE), darker from 1, 2 and 4. Dot: significant after Holm. Hatched: no order may be said. Empty, with no cell "
    "either way: the two never answered a common question."
)


@dataclass(frozen=True, slots=True)
class Chart:
    """The chart of one score: its title, and how many pairs it shows of how many."""

    title: str
    svg: str
    caption: str


@dataclass(frozen=True, slots=True)
class GapsView:
    """The section. Only orders that a verdict permits have a number anywhere in it."""

    answer: str
    silent: str
    caption: str
    charts: tuple[Chart, ...]
    table: Table | None


def gaps_view(book: Book) -> GapsView:
    """The whole section from the contrasts and the verdicts of a run."""
    scored = [d for d in book.dimensions if any(True for _ in book.every("contrast", dimension=d))]
    agents = book.agents
    if not scored or len(agents) < 2:
        return GapsView("No contrast between two agents was tested.", "", "", (), None)
    allowed = {d: permitted_orders(book, d) for d in scored}
    shown = sum(len(found) for found in allowed.values())
    total = len(scored) * len(agents) * (len(agents) - 1) // 2
    drawn = [d for d in scored if allowed[d]] if len(agents) <= MOST else []
    silent = [measure_words(book, d) for d in scored if not allowed[d]]
    return GapsView(
        answer=f"{counted(shown, 'gap')} of {count(total)} may be named; the others are withheld.",
        silent=f"No order may be named on {listing(silent, last='or')}." if silent else "",
        caption=_CAPTION if drawn else "",
        charts=tuple(_chart(book, d, allowed[d], at) for at, d in enumerate(drawn)),
        table=_table(book, scored, allowed) if shown else None,
    )


def _chart(book: Book, dimension: str, allowed: Mapping[tuple[str, str], Level], at: int) -> Chart:
    agents = book.agents
    place = {agent: row for row, agent in enumerate(agents)}
    cells = {(place[high], place[low]): _cell(book, dimension, high, low) for high, low in allowed}
    never = [(place[a], place[b]) for a, b in combinations(agents, 2) if _never_met(book, dimension, a, b)]
    title = book.title(dimension)
    pairs = len(agents) * (len(agents) - 1) // 2
    said = "; ".join(_said(book, dimension, high, low) for high, low in sorted(allowed))
    kept = pairs - len({frozenset(pair) for pair in (*cells, *never)})
    desc = f"{said or 'No order may be said'}; {plural(kept, 'pair')} withheld"
    names = [clean(agent, 60) for agent in agents]
    svg = heat(f"heat{at}", names, cells, never, f"Permitted gaps between agents: {title}", desc)
    return Chart(title, svg, f"{counted(len(allowed), 'order')} of {counted(pairs, 'pair')}")


def _cell(book: Book, dimension: str, high: str, low: str) -> HeatCell:
    item = book.contrast(dimension, high, low)
    size = None if item is None else in_mde(item)
    return HeatCell(None if size is None else abs(size), _significant(book, item))


def _significant(book: Book, item: Measurement | None) -> bool:
    p = None if item is None else item.detail.get("p_holm")
    return isinstance(p, (int, float)) and p <= book.run.study.claim_alpha


def _never_met(book: Book, dimension: str, one: str, other: str) -> bool:
    item = book.contrast(dimension, one, other)
    return item is None or item.state.startswith("never")


def _said(book: Book, dimension: str, high: str, low: str) -> str:
    return f"{clean(high, 60)} above {clean(low, 60)} by {_gap(book, dimension, high, low)}"


def _gap(book: Book, dimension: str, high: str, low: str) -> str:
    item = book.contrast(dimension, high, low)
    if item is None or item.value is None:
        return "a gap that was not measured"
    multiple = in_mde(item)
    return f"{signed(abs(item.value))} points" + ("" if multiple is None else f", {mde_words(multiple)}")


def _table(book: Book, scored: list[str], allowed: Mapping[str, Mapping[tuple[str, str], Level]]) -> Table:
    """A row for each pair that any verdict orders; the agents of a row in alphabetical order."""
    pairs = sorted({tuple(sorted(pair)) for found in allowed.values() for pair in found})
    rows = []
    for one, other in pairs:
        cells = [_table_cell(book, d, allowed[d], one, other) for d in scored]
        rows.append((f"{clean(one, 60)} and {clean(other, 60)}", *cells))
    return Table(("Pair", *(book.title(d) for d in scored)), tuple(rows))


def _table_cell(book: Book, dimension: str, allowed: Mapping[tuple[str, str], Level], one: str, other: str) -> str:
    for high, low in ((one, other), (other, one)):
        if (high, low) in allowed:
            mark = " *" if _significant(book, book.contrast(dimension, high, low)) else ""
            item = book.contrast(dimension, high, low)
            return book.to(item, f"{clean(high, 60)} {_gap(book, dimension, high, low)}{mark}")
    return "never compared" if _never_met(book, dimension, one, other) else WITHHELD
