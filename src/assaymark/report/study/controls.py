"""Do the controls hold? Texts whose right treatment is known, held against the honest records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from assaymark.records import AGGREGATE, Level, Measurement, Verdict
from assaymark.report.blocks import Beside, Block, Figure, Group, Section, Table, Text, notes
from assaymark.report.charts.grids import scan_line
from assaymark.report.charts.intervals import DOTS, DeltaRow, Mark, SpreadRow, deltas, spreads, thinned
from assaymark.report.lookup import Book
from assaymark.report.study.probes import probe
from assaymark.report.text import (
    CELLS,
    cell_title,
    counted,
    interval,
    listing,
    p_value,
    plural,
    shown,
    signed,
    state_words,
)
from assaymark.text import clean, count, count_of, number, percent, span

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


def tiers(book: Book, dimension: str) -> tuple[Tier, ...]:
    """The tiers on one score from high to low; a single one where no cut is supported."""
    groups = book.summary.tiers.get(dimension) or ((book.agents,) if book.agents else ())
    orders, found, rank = supported_orders(book, dimension), [], 1
    for group in groups:
        around = [level for pair, level in orders.items() if len(set(pair) & set(group)) == 1]
        found.append(Tier(group, (rank, rank + len(group) - 1), weakest(around if len(groups) > 1 else ())))
        rank += len(group)
    return tuple(found)


def supported_orders(book: Book, dimension: str) -> dict[tuple[str, str], Level]:
    """(higher, lower) to its level, for every pair whose order is supported."""
    return {
        (v.claim.subjects[0], v.claim.subjects[1]): v.publication_level
        for v in book.on(dimension, "pair")
        if v.publication_level != "no-claim"
    }


def judged_range(book: Book, dimension: str, agent: str) -> tuple[float, float] | None:
    """From the lowest to the highest score that a judge alone gives an agent; None for fewer than two judges. It stands
    where agents that cannot be ranked would have a score of their own."""
    alone = book.every("single.level", dimension=dimension, agent=agent)
    found = [item.value for item in alone if item.value is not None]
    return (min(found), max(found)) if len(found) > 1 else None


def ranked_alone(book: Book, dimension: str) -> dict[str, Tier]:
    """The tiers of one agent, by agent: what may have a rank and a score of its own."""
    return {tier.agents[0]: tier for tier in tiers(book, dimension) if tier.alone and tier.level != "no-claim"}


# Does length alone move the score? A straight line, and a scan for a break that a straight line would miss.


def style_section(book: Book) -> Section:
    """The stylometric audit of the honest records."""
    item = book.one("style.threshold", dimension=AGGREGATE)
    points = [] if item is None else scan_points(item)
    drawn: tuple[Block, ...] = ()
    if item is not None and item.value is not None and len(points) > 1:
        drawn = (_figure(book, item, points), _table(points))
    title = "Does length alone move the score?"
    return probe("length", title, style_answer(book), *drawn, *notes(_length_matched(book)))


def scan_points(item: Measurement) -> list[tuple[float, float, int]]:
    """The scanned splits as (words, difference, records below), by words; entries of another form are left out."""
    found = []
    for entry in item.detail.get("scan", ()):
        if isinstance(entry, (list, tuple)) and len(entry) == 3:
            found.append((float(entry[0]), float(entry[1]), int(entry[2])))
    return sorted(found)


def style_answer(book: Book) -> str:
    """The straight line and the break, in one or two sentences."""
    line = book.one("score.length_correlation", dimension=AGGREGATE)
    item = book.one("style.threshold", dimension=AGGREGATE)
    said = []
    if line is not None:
        value = state_words(line) if line.value is None else number(line.value)
        said.append(f"Length and panel score correlate at {value}.")
    if item is None:
        said.append("No break by length was looked for, so a penalty on short texts alone would not show.")
    elif item.value is None:
        said.append(f"The scan for a break is {state_words(item)}.")
    else:
        gap, p = item.detail.get("difference"), item.detail.get("p")
        size = f": {signed(float(gap))} points from there on" if isinstance(gap, (int, float)) else ""
        tested = f" ({p_value(float(p))})" if isinstance(p, (int, float)) else ""
        said.append(f"The scores part most at {count(round(item.value))} words{size}{tested}.")
    return " ".join(said)


def _figure(book: Book, item: Measurement, points: Sequence[tuple[float, float, int]]) -> Figure:
    chosen, terse = item.value or 0.0, float(book.run.study.cells.terse_tokens)
    first, last = points[0], points[-1]
    desc = (
        f"The difference is {signed(first[1])} at {count(round(first[0]))} words and {signed(last[1])} at "
        f"{count(round(last[0]))}; the scores part most at {count(round(chosen))}"
    )
    line = [(tokens, gap) for tokens, gap, _ in points]
    wide, narrow = scan_line("scan", line, chosen, terse, "Score above minus below each length", desc)
    caption = (
        "Mean panel score of the texts with at least so many words minus that of the shorter ones, in rubric points. "
        "Solid: the split where they part most. Dashed: below it the plan calls a text terse."
    )
    return Figure("Where do long and short texts part?", caption, wide, narrow, values=_table(points))


def _table(points: Sequence[tuple[float, float, int]]) -> Table:
    rows = tuple((count(round(tokens)), signed(gap), count(below)) for tokens, gap, below in points)
    return Table(("Words", "Above minus below, points", "Records below"), rows, frozenset({1, 2}))


def _length_matched(book: Book) -> tuple[str, ...]:
    found = book.by_name.get("length_matched.contrast", ())
    measured = [m for m in found if m.value is not None]
    if not measured:
        return ()
    cut = book.run.study.inference.alpha
    tested = [(m.value or 0.0, float(m.detail.get("p_holm", m.detail.get("p", 1.0)))) for m in measured]
    kept = sum(value > 0 and p <= cut for value, p in tested)
    said = f"{count(kept)} of {plural(len(measured), 'contrast')} {'keeps' if kept == 1 else 'keep'}"
    return (f"On texts of one length, {said} the panel’s direction and significance.",)


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


def controls(book: Book) -> tuple[Control, ...]:
    """Every control cell that was graded or that the plan asks for, in the order of the protocol."""
    return book.once(("controls",), lambda: _controls(book))


def _controls(book: Book) -> tuple[Control, ...]:
    levels = {v.claim.subjects[0]: v for v in book.cells}
    named = {m.labels.get("cell", "") for name in ("cell.gate", "cell.score") for m in book.every(name)}
    wanted = named | set(book.run.study.cells_judged) | set(levels)
    ordered = [*(cell for cell in CELLS if cell in wanted), *sorted(wanted - set(CELLS) - {""})]
    return tuple(_control(book, str(cell), levels.get(cell)) for cell in ordered)


def _control(book: Book, cell: str, verdict: Verdict | None) -> Control:
    gate = book.one("cell.gate", cell=cell)
    outcome = "" if gate is None else clean(str(gate.detail.get("outcome", "")), 40)
    return Control(
        cell=cell,
        title=clean(cell_title(cell), 80),
        gate=gate,
        score=book.one("cell.score", cell=cell, dimension=AGGREGATE),
        outcome=outcome,
        level=None if verdict is None else verdict.publication_level,
        turned=_turned(book, cell, outcome),
    )


def _turned(book: Book, cell: str, outcome: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    found: dict[str, list[str]] = {}
    for item in book.every("cell.drop", cell=cell):
        other = clean(str(item.detail.get("outcome") or outcome), 40)
        if outcome and other != outcome:
            found.setdefault(other, []).append(clean(item.labels.get("dropped", ""), 60))
    return tuple((other, tuple(sorted(names))) for other, names in sorted(found.items()))


def controls_section(book: Book) -> Section:
    """Control texts against their rules, where their scores lie, with each judge family left out, and who is brief."""
    found = [c for c in controls(book) if c.gate is not None or c.score is not None]
    figures = (_gates(book, [c for c in found if c.gate is not None]), _spread(book, [c for c in found if c.score]))
    columns = tuple((one,) for one in figures if one is not None)
    blocks: list[Block | None] = [Beside(columns) if columns else None, *notes(tuple(_notes(book, found)))]
    blocks += [_controls_table(book, found) if found else None, _drops(book, found)]
    terse = _terse(book)
    if terse is not None:
        blocks.append(Group("Who writes briefly?", (Text(_terse_note(book), "cap"), terse)))
    return probe("controls", "Do the controls hold?", _answer(found), *blocks)


def _answer(found: Sequence[Control]) -> str:
    if not found:
        return "No control texts were graded, so nothing shows that the panel rewards substance over style."
    said = []
    for words, outcomes in (("held", GOOD), ("did not hold", _BAD)):
        names = [_name(c) for c in found if c.outcome in outcomes and not c.turned]
        if names:
            said.append(f"{listing(names)} {words}.")
    said += [f"{_name(c)} depends on the judges: {c.said}." for c in found if c.turned]
    open_ = [_name(c) for c in found if c.gate is not None and not c.turned and c.outcome not in GOOD | _BAD]
    if open_:
        said.append(f"{listing(open_)} left it open.")
    kept = [_name(c) for c in found if not c.supported]
    if kept:
        said.append(f"No claim about {listing(kept, last='or')} is supported.")
    return " ".join(said) or "The control texts were graded; none of them has a rule of its own."


def _name(control: Control) -> str:
    return control.title.partition(":")[0]


# --- the rule of each cell ------------------------------------------------------------------------------------------


def gate_words(control: Control) -> str:
    """The number of a cell's rule with its interval, or why there is none."""
    gate = control.gate
    return shown(gate) if gate is None or gate.value is None else _gap(gate)


def _gap(item: Measurement) -> str:
    bounds = "" if item.low is None or item.high is None else f" ({span(item.low, item.high)})"
    return f"{signed(item.value or 0.0)}{bounds}"


def tested_words(gate: Measurement | None) -> str:
    """The adjusted p-value of a cell's rule, else the raw one."""
    if gate is None:
        return ""
    for key, word in (("p_holm", "adjusted "), ("p", "")):
        p = gate.detail.get(key)
        if isinstance(p, (int, float)):
            return word + p_value(float(p))
    return ""


def against(cell: str) -> str:
    """What the rule of a cell holds it against; empty for a cell without a rule."""
    return _AGAINST.get(cell, "")


def _gates(book: Book, found: Sequence[Control]) -> Figure | None:
    if not found:
        return None
    rows = [_gate_row(book, c) for c in found]
    desc = "; ".join(f"{row.title}: {row.shown}, {row.note}" for row in rows)
    wide, narrow = deltas("gates", rows, "Control texts against what their rule holds them against", desc)
    cells = book.run.study.cells
    caption = (
        "Panel score of the control texts minus what their rule holds them against, in rubric points, with "
        f"{percent(book.run.study.inference.level)} intervals over clusters. "
        f"Grey band: within {cells.substance:g} of it. Dashed line: {cells.verbosity:g} below the honest mean. "
        "Filled mark: a claim about the cell is supported."
    )
    values = Table(("Control texts", "Difference", "Outcome"), tuple((row.title, row.shown, row.note) for row in rows))
    return Figure("How far from the rule is each control?", caption, wide, narrow, values=values)


def _gate_row(book: Book, control: Control) -> DeltaRow:
    gate, cells = control.gate, book.run.study.cells
    value = None if gate is None else gate.value
    banded = control.cell in ("cell_b", "paraphrase", "length_matched")
    bounds = None if value is None or gate is None or gate.low is None or gate.high is None else (gate.low, gate.high)
    return DeltaRow(
        title=control.title,
        shown="no number" if value is None else gate_words(control),
        note=_note(control),
        value=value,
        bounds=bounds,
        mark=_MARKS[control.level or "no-claim"],
        zero=against(control.cell),
        band=(-cells.substance, cells.substance) if banded else None,
        cut=-cells.verbosity if control.cell == "cell_b" else None,
    )


def _note(control: Control) -> str:
    if control.gate is None or control.gate.value is None:
        return shown(control.gate)
    parts = (control.said, tested_words(control.gate), f"against {against(control.cell)}")
    return ", ".join(part for part in parts if part and part != "against ")


# --- where the scores lie -------------------------------------------------------------------------------------------


def _spread(book: Book, found: Sequence[Control]) -> Figure | None:
    honest = book.one("cell.honest", dimension=AGGREGATE)
    rows = [] if honest is None else [_spread_row("Honest records", honest)]
    rows += [_spread_row(c.title, c.score) for c in found if c.score is not None]
    if not found or all(row.box is None and not row.values for row in rows):
        return None
    desc = "; ".join(f"{row.title}: {row.shown}, {row.note}" for row in rows)
    title = "Panel scores of honest records and control texts"
    wide, narrow = spreads("spread", rows, title, desc, ends=book.run.study.scale)
    caption = (
        f"Panel scores on the aggregate, {book.run.study.scale_text}. Box: the middle half of the honest records. "
        f"Dots: control texts, at most {DOTS} a row. Upright line: the median."
    )
    table = Table(
        ("Scores of", "Mean", "Where they lie", "Dots, from low to high"), tuple(_drawn_scores(row) for row in rows)
    )
    return Figure("Where do their scores lie?", caption, wide, narrow, table=table)


def _drawn_scores(row: SpreadRow) -> tuple[str, ...]:
    """What a row of the figure draws, in numbers."""
    dots = "; ".join(number(value) for value in sorted(thinned(row.values))) if row.values else "none"
    return row.title, row.shown, row.note, dots


def _spread_row(title: str, item: Measurement) -> SpreadRow:
    box, values = quartiles(item), tuple(float(v) for v in item.detail.get("values", ()))
    if box is None and not values:
        return SpreadRow(title, "no number", state_words(item) if item.value is None else "no quartiles", None)
    mean = "" if item.value is None else f"mean {number(item.value)}"
    half = "" if box is None else f"median {number(box[1])}, middle half {span(box[0], box[2])}; "
    return SpreadRow(title, mean, f"{half}n = {count_of(item.n, item.n_of)}", box, values)


def quartiles(item: Measurement | None) -> tuple[float, float, float] | None:
    """First quartile, median and third quartile of a cell or of the honest records, where they were measured."""
    found = [] if item is None else [item.detail.get(key) for key in ("q1", "median", "q3")]
    numbers = [float(value) for value in found if isinstance(value, (int, float))]
    return (numbers[0], numbers[1], numbers[2]) if len(numbers) == 3 else None


# --- tables and notes -----------------------------------------------------------------------------------------------


def _controls_table(book: Book, found: Sequence[Control]) -> Table:
    heads = (
        "Control", "n", "Mean", "Median (middle half)", "Number of the rule", "p", "Outcome",
        f"{book.sign} with honest records", "From its own family",
    )  # fmt: skip
    rows = [_honest_row(book)] if book.one("cell.honest", dimension=AGGREGATE) else []
    summary = f"The same as a table, with {book.sign} and what the writer’s own family adds"
    return Table(heads, (*rows, *(_row(book, c) for c in found)), frozenset({1}), summary)


def _honest_row(book: Book) -> tuple[str, ...]:
    item = book.one("cell.honest", dimension=AGGREGATE)
    return ("Honest records", count(item.n) if item else "", _mean(book, item), _median(item), *("",) * 5)


def _row(book: Book, control: Control) -> tuple[str, ...]:
    kappa = book.one("cell.agreement", cell=control.cell)
    n = control.score or control.gate
    size = "" if n is None else count(n.n)
    return (
        control.title,
        size,
        _mean(book, control.score),
        _median(control.score),
        book.to(control.gate, gate_words(control)) if control.gate is not None else "no rule",
        tested_words(control.gate) or "not tested",
        control.said,
        book.to(kappa, shown(kappa)),
        halo_words(book, control),
    )


def _drops(book: Book, found: Sequence[Control]) -> Table | None:
    """The number of each rule and its outcome without each judge family; None where no family was left out."""
    families = sorted({m.labels["dropped"] for m in book.every("cell.drop")})
    rows = []
    for control in found:
        every = [book.one("cell.drop", cell=control.cell, dropped=family) for family in families]
        if control.gate is not None and any(every):
            rows.append((control.title, _drop(book, control.gate), *(_drop(book, item) for item in every)))
    heads = ("Control", "All judges", *(f"without judge family {clean(family, 60)}" for family in families))
    return (
        Table(heads, tuple(rows), summary="Number of the rule and outcome without each judge family") if rows else None
    )


def _drop(book: Book, item: Measurement | None) -> str:
    if item is None or item.value is None:
        return shown(item)
    return book.to(item, f"{_gap(item)}, {clean(str(item.detail.get('outcome', 'no outcome')), 40)}")


def _mean(book: Book, item: Measurement | None) -> str:
    if item is None or item.value is None:
        return shown(item)
    return book.to(item, interval(item.value, item.low, item.high))


def _median(item: Measurement | None) -> str:
    box = quartiles(item)
    return "not measured" if box is None else f"{number(box[1])} ({span(box[0], box[2])})"


def halo_words(book: Book, control: Control) -> str:
    """What the family that composed a cell adds to its number, and whether that family is left out for it."""
    item = book.one("cell.halo", cell=control.cell)
    if item is None or item.value is None:
        return shown(item)
    family = item.detail.get("family")
    if not family:
        return "no judge shares its family"
    out = ", left out" if item.detail.get("triggered") else ""
    return book.to(item, f"{signed(item.value)} from judge family {clean(str(family), 40)}{out}")


def _notes(book: Book, found: Sequence[Control]) -> Iterator[str]:
    separation = book.one("cell.separation", dimension=AGGREGATE)
    pair = [c for c in found if c.cell in ("cell_a", "cell_b")]
    if separation is not None and len(pair) == 2:
        said = shown(separation)
        if separation.value is not None:
            said = interval(separation.value, separation.low, separation.high)
        yield f"Cell B minus cell A: {said} points. Near 0 the panel cannot tell terse and right from long and wrong."


def terse_agents(book: Book) -> tuple[tuple[str, Measurement], ...]:
    """The agents whose share of terse rationales was measured, alphabetical."""
    found = ((m.labels.get("agent", ""), m) for m in book.every("terse.share") if m.value is not None)
    return tuple(sorted(found, key=lambda pair: pair[0]))


def mostly_terse(book: Book) -> tuple[str, ...]:
    """Agents most of whose rationales are terse: a contrast with one of them is sensitive to style."""
    cut = book.run.study.cells.terse_share
    return tuple(clean(agent, 60) for agent, m in terse_agents(book) if m.value is not None and m.value > cut)


def _terse(book: Book) -> Table | None:
    rows = []
    for agent, item in terse_agents(book):
        bounds = "no interval" if item.low is None or item.high is None else _percents(item.low, item.high)
        share = book.to(item, percent(item.value or 0.0, 1))
        rows.append((clean(agent, 80), share, bounds, counted(item.n, "record")))
    heads = ("Agent", "Share of terse rationales", "interval", "n")
    return Table(heads, tuple(rows), frozenset({1, 2, 3}), "Share of terse rationales by agent") if rows else None


def _percents(low: float, high: float) -> str:
    return f"{percent(low, 1)} to {percent(high, 1)}"


def _terse_note(book: Book) -> str:
    cells = book.run.study.cells
    named = mostly_terse(book)
    if not named:
        return (
            f"No agent has more than {percent(cells.terse_share)} of its rationales below {cells.terse_tokens} words, "
            "so no contrast is sensitive to style for that reason."
        )
    one = len(named) == 1
    whose = "has more than" if one else "have more than"
    share = f"{percent(cells.terse_share)} of {'its' if one else 'their'} rationales"
    return (
        f"{plural(len(named), 'agent').capitalize()}, {listing(named)}, {whose} {share} below {cells.terse_tokens} "
        f"words: every contrast with {'it' if one else 'them'} is sensitive to style."
    )
