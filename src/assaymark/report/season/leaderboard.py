"""The leaderboard of the first page: grades, possible ranks, and the totals of agents with a supported rank."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
from markupsafe import Markup

from assaymark.claims.certification import Rank
from assaymark.claims.levels import SILENT
from assaymark.claims.messages import Phrase
from assaymark.judging.season.plans import Bands, ScoringPlan
from assaymark.judging.season.scoring import SeasonRow
from assaymark.plan import FEW_CONSECUTIVE, FEWEST_CLUSTERS, FEWEST_CONSECUTIVE
from assaymark.records import AGGREGATE, Level
from assaymark.report import blocks as b
from assaymark.report.charts import canvas
from assaymark.report.charts.canvas import HALF, Element, Scale, circle, hatch, label, line, rect, row_mark
from assaymark.report.charts.paths import drawdowns
from assaymark.report.season.index import Language, SeasonIndex, round_points
from assaymark.report.text import EQUAL_WEIGHT, fit, known, text_width
from assaymark.text import clean

WIDTH: Final = 192
_PAD: Final = 5
_ROOM, _NEAR, _STEP = 22.0, 4.0, 5.0
_HATCH: Final = "bands-h"
_KIND: Final = {"headline": "mh", "qualified": "mq", "no-claim": "mn"}

Judged = tuple[float, int | None]
"""The points that a judge gave, and its index in the panel if that may be shown."""

BandNames = tuple[str, str, str]
"""The names of the bands: weak, mixed and strong."""


def band_scale(index: SeasonIndex) -> Scale:
    """The axis of all strips of a page: it holds both boundaries and all points, with room for the names."""

    def scale() -> Scale:
        bands, grades = index.run.scoring.bands, index.run.grades
        values = [grade.composite for grade in grades if grade.composite is not None]
        low = min((bands.mixed - _ROOM, *(value - _NEAR for value in values)))
        high = max((bands.strong + _ROOM, *(value + _NEAR for value in values)))
        return Scale(max(_STEP * (low // _STEP), 0.0), min(_STEP * -(-high // _STEP), 100.0), _PAD, WIDTH - _PAD)

    return index.once(("strips",), scale)


def _band_labels(bands: Bands, scale: Scale, names: BandNames, y: float) -> list[Element]:
    edges = (scale.left, scale(bands.mixed), scale(bands.strong), scale.right)
    return [
        label((low + high) / 2, y, name, "tk", "middle")
        for name, low, high in zip(names, edges, edges[1:], strict=False)
    ]


def strip_head(index: SeasonIndex) -> b.Inline:
    """The header of the strip column: the names of the bands and their boundaries, on the axis of all strips.

    It also defines the hatch that strips use.
    """
    words, bands, scale = index.words, index.run.scoring.bands, band_scale(index)
    weak, mixed, strong = (words.term("claim.band", band) for band in ("weak", "mixed", "strong"))
    marks = [label(scale(mark), 27, str(mark), "tk", "middle") for mark in (bands.mixed, bands.strong)]
    head = row_mark([hatch(_HATCH), *_band_labels(bands, scale, (weak, mixed, strong), 12), *marks], WIDTH, 32)
    return Markup('<span class="skip">{}</span>').format(words("board.drawn")), Markup(head)


def strip_markup(index: SeasonIndex, level: Level, points: Sequence[Judged], note: str | None = None) -> Markup:
    """The strip of an agent, with the same in words for screen readers.

    Without a claim the dots are open; without a grade there is a hatched box.
    """
    words, bands, scale = index.words, index.run.scoring.bands, band_scale(index)
    kind, values = _KIND[level], [value for value, _ in points]
    text, parts = words("board.ungraded"), [rect(1, 5, WIDTH - 2, 18, "void", f"url(#{_HATCH})")]
    if points:
        text = words("board.points", points=words.catalogue.names([words.number(value) for value in values]))
        mixed, strong = scale(bands.mixed), scale(bands.strong)
        parts = [
            rect(scale.left, 6, mixed - scale.left, 16, "novoid", f"url(#{_HATCH})"),
            rect(mixed, 6, strong - mixed, 16, "panel"), line(scale.left, 14, scale.right, 14, "hair"),
            line(mixed, 4, mixed, 24, "axis"), line(strong, 4, strong, 24, "axis"),
        ]  # fmt: skip
        if max(values) > min(values):
            parts.append(line(scale(min(values)), 14, scale(max(values)), 14, f"{kind}s"))
        dot = "open mns dot" if level == "no-claim" else f"{kind} gap"
        parts += [circle(scale(value), 14, 4.5, dot + canvas.judge_class(judge)) for value, judge in points]
    strip = Markup(row_mark(parts, WIDTH, 28))
    return Markup('<span role="img" aria-label="{}">{}</span>').format(note or text, strip)


_TOP: Final = 28.0

PartRow = tuple[str, str, Sequence[Judged], Sequence[tuple[float, float]]]
"""A part of an axis: its title, its weight, the points by judge, and lowered ones as (given, counted)."""


def part_figure(
    name: str, rows: Sequence[PartRow], bands: Bands, names: BandNames, title: str, desc: str
) -> tuple[str, str]:
    """The parts of an axis for half a screen, and for a phone with titles above their markers."""

    def draw(key: str, width: float) -> canvas.Drawn:
        above = width < HALF
        left, height = (10.0, 36.0) if above else (228.0, 24.0)
        scale, bottom = Scale(0.0, 100.0, left, width - 14), _TOP + height * len(rows)
        mixed, strong = scale(bands.mixed), scale(bands.strong)
        parts: list[Element] = [
            hatch(f"{key}-h"), rect(scale.left, _TOP, mixed - scale.left, bottom - _TOP, "novoid", f"url(#{key}-h)"),
            rect(mixed, _TOP, strong - mixed, bottom - _TOP, "panel"), line(mixed, _TOP, mixed, bottom, "axis"),
            line(strong, _TOP, strong, bottom, "axis"),
        ]  # fmt: skip
        room = (mixed - scale.left, strong - mixed, scale.right - strong)
        if all(text_width(text, 12) <= size + 10 for text, size in zip(names, room, strict=True)):
            parts += _band_labels(bands, scale, names, _TOP - 10)
        for at, (name_of, weight, points, lowered) in enumerate(rows):
            # The title is beside its markers, or above them on a phone.
            top, edge, start, halo = _TOP + height * at, scale.right - 4, scale.left + 4, " halo"
            y, text = top + 32.0, top + 18.5
            if not above:
                y, edge, start, halo = top + height / 2, scale.left - 14, 0.0, ""
                text = y + 4.5
            fitting = fit(name_of, edge - start - text_width(weight, 12) - 10, 13)
            parts += [label(start, text, fitting, halo.strip()), label(edge, text, weight, f"tk{halo}", "end"),
                      line(scale.left, y, scale.right, y, "hair")]  # fmt: skip
            if not points:
                parts.append(rect(scale.left + 1, y - 7, scale.right - scale.left - 2, 14, "void"))
                continue
            for given, counted in lowered:
                parts.append(line(scale(counted), y, scale(given), y, "capped"))
                parts.append(circle(scale(given), y, 3.5, "open ring"))
            low, high = min(value for value, _ in points), max(value for value, _ in points)
            parts += [line(scale(low), y, scale(high), y, "judges")] if high > low else []
            parts += [circle(scale(value), y, 3.5, f"judge{canvas.judge_class(judge)}") for value, judge in points]
        for mark in (0, bands.mixed, bands.strong, 100):
            parts.append(label(scale(mark), bottom + 18, str(mark), "tk", "middle"))
        return parts, bottom + 24

    return canvas.views(name, title, desc, draw, HALF)


_TOTAL: Final = "season.total"


def season_leaderboard(index: SeasonIndex) -> b.Section:
    """The leaderboard, tier by tier, with the baselines below; the points of each axis are folded under it."""
    words, n, rows, axes = index.words, index.graders, list[b.PageRow](), list[tuple[b.Inline, ...]]()
    for place in board_places(index):
        agent, row = index.agents[place.agent], index.rows.get(place.agent)
        ranks, total, reason = ranks_words(place, words), total_words(index, place), words.text(place.why)
        note = words("board.unresolved") if place.first != place.last else ""
        band, spread = band_words(row, words, place.shown), index.tier_range(place.agent, _TOTAL)
        # The range of the whole tier, for an agent that shares it.
        tier = words("board.tier", ends=lowest_to_highest(words, spread)) if note and spread else ""
        # Judges of an agent without a usable answer grade an empty record.
        silent = row is not None and row.state == SILENT
        graded = any(grade.composite is not None for grade in index.grades[place.agent]) and not silent
        points = () if silent else judged_points(index, place.agent)
        text = words("board.points", points=total) if graded and not points else None
        position: b.Inline = b.Styled(band, "un")
        if ranks:
            position = (b.bold(ranks), *((b.small(note),) if note != reason else ()))
        name = clean(agent.name, 60)
        rows.append(b.PageRow((
            (b.Linked(name, index.pages[place.agent]), b.small(clean(agent.family, 60))),
            position,
            (total if note else b.strong_link(total), b.small("; ".join(filter(None, (band, tier))))),
            strip_markup(index, place.level, points, text),
            *account_facts(index, place.agent),
            (b.Mark(place.level, words(f"level.{place.level}.tag")), b.small(reason)),
        )))  # fmt: skip
        axes.append((name, *(cell for _, cell in judged_cells(index, place))))
    for path in index.run.paths:
        if path.baseline:
            facts = account_facts(index, path.name, baseline=True)
            unjudged = b.Styled(words("board.unjudged"), "un")
            rows.append(b.PageRow((baseline_row_name(path.name, words), "", unjudged, "", *facts, ""), style="base"))
    header: tuple[b.Inline, ...] = (
        words("board.agent"), words("board.position"), (words("board.total"), " ", b.small(words("board.scale"))),
        strip_head(index), words("board.return"), words.say("accounts.versus"), words.say("earned.head.fall"),
        words("board.verdict"),
    )  # fmt: skip
    table = b.Table(header, tuple(rows), summary="", stacked=True, style="board season", wide=True,
                  styles=("", "p", "t", "b", "r", "r", "r", "v"), sorts=frozenset((0, 4, 5, 6)))  # fmt: skip
    columns = axis_heads(index)
    parts = b.Table((words("board.agent"), *columns), tuple(axes), frozenset(range(1, 1 + len(columns))), "")
    about = b.notes((" ".join(board_notes(index)),))
    blocks: list[b.Block] = [table, b.Group(words.say("accounts.more_parts"), (parts, *about), folded="closed")]
    if unranked := unranked_words(index):
        blocks.insert(0, b.Prose(unranked, "notice"))
    if design := tuple(design_words(index)):
        blocks.append(b.Prose(b.chained(design, " ")))
    dots = words("board.dots.one" if n == 1 else "board.dots.other", words.few(n))
    return b.Section("board", words("board.title"), words("board.lede", n, judges=dots), tuple(blocks))


def board_places(index: SeasonIndex) -> list[Rank[Phrase]]:
    """The rows by tier; within a tier, and without a total, by name only."""
    decided = index.run.decided
    tier = {agent: at for at, tier in enumerate(decided.tiers) for agent in tier}
    return sorted(
        decided.places,
        key=lambda place: (tier.get(place.agent, len(decided.tiers)), place.agent.casefold(), place.agent),
    )


def ranks_words(place: Rank[Phrase], words: Language) -> str:
    """The possible ranks of an agent; empty without a total."""
    if place.first is None or place.last is None:
        return ""
    return str(place.first) if place.first == place.last else words.range(place.first, place.last)


def total_words(index: SeasonIndex, place: Rank[Phrase]) -> str:
    """A total, the range of its judges if the agent shares its tier, or empty if it was not graded."""
    row = index.rows.get(place.agent)
    if row is None or row.total is None:
        return ""
    spread = index.judged(place.agent, _TOTAL)
    text = index.words.number(row.total) if place.shown or spread is None else lowest_to_highest(index.words, spread)
    return index.link(index.get(_TOTAL, agent=place.agent), text)


def unranked_words(index: SeasonIndex) -> str:
    """The notice that there are too few periods for any test, with the number needed; else empty."""
    serial = index.get("order.autocorrelation", AGGREGATE)
    pairs = [item for item in index.run.measurements if item.name == "contrast"]
    if serial is None or not pairs or any(item.value is not None for item in pairs):
        return ""
    n = max(item.n for item in pairs)
    if serial.detail["order"] == "consecutive":
        return index.words("board.unranked", n, needed=FEWEST_CONSECUTIVE, sure=FEW_CONSECUTIVE)
    return index.words("board.unranked_apart", n, needed=FEWEST_CLUSTERS)


def design_words(index: SeasonIndex) -> Iterator[str]:
    """The test of pairs, the autocorrelation of periods, and the smallest detectable difference."""
    words, tested = index.words, [m for m in index.run.measurements if m.name == "contrast" and m.value is not None]
    if tested:
        name = tested[0].method.partition("; ")[2].partition(",")[0]
        yield words("board.design.test", max(item.n for item in tested), test=words.term("board.test", name))
    serial = index.get("order.autocorrelation", AGGREGATE)
    if known(serial):
        lags = "; ".join(words.number(lag, 2) for lag in serial.detail["lags"])
        key = "board.design.flagged" if serial.detail["flagged"] else "board.design.lags"
        text = words(key, last=len(serial.detail["lags"]), lags=lags, limit=float(serial.detail["flag"]))
        yield index.link(serial, text)
    reach = index.get("order.detectable", AGGREGATE)
    if known(reach):
        leader, pair = (float(reach.detail[name]) for name in ("leader", "pair"))
        power = words.percent(float(reach.detail["power"]), 0)
        yield index.link(reach, words("board.design.reach", power=power, leader=leader, pair=pair))


def judged_points(index: SeasonIndex, agent: str) -> tuple[Judged, ...]:
    """The composites of an agent from low to high."""
    shown = index.shown(agent)
    pairs = [(grade.composite, index.judge_place(grade.judge) if shown else None) for grade in index.grades[agent]]
    ordered = sorted(((points, judge) for points, judge in pairs if points is not None), key=lambda pair: pair[0])
    return tuple(ordered) if shown or len(ordered) > 1 else ()


def axis_heads(index: SeasonIndex) -> tuple[str, ...]:
    """The headers of the judged columns; efficiency only if the plan has it."""
    names = ("reasoning", "evidence", "outcome", *(["efficiency"] if index.run.scoring.efficiency.weight else []))
    return tuple(index.words(f"axis.{name}") for name in names)


def judged_cells(index: SeasonIndex, place: Rank[Phrase]) -> list[tuple[str, str]]:
    """The judged columns of an agent as (header, value), or the reason why there is none."""
    words, agent, row = index.words, place.agent, index.rows.get(place.agent)
    silent = row is not None and row.state == SILENT
    none = b.Styled(words("board.silent" if silent else "board.ungraded"), "un")

    def gave(name: str, axis: str = "") -> str:
        """The points by judge, from lowest to highest; an empty record was not graded."""
        spread = None if row is None or silent else index.judged(agent, name, axis)
        return none if spread is None else b.Linked(lowest_to_highest(words, spread), f"{index.pages[agent]}#graded")

    item, outcome = index.get("season.outcome", agent=agent), gave("season.outcome")
    if not silent and (item is None or item.value is None):
        states = {grade.outcome_state for grade in index.grades[agent] if grade.composite is not None} or {"not graded"}
        outcome = b.Styled(words.term("state", min(states) if item is None else item.state), "un")
    quick: str = none
    if row is not None and row.agreement is not None:
        quick = b.Styled(words.term("state", "no timing"), "un")
        if row.efficiency is not None:
            spread = index.judged(agent, "season.efficiency")
            # It is in proportion to the total.
            text = lowest_to_highest(words, spread) if spread and not place.shown else str(round_points(row.efficiency))
            quick = index.link(index.get("season.efficiency", agent=agent), text)
    cells = (gave("season.axis", "reasoning"), gave("season.axis", "evidence"), outcome, quick)
    return list(zip(axis_heads(index), cells, strict=False))


def band_words(row: SeasonRow | None, words: Language, shown: bool = False) -> str:
    """The band by the judges: agreed, contested between two, or that of a single judge."""
    if row is None or row.agreement is None or row.standing is None:
        return words("board.silent" if row is not None and row.state == SILENT else "board.ungraded")
    judged = row.agreement
    name = words.term("claim.band", judged.band)
    if judged.contested:
        ends = {"low": words.term("claim.band", judged.lowest), "high": words.term("claim.band", judged.highest)}
        return words("board.band.contested", **ends)
    if shown and row.standing.band != judged.band:
        return words("board.band.moved", total=words.term("claim.band", row.standing.band), judged=name)
    return words("board.band.single" if judged.state == "single judge" else "board.band.agreed", band=name)


def lowest_to_highest(words: Language, values: Iterable[float]) -> str:
    """The range of the judges in whole points."""
    first, *_, last = *(points := sorted(map(round_points, values))), points[-1]
    return str(first) if first == last else words.range(first, last)


def account_facts(index: SeasonIndex, name: str, *, baseline: bool = False) -> tuple[str, str, str]:
    """Return, its excess over equal weight in points, and maximum drawdown; these are facts and always shown."""
    words, key, path = index.words, "baseline" if baseline else "agent", index.path(name, baseline)
    other = next(filter(None, (index.path(at, baseline=True) for at in EQUAL_WEIGHT)), None)
    none, versus = b.Styled(words("board.no_days"), "un"), ""
    item = index.get("season.return", **{key: name})
    gain = item.value if known(item) else None
    if gain is None and path is not None and path.nav and path.start:
        gain = path.nav[-1] / path.start - 1
    returned: str = none if gain is None else index.link(item, words.percent(gain, sign=True))
    if path is None or not path.nav:
        return returned, versus, none
    if path is other:
        versus = b.Styled(words("model.accounts.benchmark"), "un")
    elif other is not None and other.nav:
        even = other.on(path.days)
        versus = words.number(100 * float(path.nav[-1] / path.start - even[-1] / even[0]), 1, sign=True)
    deepest = words.percent(float(drawdowns(np.array([path.start, *path.nav])).min()))
    return returned, versus, index.link(index.get("season.drawdown", **{key: name}), deepest)


def baseline_row_name(name: str, words: Language) -> str:
    """The name of a baseline in its row; an unknown one stays unchanged."""
    key = f"board.baseline.{name.replace(' ', '_').replace('/', '_')}"
    return words(key) if words.has(key) else clean(name, 60)


def board_notes(index: SeasonIndex) -> Iterator[str]:
    """Notes on the formula of a total, on totals that lack a part, and on returns."""
    words, plan = index.words, index.run.scoring
    names = sorted({place.agent for place in index.run.decided.places} & {*index.rows})
    graded = [index.rows[name] for name in names if index.rows[name].agreement is not None]
    late = [row.contestant for row in graded if row.efficiency is None] if plan.efficiency.weight > 0 else []
    part = [row.contestant for row in graded if row.absent]
    items = [(name, index.get("season.outcome", agent=name)) for name in (row.contestant for row in graded)]
    undecided = [name for name, item in items if item is not None and item.value is None]
    yield formula(plan, words)
    if 1 < len(graded) == len(late):
        yield words("board.note.untimed")
        late = []
    for key, listed in (("timing", late), ("outcome", undecided), ("part", part)):
        if listed:
            yield words(f"board.note.{key}", len(listed), agents=words.names(listed))
    if index.run.paths:
        yield words("board.note.recorded" if index.run.source else "board.note.path")


def formula(plan: ScoringPlan, words: Language) -> str:
    """The formula of a total in words, with the plan's weights."""
    if not plan.efficiency.weight:
        return words("formula.single" if plan.panel == "single" else "formula.median")
    number, share = words.catalogue.number, plan.efficiency.weight / 100
    return words("formula.efficient", rest=number(1 - share, ".3g"), share=number(share, ".3g"))
