"""The first page of an imported table of scores: how it was read, the quality of its judges, and next steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from shlex import quote
from typing import Final

from markupsafe import Markup

from assaymark.protocol import JudgeSpec
from assaymark.records import AGGREGATE
from assaymark.report import blocks as b
from assaymark.report import text as t
from assaymark.report.blocks import Block, Inline
from assaymark.report.charts.models import Strip, strip_axis
from assaymark.report.inputs import KAPPA, RunIndex, TableView
from assaymark.report.study.checks import binding_fields
from assaymark.report.study.controls import people_words
from assaymark.report.text import known
from assaymark.text import clean, count, number, percent, prose

WINS: Final = "share of wins"
"""The score of pairs, as `check` names it; next to other scores, that of pairs seen by the same judges."""

COMMON: Final = "common"
"""The label of the effect that all judges share for their own family."""

_MATRIX: Final = 12
"""Maximum number of judges in a matrix of pairs; more are shown as dots, sorted by agreement with the others."""
_FOLDED, _SHORT, _LEFT = 4, 16, 3
"""Limits: more judges are folded on a phone, longer names become column numbers, more notes are folded."""
_SAMPLE, _FEWEST = 25, 20  # items to be drawn for people: recommended, and needed
_ROLES: Final[Mapping[str, str]] = {
    "agent": "system", "agent_a": "first system", "agent_b": "second system", "score": "score", "judge": "judge",
    "item": "item", "dimension": "criterion", "winner": "verdict", "order_1": "verdict, one order",
    "order_2": "verdict, other order", "order": "order shown", "cluster": "cluster", "trial": "trial",
    "length": "length", "text": "text",
}  # fmt: skip
"""The name of each role on the page."""


def read_section(table: TableView) -> b.Section:
    """The columns that were read, the assumptions, and the rows that were left out."""
    rows: list[tuple[str, Inline]] = [
        (name.capitalize(), b.code(clean(table.roles[role], 80)))
        for role, name in _ROLES.items()
        if role in table.roles
    ]
    criteria = t.listing([clean(dimension, 60) for dimension in table.dimensions])
    digest = f", sha256 {table.sha256[:12]}…" if table.sha256 else ""
    rows += [("Criteria", (criteria, f", {table.scale[0]:g} to {table.scale[1]:g}")),
             ("File", (clean(table.source, 200), b.small(f" {table.format}{digest}")))]  # fmt: skip
    omitted: Block = b.Items(tuple(prose(line, 600) for line in table.left))
    if len(table.left) > _LEFT:
        omitted = b.Group(f"What was left out ({len(table.left)})", (omitted,), folded="closed")
    chosen = b.Items(tuple(f"Chosen after the scores were seen: {prose(choice, 600)}." for choice in table.choices))
    wrong = ("Wrong? Name the column of a role with ", b.code("--map ROLE=COLUMN"), ".")
    filled = b.Items((*(prose(line, 600) for line in table.filled), wrong))
    assumed = b.Group(f"What was assumed ({len(table.filled)})", (filled,), folded="closed")
    blocks = (b.Terms(tuple(rows)), *((chosen,) if table.choices else ()), *((omitted,) if table.left else ()), assumed)
    return b.Section("read", "How was the table read?", f"{size_words(table)}.", blocks)


def size_words(table: TableView) -> str:
    """The size of a table in words."""
    noun = "cluster" if "cluster" in table.roles or "item" not in table.roles else "item"
    parts = (t.counted(table.agents, "system"), t.counted(table.clusters, noun), t.counted(table.judges, "judge"),
             t.plural(len(table.dimensions), "criterion", "criteria"))  # fmt: skip
    lost = f", {count(table.missing)} missing" if table.missing else ""
    return f"{', '.join(parts)}: {t.counted(table.scores, 'score')}{lost}"


def judges_section(index: RunIndex) -> b.Section:
    """The agreement of the judges, by pair and without each judge, and one row per judge."""
    panel = sorted(index.study.judges, key=lambda judge: judge.name)
    (pairs, split), sign = split_pairs(index), index.sign
    few = len(panel) <= _MATRIX
    if not few:  # many judges are drawn as dots, those that agree least first
        panel.sort(key=lambda judge: (split[judge.name][0] is None, split[judge.name][0] or 0.0, judge.name))
    cut = index.study.gates.publish
    axis = strip_axis([value for both in split.values() for value in both if value is not None], cut)
    none = {name: "left out" if is_left_out(index, name) else "no pair" for name in split}

    def dot(value: float | None, otherwise: str) -> Inline:
        return otherwise if value is None else strip_cell(axis, cut, (value, None, None), number(value), value < cut)

    blocks: list[Block] = []
    if few and len(panel) > 2 and pairs:
        names = [judge.name for judge in panel]
        wide = max(map(len, names)) > _SHORT  # long names are only row heads, with the number of their column
        called = [f"{at} {clean(name, 60)}" if wide else clean(name, 60) for at, name in enumerate(names, 1)]
        cells = tuple(
            (called[at], *("" if (kappa := pairs.get((other, name), pairs.get((name, other)))) is None else
                           b.Share(max(0.0, min(kappa, 1.0)), number(kappa)) for other in names[:at]),
             *([""] * (len(names) - 1 - at)))
            for at, name in enumerate(names) if at or wide
        )  # fmt: skip
        above = [str(at) if wide else name for at, name in enumerate(called[:-1], 1)]
        grid = b.Table((f"{sign} of each pair", *above), cells, summary="", style="pairs")
        without = tuple((f"without {clean(name, 60)}", dot(split[name][1], none[name])) for name in names)
        header: tuple[Inline, ...] = ("Panel", (f"{sign} without one judge", b.small(f" dashed: {number(cut)} needed")))
        both = b.beside(grid, b.Table(header, without, summary="", stacked=True, style="tests"))
        blocks.append(_folded(len(panel), both, f"{sign} of each pair and without each judge"))
    columns = _columns(index, panel)
    if not blocks:
        needed = b.small(f" dashed: {number(cut)} needed")
        columns = [((f"{sign} with the others", needed), {n: dot(pair[0], none[n]) for n, pair in split.items()}),
                   (f"{sign} without it", {n: "" if pair[1] is None or is_left_out(index, n) else number(pair[1])
                                           for n, pair in split.items()}), *columns]  # fmt: skip
    rows = tuple(
        ((clean(judge.name, 60), b.small(f" {clean(judge.family, 60)}") if judge.family != judge.name else ""),
         *(column[judge.name] for _, column in columns))
        for judge in panel
    )  # fmt: skip
    plain = frozenset(at for at, (head, _) in enumerate(columns, start=1) if head in ("Mean score", "Missing scores"))
    table = b.Table(("Judge", *(head for head, _ in columns)), rows, plain, summary="", stacked=True, style="tests")
    blocks.append(_folded(len(panel), table))
    if sentence := spread_words(index):
        blocks.append(b.Prose(sentence, "cap"))
    if few and len(pairs) < len(panel) * (len(panel) - 1) // 2 and len({judge.family for judge in panel}) < len(panel):
        blocks.append(b.Prose("Judges of one maker are not compared with each other.", "cap"))
    if sentence := people_words(index):
        blocks.append(b.Prose((b.bold("People."), " ", sentence), "cap"))
    blocks.append(b.Items((b.Linked("Agreement by criterion, with intervals", "agreement.html"),)))
    return b.Section("judges", "Do the judges agree, and is one of them odd?", agreement_answer(index), tuple(blocks))


def spread_words(index: RunIndex) -> str:
    """The range of system means by each judge that scored its own family; a wide one inflates own-family points."""
    spreads: dict[str, float] = {}
    for judge in {item.labels["judge"] for item in index.all("judge.own_family", AGGREGATE)} - {COMMON}:
        levels = _system_means(index, judge)
        spreads[judge] = max(levels) - min(levels) if levels else 0.0
    spans = [f"{number(value, 1)} points apart with {clean(judge, 60)}" for judge, value in sorted(spreads.items())]
    note = "A judge that spreads scores more also gives a good system of its family more points without preferring it."
    return f"The lowest and the highest system are {t.listing(spans)}. {note}" if len(spans) > 1 else ""


def _folded(n: int, block: Block, title: str = "") -> Block:
    """A block with a part for each judge; with many judges it is folded on phones."""
    return b.Group(title or f"Each of the {n} judges", (block,), folded="phone") if n > _FOLDED else block


def strip_cell(
    axis: tuple[float, float], cut: float, point: tuple[float, float | None, float | None], value: str, over: bool
) -> Inline:
    """A value on an axis with its threshold; in bold, and marked as a condition, if it is ``over``."""
    strip = Strip(axis, ((cut, "", True),), (point,), "q" if over else "p")
    return (Markup(strip.svg()), " ", b.bold(value) if over else value)


def _columns(index: RunIndex, panel: Sequence[JudgeSpec]) -> list[tuple[Inline, dict[str, Inline]]]:
    """The results for each judge as columns: a heading, and a cell by judge."""
    columns: list[tuple[Inline, dict[str, Inline]]] = []
    names = [judge.name for judge in panel]
    people = {name: index.get("human.judge", AGGREGATE, judge=name) for name in names}
    if any(people.values()):
        reached = index.value("human.agreement", AGGREGATE)
        two = "" if reached is None else b.small(f" two people: {number(reached)}")
        graded: dict[str, Inline] = {name: "not graded" if m is None else t.as_text(m) for name, m in people.items()}
        columns.append((("κ with people", two), graded))
    # Points for its own family and for length, then wins of its own family, if pairs were given beside the scores.
    for measure, dimension, head, otherwise in (
        ("judge.own_family", AGGREGATE, "Points more for its own family", "none of its family"),
        ("judge.length", AGGREGATE, "Points more for twice the length", "not measured"),
        ("judge.own_family", WINS, "Share of wins more for it, in pairs", ""),
    ):
        items = {name: index.get(measure, dimension, judge=name) for name in names}
        if not (index.all(measure, WINS) if dimension == WINS else any(items.values())):
            continue
        ends_of_all = (end for item in items.values() if item for end in (item.value, item.low, item.high))
        axis, cells = strip_axis([end for end in ends_of_all if end is not None], 0.0), dict[str, Inline]()
        for name, item in items.items():
            cells[name] = otherwise if item is None else t.as_text(item)
            if known(item):
                over, shown = item.low is not None and item.low > 0, t.signed(item.value)
                cells[name] = strip_cell(axis, 0.0, (item.value, item.low, item.high), shown, over)
                if dimension == WINS:
                    ends = t.interval_of(item, lambda low, high: f"{t.signed(low)} to {t.signed(high)}")
                    cells[name] = (b.bold(shown) if over else shown, ends)
        columns.append((head if dimension == WINS else (head, b.small(" dashed: 0")), cells))
    levels = {name: _system_means(index, name) for name in names}
    columns.append(("Mean score", {n: number(sum(own) / len(own)) if own else "" for n, own in levels.items()}))
    missing: dict[str, Inline] = dict.fromkeys(names, "none")
    for name in names:
        item = index.get("missing.share", judge=name)
        if item is not None and item.value:
            lacking, asked = item.detail.get("lacking"), item.detail.get("records")
            some = percent(item.value, 1)
            if isinstance(lacking, int) and isinstance(asked, int):
                some = f"{count(lacking)} of {count(asked)}"
            missing[name] = f"{some}, left out" if is_left_out(index, name) else some
    return [*columns, ("Missing scores", missing)] if set(missing.values()) != {"none"} else columns


def _system_means(index: RunIndex, judge: str) -> list[float]:
    """The mean score that one judge gave each system."""
    return [measurement.value for measurement in index.known("single.level", AGGREGATE, judge=judge)]


def pairs_words(index: RunIndex) -> str:
    """Position bias and own-family wins of the judges, from pairs given in addition to scores."""
    table = index.run.table
    if table is None or not table.orders:
        return ""
    sentences = [
        f"{clean(item.labels['judge'], 60)} picks its own family in {100 * item.value:.0f} "
        f"({100 * (item.low or 0.0):.0f} to {100 * (item.high or 0.0):.0f}) more of 100 pairs than the other judges do."
        for item in index.known("judge.own_family", WINS)
        if item.labels["judge"] != COMMON and (item.low or 0.0) > 0
    ]
    return " ".join((*sentences, position_words(table)))


def position_words(table: TableView) -> str:
    """The share of pairs that the position decided, over the judges."""
    shares = sorted(order["same_place"] / order["both"] for order in table.orders.values())
    ends = f"{percent(shares[0], 1)} of pairs"
    if shares[0] < shares[-1]:
        ends = f"{percent(shares[0], 1)} to {percent(shares[-1], 1)} of pairs, depending on the judge"
    return f"The same position won both orders of {ends}; {percent(0.0)} if the texts alone decide."


def split_pairs(index: RunIndex) -> tuple[dict[tuple[str, str], float], dict[str, tuple[float | None, float | None]]]:
    """The agreement of every two judges on the overall score, and by judge the mean of pairs with it and without it."""
    item, split = index.get(KAPPA, AGGREGATE), dict[str, tuple[float | None, float | None]]()
    of_pairs = {} if item is None else item.detail.get("pairs", {})
    pairs = {(judge, other): value for key, value in of_pairs.items() if value is not None
             for judge, other in [key.split("|", 1)]}  # fmt: skip
    for judge in index.study.judges:
        mine = [value for pair, value in pairs.items() if judge.name in pair]
        others = [value for pair, value in pairs.items() if judge.name not in pair]
        split[judge.name] = (sum(mine) / len(mine) if mine else None, sum(others) / len(others) if others else None)
    return pairs, split


def is_left_out(index: RunIndex, judge: str) -> bool:
    """True if a judge was left out."""
    item = index.get("missing.share", judge=judge)
    return item is not None and bool(item.detail.get("left_out"))


def agreement_answer(index: RunIndex) -> str:
    """The answer to whether the judges agree, with the judge that lowers agreement."""
    item, gates = index.get(KAPPA, AGGREGATE), index.study.gates
    if not known(item):
        return f"Not known: {t.as_text(item).removeprefix('not measurable: ')}."
    answer = "Yes" if item.value >= gates.publish else "Hardly" if item.value >= gates.halt else "No"
    sentence = f"{answer}: {index.sign} {t.with_ends(item)}; {number(gates.publish)} needed."
    odd = odd_judge(index, item.value)
    return sentence if odd is None else f"{sentence} {clean(odd[0], 60)} pulls it down: {number(odd[1])} without it."


def odd_judge(index: RunIndex, value: float) -> tuple[str, float] | None:
    """The judge without which agreement is higher by at least 0.1 without being perfect, and that agreement, if any."""
    without = split_pairs(index)[1].items()
    better = {name: rest for name, (_, rest) in without if rest is not None and value + 0.1 <= rest < 1 - 1e-9}
    return max(better.items(), key=lambda item: item[1], default=None)


def next_steps(index: RunIndex) -> list[tuple[str, str]]:
    """Possible next steps, each with its gain, its cost and its command: (words, command)."""
    table = index.run.table
    if table is None:
        return []
    steps: list[tuple[str, str]] = []
    item, command = index.get(KAPPA, AGGREGATE), f"assaymark check {quote(clean(table.source, 120))}"
    verdicts = (verdict for verdict in index.run.verdicts if verdict.publication_level != "no-claim")
    limited = Counter(field for verdict in verdicts for field in binding_fields(verdict))
    lifts = {field: f"Lifts a condition of {t.counted(n, 'sentence')}" for field, n in limited.items()}
    if known(item) and (odd := odd_judge(index, item.value)) is not None:
        gain = f"{index.sign} {number(odd[1])} instead of {number(item.value)}, from the same scores."
        steps.append((f"See what changes without {clean(odd[0], 60)}. {gain}", f"{command} --without {quote(odd[0])}"))
    if "cluster" not in table.roles:
        gain = "Items of one group count for less than their number. No new scores."
        steps.append((f"Name clusters, if items come in groups. {gain}", f"{command} --cluster COLUMN"))
    families = index.get("panel.families")
    if families is not None and families.detail.get("unknown") and (lifted := lifts.get("own_family")):
        gain = f"{lifted} if it holds without judges of the own family. No new scores."
        steps.append((f"Name the makers of {families.detail['unknown']}. {gain}", f"{command} --family NAME=MAKER"))
    if not index.preregistered:
        gain = lifts.get("preregistration", "Then the next scores are preregistered")
        gain += f"; costs {t.counted(table.scores, 'new score')}."
        steps.append((f"Fix a plan before the next scores. {gain}", "assaymark lock PLAN.toml --out plan"))
    sample = min(_SAMPLE, max(table.clusters, table.answers // max(1, table.agents)))  # there are as many items
    if sample >= _FEWEST and not any(item.name.startswith("human.") for item in index.run.measurements):
        drawn = f"assaymark draw {quote(clean(table.source, 120))} --sample {sample}"
        gain = f"Rankings that hold for people; costs {t.counted(sample * table.agents, 'grade')}."
        steps.append((f"No human grades: have a sample graded. {gain}", drawn))
    steps.append(("Check the sentences of a text, at no cost.", "assaymark proofread README.md --run RUN"))
    return steps


def orders_section(table: TableView) -> b.Section:
    """Position bias by judge, from pairs shown in both orders."""
    columns = ("Judge", "Pairs in both orders", "The same text won", "The same position won", "Of these, the first",
             "A tie in one order")  # fmt: skip
    parts = ("same_text", "both"), ("same_place", "both"), ("first_place", "same_place"), ("one_tie", "both")
    rows = tuple(
        (clean(judge, 60), count(n["both"]), *(percent(n.get(x, 0) / n[of], 1) if n[of] else "none" for x, of in parts))
        for judge, n in sorted(table.orders.items())
    )
    orders = b.Table(columns, rows, frozenset({1, 2, 3, 4, 5}), summary="", stacked=True, style="tests")
    title = "Does the order in which texts are shown decide?"
    return b.Section("orders", title, position_words(table), (_folded(len(rows), orders),))
