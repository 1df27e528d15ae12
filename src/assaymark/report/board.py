"""The board of tiers: ranks and scores as far as verdicts support them.

An agent alone in its tier has a rank and a score. Agents of one tier share both: the tier's ranks and its range from
end to end; each has its own possible ranks, and the range of what the judges give it alone in place of a score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assaymark.records import AGGREGATE, Level, Measurement
from assaymark.report.charts.intervals import ScoreAxis, score_axis, score_head, score_strip
from assaymark.report.levels import TAGS
from assaymark.report.lookup import Book
from assaymark.report.study.claim_checks import agreement_words, cap_words, stopping
from assaymark.report.study.controls import Tier, judged_range, supported_orders, tiers
from assaymark.report.text import counted, interval, listing, ordinal_span, shown
from assaymark.text import clean, count, percent, span


@dataclass(frozen=True, slots=True)
class BoardRow:
    """One tier. ``agents`` are (name, family, possible ranks, range of the judges).

    The ranks are empty where they are those of the tier, the range where the agent has a score of its own. ``score`` is
    None where neither an interval nor a range of judges was measured.
    """

    agents: tuple[tuple[str, str, str, str], ...]
    ranks: str
    note: str
    score: str | None
    bounds: str
    level: Level
    tag: str
    why: str
    strip: str


@dataclass(frozen=True, slots=True)
class Board:
    """The rows, the ticks above their strips, and how the numbers were made."""

    rows: tuple[BoardRow, ...]
    head: str
    note: str
    level: str


def board(book: Book) -> Board:
    """The board of the aggregate score."""
    found = [(tier, _extent(book, tier)) for tier in tiers(book, AGGREGATE)]
    axis = score_axis([value for _, extent in found for value in extent])
    rows = tuple(_row(book, tier, axis, extent, f"strip{at}") for at, (tier, extent) in enumerate(found))
    return Board(rows, score_head(axis), _method_note(book), percent(book.run.study.inference.level))


def _effect(book: Book, agent: str) -> Measurement | None:
    return book.one("score.effect", dimension=AGGREGATE, agent=agent)


def _extent(book: Book, tier: Tier) -> tuple[float, ...]:
    """From the lowest end of the tier's intervals to the highest; points alone would show the gap of two agents.

    Without an interval it is from the lowest to the highest score that a judge alone gives.
    """
    found = [item for agent in tier.agents if (item := _effect(book, agent)) is not None and item.value is not None]
    ends = [end for item in found for end in (item.low, item.high, *((item.value,) if tier.alone else ()))]
    known = [end for end in ends if end is not None]
    known = known or [end for agent in tier.agents for end in judged_range(book, AGGREGATE, agent) or ()]
    return (min(known), max(known)) if known else ()


def _row(book: Book, tier: Tier, axis: ScoreAxis, extent: tuple[float, ...], name: str) -> BoardRow:
    possible = book.summary.ranks.get(AGGREGATE, {})
    bounds = (extent[0], extent[1]) if extent else None
    alone = tier.alone and tier.level != "no-claim"
    effect = _effect(book, tier.agents[0]) if alone else None
    value = None if effect is None or bounds is None else effect.value
    score: str | None = None if bounds is None else span(*bounds)
    limits = ""
    if value is not None and effect is not None:
        whole, _, rest = interval(value, effect.low, effect.high).partition(" (")
        score, limits = book.to(effect, whole), f"({rest}"
        bounds = None if effect.low is None or effect.high is None else (effect.low, effect.high)
    elif alone and score is None:
        score = shown(effect)
    return BoardRow(
        agents=tuple(
            (
                clean(agent, 80),
                book.family(agent),
                _possible(possible.get(agent, tier.ranks), tier),
                "" if alone else _judged(book, agent),
            )
            for agent in tier.agents
        ),
        ranks=ordinal_span(*tier.ranks),
        note="" if alone else "cannot be ranked",
        score=score,
        bounds=limits,
        level=tier.level,
        tag=TAGS[tier.level],
        why=_why(book, tier),
        strip=score_strip(name, axis, tier.level, value, bounds),
    )


def _judged(book: Book, agent: str) -> str:
    """What the judges give an agent, from lowest to highest; empty for fewer than two judges."""
    found = judged_range(book, AGGREGATE, agent)
    return "" if found is None else book.to(_effect(book, agent), span(*found))


def _possible(ranks: tuple[int, int], tier: Tier) -> str:
    return "" if ranks == tier.ranks else ordinal_span(*ranks)


def _why(book: Book, tier: Tier) -> str:
    """What places a tier, or what stops the orders inside it."""
    orders = supported_orders(book, AGGREGATE)
    about = [v for v in book.on(AGGREGATE, "pair") if set(v.claim.subjects) <= set(tier.agents)]
    if tier.alone:
        here = sum(tier.agents[0] in pair for pair in orders)
        return f"Ranked by {counted(here, 'supported order')}" if here else "There is no order to rank it by"
    inside = sum(set(pair) <= set(tier.agents) for pair in orders)
    said = f"{count(inside)} of {counted(len(about), 'order')} inside supported" if about else "No order was tested"
    if about and all("agreement" in stopping(v) for v in about):
        return f"The judges do not agree: {agreement_words(book, about[0])}"
    stopped = {field for v in about for field in stopping(v)}
    return f"{said}; stopped by {listing([cap_words(name) for name in sorted(stopped)])}" if stopped else said


def _method_note(book: Book) -> str:
    effects = [m for m in (_effect(book, agent) for agent in book.agents) if m is not None and m.value is not None]
    if not effects:
        return "No score was measured."
    return (
        f"Scores run from 1 to 5. Method: {clean(effects[0].method, 160)}. {_decisions_words(effects)} "
        f"Level of the intervals: {percent(effects[0].level or book.run.study.inference.level)}."
    )


def _decisions_words(effects: Sequence[Measurement]) -> str:
    sizes = sorted({m.n for m in effects})
    each = count(sizes[0]) if len(sizes) == 1 else f"{count(sizes[0])} to {count(sizes[-1])}"
    return f"{each} {clean(effects[0].n_of, 40)} an agent."
