"""The board of tiers: ranks and scores as far as verdicts support them. An agent alone in its tier has a rank and a
score. Agents of one tier share both: the tier's ranks and its range from end to end; each has its own possible ranks,
and the range of what the judges give it alone in place of a score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assaymark.records import AGGREGATE, Level, Measurement
from assaymark.report.blocks import Inline, Linked, Mark, Section, Styled, Table, bold, notes, small, spaced
from assaymark.report.inputs import RunIndex
from assaymark.report.levels import TAGS
from assaymark.report.study.claim_checks import agreement_words, cap_words, stopping
from assaymark.report.study.controls import Tier, judged_range, supported_orders, tiers
from assaymark.report.text import counted, interval, listing, ordinal_span, shown
from assaymark.text import clean, count, percent, span


@dataclass(frozen=True, slots=True)
class BoardRow:
    """One tier. ``agents`` are (name, family, possible ranks, range of the judges). The ranks are empty where they are
    those of the tier, the range where the agent has a score of its own. ``score`` is None where neither an interval nor
    a range of judges was measured."""

    agents: tuple[tuple[str, str, str, str], ...]
    ranks: str
    note: str
    score: str | None
    bounds: str
    level: Level
    why: str


def board(book: RunIndex) -> tuple[BoardRow, ...]:
    """The tiers of the overall score from high to low."""
    rows: list[BoardRow] = []
    for tier in tiers(book, AGGREGATE):
        possible, ends = book.summary.ranks.get(AGGREGATE, {}), tier_ends(book, tier)
        alone = tier.alone and tier.level != "no-claim"
        effect = effect_of(book, tier.agents[0]) if alone else None
        score, limits = None if ends is None else span(*ends), ""
        if effect is not None and effect.value is not None and ends is not None:
            whole, _, rest = interval(effect.value, *((None, None) if effect.low is None else ends)).partition(" (")
            score, limits = book.to(effect, whole), f"({rest}"
        elif alone and score is None:
            score = shown(effect)
        agents = []
        for agent in tier.agents:
            here_ranks = possible.get(agent, tier.ranks)
            own = "" if here_ranks == tier.ranks else ordinal_span(*here_ranks)
            agents.append((clean(agent, 80), book.family(agent), own, "" if alone else _judged(book, agent)))
        ranks, note = ordinal_span(*tier.ranks), "" if alone else "cannot be ranked"
        # What places a tier, or what stops the orders inside it.
        orders = supported_orders(book, AGGREGATE)
        about = [v for v in book.on(AGGREGATE, "pair") if set(v.claim.subjects) <= set(tier.agents)]
        if tier.alone:
            here = sum(tier.agents[0] in pair for pair in orders)
            why = f"Ranked by {counted(here, 'supported order')}" if here else "There is no order to rank it by"
        else:
            inside = sum(set(pair) <= set(tier.agents) for pair in orders)
            why = (
                f"{count(inside)} of {counted(len(about), 'order')} inside supported"
                if about
                else "No order was tested"
            )
            if stopped := sorted({field for v in about for field in stopping(v)}):
                why += f"; stopped by {listing([cap_words(name) for name in stopped])}"
            if about and all("agreement" in stopping(v) for v in about):
                why = f"The judges do not agree: {agreement_words(book, about[0])}"
        rows.append(BoardRow(tuple(agents), ranks, note, score, limits, tier.level, why))
    return tuple(rows)


def board_section(book: RunIndex) -> Section:
    """The board as a table, with how the numbers were made."""
    level = percent(book.study.inference.level)
    heads = ("Rank", "Agent", f"Panel score, {book.study.scale_text}, with {level} interval", "Verdict")
    rows = []
    for row in board(book):
        who: list[Inline] = []
        for name, family, ranks, judged in row.agents:
            told: list[Inline] = [small(f" rank {ranks}")] if ranks else []
            told += [small(" judges "), judged] if judged else []
            who.append((bold(name), *told, small(f" family {family}") if family else ""))
        score: Inline = Styled("no range was measured", "gap")
        if row.score is not None:
            score = (row.score, small(f" {row.bounds or 'the tier from end to end'}"))
        rank: Inline = (row.ranks, small(f" {row.note}")) if row.note else row.ranks
        rows.append((rank, spaced(who), score, (Mark(row.level, TAGS[row.level]), small(f" {row.why}"))))
    lead = (
        "Agents that cannot be ranked share a tier: its ranks and its range of scores. They are listed in alphabetical "
        "order, each with the lowest and the highest score that one of the judges gives it, and with the ranks that it "
        "can have where these are fewer."
    )
    note = (
        f"{_method_note(book)} A number over a dotted line links to its measurement. ",
        Linked("Every measurement with its denominator", "measurements.html"), ".",
    )  # fmt: skip
    table = Table(heads, tuple(rows), summary="", stacked=True, style="board")
    return Section("board", "Who is ahead?", lead, (table, *notes([note])))


def effect_of(book: RunIndex, agent: str, dimension: str = AGGREGATE) -> Measurement | None:
    """The score of an agent."""
    return book.one("score.effect", dimension=dimension, agent=agent)


def tier_ends(book: RunIndex, tier: Tier, dimension: str = AGGREGATE) -> tuple[float, float] | None:
    """From the lowest end of the tier's intervals to the highest; points alone would show the gap of two agents. No
    mean is beyond the scale, so no end is. Without an interval it is from the lowest to the highest score that a judge
    alone gives."""
    found = [m for agent in tier.agents if (m := effect_of(book, agent, dimension)) is not None and m.value is not None]
    ends = [end for m in found for end in (m.low, m.high, *((m.value,) if tier.alone else ())) if end is not None]
    ends = ends or [end for agent in tier.agents for end in judged_range(book, dimension, agent) or ()]
    lowest, highest = book.study.scale
    return (max(lowest, min(ends)), min(highest, max(ends))) if ends else None


def _judged(book: RunIndex, agent: str) -> str:
    """What the judges give an agent, from lowest to highest; empty for fewer than two judges."""
    found = judged_range(book, AGGREGATE, agent)
    return "" if found is None else book.to(effect_of(book, agent), span(*found))


def _method_note(book: RunIndex) -> str:
    effects = [m for m in (effect_of(book, agent) for agent in book.agents) if m is not None and m.value is not None]
    if not effects:
        return "No score was measured."
    return (
        f"Scores run from {book.study.scale_text}. Method: {clean(effects[0].method, 160)}. "
        f"{_decisions_words(effects)} "
        f"Level of the intervals: {percent(effects[0].level or book.study.inference.level)}."
    )


def _decisions_words(effects: Sequence[Measurement]) -> str:
    sizes = sorted({m.n for m in effects})
    each = count(sizes[0]) if len(sizes) == 1 else f"{count(sizes[0])} to {count(sizes[-1])}"
    return f"{each} {clean(effects[0].n_of, 40)} an agent."
