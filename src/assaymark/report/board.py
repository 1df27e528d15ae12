"""The board: a place and a score only where a verdict permits them. What is withheld is withheld in the row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assaymark.records import AGGREGATE, Level, Measurement, Verdict
from assaymark.report.book import Book
from assaymark.report.figures import ScoreAxis, score_axis, score_head, score_strip
from assaymark.report.formats import clean, count, interval, listing, ordinal_span, percent, plural, shown, span, words
from assaymark.report.kinds import ClaimKind
from assaymark.report.levels import TAGS
from assaymark.report.licence import Standing, standings


@dataclass(frozen=True, slots=True)
class BoardRow:
    """One agent or class. ``places`` and ``score`` are None where they are withheld, and nothing else holds them."""

    agents: tuple[tuple[str, str], ...]
    places: str | None
    note: str
    score: str | None
    bounds: str
    score_note: str
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
    places = standings(book, AGGREGATE)
    axis = score_axis([value for standing in places for value in _extent(book, standing)])
    rows = tuple(_row(book, standing, axis, f"strip{at}") for at, standing in enumerate(places))
    return Board(rows, score_head(axis), _method_note(book), percent(book.run.study.inference.level))


def _effect(book: Book, agent: str) -> Measurement | None:
    return book.one("score.effect", dimension=AGGREGATE, agent=agent)


def _bounds(item: Measurement | None) -> tuple[float, float] | None:
    if item is None or item.value is None:
        return None
    return (item.value if item.low is None else item.low, item.value if item.high is None else item.high)


def _extent(book: Book, standing: Standing) -> tuple[float, ...]:
    """The ends of a permitted row's mark; nothing of a withheld one may move the axis."""
    if standing.places is None or (len(standing.agents) == 1 and not standing.single):
        return ()
    ends = [pair for pair in (_bounds(_effect(book, agent)) for agent in standing.agents) if pair]
    return (min(low for low, _ in ends), max(high for _, high in ends)) if ends else ()


def _row(book: Book, standing: Standing, axis: ScoreAxis, name: str) -> BoardRow:
    agents = tuple((clean(agent, 80), book.family(agent)) for agent in standing.agents)
    if standing.places is None:
        return _withheld(book, standing, axis, name, agents)
    places = ordinal_span(*standing.places)
    if standing.single:
        return _single(book, standing, axis, name, agents, places)
    if len(standing.agents) == 1:
        return _run(book, standing, axis, name, agents, places)
    return _class(book, standing, axis, name, agents, places)


def _withheld(
    book: Book, standing: Standing, axis: ScoreAxis, name: str, agents: tuple[tuple[str, str], ...]
) -> BoardRow:
    return BoardRow(
        agents=agents,
        places=None,
        note="",
        score=None,
        bounds="",
        score_note="",
        level="no-claim",
        tag=TAGS["no-claim"],
        why=_why_withheld(book, standing),
        strip=score_strip(name, axis, "no-claim", None, None),
    )


def _single(
    book: Book, standing: Standing, axis: ScoreAxis, name: str, agents: tuple[tuple[str, str], ...], places: str
) -> BoardRow:
    effect = _effect(book, standing.agents[0])
    value = None if effect is None else effect.value
    bounds = None if effect is None or effect.low is None or effect.high is None else (effect.low, effect.high)
    whole = shown(effect) if value is None else interval(value, *(bounds or (None, None)))
    score, _, rest = whole.partition(" (") if value is not None else (whole, "", "")
    return BoardRow(
        agents=agents,
        places=places,
        note="",
        score=book.to(effect, score),
        bounds=f"({rest}" if rest else "",
        score_note="",
        level=standing.level,
        tag=TAGS[standing.level],
        why=_why_single(book, standing),
        strip=score_strip(name, axis, standing.level, value, bounds),
    )


def _run(
    book: Book, standing: Standing, axis: ScoreAxis, name: str, agents: tuple[tuple[str, str], ...], places: str
) -> BoardRow:
    """A run of places that overlaps with those of others: a score would order what is not settled."""
    pairs = _permitted_about(book, standing.agents[0], "above")
    return BoardRow(
        agents=agents,
        places=places,
        note="one of these",
        score=None,
        bounds="",
        score_note="",
        level=standing.level,
        tag=TAGS[standing.level],
        why=f"Bounded by {plural(len(pairs), 'permitted pair')}; not settled against the others",
        strip=score_strip(name, axis, "no-claim", None, None),
    )


def _about(book: Book, agent: str, *kinds: ClaimKind) -> list[Verdict]:
    return [v for v in book.on(AGGREGATE, *kinds) if agent in v.claim.subjects]


def _permitted_about(book: Book, agent: str, *kinds: ClaimKind) -> list[Verdict]:
    return [v for v in _about(book, agent, *kinds) if v.publication_level != "no-claim"]


def _class(
    book: Book, standing: Standing, axis: ScoreAxis, name: str, agents: tuple[tuple[str, str], ...], places: str
) -> BoardRow:
    extent = _extent(book, standing)
    bounds = (extent[0], extent[1]) if extent else None
    return BoardRow(
        agents=agents,
        places=places,
        note="one class",
        score=span(*bounds) if bounds else "not measured",
        bounds="",
        score_note="the class from end to end of its intervals; each member’s own score is withheld",
        level=standing.level,
        tag=TAGS[standing.level],
        why=_why_class(book, standing),
        strip=score_strip(name, axis, standing.level, None, bounds),
    )


def _why_class(book: Book, standing: Standing) -> str:
    """Whether the class is one that a tie verdict names, or what the permitted pairs leave together."""
    named = any(
        set(v.claim.subjects) == set(standing.agents) and v.publication_level != "no-claim"
        for v in book.on(AGGREGATE, "tie")
    )
    said = "A tie class of its own verdict." if named else "As one class."
    return f"{said} No order inside it may be said."


def _why_single(book: Book, standing: Standing) -> str:
    agent = standing.agents[0]
    firsts = _permitted_about(book, agent, "first")
    families = len(book.run.study.families)
    if firsts:
        kept = f"Keeps the place without any one of the {words(families)} families"
        return kept if firsts[0].stability_status == "stable" and families > 1 else "A verdict carries the place"
    pairs = _permitted_about(book, agent, "above")
    if not pairs:
        return "Placed by the permitted order of all agents"
    return f"Placed by {plural(len(pairs), 'permitted pair')}"


def _why_withheld(book: Book, standing: Standing) -> str:
    about = _about(book, standing.agents[0], "first", "above")
    # What stops a first place differs for the leader alone, so it counts only where no pair was put to the gates.
    own = _about(book, standing.agents[0], "above") or about
    if not own:
        return "No claim about this agent was put to the gates"
    fields = {
        "agreement": sum("agreement" in v.binding for v in own),
        "stability": sum("stability" in v.binding for v in own),
        "controls": sum("adversarial" in v.binding and v.publication_level == "no-claim" for v in own),
    }
    bound = [name for name, times in fields.items() if times]
    permitted = sum(v.publication_level != "no-claim" for v in about)
    why = f"Stopped by {listing(bound)}" if bound else "No permitted place"
    return why + (f"; {plural(permitted, 'claim')} about it may be said" if permitted else "")


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
