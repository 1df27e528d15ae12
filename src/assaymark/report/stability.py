"""Does the order survive without a judge? One chart per judge family that is left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

from assaymark.records import AGGREGATE, Measurement
from assaymark.report.book import Book
from assaymark.report.figures import Slope, SlopeEnd, slope
from assaymark.report.figures.judges import POINTED
from assaymark.report.figures.slope import places
from assaymark.report.formats import clean, count, number, ordinal_span, plural, sentence, shown, state_words, words
from assaymark.report.licence import Standing, standings
from assaymark.report.tables import Table

_TOLERANCE = 1e-9
_PAIRS = 4


@dataclass(frozen=True, slots=True)
class Drop:
    """One family left out: its caption, and its chart if any place is permitted (else "").

    ``turned`` are the pairs of agents with permitted places that change sides, each pair in alphabetical order.
    ``judge`` is the place of the family's judge in the panel, None where the family has several or none.
    """

    family: str
    svg: str
    rho: str
    fails: bool
    turned: tuple[tuple[str, str], ...]
    caption: str
    judge: int | None
    ends: tuple[SlopeEnd, ...]


@dataclass(frozen=True, slots=True)
class StabilityView:
    """The section; ``rho_rows`` is a table of every score against every dropped family."""

    answer: str
    caption: str
    drops: tuple[Drop, ...]
    families: tuple[str, ...]
    rho_rows: tuple[tuple[str, tuple[str, ...]], ...]
    undefined: tuple[str, ...]
    places: Table | None


def stability_view(book: Book) -> StabilityView:
    """The whole section from the measurements of a run."""
    found = list(book.every("lofo.rho", dimension=AGGREGATE))
    allowed = standings(book, AGGREGATE)
    full = _full_order(book, allowed)
    drops = tuple(_drop(book, item, allowed, full, f"slope{at}") for at, item in enumerate(found) if _drawn(item, full))
    families = sorted({m.labels["dropped"] for m in book.every("lofo.rho")})
    return StabilityView(
        answer=_answer(book, found),
        caption=_caption(book, allowed),
        drops=drops,
        families=tuple(clean(f, 60) for f in families),
        rho_rows=tuple(
            (book.title(d), tuple(book.shown("lofo.rho", dimension=d, dropped=f) for f in families))
            for d in book.dimensions
            if any(True for _ in book.every("lofo.rho", dimension=d))
        ),
        undefined=tuple(_undefined(m) for m in found if m.value is None),
        places=_places(drops),
    )


def _places(drops: Sequence[Drop]) -> Table | None:
    """The places that the charts draw: one row an agent whose place a verdict permits."""
    drawn = [drop for drop in drops if drop.ends]
    if not drawn:
        return None
    heads = ("Agent", "Full panel", *(f"without {drop.family}" for drop in drawn))
    rows = [
        (end.name, count(end.full), *(count(drop.ends[at].without) for drop in drawn))
        for at, end in enumerate(drawn[0].ends)
    ]
    return Table(heads, tuple(rows), frozenset(range(1, len(heads))), "The same places as a table")


def _undefined(item: Measurement) -> str:
    return f"Without {clean(item.labels['dropped'], 60)}: {state_words(item)}."


def _drawn(item: Measurement, full: Sequence[str]) -> bool:
    order = item.detail.get("order")
    return isinstance(order, (list, tuple)) and len(full) > 1 and set(order) == set(full)


def _full_order(book: Book, allowed: Sequence[Standing]) -> tuple[str, ...]:
    """Agents as the full panel places them: by permitted place, and by estimate inside what is withheld."""
    levels = {agent: book.value("score.effect", dimension=AGGREGATE, agent=agent) for agent in book.agents}
    start = {agent: s.places[0] if s.single and s.places else s.part[0] for s in allowed for agent in s.agents}
    scored = [agent for agent in book.agents if levels[agent] is not None]
    return tuple(sorted(scored, key=lambda a: (start[a], -(levels[a] or 0.0), a)))


def _answer(book: Book, found: Sequence[Measurement]) -> str:
    cut = book.run.study.stability.rho
    values = [m.value for m in found if m.value is not None]
    if not values:
        reason = state_words(found[0]) if found else "not measured: no family was left out"
        return sentence(reason)
    low = [m for m in found if m.value is not None and m.value < cut - _TOLERANCE]
    if not low:
        return f"Leaving any one family out keeps the rank correlation at {number(cut, 1)} or above."
    return (
        f"{_of_families(len(low), len(values))} the rank correlation falls below "
        f"{number(cut, 1)}, and what depends on {'that family' if len(low) == 1 else 'those families'} is withheld."
    )


def _of_families(low: int, total: int) -> str:
    return "Without the one family" if total == 1 else f"For {words(low)} of {words(total)} families"


def _caption(book: Book, allowed: Sequence[Standing]) -> str:
    named = sum(s.single for s in allowed)
    rho = "ρ is the Spearman correlation of the order of the full panel with the order without one judge family."
    if not named:
        return f"{rho} No place may be shown, so neither order is drawn and no pair is named."
    text = f"Left: the full panel. Right: without one judge family. {rho}"
    if named == len(book.agents):
        return text
    return f"{text} Only agents whose place a verdict permits are drawn and named; the others are counted."


def _drop(book: Book, item: Measurement, allowed: Sequence[Standing], full: Sequence[str], name: str) -> Drop:
    family = clean(item.labels["dropped"], 60)
    before, after = places(full), places([str(agent) for agent in item.detail["order"]])
    single = {s.agents[0]: s for s in allowed if s.single}
    ends = tuple(
        SlopeEnd(clean(agent, 60), before[agent], after[agent], single[agent].level)
        for agent in full
        if agent in single
    )
    rho = shown(item)
    cut = book.run.study.stability.rho
    fails = item.value is not None and item.value < cut - _TOLERANCE
    turned = _turned(before, after)
    # A pair is named only between permitted places: the others would tell who stands next to whom.
    named = tuple((clean(a, 60), clean(b, 60)) for a, b in turned if a in single and b in single)
    chart = Slope(
        family=family,
        rho=f"ρ {rho} < {number(cut, 1)}" if fails else f"ρ {rho}",
        fails=fails,
        size=len(full),
        ends=ends,
        classes=_classes(allowed, len(full)),
        left="full panel",
        right=f"without {family}",
    )
    caption = f"Without {family}: {chart.rho}. {_turned_words(len(turned), comb(len(full), 2), named)}"
    desc = f"{caption} {_ends_words(chart)}".strip()
    svg = slope(name, chart, f"Order with and without {family}", desc) if ends else ""
    return Drop(family, svg, rho, fails, named, caption, _only_judge(book, item.labels["dropped"]), ends)


def _only_judge(book: Book, family: str) -> int | None:
    of_family = [at for at, judge in enumerate(book.run.study.judges) if judge.family == family]
    return of_family[0] if len(of_family) == 1 and of_family[0] < POINTED else None


def _classes(allowed: Sequence[Standing], size: int) -> tuple[tuple[int, int, str], ...]:
    runs = sorted({s.part for s in allowed if not s.single and s.part[0] <= size})
    return tuple((first, min(last, size), f"{ordinal_span(first, last)}:|order withheld") for first, last in runs)


def _turned(before: Mapping[str, int], after: Mapping[str, int]) -> tuple[tuple[str, str], ...]:
    pairs = combinations(sorted(before), 2)
    return tuple((a, b) for a, b in pairs if (before[a] - before[b]) * (after[a] - after[b]) < 0)


def _turned_words(turned: int, pairs: int, named: Sequence[tuple[str, str]]) -> str:
    if not turned:
        return "No pair turns round."
    text = f"{words(turned).capitalize()} of {plural(pairs, 'pair')} {'turns' if turned == 1 else 'turn'} round"
    if not named:
        return f"{text}."
    listed = "; ".join(f"{a} and {b}" for a, b in named[:_PAIRS])
    rest = f"; and {plural(len(named) - _PAIRS, 'more pair')}" if len(named) > _PAIRS else ""
    return f"{text}{': ' if len(named) == turned else ', among them '}{listed}{rest}."


def _ends_words(chart: Slope) -> str:
    said = [f"{e.name} is {e.full} with the full panel and {e.without} without {chart.family}" for e in chart.ends]
    return f"{'; '.join(said)}." if said else ""
