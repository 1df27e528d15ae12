"""Sections that test the scores: adversarial controls with a known right treatment, length, other anchors, clusters
after the training cutoff, the held-out judge, and people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from assaymark.claims import kind_of
from assaymark.records import AGGREGATE, Level, Measurement
from assaymark.report import blocks as b
from assaymark.report import text as t
from assaymark.report.blocks import Block, Inline
from assaymark.report.charts.grids import scan_line
from assaymark.report.charts.intervals import DOTS, AxisRow, LevelMark, axis_rows, described, thinned
from assaymark.report.inputs import RunIndex, supported_orders
from assaymark.report.text import KnownValue, known
from assaymark.text import clean, count, number, percent, span

GOOD: Final = frozenset({"passed", "substance", "invariant", "noticed"})
_BAD: Final = frozenset({"failed", "verbosity-bias", "terse-favoured", "style-sensitive", "not noticed"})
AGAINST: Final[Mapping[str, str]] = {
    **dict.fromkeys(("cell_a", "red_team"), "the honest lower quartile"),
    "cell_b": "the honest mean",
    **dict.fromkeys(("paraphrase", "fact_flip", "length_matched"), "the record it was made from"),
}
"""The reference that a control's rule compares it with; controls without a rule are missing."""

_MARKS: Final[Mapping[Level, LevelMark]] = {"headline": "mh", "qualified": "mq", "no-claim": "mn"}
_LISTED: Final = 10


@dataclass(frozen=True, slots=True)
class Control:
    """One control condition. ``gate`` is None if it has no rule or was not graded. Number and outcome are always shown,
    since they describe the judges, not the agents. ``reversals`` has outcomes that change without a judge family, as
    (outcome, families)."""

    cell: str
    title: str
    gate: Measurement | None
    score: Measurement | None
    outcome: str
    level: Level | None
    reversals: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def name(self) -> str:
        """Its title without the description of its texts."""
        return self.title.partition(":")[0]

    @property
    def result(self) -> str:
        """The outcome as printed; a good one follows those without a judge family, if these differ."""
        if not self.reversals:
            return self.outcome or "no rule"
        good = self.outcome in GOOD
        return f"{self.without}; with all judges {self.outcome}" if good else f"{self.outcome}; {self.without}"

    @property
    def without(self) -> str:
        """The outcomes without some judge family; empty if no family changes the outcome."""
        return "; ".join(f"{end} without judge family {t.listing(names, last='or')}" for end, names in self.reversals)


def controls(index: RunIndex) -> tuple[Control, ...]:
    """Every control condition that was graded or that the plan requires, in the order of the protocol."""

    def build() -> tuple[Control, ...]:
        levels = {v.claim.subjects[0]: v.publication_level for v in index.cells}
        named = {m.labels.get("cell", "") for name in ("cell.gate", "cell.score") for m in index.all(name)}
        wanted, controls = named | set(index.study.cells_judged) | set(levels), list[Control]()
        for cell in map(str, (*(cell for cell in t.CELLS if cell in wanted), *sorted(wanted - set(t.CELLS) - {""}))):
            gate, families = index.get("cell.gate", cell=cell), dict[str, list[str]]()
            outcome = "" if gate is None else _outcome_of(gate, "")
            for item in index.all("cell.drop", cell=cell):
                other = _outcome_of(item, outcome)
                if outcome and other != outcome:
                    families.setdefault(other, []).append(clean(item.labels.get("dropped", ""), 60))
            reversals = tuple((other, tuple(sorted(names))) for other, names in sorted(families.items()))
            score, title = index.get("cell.score", AGGREGATE, cell=cell), clean(t.cell_title(cell), 80)
            controls.append(Control(cell, title, gate, score, outcome, levels.get(cell), reversals))
        return tuple(controls)

    return index.once(("controls",), build)


def controls_section(index: RunIndex) -> b.Section:
    """Control texts against their rules, their scores, the outcomes without each judge family, and terse agents."""
    measured = [c for c in controls(index) if c.gate is not None or c.score is not None]
    figures = list(_figures(index, measured))
    separation, text = index.get("cell.separation", AGGREGATE), ""
    if separation is not None and sum(c.cell in ("cell_a", "cell_b") for c in measured) == 2:
        value = t.estimate(separation) if known(separation) else t.as_text(separation)
        text = f"Cell B minus cell A: {value} points. Near 0 the panel cannot tell terse and right from long and wrong."
    families, drops = sorted({m.labels["dropped"] for m in index.all("cell.drop")}), list[tuple[str, ...]]()
    for control in measured:
        every = [index.get("cell.drop", cell=control.cell, dropped=family) for family in families]
        if control.gate is not None and any(every):
            drops.append((control.title, *(
                index.linked(item, lambda m: f"{t.with_ends(m, t.signed)}, {_outcome_of(m, 'no outcome')}")
                for item in (control.gate, *every)
            )))  # fmt: skip
    answers = [] if measured else [
        "No control texts were graded, so nothing shows that the panel rewards substance over style."
    ]  # fmt: skip
    for words, outcomes in (("held", GOOD), ("did not hold", _BAD)):
        if names := [c.name for c in measured if c.outcome in outcomes and not c.reversals]:
            answers.append(f"{t.listing(names)} {words}.")
    answers += [f"{c.name} depends on the judges: {c.result}." for c in measured if c.reversals]
    if open_ := [c.name for c in measured if c.gate is not None and not c.reversals and c.outcome not in GOOD | _BAD]:
        answers.append(f"{t.listing(open_)} left it open.")
    if unsupported := [c.name for c in measured if c.level == "no-claim"]:
        answers.append(f"No claim about {t.listing(unsupported, last='or')} is supported.")

    def where(item: Measurement | None) -> tuple[str, str]:
        box = _quartiles(item)
        middle = "not measured" if box is None else f"{number(box[1])} ({span(box[0], box[2])})"
        return index.linked(item), middle

    honest, rows = index.get("cell.honest", AGGREGATE), list[tuple[str, ...]]()
    if honest is not None and measured:
        rows.append(("Honest records", count(honest.n), *where(honest), *("",) * 5))
    for control in measured:
        kappa, halo = index.get("cell.agreement", cell=control.cell), index.get("cell.halo", cell=control.cell)
        n, gate, liking = control.score or control.gate, control.gate, t.as_text(halo)
        if known(halo):
            liking = "no judge shares its family"
            if family := halo.detail.get("family"):  # extra points for its own texts
                out = ", left out" if halo.detail.get("triggered") else ""
                liking = index.link(halo, f"{t.signed(halo.value)} from judge family {clean(str(family), 40)}{out}")
        rows.append((
            control.title, "" if n is None else count(n.n), *where(control.score),
            index.link(gate, gate_words(control)) if gate is not None else "no rule",
            tested_words(gate) or "not tested", control.result, index.link(kappa, t.as_text(kappa)), liking,
        ))  # fmt: skip
    header = (
        "Control", "n", "Mean", "Median (middle half)", "Number of the rule", "p", "Outcome",
        f"{index.sign} with honest records", "From its own family",
    )  # fmt: skip
    brief = b.table_of(
        ("Agent", "Share of terse rationales", "interval", "n"),
        [(clean(agent, 80), index.link(item, percent(item.value, 1)),
          t.limits(item, lambda low, high: f"{percent(low, 1)} to {percent(high, 1)}"), t.counted(item.n, "record"))
         for agent, item in terse_agents(index)],
        3, "Share of terse rationales by agent",
    )  # fmt: skip
    cells, named = index.study.cells, mostly_terse(index)
    share, below = percent(cells.terse_share), f"rationales below {cells.terse_tokens} words"
    note = f"No agent has more than {share} of its {below}, so no contrast is sensitive to style for that reason."
    if named:
        have, their, them = ("has", "its", "it") if len(named) == 1 else ("have", "their", "them")
        note = (
            f"{t.plural(len(named), 'agent').capitalize()}, {t.listing(named)}, {have} more than {share} of {their} "
            f"{below}: every contrast with {them} is sensitive to style."
        )
    return b.section(
        "controls", "Do the controls hold?",
        " ".join(answers) or "The control texts were graded; none of them has a rule of its own.",
        b.beside(*figures) if figures else None, b.notes([text]),
        b.table_of(header, rows, 1, f"The same as a table, with {index.sign} and what the writer’s own family adds"),
        b.table_of(("Control", "All judges", *(f"without judge family {clean(name, 60)}" for name in families)), drops,
                 summary="Number of the rule and outcome without each judge family"),
        b.Group("Who writes briefly?", (b.Prose(note, "cap"), brief)) if brief else None,
    )  # fmt: skip


def _outcome_of(item: Measurement, otherwise: str) -> str:
    return clean(str(item.detail.get("outcome") or otherwise), 40)


def gate_words(control: Control) -> str:
    """The number of a control's rule with its interval, or the reason why there is none."""
    return t.with_ends(control.gate, t.signed) if known(control.gate) else t.as_text(control.gate)


def tested_words(gate: Measurement | None) -> str:
    """The adjusted p-value of a control's rule, else the raw one."""
    return t.p_of(gate, "p_holm", "adjusted ", t.p_of(gate, otherwise=""))


def _figures(index: RunIndex, measured: Sequence[Control]) -> Iterator[b.Figure]:
    """The difference of each control from its reference, and the scores of controls and of honest records."""
    rows, cells = [], index.study.cells
    for control in measured:
        if (gate := control.gate) is None:
            continue
        rule, banded = AGAINST.get(control.cell, ""), control.cell in ("cell_b", "paraphrase", "length_matched")
        shown, note, bounds = "no number", t.as_text(gate), None
        if known(gate):
            note = ", ".join(filter(None, (control.result, tested_words(gate), rule and f"against {rule}")))
            shown, bounds = t.with_ends(gate, t.signed), t.bounds_of(gate)
        rows.append(AxisRow(
            control.title, shown, note, gate.value, bounds, _MARKS[control.level or "no-claim"],
            (-cells.substance, cells.substance) if banded else None,
            -cells.verbosity if control.cell == "cell_b" else None,
        ))  # fmt: skip
    if rows:
        title = "Control texts against what their rule holds them against"
        caption = (
            "Panel score of the control texts minus what their rule holds them against, in rubric points, with "
            f"{percent(index.study.inference.level)} intervals over clusters. "
            f"Grey band: within {cells.substance:g} of it. Dashed line: {cells.verbosity:g} below the honest mean. "
            "Filled mark: a claim about the cell is supported."
        )
        of_rows = tuple((row.title, row.shown, row.note) for row in rows)
        values = b.Table(("Control texts", "Difference", "Outcome"), of_rows)
        yield b.plot("gates", "How far from the rule is each control?", caption, partial(axis_rows, rows),
                      described(rows), None, values, alt=title)  # fmt: skip
    rows, honest = [], index.get("cell.honest", AGGREGATE)
    for title, item in (("Honest records", honest), *((c.title, c.score) for c in measured)):
        if item is None:
            continue
        box, dots = _quartiles(item), tuple(float(v) for v in item.detail.get("values", ()))
        if box is None and not dots:
            rows.append(AxisRow(title, "no number", t.state_words(item) if item.value is None else "no quartiles"))
            continue
        mean = "" if item.value is None else f"mean {number(item.value)}"
        half = "" if box is None else f"median {number(box[1])}, middle half {span(box[0], box[2])}; "
        rows.append(AxisRow(title, mean, f"{half}n = {t.n_words(item)}", box=box, values=dots))
    if any(c.score for c in measured) and any(row.box is not None or row.values for row in rows):
        title = "Panel scores of honest records and control texts"
        caption = (
            f"Panel scores on the aggregate, {index.study.scale_text}. Box: the middle half of the honest records. "
            f"Dots: control texts, at most {DOTS} a row. Upright line: the median."
        )
        lies = tuple((row.title, row.shown, row.note, "; ".join(map(number, sorted(thinned(row.values)))) or "none")
                     for row in rows)  # fmt: skip
        table = b.Table(("Scores of", "Mean", "Where they lie", "Dots, from low to high"), lies)
        yield b.plot("spread", "Where do their scores lie?", caption, partial(axis_rows, rows, ends=index.study.scale),
                      described(rows), table, alt=title)  # fmt: skip


def _quartiles(item: Measurement | None) -> tuple[float, float, float] | None:
    """First quartile, median and third quartile of a control's or the honest records' scores; None if not measured."""
    first, middle, last = (t.detail_of(item, key) for key in ("q1", "median", "q3"))
    return None if first is None or middle is None or last is None else (first, middle, last)


def terse_agents(index: RunIndex) -> list[tuple[str, KnownValue]]:
    """The agents with a measured share of terse rationales, in alphabetical order."""
    return sorted(((m.labels.get("agent", ""), m) for m in index.known("terse.share")), key=lambda pair: pair[0])


def mostly_terse(index: RunIndex) -> tuple[str, ...]:
    """Agents most of whose rationales are terse: a contrast with one of them is sensitive to style."""
    cut = index.study.cells.terse_share
    return tuple(clean(agent, 60) for agent, m in terse_agents(index) if m.value > cut)


def style_section(index: RunIndex) -> b.Section:
    """The stylometric audit of the honest records."""
    item, drawn = index.get("style.threshold", AGGREGATE), list[Block]()
    points = sorted(
        (float(row[0]), float(row[1]), int(row[2]))  # words, difference, records below
        for row in (() if item is None else item.detail.get("scan", ()))
        if isinstance(row, (list, tuple)) and len(row) == 3
    )
    if known(item) and len(points) > 1:
        rows = tuple((count(round(tokens)), t.signed(delta), count(below)) for tokens, delta, below in points)
        table = b.Table(("Words", "Above minus below, points", "Records below"), rows, frozenset({1, 2}))
        first, last = points[0], points[-1]
        desc = (
            f"The difference is {t.signed(first[1])} at {count(round(first[0]))} words and {t.signed(last[1])} at "
            f"{count(round(last[0]))}; the scores part most at {count(round(item.value))}"
        )
        line, terse = [(tokens, delta) for tokens, delta, _ in points], float(index.study.cells.terse_tokens)
        draw = partial(scan_line, line, item.value, terse)
        caption = (
            "Mean panel score of the texts with at least so many words minus that of the shorter ones, in rubric "
            "points. Solid: the split where they part most. Dashed: below it the plan calls a text terse."
        )
        figure = b.plot("scan", "Where do long and short texts part?", caption, draw, desc,
                         None, table, alt="Score above minus below each length")  # fmt: skip
        drawn = [figure, table]
    matched, note = index.known("length_matched.contrast"), ""
    if matched:
        tested = [(m.value > 0, float(m.detail.get("p_holm", m.detail.get("p", 1.0)))) for m in matched]
        passing = sum(above and p <= index.study.inference.alpha for above, p in tested)
        of = f"{count(passing)} of {t.plural(len(matched), 'contrast')} {'keeps' if passing == 1 else 'keep'}"
        note = f"On texts of one length, {of} the panel’s direction and significance."
    straight = index.get("score.length_correlation", AGGREGATE)
    sentences = [] if straight is None else [f"Length and panel score correlate at {t.as_text(straight)}."]
    if item is None:
        sentences.append("No break by length was looked for, so a penalty on short texts alone would not show.")
    elif not known(item):
        sentences.append(f"The scan for a break is {t.state_words(item)}.")
    else:
        difference, p = t.detail_of(item, "difference"), t.p_of(item, lead=" (", otherwise="")
        size = "" if difference is None else f": {t.signed(difference)} points from there on"
        sentences.append(f"The scores part most at {count(round(item.value))} words{size}{p and p + ')'}.")
    return b.section("length", "Does length alone move the score?", " ".join(sentences), drawn, b.notes([note]))


def changed_anchors(index: RunIndex) -> list[KnownValue]:
    """The measured shifts of dimensions with other anchors, of all if the run does not record which differ."""
    shifts = (m for m in _anchors(index) if known(m) and m.labels.get("dimension") != AGGREGATE)
    return [m for m in shifts if m.detail.get("changed", True)]


def _anchors(index: RunIndex) -> list[Measurement]:
    shifts = index.by_name.get("anchor.shift", ())
    return sorted(shifts, key=lambda m: (index.place(m.labels.get("dimension", "")), m.id))


def anchor_section(index: RunIndex) -> b.Section:
    """The rubric-wording ablation. Pairs that change order are counted, not named: neither order is supported here."""
    shifts, title = _anchors(index), "Do the anchors carry the score?"
    measured = [m for m in shifts if m.value is not None]
    if not measured:
        reason = f"The anchor probe is {t.state_words(shifts[0])}." if shifts else (
            "Not run: no texts were graded again under another rubric."
        )  # fmt: skip
        return b.Section("anchors", title, reason)
    drawn, rows = list[AxisRow](), list[tuple[Inline, ...]]()
    for item in shifts:
        detail, dimension = item.detail, item.labels.get("dimension", "")
        before, after = (t.detail_of(item, key) for key in ("sd_before", "sd_after"))
        whole, agents = dimension == AGGREGATE, detail.get("order_before") or ()
        pairs = len(agents) * (len(agents) - 1) // 2
        rows.append((
            index.title(dimension), "all" if whole else "changed" if detail.get("changed", True) else "same",
            index.linked(item, lambda m: f"{t.estimate(m)} points"), t.p_of(item),
            *("not measured" if value is None else number(value) for value in (before, after)),
            t.count_in(item, "flips", end=f" of {count(pairs)}" if pairs else ""), count(item.n),
        ))  # fmt: skip
        if known(item):
            spread = "" if before is None or after is None else (
                f"spread {number(before)} before, {number(after)} after; "
            )  # fmt: skip
            same = " (same anchors)" if not whole and detail.get("changed") is False else ""
            drawn.append(AxisRow(index.title(dimension) + same, t.with_ends(item, t.signed),
                                 f"{spread}n = {count(item.n)}", item.value, t.bounds_of(item)))  # fmt: skip
    rubric, judge = (clean(str(measured[0].detail.get(key, "")), 60) for key in ("rubric", "judge"))
    caption = (
        f"Score under rubric {rubric or 'of the probe'} minus score under {clean(index.run.rubric.name, 60)}, the same "
        f"texts and the same judge{f' ({judge})' if judge else ''}, in rubric points with intervals over clusters."
    )
    columns = ("Score", "Anchors", "Shift", "p", "Spread before", "Spread after", "Pairs that change order", "n")
    table = b.Table(columns, tuple(rows), frozenset({4, 5, 7}))
    note = "One judge alone grades this probe, so it says nothing about agreement under the other rubric."
    figure = b.plot("anchors", "How far do the scores move?", caption, partial(axis_rows, drawn),
                     described(drawn), None, table, alt="Shift of each score under the other anchors")  # fmt: skip
    return b.section("anchors", title, anchor_answer(index), figure, table, b.notes([note]))


def anchor_answer(index: RunIndex) -> str:
    """One sentence on the dimensions whose scores move with their anchors."""
    changed = changed_anchors(index)
    still = [m for m in changed if m.low is None or m.high is None or m.low <= 0 <= m.high]
    moved = [index.title(m.labels["dimension"]) for m in changed if m not in still]
    if not changed:
        return "No dimension has other anchors in the probe."
    if not moved:
        return f"Other anchors move none of {t.plural(len(changed), 'score')} measurably."
    return f"{t.listing(moved)}: the score depends on how its anchors are written."


def cutoff_differences(index: RunIndex) -> list[Measurement]:
    """The differences between later and earlier clusters: all instruments together, then each of them."""
    differences = index.by_name.get("contamination.gap", ())
    return sorted(differences, key=lambda m: (m.labels.get("split") != "all", m.labels.get("split", "")))


def contamination_section(index: RunIndex) -> b.Section:
    """The contamination probe, with the instruments that are on one side only."""
    differences, title = cutoff_differences(index), "Do later clusters differ?"
    if not differences:
        reason = "the plan names no clusters after the training cutoff, so scores may rest on remembered events."
        return b.Section("contamination", title, f"Not run: {reason}")
    rows = []
    for item in differences:
        sides = []
        for name in ("post", "earlier"):
            clusters = item.detail.get(f"clusters_{name}")
            within = f" in {t.counted(clusters, 'cluster')}" if isinstance(clusters, int) else ""
            sides.append(t.count_in(item, f"n_{name}", "not stated", end=within))
        value = index.linked(item, lambda m: f"{t.estimate(m)} points")
        rows.append((split_words(item), value, t.p_of(item), *sides))
    absent = sorted({clean(str(name), 40) for m in differences for name in m.detail.get("absent", ())})
    reason = f"On one side only, and so not compared: {t.listing(absent)}." if absent else ""
    table = b.table_of(("Split", "Later minus earlier", "p", "Later", "Earlier"), rows)
    return b.section("contamination", title, contamination_answer(index), table, b.notes([reason]))


def contamination_answer(index: RunIndex) -> str:
    """The result of the tests for a difference of scores after the cutoff."""
    differences = cutoff_differences(index)
    tested = [(m, p) for m in differences if known(m) and (p := t.detail_of(m, "p")) is not None]
    if not tested:
        return f"The contamination probe is {t.state_words(differences[0])}." if differences else "Not run."
    moved = [split_words(m) for m, p in tested if p <= index.study.inference.alpha]
    if moved:
        return f"Scores after the cutoff differ from those before on: {t.listing(moved)}."
    return (
        f"None of {t.plural(len(tested), 'split')} shows a difference after the cutoff; "
        "that bounds contamination, it does not exclude it."
    )


def split_words(item: Measurement) -> str:
    """The records that a difference compares: all, or those of one instrument."""
    split = clean(item.labels.get("split", ""), 60)
    return "all records" if split == "all" else split.removeprefix("instrument:")


def holdout_group(index: RunIndex) -> b.Group:
    """The results of the held-out judge for every pair it judged. Directions are shown only if they are supported."""
    rows = list[tuple[int, tuple[Inline, ...]]]()
    for item in index.by_name.get("probe.contrast", ()):
        dimension, high, low = (item.labels.get(key, "") for key in ("dimension", "high", "low"))
        allowed, finding = supported_orders(index, dimension), finding_words(item) if known(item) else "none"
        # Size and sign of an unsupported difference are hidden.
        shown: tuple[Inline, str] = (b.HATCHED if known(item) else t.state_words(item), "no order")
        for pair, sign in (((low, high), -1), ((high, low), 1)):
            if pair in allowed and known(item):
                shown = (index.link(item, t.difference(item, sign)), f"{clean(pair[0], 60)} above {clean(pair[1], 60)}")
        names = " and ".join(sorted((clean(high, 60), clean(low, 60))))
        cells = (index.title(dimension), names, shown[0], finding, t.n_words(item), shown[1])
        rows.append((index.place(dimension), cells))
    rows.sort(key=lambda row: (row[0], *map(b.plain, row[1])))
    columns = ("Score", "Pair", "Difference", "The judge finds", "n", "Supported")
    table = b.table_of(columns, (row for _, row in rows), {4})
    name, state, pairs = holdout_name(index), holdout_state(index), index.known("probe.contrast")
    answer = f"The held-out judge, {name}: {state}."
    if not name:
        unsettled = ", so what reverses without a judge family stays unsettled."
        answer = f"No held-out judge was named in the plan{unsettled if state == 'not committed' else f': {state}.'}"
    elif pairs:
        alike, probe, cut = sum(not differs(m) for m in pairs), index.get("probe.state"), index.study.stability.rho
        rhos = {} if probe is None else probe.detail.get("rho", {})
        fall = sorted(clean(str(one), 40) for one, r in rhos.items() if (at := t.as_float(r)) is not None and at < cut)
        which = t.listing(fall, last="or")
        reason = f", because without judge family {which} ρ falls below {number(cut, 1)}" if fall else ""
        settled = "none" if not alike else "all" if alike == len(pairs) else count(alike)
        answer = (
            f"The held-out judge, {name}, was {state}{reason}. It finds no difference in {settled} of them "
            f"({t.alpha(index.study.inference.alpha)} needed): there no ranking is supported."
        )
    blocks: tuple[Block, ...] = (b.Prose(answer, "cap"), *((table,) if table else ()))
    return b.Group("What did the held-out judge settle?", blocks, "outside")


def holdout_name(index: RunIndex) -> str:
    """The held-out judge of the plan with its family; empty if the plan has none."""
    probe = index.study.stability.probe
    return "" if probe is None else f"{clean(probe.name, 60)} (judge family {clean(probe.family, 60)})"


def holdout_state(index: RunIndex) -> str:
    """The state of the held-out judge in a few words: not asked, not needed, or asked about so many pairs."""
    item, asked = index.get("probe.state"), len(index.known("probe.contrast"))
    if item is not None and item.state != "ok":
        return t.state_words(item)
    if asked:
        return f"asked about {t.plural(asked, 'pair')}"
    contested = 0 if item is None else round(item.value or 0.0)
    if contested:
        return f"not asked, though {t.plural(contested, 'pair')} {'reverses' if contested == 1 else 'reverse'}"
    return "not committed" if index.study.stability.probe is None else "not needed"


def differs(item: Measurement) -> bool:
    """True if the held-out judge finds a difference: its interval does not contain zero."""
    return item.low is None or item.high is None or not item.low <= 0 <= item.high


def finding_words(item: Measurement) -> str:
    """A difference or no difference, as the held-out judge finds, with its p-value; never the direction."""
    return ("a difference" if differs(item) else "no difference") + t.p_of(item, lead=", ", otherwise="")


def people_section(index: RunIndex) -> b.Section | None:
    """The graders, each judge's agreement with them, and supported orders as people see them; None without people."""
    if index.get("human.sample", AGGREGATE) is None:
        return None
    columns = ("Score", "Judge", "κ with people", "ICC", "Judge minus people", "Passes found", "Failures found", "n")
    judges = list[tuple[Inline, ...]]()

    def stated(measure: Any, form: Any = number) -> str:
        value, low, high = (t.as_float(measure.get(key)) for key in ("estimate", "low", "high"))
        if value is None:
            return clean(str(measure.get("state", "")).partition(":")[2].strip() or "not measured", 60)
        return str(form(value)) + ("" if low is None or high is None else f" ({span(low, high)})")

    def rate(share: Any) -> str:
        hits, n, low, high = share
        ends = "" if low is None or high is None else f" ({percent(low)} to {percent(high)})"
        return f"{count(hits)} of {count(n)}{ends}" if n else "none to find"

    for dimension in index.dimensions:
        if index.get("human.sample", dimension) is None:
            continue
        title = index.title(dimension)
        for judge in sorted(judge.name for judge in index.study.judges):
            if (item := index.get("human.judge", dimension, judge=judge)) is not None:
                detail, name = item.detail, clean(judge, 60)
                judges.append((title, name, index.linked(item, t.with_ends), stated(detail["icc"]),
                               stated(detail["bias"], t.signed), rate(detail["tpr"]), rate(detail["tnr"]),
                               count(item.n)))  # fmt: skip
        if (agreed := index.get("human.agreement", dimension)) is not None:  # what a judge can reach
            icc = t.detail_of(agreed, "icc")
            judges.append((title, "two people", index.linked(agreed, t.with_ends), "" if icc is None else number(icc),
                           "", "", "", count(agreed.n)))  # fmt: skip
    orders = list[tuple[Inline, ...]]()
    for verdict in index.run.verdicts:
        claim = verdict.claim
        if kind_of(claim) != "pair" or verdict.publication_level == "no-claim":
            continue
        (high, low), item = claim.subjects, index.pair("human.contrast", verdict)
        if known(item):
            alone, saving = t.detail_of(item, "judges"), t.detail_of(item, "saving")
            orders.append((
                f"{clean(high, 60)} above {clean(low, 60)} on {index.title(claim.dimension).lower()}",
                "" if alone is None else t.signed(alone), index.link(item, t.with_ends(item, t.signed)),
                favour_words(item), count(item.n), "" if saving is None else percent(saving),
            ))  # fmt: skip
    named = ("Supported order", "Judges", "People", "Judges favour", "Graded", "Variance saved")
    note = (
        "Humans are no ground truth: a judge is as good as a person where its interval reaches the agreement of two "
        f"people. A text passes from {number(index.study.human.passed_from(*index.study.scale), 2)} on. People’s "
        "difference is estimated from the graded cycles, made sharper by the judges on all cycles; what the judges "
        "favour is taken out."
    )
    return b.section(
        "people", "What do people say?", people_words(index),
        b.table_of(columns, judges, range(2, 8), "Each judge beside the mean grade of people", stacked=True),
        b.table_of(named, orders, {1, 2, 4, 5}, "Supported rankings as people see them", stacked=True),
        b.Prose(note, "cap"),
    )  # fmt: skip


def people_words(index: RunIndex) -> str:
    """Numbers of graders and grades, agreement of judges and people, outcomes for orders; empty without people."""
    sample = index.get("human.sample", AGGREGATE)
    if sample is None:
        return ""
    detail = sample.detail
    graded = f"{count(int(detail['graded']))} of {count(int(detail['drawn']))} {clean(sample.n_of, 60)}"
    text = f"{t.plural(len(list(detail['graders'])), 'person', 'people')} graded {graded}"
    if lacking := [clean(str(name), 60) for name in detail.get("ungraded", ())]:
        more = f" and {count(len(lacking) - _LISTED)} more" if len(lacking) > _LISTED else ""
        text += f" (not whole: {', '.join(lacking[:_LISTED])}{more})"
    if sample.value is None:
        return (
            f"{t.sentence(text)} Nothing is corrected by them: {clean(sample.state.removeprefix('not tested: '), 200)}."
        )
    states = [verdict.human_anchor for verdict in index.run.verdicts if verdict.claim.asserts_order]
    counts = [f"{count(states.count(state))} {phrase}" for state, phrase in (
        ("confirms", "confirmed"), ("contradicts", "contradicted"), ("undecided", "left undecided")
    ) if state in states]  # fmt: skip
    two, agree = index.value("human.agreement", AGGREGATE), []
    if each := [measurement.value for measurement in index.known("human.judge", AGGREGATE)]:
        reach = "" if two is None else f"; two people agree at {number(two)}"
        agree = [f"Each judge agrees with them at κ {span(min(each), max(each))}{reach}."]
    sentence = f"Of the rankings that the judges support they have {t.listing(counts) or 'tested none'}."
    return " ".join((t.sentence(text), *agree, sentence))


def favour_words(item: Measurement) -> str:
    """The agent of a pair that judges favour relative to people, and by how many points: “ash by 0.12”."""
    more = t.detail_of(item, "rectifier")
    liked = clean(item.labels["high" if (more or 0.0) <= 0 else "low"], 60)
    return "not measured" if more is None else f"{liked} by {number(abs(more))}"
