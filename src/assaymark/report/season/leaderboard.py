"""The table of the first page: grades, possible ranks, and the totals of agents whose rank is supported."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from assaymark.claims.evidence import SILENT
from assaymark.claims.season_claims import Place, SeasonVerdicts
from assaymark.claims.standing import FEW_CONSECUTIVE
from assaymark.judging.season.plans import ScoringPlan
from assaymark.judging.season.table import SeasonRow
from assaymark.metrology.moderated import FEWEST_CLUSTERS, FEWEST_CONSECUTIVE
from assaymark.records import AGGREGATE, Level
from assaymark.report.blocks import Linked
from assaymark.report.charts.canvas import Scale
from assaymark.report.charts.paths import falls
from assaymark.report.portbench.market import EQUAL_WEIGHT
from assaymark.report.season.index import SeasonLookup
from assaymark.report.season.inputs import SeasonGradeView
from assaymark.report.season.strip import JudgedPoints, band_head, band_scale, band_strip
from assaymark.report.season.words import Words
from assaymark.text import clean

_JUDGED: Final = ("reasoning", "evidence", "outcome")
_BANDS: Final = ("weak", "mixed", "strong")
_TOTAL: Final = "season.total"


@dataclass(frozen=True, slots=True)
class Cell:
    """A number or a range of the judges; ``missing`` where it is a word for why there is none."""

    text: str
    missing: bool = False


@dataclass(frozen=True, slots=True)
class BoardRow:
    """One agent. ``places`` are the ranks that it can have; ``total`` is a range of its judges without a single one.

    ``tier`` is the range of its tier, where it shares one. ``drawn`` describes ``strip`` in words. ``facts`` are its
    return, that against equal weight in points, and its maximum drawdown.
    """

    agent: str
    family: str
    link: str
    places: str
    note: str
    tier: str
    total: str
    band: str
    strip: str
    drawn: str
    cells: tuple[tuple[str, Cell], ...]
    facts: tuple[Cell, Cell, Cell]
    level: Level
    tag: str
    why: str


@dataclass(frozen=True, slots=True)
class BoardView:
    """The table: the head of its drawn column, rows tier by tier, baselines, and notes.

    ``unranked`` is why no agent can be ranked, where that follows from the number of periods. ``design`` are sentences
    on the tests behind the ranks.
    """

    head: str
    judges: str
    columns: tuple[str, ...]
    rows: tuple[BoardRow, ...]
    baselines: tuple[tuple[str, tuple[Cell, Cell, Cell]], ...]
    notes: tuple[str, ...]
    unranked: str
    design: tuple[str, ...]


def board_view(book: SeasonLookup, words: Words) -> BoardView:
    """The leaderboard, tier by tier and by name inside a tier; agents without a total are last."""
    run = book.run
    weak, mixed, strong = (words.term("claim.band", band) for band in _BANDS)
    agents = [place.agent for place in run.decided.places]
    scale = book_scale(book)
    return BoardView(
        head=band_head(run.scoring.bands, scale, (weak, mixed, strong)),
        judges=judges_line(book, words),
        columns=tuple(words(f"axis.{name}") for name in _columns(run.scoring)),
        rows=tuple(_row(book, place, scale, words) for place in _in_order(run.decided)),
        baselines=tuple(
            (baseline_name(path.name, words), account_facts(book, path.name, words, baseline=True))
            for path in run.paths
            if path.baseline
        ),
        notes=tuple(filter(None, _notes(book, agents, words))),
        unranked=_unranked(book, words),
        design=tuple(_design(book, words)),
    )


def _in_order(decided: SeasonVerdicts) -> list[Place]:
    """By tier; inside a tier, and without a total, by name and nothing else."""
    tier = {agent: at for at, tier in enumerate(decided.tiers) for agent in tier}
    last = len(decided.tiers)
    return sorted(decided.places, key=lambda one: (tier.get(one.agent, last), one.agent.casefold(), one.agent))


def _unranked(book: SeasonLookup, words: Words) -> str:
    """That there are too few periods for any test, with the number that it takes."""
    serial = book.one("order.autocorrelation", dimension=AGGREGATE)
    pairs = [item for item in book.run.measurements if item.name == "contrast"]
    if serial is None or not pairs or any(item.value is not None for item in pairs):
        return ""
    n = max(item.n for item in pairs)
    if serial.detail["order"] == "consecutive":
        return words("board.unranked", n=n, needed=FEWEST_CONSECUTIVE, sure=FEW_CONSECUTIVE)
    return words("board.unranked_apart", n=n, needed=FEWEST_CLUSTERS)


def _design(book: SeasonLookup, words: Words) -> Iterator[str]:
    """How pairs are tested, how far periods depend on each other, and the smallest detectable difference."""
    tested = [item for item in book.run.measurements if item.name == "contrast" and item.value is not None]
    if tested:
        name = tested[0].method.partition("; ")[2].partition(",")[0]
        periods = [item.n for item in tested]
        yield words("board.design.test", n=max(periods), test=words.term("board.test", name))
    serial = book.one("order.autocorrelation", dimension=AGGREGATE)
    if serial is not None and serial.value is not None:
        lags = "; ".join(words.number(lag, 2) for lag in serial.detail["lags"])
        key = "board.design.flagged" if serial.detail["flagged"] else "board.design.lags"
        text = words(key, last=len(serial.detail["lags"]), lags=lags, limit=float(serial.detail["flag"]))
        yield book.to(serial, text)
    reach = book.one("order.detectable", dimension=AGGREGATE)
    if reach is not None and reach.value is not None:
        leader, pair = (float(reach.detail[name]) for name in ("leader", "pair"))
        power = words.percent(float(reach.detail["power"]), 0)
        yield book.to(reach, words("board.design.reach", power=power, leader=leader, pair=pair))


def book_scale(book: SeasonLookup) -> Scale:
    """The axis of every judge's points in a season."""
    return band_scale(book.run.scoring.bands, [one.composite for one in book.run.grades if one.composite is not None])


def judges_line(book: SeasonLookup, words: Words) -> str:
    """What dots and columns are, by how many judges there are."""
    n = book.graders
    return words("board.lede", n=n, judges=words("board.dots.one" if n == 1 else "board.dots.other", n=words.few(n)))


def _row(book: SeasonLookup, place: Place, scale: Scale, words: Words) -> BoardRow:
    agent = book.agents[place.agent]
    row = book.rows.get(place.agent)
    # What judges grade of an agent without a usable answer is an empty record.
    silent = row is not None and row.state == SILENT
    grades = [] if silent else [one for one in book.grades[place.agent] if one.composite is not None]
    points = () if silent else judged_points(book, place.agent)
    return BoardRow(
        agent=clean(agent.name, 60),
        family=clean(agent.family, 60),
        link=book.pages[place.agent],
        places=_places(place, words),
        note=words("board.unresolved") if place.first != place.last else "",
        tier=_tier(book, place, words),
        total=_total(book, place, row, words),
        band=band_words(row, words, shown=place.shown),
        strip=band_strip(book.run.scoring.bands, scale, place.level, points),
        drawn=drawn_words(points, words)
        if points or not grades
        else words("board.points", points=_total(book, place, row, words)),
        cells=_cells(book, place, row, grades, words),
        facts=account_facts(book, place.agent, words),
        level=place.level,
        tag=words(f"level.{place.level}.tag"),
        why=words.text(place.why),
    )


def _tier(book: SeasonLookup, place: Place, words: Words) -> str:
    """The range of a tier from end to end, for an agent that shares it."""
    spread = book.tier_range(place.agent, _TOTAL)
    shared = place.first != place.last and spread is not None
    return words("board.tier", ends=lowest_to_highest(spread)) if shared and spread else ""


def _total(book: SeasonLookup, place: Place, row: SeasonRow | None, words: Words) -> str:
    """A total, the range of its judges where the agent shares its tier, or nothing where it was not graded."""
    if row is None or row.total is None:
        return ""
    item, spread = book.one(_TOTAL, agent=place.agent), book.judged(place.agent, _TOTAL)
    return book.to(item, words.number(row.total) if place.shown or spread is None else lowest_to_highest(spread))


def judged_points(book: SeasonLookup, agent: str) -> tuple[JudgedPoints, ...]:
    """The composites of an agent from low to high; with its judge only where no two agents can be held together by it.

    The dots of one judge over agents that cannot be ranked would rank them, and the dot of a single judge is the total.
    """
    shown = book.run.decided.place(agent).shown
    found = [(one.composite, book.judge_place(one.judge) if shown else None) for one in book.grades[agent]]
    known = [JudgedPoints(points, judge) for points, judge in found if points is not None]
    return tuple(sorted(known, key=lambda one: one.points)) if shown or len(known) > 1 else ()


def drawn_words(points: Sequence[JudgedPoints], words: Words) -> str:
    """What a strip draws, for those who cannot see it."""
    if not points:
        return words("board.ungraded")
    return words("board.points", points=words.catalogue.names([words.number(one.points) for one in points]))


def _columns(plan: ScoringPlan) -> tuple[str, ...]:
    """The judged columns; a plan without efficiency has none of it."""
    return (*_JUDGED, "efficiency") if plan.efficiency.weight else _JUDGED


def _cells(
    book: SeasonLookup, place: Place, row: SeasonRow | None, grades: Sequence[SeasonGradeView], words: Words
) -> tuple[tuple[str, Cell], ...]:
    """The judged columns of an agent, with their names."""
    made = {
        "reasoning": _judged(book, row, "season.axis", words, axis="reasoning"),
        "evidence": _judged(book, row, "season.axis", words, axis="evidence"),
        "outcome": _outcome(book, place.agent, row, grades, words),
        "efficiency": _efficiency(book, place, row, words),
    }
    return tuple((words(f"axis.{name}"), made[name]) for name in _columns(book.run.scoring))


def _places(place: Place, words: Words) -> str:
    """The ranks that an agent can have, of how many; empty without a total."""
    if place.first is None or place.last is None:
        return ""
    return str(place.first) if place.first == place.last else words("places.range", first=place.first, last=place.last)


def band_words(row: SeasonRow | None, words: Words, *, shown: bool = False) -> str:
    """The band that the judges give: agreed, contested between two, or that of one judge.

    Where a total is shown and efficiency moved it into another band, both are named.
    """
    if row is None or row.agreement is None or row.standing is None:
        return _no_total(row, words)
    judged = row.agreement.standing
    name = words.term("claim.band", judged.band)
    if judged.contested:
        ends = {"low": words.term("claim.band", judged.lowest), "high": words.term("claim.band", judged.highest)}
        return words("board.band.contested", **ends)
    if shown and row.standing.band != judged.band:
        return words("board.band.moved", total=words.term("claim.band", row.standing.band), judged=name)
    return words("board.band.single" if judged.state == "single judge" else "board.band.agreed", band=name)


def whole(value: float) -> int:
    """Points as they are read: rounded half up.

    >>> whole(66.5), whole(66.49999999999999), whole(44.4)
    (67, 67, 44)
    """
    return math.floor(round(value, 9) + 0.5)


def lowest_to_highest(values: Sequence[float]) -> str:
    """The range of the judges in whole points; a dash, because it is no interval.

    >>> lowest_to_highest([57.6, 72.4, 66]), lowest_to_highest([70.0])
    ('58–72', '70')
    """
    low, high = whole(min(values)), whole(max(values))
    return str(low) if low == high else f"{low}–{high}"


def _no_total(row: SeasonRow | None, words: Words) -> str:
    """Why an agent has no total: nobody graded it, or there was nothing to grade."""
    return words("board.silent" if row is not None and row.state == SILENT else "board.ungraded")


def _judged(book: SeasonLookup, row: SeasonRow | None, name: str, words: Words, axis: str = "") -> Cell:
    """What the judges gave, from lowest to highest; an empty record has nothing that was graded."""
    spread = None if row is None or row.state == SILENT else book.judged(row.contestant, name, axis)
    if spread is None or row is None:
        return Cell(_no_total(row, words), missing=True)
    return Cell(Linked(lowest_to_highest(spread), f"{book.pages[row.contestant]}#graded"))


def _outcome(
    book: SeasonLookup, agent: str, row: SeasonRow | None, grades: Sequence[SeasonGradeView], words: Words
) -> Cell:
    if row is not None and row.state == SILENT:
        return Cell(_no_total(row, words), missing=True)
    item = book.one("season.outcome", agent=agent)
    if item is not None and item.value is not None:
        return _judged(book, book.rows.get(agent), item.name, words)
    if item is not None:
        return Cell(words.term("state", item.state), missing=True)
    states = {one.outcome_state for one in grades} or {"not graded"}
    return Cell(words.term("state", min(states)), missing=True)


def _efficiency(book: SeasonLookup, place: Place, row: SeasonRow | None, words: Words) -> Cell:
    if row is None or row.agreement is None:
        return Cell(_no_total(row, words), missing=True)
    if row.efficiency is None:
        return Cell(words.term("state", "no timing"), missing=True)
    item, spread = book.one("season.efficiency", agent=place.agent), book.judged(place.agent, "season.efficiency")
    hidden = spread is not None and not place.shown  # it is in proportion to the total
    return Cell(book.to(item, lowest_to_highest(spread) if spread and hidden else str(whole(row.efficiency))))


def returned(book: SeasonLookup, name: str, words: Words, *, baseline: bool = False) -> Cell:
    """The return over the season; a fact, always shown."""
    item = book.one("season.return", **{"baseline" if baseline else "agent": name})
    value = None if item is None else item.value
    path = book.path(name, baseline=baseline)
    if value is None and path is not None and path.nav and path.start:
        value = path.nav[-1] / path.start - 1
    if value is None:
        return Cell(words("board.no_days"), missing=True)
    return Cell(book.to(item, words.percent(value, sign=True)))


def account_facts(book: SeasonLookup, name: str, words: Words, *, baseline: bool = False) -> tuple[Cell, Cell, Cell]:
    """Return, points of it more than equal weight, and maximum drawdown; facts, always shown."""
    first, path = returned(book, name, words, baseline=baseline), book.path(name, baseline=baseline)
    other = next((one for at in EQUAL_WEIGHT if (one := book.path(at, baseline=True)) is not None), None)
    none, versus = Cell(words("board.no_days"), missing=True), Cell("")
    if path is None or not path.nav:
        return first, versus, none
    if other is not None and other.nav:
        points = 100 * (path.nav[-1] / path.start - other.nav[-1] / other.start)
        same = path is other
        versus = Cell(words("model.accounts.benchmark") if same else words.number(points, 1, sign=True), missing=same)
    deepest = float(falls(np.array([path.start, *path.nav])).min())
    item = book.one("season.drawdown", **{"baseline" if baseline else "agent": name})
    return first, versus, Cell(book.to(item, words.percent(deepest)))


def baseline_name(name: str, words: Words) -> str:
    """How the row of a baseline is called; one that is not known stays as it is."""
    key = f"board.baseline.{name.replace(' ', '_').replace('/', '_')}"
    return words(key) if words.has(key) else clean(name, 60)


def _notes(book: SeasonLookup, agents: Sequence[str], words: Words) -> list[str]:
    rows = [book.rows[name] for name in sorted(agents) if name in book.rows]
    graded = [row for row in rows if row.agreement is not None]
    timed = book.run.scoring.efficiency.weight > 0
    late = [row.contestant for row in graded if row.efficiency is None] if timed else []
    part = [row.contestant for row in graded if row.absent]
    open_outcomes = [
        row.contestant
        for row in graded
        if (item := book.one("season.outcome", agent=row.contestant)) is not None and item.value is None
    ]
    return [
        formula(book.run.scoring, words),
        _untimed(late, len(graded), words),
        words("board.note.outcome", agents=words.names(open_outcomes), n=len(open_outcomes)) if open_outcomes else "",
        words("board.note.part", agents=words.names(part), n=len(part)) if part else "",
        words("board.note.recorded" if book.run.source else "board.note.path") if book.run.paths else "",
    ]


def _untimed(late: Sequence[str], graded: int, words: Words) -> str:
    """Whose totals are the median alone, because no time was measured."""
    if 1 < graded == len(late):
        return words("board.note.untimed")
    return words("board.note.timing", agents=words.names(late), n=len(late)) if late else ""


def formula(plan: ScoringPlan, words: Words) -> str:
    """How a total is made, in words with the plan's weights."""
    if not plan.efficiency.weight:
        return words("formula.single" if plan.panel == "single" else "formula.median")
    share = plan.efficiency.weight / 100
    return words(
        "formula.efficient", rest=words.catalogue.number(1 - share, ".3g"), share=words.catalogue.number(share, ".3g")
    )
