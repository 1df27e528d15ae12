"""Do the controls hold? Texts whose right treatment is known, held against the honest records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from assaymark.records import AGGREGATE, Level, Measurement
from assaymark.report.blocks import Beside, Block, Figure, Group, Section, Table, Text, notes, section, table_of
from assaymark.report.charts.grids import scan_line
from assaymark.report.charts.intervals import DOTS, AxisRow, Mark, axis_rows, thinned
from assaymark.report.inputs import RunIndex
from assaymark.report.text import (
    CELLS,
    cell_title,
    counted,
    ends_of,
    estimate,
    listing,
    p_of,
    plural,
    real,
    shown,
    signed,
    sizes,
    state_words,
)
from assaymark.text import clean, count, number, percent, span

# Who may be ranked: the tiers and the orders that the verdicts on a score support.
#
# A cut runs where every agent above it has a supported order over every agent below it. What lies between two cuts is a
# tier: agents that cannot be ranked. It follows from the verdicts and adds no error of its own.


_RANK: Mapping[Level, int] = {"no-claim": 0, "qualified": 1, "headline": 2}


@dataclass(frozen=True, slots=True)
class Tier:
    """Agents between two cuts in alphabetical order, with the ranks that they share. ``level`` is the weakest verdict
    that separates them from the others; no-claim where nothing does."""

    agents: tuple[str, ...]
    ranks: tuple[int, int]
    level: Level

    @property
    def alone(self) -> bool:
        """Whether it is one agent: only then may a score of its own be shown."""
        return len(self.agents) == 1


def weakest(levels: Iterable[Level]) -> Level:
    """The level that binds; no levels at all support nothing.

    >>> weakest(["headline", "qualified"]), weakest([])
    ('qualified', 'no-claim')
    """
    return min(levels, key=_RANK.__getitem__, default="no-claim")


def tiers(book: RunIndex, dimension: str) -> tuple[Tier, ...]:
    """The tiers on one score from high to low; a single one where no cut is supported."""
    groups = book.summary.tiers.get(dimension) or ((book.agents,) if book.agents else ())
    orders, found, rank = supported_orders(book, dimension), [], 1
    for group in groups:
        around = [level for pair, level in orders.items() if len(set(pair) & set(group)) == 1]
        found.append(Tier(group, (rank, rank + len(group) - 1), weakest(around if len(groups) > 1 else ())))
        rank += len(group)
    return tuple(found)


def supported_orders(book: RunIndex, dimension: str) -> dict[tuple[str, str], Level]:
    """(higher, lower) to its level, for every pair whose order is supported."""
    return {
        (v.claim.subjects[0], v.claim.subjects[1]): v.publication_level
        for v in book.on(dimension, "pair")
        if v.publication_level != "no-claim"
    }


def judged_range(book: RunIndex, dimension: str, agent: str) -> tuple[float, float] | None:
    """From the lowest to the highest score that a judge alone gives an agent; None for fewer than two judges. It stands
    where agents that cannot be ranked would have a score of their own."""
    alone = book.every("single.level", dimension=dimension, agent=agent)
    found = [item.value for item in alone if item.value is not None]
    return (min(found), max(found)) if len(found) > 1 else None


def ranked_alone(book: RunIndex, dimension: str) -> dict[str, Tier]:
    """The tiers of one agent, by agent: what may have a rank and a score of its own."""
    return {tier.agents[0]: tier for tier in tiers(book, dimension) if tier.alone and tier.level != "no-claim"}


# Does length alone move the score? A straight line, and a scan for a break that a straight line would miss.


def style_section(book: RunIndex) -> Section:
    """The stylometric audit of the honest records."""
    item, drawn = book.one("style.threshold", dimension=AGGREGATE), list[Block]()
    points = sorted(
        (float(one[0]), float(one[1]), int(one[2]))  # words, difference, records below
        for one in (() if item is None else item.detail.get("scan", ()))
        if isinstance(one, (list, tuple)) and len(one) == 3
    )
    if item is not None and item.value is not None and len(points) > 1:
        rows = tuple((count(round(tokens)), signed(gap), count(below)) for tokens, gap, below in points)
        table = Table(("Words", "Above minus below, points", "Records below"), rows, frozenset({1, 2}))
        first, last = points[0], points[-1]
        desc = (
            f"The difference is {signed(first[1])} at {count(round(first[0]))} words and {signed(last[1])} at "
            f"{count(round(last[0]))}; the scores part most at {count(round(item.value))}"
        )
        line, terse = [(tokens, gap) for tokens, gap, _ in points], float(book.study.cells.terse_tokens)
        wide, narrow = scan_line("scan", line, item.value, terse, "Score above minus below each length", desc)
        caption = (
            "Mean panel score of the texts with at least so many words minus that of the shorter ones, in rubric "
            "points. Solid: the split where they part most. Dashed: below it the plan calls a text terse."
        )
        drawn = [Figure("Where do long and short texts part?", caption, wide, narrow, values=table), table]
    matched, said = book.known("length_matched.contrast"), ""
    if matched:
        tested = [((m.value or 0.0) > 0, float(m.detail.get("p_holm", m.detail.get("p", 1.0)))) for m in matched]
        kept = sum(above and p <= book.study.inference.alpha for above, p in tested)
        of = f"{count(kept)} of {plural(len(matched), 'contrast')} {'keeps' if kept == 1 else 'keep'}"
        said = f"On texts of one length, {of} the panel’s direction and significance."
    return section("length", "Does length alone move the score?", style_answer(book), drawn, notes([said]))


def style_answer(book: RunIndex) -> str:
    """The straight line and the break, in one or two sentences."""
    line, item = (
        book.one("score.length_correlation", dimension=AGGREGATE),
        book.one("style.threshold", dimension=AGGREGATE),
    )
    said = [] if line is None else [f"Length and panel score correlate at {shown(line)}."]
    if item is None:
        said.append("No break by length was looked for, so a penalty on short texts alone would not show.")
    elif item.value is None:
        said.append(f"The scan for a break is {state_words(item)}.")
    else:
        gap = real(item.detail.get("difference"))
        size = "" if gap is None else f": {signed(gap)} points from there on"
        tested = p_of(item, lead=" (", otherwise="")
        said.append(f"The scores part most at {count(round(item.value))} words{size}{tested and tested + ')'}.")
    return " ".join(said)


GOOD: Final = frozenset({"passed", "substance", "invariant", "noticed"})
_BAD: Final = frozenset({"failed", "verbosity-bias", "terse-favoured", "style-sensitive", "not noticed"})
_AGAINST: Final[Mapping[str, str]] = {
    "cell_a": "the honest lower quartile",
    "red_team": "the honest lower quartile",
    "cell_b": "the honest mean",
    "paraphrase": "the record it was made from",
    "fact_flip": "the record it was made from",
    "length_matched": "the record it was made from",
}
_MARKS: Final[Mapping[Level, Mark]] = {"headline": "mh", "qualified": "mq", "no-claim": "mn"}


@dataclass(frozen=True, slots=True)
class Control:
    """One control cell. ``gate`` is None where it has no rule or was not graded. What it shows describes the judges:
    number and outcome are always shown, whether or not they are claimed. ``turned`` has the outcomes without a judge
    family where that changes them, as (outcome, families)."""

    cell: str
    title: str
    gate: Measurement | None
    score: Measurement | None
    outcome: str
    level: Level | None
    turned: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def name(self) -> str:
        """Its title without what its texts are."""
        return self.title.partition(":")[0]

    @property
    def supported(self) -> bool:
        """Whether what its rule found may be claimed."""
        return self.level != "no-claim"

    @property
    def said(self) -> str:
        """The outcome as a page prints it; a good one comes after those that it has without a judge family."""
        if not self.turned:
            return self.outcome or "no rule"
        good = self.outcome in GOOD
        return f"{self.without}; with all judges {self.outcome}" if good else f"{self.outcome}; {self.without}"

    @property
    def without(self) -> str:
        """What it comes to without some judge family; empty where no family changes it."""
        return "; ".join(f"{other} without judge family {listing(names, last='or')}" for other, names in self.turned)


def controls(book: RunIndex) -> tuple[Control, ...]:
    """Every control cell that was graded or that the plan asks for, in the order of the protocol."""
    levels = {v.claim.subjects[0]: v.publication_level for v in book.cells}
    named = {m.labels.get("cell", "") for name in ("cell.gate", "cell.score") for m in book.every(name)}
    wanted = named | set(book.study.cells_judged) | set(levels)

    def control(cell: str) -> Control:
        gate, found = book.one("cell.gate", cell=cell), dict[str, list[str]]()
        outcome = "" if gate is None else clean(str(gate.detail.get("outcome", "")), 40)
        for item in book.every("cell.drop", cell=cell):
            other = clean(str(item.detail.get("outcome") or outcome), 40)
            if outcome and other != outcome:
                found.setdefault(other, []).append(clean(item.labels.get("dropped", ""), 60))
        turned = tuple((other, tuple(sorted(names))) for other, names in sorted(found.items()))
        score = book.one("cell.score", cell=cell, dimension=AGGREGATE)
        return Control(cell, clean(cell_title(cell), 80), gate, score, outcome, levels.get(cell), turned)

    ordered = (*(cell for cell in CELLS if cell in wanted), *sorted(wanted - set(CELLS) - {""}))
    return book.once(("controls",), lambda: tuple(control(str(cell)) for cell in ordered))


def controls_section(book: RunIndex) -> Section:
    """Control texts against their rules, where their scores lie, with each judge family left out, and who is brief."""
    found = [c for c in controls(book) if c.gate is not None or c.score is not None]
    columns = tuple((one,) for one in (_gates(book, found), _spread(book, found)) if one is not None)
    separation, said = book.one("cell.separation", dimension=AGGREGATE), ""
    if separation is not None and sum(c.cell in ("cell_a", "cell_b") for c in found) == 2:
        gap = shown(separation) if separation.value is None else estimate(separation)
        said = f"Cell B minus cell A: {gap} points. Near 0 the panel cannot tell terse and right from long and wrong."
    families = sorted({m.labels["dropped"] for m in book.every("cell.drop")})
    drops = []
    for control in found:
        every = [book.one("cell.drop", cell=control.cell, dropped=family) for family in families]
        if control.gate is not None and any(every):
            drops.append((control.title, *(_drop(book, item) for item in (control.gate, *every))))
    terse = table_of(
        ("Agent", "Share of terse rationales", "interval", "n"),
        [(clean(agent, 80), book.to(item, percent(item.value or 0.0, 1)),
          ends_of(item, lambda low, high: f"{percent(low, 1)} to {percent(high, 1)}")[2:-1] or "no interval",
          counted(item.n, "record")) for agent, item in terse_agents(book)],
        3, "Share of terse rationales by agent",
    )  # fmt: skip
    answers = [] if found else [
        "No control texts were graded, so nothing shows that the panel rewards substance over style."
    ]  # fmt: skip
    for words, outcomes in (("held", GOOD), ("did not hold", _BAD)):
        if names := [c.name for c in found if c.outcome in outcomes and not c.turned]:
            answers.append(f"{listing(names)} {words}.")
    answers += [f"{c.name} depends on the judges: {c.said}." for c in found if c.turned]
    if open_ := [c.name for c in found if c.gate is not None and not c.turned and c.outcome not in GOOD | _BAD]:
        answers.append(f"{listing(open_)} left it open.")
    if kept := [c.name for c in found if not c.supported]:
        answers.append(f"No claim about {listing(kept, last='or')} is supported.")
    answer = " ".join(answers) or "The control texts were graded; none of them has a rule of its own."

    def where(item: Measurement | None) -> tuple[str, str]:
        box = quartiles(item)
        middle = "not measured" if box is None else f"{number(box[1])} ({span(box[0], box[2])})"
        known = item is not None and item.value is not None
        return book.to(item, estimate(item)) if known and item else shown(item), middle

    honest, rows = book.one("cell.honest", dimension=AGGREGATE), list[tuple[str, ...]]()
    if honest is not None and found:
        rows.append(("Honest records", count(honest.n), *where(honest), *("",) * 5))
    for control in found:
        kappa, halo = book.one("cell.agreement", cell=control.cell), book.one("cell.halo", cell=control.cell)
        n, gate = control.score or control.gate, control.gate
        family = None if halo is None or halo.value is None else halo.detail.get("family")
        liking = "no judge shares its family" if halo is not None and halo.value is not None else shown(halo)
        if family and halo is not None:  # what the family that composed a cell adds, and whether it is left out for it
            out = ", left out" if halo.detail.get("triggered") else ""
            liking = book.to(halo, f"{signed(halo.value or 0.0)} from judge family {clean(str(family), 40)}{out}")
        rows.append((
            control.title, "" if n is None else count(n.n), *where(control.score),
            book.to(gate, gate_words(control)) if gate is not None else "no rule", tested_words(gate) or "not tested",
            control.said, book.to(kappa, shown(kappa)), liking,
        ))  # fmt: skip
    heads = (
        "Control", "n", "Mean", "Median (middle half)", "Number of the rule", "p", "Outcome",
        f"{book.sign} with honest records", "From its own family",
    )  # fmt: skip
    return section(
        "controls", "Do the controls hold?", answer,
        Beside(columns) if columns else None, notes([said]),
        table_of(heads, rows, 1, f"The same as a table, with {book.sign} and what the writer’s own family adds"),
        table_of(("Control", "All judges", *(f"without judge family {clean(name, 60)}" for name in families)), drops,
                 summary="Number of the rule and outcome without each judge family"),
        Group("Who writes briefly?", (Text(_terse_note(book), "cap"), terse)) if terse else None,
    )  # fmt: skip


def _gap(item: Measurement) -> str:
    return signed(item.value or 0.0) + ends_of(item)


def gate_words(control: Control) -> str:
    """The number of a cell's rule with its interval, or why there is none."""
    return shown(control.gate) if control.gate is None or control.gate.value is None else _gap(control.gate)


def tested_words(gate: Measurement | None) -> str:
    """The adjusted p-value of a cell's rule, else the raw one."""
    return p_of(gate, "p_holm", "adjusted ", p_of(gate, otherwise=""))


def against(cell: str) -> str:
    """What the rule of a cell holds it against; empty for a cell without a rule."""
    return _AGAINST.get(cell, "")


def _gates(book: RunIndex, found: Sequence[Control]) -> Figure | None:
    rows, cells = [], book.study.cells
    for control in found:
        if (gate := control.gate) is None:
            continue
        parts = (control.said, tested_words(gate), against(control.cell) and f"against {against(control.cell)}")
        known = gate.value is not None
        bounds = (gate.low, gate.high) if known and gate.low is not None and gate.high is not None else None
        banded = control.cell in ("cell_b", "paraphrase", "length_matched")
        rows.append(AxisRow(
            control.title, gate_words(control) if known else "no number",
            ", ".join(filter(None, parts)) if known else shown(gate), gate.value, bounds,
            _MARKS[control.level or "no-claim"],
            (-cells.substance, cells.substance) if banded else None,
            -cells.verbosity if control.cell == "cell_b" else None,
        ))  # fmt: skip
    if not rows:
        return None
    desc = "; ".join(f"{row.title}: {row.shown}, {row.note}" for row in rows)
    wide, narrow = axis_rows("gates", rows, "Control texts against what their rule holds them against", desc)
    caption = (
        "Panel score of the control texts minus what their rule holds them against, in rubric points, with "
        f"{percent(book.study.inference.level)} intervals over clusters. "
        f"Grey band: within {cells.substance:g} of it. Dashed line: {cells.verbosity:g} below the honest mean. "
        "Filled mark: a claim about the cell is supported."
    )
    values = Table(("Control texts", "Difference", "Outcome"), tuple((row.title, row.shown, row.note) for row in rows))
    return Figure("How far from the rule is each control?", caption, wide, narrow, None, values)


def _spread(book: RunIndex, found: Sequence[Control]) -> Figure | None:
    rows = []
    honest = book.one("cell.honest", dimension=AGGREGATE)
    for title, item in (("Honest records", honest), *((c.title, c.score) for c in found)):
        if item is None:
            continue
        box, values = quartiles(item), tuple(float(v) for v in item.detail.get("values", ()))
        if box is None and not values:
            none = state_words(item) if item.value is None else "no quartiles"
            rows.append(AxisRow(title, "no number", none))
            continue
        mean = "" if item.value is None else f"mean {number(item.value)}"
        half = "" if box is None else f"median {number(box[1])}, middle half {span(box[0], box[2])}; "
        rows.append(AxisRow(title, mean, f"{half}n = {sizes(item)}", box=box, values=values))
    if not any(c.score for c in found) or all(row.box is None and not row.values for row in rows):
        return None
    desc = "; ".join(f"{row.title}: {row.shown}, {row.note}" for row in rows)
    title = "Panel scores of honest records and control texts"
    wide, narrow = axis_rows("spread", rows, title, desc, book.study.scale)
    caption = (
        f"Panel scores on the aggregate, {book.study.scale_text}. Box: the middle half of the honest records. "
        f"Dots: control texts, at most {DOTS} a row. Upright line: the median."
    )
    drawn = tuple((row.title, row.shown, row.note, "; ".join(map(number, sorted(thinned(row.values)))) or "none")
                  for row in rows)  # fmt: skip
    table = Table(("Scores of", "Mean", "Where they lie", "Dots, from low to high"), drawn)
    return Figure("Where do their scores lie?", caption, wide, narrow, table)


def quartiles(item: Measurement | None) -> tuple[float, float, float] | None:
    """First quartile, median and third quartile of a cell or of the honest records, where they were measured."""
    found = [] if item is None else [real(item.detail.get(key)) for key in ("q1", "median", "q3")]
    numbers = [value for value in found if value is not None]
    return (numbers[0], numbers[1], numbers[2]) if len(numbers) == 3 else None


def _drop(book: RunIndex, item: Measurement | None) -> str:
    if item is None or item.value is None:
        return shown(item)
    return book.to(item, f"{_gap(item)}, {clean(str(item.detail.get('outcome', 'no outcome')), 40)}")


def terse_agents(book: RunIndex) -> tuple[tuple[str, Measurement], ...]:
    """The agents whose share of terse rationales was measured, alphabetical."""
    found = ((m.labels.get("agent", ""), m) for m in book.known("terse.share"))
    return tuple(sorted(found, key=lambda pair: pair[0]))


def mostly_terse(book: RunIndex) -> tuple[str, ...]:
    """Agents most of whose rationales are terse: a contrast with one of them is sensitive to style."""
    cut = book.study.cells.terse_share
    return tuple(clean(agent, 60) for agent, m in terse_agents(book) if m.value is not None and m.value > cut)


def _terse_note(book: RunIndex) -> str:
    cells, named = book.study.cells, mostly_terse(book)
    if not named:
        return (
            f"No agent has more than {percent(cells.terse_share)} of its rationales below {cells.terse_tokens} words, "
            "so no contrast is sensitive to style for that reason."
        )
    have, their, them = ("has", "its", "it") if len(named) == 1 else ("have", "their", "them")
    return (
        f"{plural(len(named), 'agent').capitalize()}, {listing(named)}, {have} more than "
        f"{percent(cells.terse_share)} of {their} rationales below {cells.terse_tokens} "
        f"words: every contrast with {them} is sensitive to style."
    )
