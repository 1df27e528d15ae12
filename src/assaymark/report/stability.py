"""Does the order survive without a judge? One chart per judge family that is left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from assaymark.records import AGGREGATE, Measurement
from assaymark.report.book import Book
from assaymark.report.figures import Slope, SlopeEnd, slope
from assaymark.report.figures.slope import places
from assaymark.report.formats import clean, number, ordinal_span, plural, sentence, shown, state_words, words
from assaymark.report.licence import Standing, standings

_TOLERANCE = 1e-9
_PAIRS = 4


@dataclass(frozen=True, slots=True)
class Drop:
    """One family left out: its chart, and the pairs that change sides, each pair in alphabetical order."""

    family: str
    svg: str
    rho: str
    fails: bool
    turned: tuple[tuple[str, str], ...]
    caption: str


@dataclass(frozen=True, slots=True)
class StabilityView:
    """The section; ``rho_rows`` is a table of every score against every dropped family."""

    answer: str
    caption: str
    drops: tuple[Drop, ...]
    families: tuple[str, ...]
    rho_rows: tuple[tuple[str, tuple[str, ...]], ...]
    undefined: tuple[str, ...]


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
            (book.title(d), tuple(shown(book.one("lofo.rho", dimension=d, dropped=f)) for f in families))
            for d in book.dimensions
            if any(True for _ in book.every("lofo.rho", dimension=d))
        ),
        undefined=tuple(_undefined(m) for m in found if m.value is None),
    )


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
        f"For {words(len(low))} of {plural(len(values), 'family', 'families')} the rank correlation falls below "
        f"{number(cut, 1)}, and what depends on {'that family' if len(low) == 1 else 'those families'} is withheld."
    )


def _caption(book: Book, allowed: Sequence[Standing]) -> str:
    hidden = sum(len(s.agents) for s in allowed if not s.single)
    text = "Left: the full panel. Right: without one judge family. ρ is the Spearman correlation of the two orders."
    if not hidden:
        return text
    who = "every agent" if hidden == len(book.agents) else plural(hidden, "agent")
    return f"{text} The place of {who} is withheld, and their lines have no name; a thicker line is one that moves."


def _drop(book: Book, item: Measurement, allowed: Sequence[Standing], full: Sequence[str], name: str) -> Drop:
    family = clean(item.labels["dropped"], 60)
    before, after = places(full), places([str(agent) for agent in item.detail["order"]])
    single = {s.agents[0]: s for s in allowed if s.single}
    ends = tuple(
        SlopeEnd(
            name=clean(agent, 60) if agent in single else None,
            full=before[agent],
            without=after[agent],
            level=single[agent].level if agent in single else "no-claim",
        )
        for agent in full
    )
    rho = shown(item)
    cut = book.run.study.stability.rho
    fails = item.value is not None and item.value < cut - _TOLERANCE
    turned = _turned(before, after)
    chart = Slope(
        family=family,
        rho=f"ρ {rho} < {number(cut, 1)}" if fails else f"ρ {rho}",
        fails=fails,
        ends=ends,
        classes=_classes(allowed, len(full)),
        left="full panel",
        right=f"without {family}",
    )
    moved = sum(before[agent] != after[agent] for agent in full)
    svg = slope(name, chart, f"Order with and without {family}", _desc(chart, moved, len(turned)))
    return Drop(family, svg, rho, fails, turned, _turned_words(turned, moved))


def _classes(allowed: Sequence[Standing], size: int) -> tuple[tuple[int, int, str], ...]:
    runs = sorted({s.part for s in allowed if not s.single and s.part[0] <= size})
    return tuple((first, min(last, size), f"{ordinal_span(first, last)}:|order withheld") for first, last in runs)


def _turned(before: Mapping[str, int], after: Mapping[str, int]) -> tuple[tuple[str, str], ...]:
    pairs = combinations(sorted(before), 2)
    return tuple((clean(a, 60), clean(b, 60)) for a, b in pairs if (before[a] - before[b]) * (after[a] - after[b]) < 0)


def _turned_words(turned: Sequence[tuple[str, str]], moved: int) -> str:
    if not moved:
        return "No agent changes its place."
    if not turned:
        return f"{plural(moved, 'agent').capitalize()} change place."
    listed = "; ".join(f"{a} and {b}" for a, b in turned[:_PAIRS])
    rest = f"; and {plural(len(turned) - _PAIRS, 'more pair')}" if len(turned) > _PAIRS else ""
    return f"{'This pair turns' if len(turned) == 1 else 'These pairs turn'} round: {listed}{rest}."


def _desc(chart: Slope, moved: int, turned: int) -> str:
    shown = [end for end in chart.ends if end.name]
    named = [f"{e.name} is {e.full} with the full panel and {e.without} without {chart.family}" for e in shown]
    moves = f"{plural(moved, 'agent')} of {len(chart.ends)} change place, {plural(turned, 'pair')} turn round"
    return f"{chart.rho}; {moves}. {'; '.join(named) if named else 'Every place is withheld'}."
