"""The first page of a study: the finding with its condition, the sentence bench, and what the finding rests on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from markupsafe import Markup

from assaymark.claims import kind_of
from assaymark.records import AGGREGATE, Level, Verdict
from assaymark.report.blocks import (
    Beside,
    Block,
    Figure,
    Inline,
    Linked,
    Mark,
    Page,
    Quote,
    Section,
    Table,
    Tally,
    Text,
    bold,
    section,
    small,
    table_of,
)
from assaymark.report.board import effect_of, tier_ends
from assaymark.report.charts.canvas import NARROW, WIDE
from assaymark.report.charts.models import Strip, TierRow, strip_axis, tier_chart
from assaymark.report.datasheet.reading import datasheet_path
from assaymark.report.inputs import RunIndex, score_words
from assaymark.report.levels import LEVELS, RANK, TALLY, ordered_verdicts
from assaymark.report.page import SCRIPTS
from assaymark.report.study.bench import MOST, about_agents, bench
from assaymark.report.study.controls import GOOD, Control, controls, ranked_alone, supported_orders, tiers, weakest
from assaymark.report.study.limits import Limit, failed_judges, limits_of, own_test, own_tests_words
from assaymark.report.study.plan import invalid_words
from assaymark.report.study.scores import (
    next_section,
    next_steps,
    orders_section,
    pairs_words,
    panel_section,
    read_section,
    strip_cell,
)
from assaymark.report.text import counted, interval, listing, ordinal_span, plural, sentence, shown, signed, words
from assaymark.text import clean, count, number, percent, prose, span

CHARTED: Final = 9
"""So many small charts are on the first page; the board of every score is on the page of agents."""

_CUTS: Final = 5
"""So many sentences about tiers are on the first page of a table, and so many limits."""

_SAID: Final = {
    "passed": "passes", "substance": "passes", "invariant": "passes", "noticed": "passes", "failed": "fails",
    "verbosity-bias": "fails", "terse-favoured": "fails", "style-sensitive": "fails", "not noticed": "fails",
    "inconclusive": "is open", "not tested": "is not tested",
}  # fmt: skip


# --- the finding ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Finding:
    """What opens the page and the terminal: one supported sentence, or why there is none. ``said`` is the sentence,
    without quotation marks; ``verdict`` is None where nothing is supported, or may be named."""

    said: str
    verdict: Verdict | None
    also: str
    second: str
    notice: tuple[str, str]


def finding(book: RunIndex) -> Finding:
    """The finding: who ranks first overall, else the first pair, on the overall score before the dimensions."""
    order = {"first": 0, "pair": 1, "within": 2, "cell": 3}
    said = [v for v in ordered_verdicts(book) if v.publication_level != "no-claim"]
    said.sort(key=lambda v: (order[kind_of(v.claim)] == 3, v.claim.dimension != AGGREGATE, order[kind_of(v.claim)],
                             -RANK[v.publication_level]))  # fmt: skip
    notice = built_in_notice(book)
    if not said:
        found = limits_of(book) if book.run.verdicts else []  # why nothing is supported, and the cheapest next step
        none = "No claim is supported." if book.run.verdicts else "No claim was decided."
        reason = f"{found[0].title}: {found[0].measured} {found[0].fix}" if found else none
        why = book.untestable or reason
        return Finding("No sentence is supported by this study yet", None, why, _second(book), notice)
    if not names_allowed(book):
        also = f"{counted(len(said), 'sentence')} would be supported if the judges were no built-in rules."
        return Finding("Built-in judges scored these agents", None, also, "", notice)
    verdict = said[0]
    conditions = [prose(one, 400) for one in [c.text for c in verdict.conditions] or [verdict.condition or ""] if one]
    return Finding(
        prose(verdict.claim.statement, 400), verdict, prose(" ".join(conditions), 900), _second(book), notice
    )  # fmt: skip


def names_allowed(book: RunIndex) -> bool:
    """Whether agents may be named in the heading and copied: not where only the judges are built in."""
    judges, agents = _built_in(book)
    return agents or not judges


def _built_in(book: RunIndex) -> tuple[bool, bool]:
    """Whether all judges and all agents are built in."""
    run = book.run
    graders, makers = {one.name for one in run.reference_panel}, {agent.name for agent in run.reference_agents}
    agents = {agent.name for agent in run.study.agents} or set(book.agents)
    return bool(graders) and graders >= {judge.name for judge in run.study.judges}, bool(makers) and makers >= agents


def built_in_notice(book: RunIndex) -> tuple[str, str]:
    """What is built in here, as a heading and a sentence; empty where nothing is."""
    run = book.run
    graders, makers = {one.name for one in run.reference_panel}, {agent.name for agent in run.reference_agents}
    judges, (all_judges, all_agents) = {judge.name for judge in run.study.judges}, _built_in(book)
    if all_judges and all_agents:
        return "Demonstration.", (
            "Agents and judges are built-in rules with known flaws; nothing here describes a language model."
        )
    if all_judges:
        return "Built-in judges.", (
            f"The decisions are given, the {plural(len(judges), 'judge')} are simple rules with known flaws. Their "
            "scores say nothing about a language model, so copying is off."
        )
    if graders & judges:
        named = listing([clean(one, 60) for one in sorted(graders & judges)])
        are = "is a built-in judge" if len(graders & judges) == 1 else "are built-in judges"
        return "Built-in judges.", f"{named} {are} with known flaws, no language model."
    if makers:
        named = "Every agent" if all_agents else listing([clean(maker, 60) for maker in sorted(makers)])
        are = "is a built-in rule" if all_agents or len(makers) == 1 else "are built-in rules"
        return "Built-in agents.", f"{named} {are} with known properties, no language model."
    return "", ""


def _second(book: RunIndex) -> str:
    """The second finding: who cannot be ranked, and on how many dimensions the judges agree."""
    said = []
    if supported_orders(book, AGGREGATE):
        groups = [[clean(agent, 60) for agent in tier.agents] for tier in tiers(book, AGGREGATE) if not tier.alone]
        said = [f"{_names(group)} cannot be ranked." for group in groups]
    dimensions = [d for d in book.dimensions if d != AGGREGATE and book.status(d) is not None]
    if dimensions:
        found = [book.status(d) for d in dimensions]
        some = words(found.count("publish")) if "publish" in found else "none"
        weak = f", weakly on {words(found.count('methodology'))}" if "methodology" in found else ""
        said.append(f"The judges agree on {some} of {plural(len(dimensions), 'dimension')}{weak}.")
    return " ".join(said)


def _names(names: Sequence[str]) -> str:
    return listing(names) if len(names) <= 6 else f"{', '.join(names[:5])} and {count(len(names) - 5)} others"


def counted_words(book: RunIndex) -> str:
    """What the tallies are of: sentences, decisions, judges and clusters."""
    run, clusters, what = book.run, book.clusters, "decision" if book.run.table is None else "answer"
    fixed = "fixed in advance" if book.preregistered else "not preregistered, so none without a condition"
    parts = [f"of {counted(len(run.verdicts), 'sentence')} {fixed}", counted(book.answers, what),
             counted(len(run.study.judges), "judge")]  # fmt: skip
    parts += [counted(clusters, "cluster")] if clusters else []
    return " · ".join(parts)


# --- who is ahead -----------------------------------------------------------------------------------------------------


def tier_rows(book: RunIndex, dimension: str) -> list[TierRow]:
    """The tiers of a score as they are drawn."""
    found, alone = [], ranked_alone(book, dimension)
    groups = tiers(book, dimension)
    for at, tier in enumerate(groups):
        ends, point = tier_ends(book, tier, dimension), None
        names = [clean(agent, 60) for agent in tier.agents]
        said = "no ranking inside"
        written = "" if ends is None else f"{span(*ends)}, one tier"
        if tier.agents[0] in alone and (item := effect_of(book, tier.agents[0], dimension)) is not None:
            point = item.value
            limits = (None, None) if ends is None or item.low is None else ends
            written = shown(item) if point is None else interval(point, *limits)
        if tier.alone:
            above, below = (
                sum(len(group.agents) for group in groups[at + 1 :]),
                sum(len(group.agents) for group in groups[:at]),
            )
            parts = [f"above {plural(above, 'other')}"] * bool(above) + [f"below {plural(below, 'other')}"] * bool(
                below
            )
            said = ", ".join(parts).replace("others", "others", 1) or "alone"
        found.append(TierRow(tuple(names), tier.level, ends, point, written, said))
    return found


def axis_of(book: RunIndex) -> tuple[float, float]:
    """The common axis of all scores, between whole points of the scale, or its ends where it has none."""
    lowest, highest = book.study.scale
    ends = [end for d in book.dimensions for tier in tiers(book, d) for end in tier_ends(book, tier, d) or ()]
    low = max(lowest, math.floor(min(ends, default=lowest)))
    high = min(highest, math.ceil(max(ends, default=highest)))
    return (low, high) if low < high else (low, min(highest, low + 1)) if low < highest else (lowest, highest)


def tiers_section(book: RunIndex) -> Section:
    """Who is ahead, and can it be said: the tiers on the overall score, then on each dimension, on one axis."""
    axis, level = axis_of(book), percent(book.study.inference.level)
    overall, blocks = tier_rows(book, AGGREGATE), list[Block]()
    scored = [d for d in book.dimensions if d != AGGREGATE and (book.on(d) or book.status(d) is not None)][:CHARTED]
    if book.agents:
        why = _disagreement(book, AGGREGATE)
        desc = _desc(overall, why)
        about = ("Overall score by tier", desc)
        wide, narrow = (tier_chart(f"tiers-{kind[0]}", overall, axis, *about, width=width, kind=kind, why=why)
                        for kind, width in (("wide", float(WIDE)), ("narrow", float(NARROW))))  # fmt: skip
        title = f"Overall score, {book.study.scale_text}, with {level} interval"
        blocks.append(Figure(title, ranks_words(book, AGGREGATE), wide, narrow, values=_values(overall)))
    small: list[Block] = []
    if scored:
        small.append(Beside(tuple((_small(book, d, axis, at),) for at, d in enumerate(scored)), "small3"))
    if book.run.table is not None:
        cuts, turned = tier_sentences(book)[:_CUTS], turned_sentences(book)[:_CUTS]
        blocks += [*_quotes(cuts), *(Text(one) for one in (top_words(book),) if one)]
        small += _quotes(turned, cuts)
    blocks += small
    key = (
        "Square: an agent’s score. Box: a tier, drawn from end to end; its agents cannot be ranked, so nothing inside "
        "it is shown. Half fill: supported only with a condition. "
    )
    blocks.append(Text(key))
    return Section("ahead", "Who is ahead, and can it be said?", tiers_words(book), tuple(blocks))


Said = tuple[str, Level, tuple[str, ...]]
"""A sentence with its level and the conditions to be quoted with it."""


def conditions_of(told: Sequence[Said], above: Sequence[Said] = ()) -> tuple[list[str], str]:
    """The conditions of each sentence that not all share, and those that all do, without those of all ``above``."""
    shared, before = (
        [text for text in group[0][2] if all(text in also for _, _, also in group)] if group else []
        for group in (told, above)
    )
    own = [" ".join(one for one in also if one not in (*shared, *before)) for _, _, also in told]
    rest = " ".join(one for one in shared if one not in before)
    if not told or not (rest or before):
        return own, ""
    lead = f"Say with {'each of them' if len(told) > 1 else 'it'}"
    if not rest:
        return own, f"{lead} what is said above."
    return own, f"{lead}{', besides the above' if before else ''}: {rest}"


def _quotes(told: Sequence[Said], above: Sequence[Said] = ()) -> list[Block]:
    """Sentences to be copied with their conditions, and below them what all of them need."""
    own, shared = conditions_of(told, above)
    quotes = [
        Quote(level, text, mine, copy=" ".join((text, *also)))
        for (text, level, also), mine in zip(told, own, strict=True)
    ]
    return [*quotes, *(Text(one) for one in (shared,) if one)]


def turned_sentences(book: RunIndex) -> list[Said]:
    """Pairs that are ranked one way on a dimension and the other way on another, as `tier_sentences`."""
    by_pair = {d: {v.claim.subjects: v for v in book.on(d, "pair") if v.publication_level != "no-claim"}
               for d in book.dimensions if d != AGGREGATE and names_allowed(book)}  # fmt: skip
    found = []
    for one, other in combinations(by_pair, 2):
        for high, low in by_pair[one].keys() & {(b, a) for a, b in by_pair[other]}:
            both = by_pair[one][high, low], by_pair[other][low, high]
            where = f"on {score_words(one)}, and below it on {score_words(other)}"
            said = [c for verdict in both for c in verdict.conditions if c.id != "specific"]  # the sentence says it
            also = dict.fromkeys(prose(c.text, 400) for c in said)
            level = weakest(verdict.publication_level for verdict in both)
            found.append((f"{clean(high, 60)} scores above {clean(low, 60)} {where}.", level, tuple(also)))
    return sorted(found)


def ranks_words(book: RunIndex, dimension: str) -> str:
    """The simultaneous rank interval of each agent in a tier of more than three; empty where there is none."""
    possible, of = book.summary.ranks.get(dimension, {}), count(len(book.agents))
    told = [
        f"{clean(agent, 60)} {ordinal_span(*possible.get(agent, tier.ranks))}"
        for tier in tiers(book, dimension) if len(tier.agents) > 3 for agent in tier.agents
    ]  # fmt: skip
    more = f" and {count(len(told) - 12)} more" if len(told) > 12 else ""
    return f"Possible ranks of {of}: {', '.join(told[:12])}{more}." if told else ""


def tier_sentences(book: RunIndex) -> list[Said]:
    """Each cut between tiers on the overall score as a sentence, with its level and what has to be said with it. It
    follows from the supported orders of every agent above over every agent below."""
    groups, orders = tiers(book, AGGREGATE), supported_orders(book, AGGREGATE)
    by_pair = {v.claim.subjects: v for v in book.on(AGGREGATE, "pair")}
    found: list[Said] = []
    if not names_allowed(book):
        return found
    for cut in range(1, len(groups)):
        above, below = ([agent for tier in part for agent in tier.agents] for part in (groups[:cut], groups[cut:]))
        pairs = [(one, other) for one in above for other in below]
        said = dict.fromkeys(prose(c.text, 400) for pair in pairs for c in by_pair[pair].conditions)
        first = [v for v in book.on(AGGREGATE, "first") if v.claim.subjects[:1] == (above[0],)]
        if len(above) == 1 and first and first[0].publication_level != "no-claim":
            leads = first[0]
            also = tuple(prose(c.text, 400) for c in leads.conditions)
            found.append((prose(leads.claim.statement, 400), leads.publication_level, also))
            continue
        if len(above) == 1:
            text = f"{clean(above[0], 60)} scores above the other {words(len(below))} agents on the overall score."
        elif len(below) == 1:
            text = f"{clean(below[0], 60)} scores lowest of the {words(len(book.agents))} agents on the overall score."
        else:
            named = listing([clean(one, 60) for one in above])
            text = f"{named} score above the other {plural(len(below), 'agent')} on the overall score."
        found.append((text, weakest(orders[pair] for pair in pairs), tuple(said)))
    return found


def top_words(book: RunIndex) -> str:
    """The agents of which one is the best, with simultaneous confidence; empty where nothing is known of it."""
    top = [clean(agent, 60) for agent in book.summary.top_set.get(AGGREGATE, ())]
    if not 1 < len(top) < len(book.agents):
        return ""
    return f"The best agent is one of {count(len(top))}: {_names(top)}."


def tiers_words(book: RunIndex) -> str:
    """How many tiers there are on the overall score, and how many dimensions have no ranking."""
    groups = tiers(book, AGGREGATE)
    if not groups:
        return "No agent was scored."
    cut = len(groups) > 1
    said = f"{plural(len(groups), 'tier').capitalize()} on the overall score." if cut else (
        f"On the overall score {_names([clean(agent, 60) for agent in groups[0].agents])} cannot be ranked."
    )  # fmt: skip
    halted = [d for d in book.dimensions if d != AGGREGATE and book.status(d) == "halt"]
    if halted:
        some = plural(len(halted), "dimension")
        verb = "has" if len(halted) == 1 else "have"
        said += f" {some.capitalize()} {verb} no ranking, because the judges do not agree."
    return said


def _disagreement(book: RunIndex, dimension: str) -> tuple[str, ...]:
    """Why no tier of a score may be drawn: too little agreement, with its number and what is needed."""
    if book.status(dimension) != "halt":
        return ()
    needed = number(book.study.gates.halt)
    return ("Judges do not agree", f"{book.gating_words(dimension)}; {needed} needed")


def _desc(rows: Sequence[TierRow], why: Sequence[str]) -> str:
    if why:
        return "; ".join(why)
    return "; ".join(f"{listing(row.names)}: {row.shown or 'no score'}, {row.said}" for row in rows)


def _values(rows: Sequence[TierRow]) -> Table:
    """What a chart of tiers draws: the ends of each tier, and the score of an agent that is alone in its tier."""
    ends = ((listing(row.names), *(row.ends or ("", "")), "" if row.point is None else row.point) for row in rows)
    return Table(("Agents", "Low", "High", "Score"), tuple(tuple(map(str, end)) for end in ends))


def _small(book: RunIndex, dimension: str, axis: tuple[float, float], at: int) -> Figure:
    why, rows = _disagreement(book, dimension), tier_rows(book, dimension)
    if why:  # whatever was found there is not shown, not even its tiers
        rows = [TierRow(tuple(clean(agent, 60) for agent in book.agents), "no-claim", None, None, "")]
    title, status, item = book.title(dimension), book.status(dimension), book.gating(dimension)
    ends = "" if item is None or item.low is None or item.high is None else f" ({span(item.low, item.high)})"
    kappa = f"{book.gating_words(dimension)}{ends}"
    agree = {"halt": "Judges do not agree", "methodology": "Judges agree weakly"}.get(str(status), "Judges agree")
    if status == "methodology":
        kappa += f"; {number(book.study.gates.publish)} needed without a condition"
    ranks = "" if why else ranks_words(book, dimension)
    chart = tier_chart(
        f"tier{at}", rows, axis, f"{title} by tier", _desc(rows, why), width=float(NARROW), kind="both", why=why
    )
    return Figure(title, f"{agree}: {kappa}", chart, "", note=ranks, values=_values(rows))


# --- do planted texts fool the judges ---------------------------------------------------------------------------------


def planted_section(book: RunIndex) -> Section:
    """Control texts whose right treatment is known, by all judges and with each judge family left out."""
    found = [c for c in controls(book) if c.gate is not None]
    names = {judge.family: judge.name for judge in book.study.judges}
    columns = tuple(tuple(_planted(book, control, names)) for control in found[:2])
    values = " and ".join(clean(c.title.partition(": ")[2] or c.title, 60) for c in found[:2])
    more = f" of {counted(len(found), 'kind')}: {values}" if len(found) > 2 else ""
    rest = Text((Linked(f"All control texts{more}", "controls.html"), ". Bars: intervals over clusters."))
    blocks = (Beside(columns), rest) if columns else ()
    return Section("planted", "Do planted texts fool the judges?", planted_words(book), blocks)


def planted_words(book: RunIndex) -> str:
    """The answer in a sentence."""
    found = [c for c in controls(book) if c.gate is not None]
    if not found:
        return "Not known: no control texts were graded."
    bad = [c for c in found if c.outcome not in GOOD]
    turned = [c for c in found if c.turned and c not in bad]
    if not bad and not turned:
        return "No. The judges pass every kind of control text, also with any one of them left out."
    named = [_planted_name(c) for c in (bad or turned)]
    if bad:
        return f"Not reliably. {sentence(listing(named))[:-1]} {'are' if named else ''} not scored as they should be."
    return f"Not reliably. Leave out one judge and {listing(named)} are no longer scored as they should be."


def _planted_name(control: Control) -> str:
    known = {"cell_a": "confident but wrong texts", "cell_b": "short but right texts"}
    return known.get(control.cell, control.name.lower() + " texts")


def _planted(book: RunIndex, control: Control, names: Mapping[str, str]) -> Iterator[Block]:
    """One kind of control text: its value with all judges that count, then without each family."""
    cells = book.study.cells
    gate, score = control.gate, control.score
    drops = sorted(book.every("cell.drop", cell=control.cell), key=lambda m: m.labels.get("dropped", ""))
    rows = [("all judges", gate, control.outcome)] if gate is not None else []
    rows += [(f"without {clean(names.get(f := m.labels.get('dropped', ''), f), 60)}", m,
              str(m.detail.get("outcome", ""))) for m in drops]  # fmt: skip
    band: tuple[float | None, float | None] = (None, 0.0) if control.cell in ("cell_a", "red_team") else (
        (-cells.substance, cells.substance)
    )  # fmt: skip
    known = [end for _, m, _ in rows for end in (m.value, m.low, m.high) if end is not None]
    axis = strip_axis(known, *(one for one in band if one is not None), 0.0)
    cuts = tuple((one, f"{one:g}".replace("-", "−"), False) for one in band if one is not None)
    title = sentence(_planted_name(control))[:-1]
    n = f" ({counted((score or gate).n, 'text')})" if (score or gate) is not None else ""  # type: ignore[union-attr]
    mean = "" if score is None or score.value is None else f" Mean score {book.to(score, number(score.value))}"
    honest = book.value("cell.honest", dimension=AGGREGATE)
    mean += f", real texts {number(honest)}." if mean and honest is not None else "." if mean else ""
    rule = "scored lower: passes" if band[0] is None else f"within ±{cells.substance:g}: passes"
    yield Markup("<h3>{}</h3>").format(title + n)
    against = "the weakest quarter of real texts" if control.cell in ("cell_a", "red_team") else "real texts"
    yield Text(f"Points against {against}; {rule}.{mean}", "cap")
    lines = []
    for name, item, outcome in rows:
        said = _SAID.get(outcome, clean(outcome, 40) or "has no outcome")
        if item.value is None:
            lines.append((name, "", shown(item), said))
            continue
        ends = (item.value, item.low, item.high)
        mark = "p" if said == "passes" else "n"
        strip = Strip(
            axis, cuts if item is rows[0][1] else tuple((at, "", d) for at, _, d in cuts), (ends,), mark, band
        )
        lines.append((name, Markup(strip.svg()), book.to(item, signed(item.value)), said))
    yield Table(
        ("Judges", "Points", "Value", "Result"), tuple(lines), frozenset({2}), summary="", stacked=True, style="drops"
    )


# --- how good are the judges ------------------------------------------------------------------------------------------


def judges_section(book: RunIndex) -> Section:
    """One row for each judge: what filler earns, what it notices, what an empty text scores, and its own test."""
    run, limits_set = book.run, (book.study.datasheets.set if book.study.datasheets else {})
    failing = failed_judges(book)
    columns = (("point.verbosity", "verbosity"), ("point.slope", "slope"))
    axes = {}
    for name, key in columns:
        items = [own_test(book, name, judge.name) for judge in run.study.judges]
        ends = [end for m in items if m is not None for end in (m.value, m.low, m.high) if end is not None]
        axes[name] = strip_axis(ends, limits_set.get(key, 0.0), 0.0)
    makers: dict[str, list[str]] = {}
    for agent in book.agents:
        makers.setdefault(book.family(agent), []).append(clean(agent, 60))
    rows = []
    for judge in sorted(run.study.judges, key=lambda one: one.name):
        name = clean(judge.name, 60)
        lead: Inline = Linked(name, datasheet_path(judge.name)) if judge.name in run.datasheets else name
        same = makers.get(clean(judge.family, 60), [])
        cells: list[Inline] = [(lead, small(f" same maker as {listing(same)}")) if same else lead]
        for measure, key in columns:
            item, cut = own_test(book, measure, judge.name), limits_set.get(key)
            if item is None or item.value is None:
                cells.append(shown(item))
                continue
            over = cut is not None and (item.value > cut if key == "verbosity" else item.value < cut)
            point = (item.value, item.low, item.high)
            cells.append(strip_cell(axes[measure], cut or 0.0, point, signed(item.value), over))
        cells += [shown(own_test(book, "point.vacuum_score", judge.name)), invalid_words(book, judge.name)]
        tested = any(True for _ in book.every("datasheet.gate", judge=judge.name))
        cells.append(bold("over the limit") if judge.name in failing else "within limits" if tested else "no limit set")
        rows.append(tuple(cells))
    cut = limits_set.get("verbosity")
    dashed = "0" if cut is None else f"limit {number(cut)}"
    heads = (
        "Judge", ("Points for 100 words of filler", small(f" dashed: {dashed}")),
        ("Points for a further requirement", small(" dashed: 0, notices nothing")),
        ("Empty text scores", small(" 1.00 is right")), "Invalid replies", "Own test",
    )  # fmt: skip
    table = Table(heads, tuple(rows), frozenset({3, 4}), summary="", stacked=True, style="tests")
    return Section("judges", "How good are the judges?", judges_words(book), (table,))


def judges_words(book: RunIndex) -> str:
    """Which judges are within the limits of the plan."""
    failing, panel = failed_judges(book), book.study.judges
    if failing:
        rest = len(panel) - len(failing)
        others = f" The {words(rest) + ' others are' if rest > 1 else 'other is'} within the limits." if rest else ""
        return f"{sentence(own_tests_words(book))}{others}"
    if not book.tests:
        return "Not known: the judges were not tested on texts of known quality."
    return sentence(f"Every judge is within the limits: {own_tests_words(book)}" if book.study.datasheets else (
        "The plan set no limits for the judges’ own tests"
    ))  # fmt: skip


# --- what limits the result -------------------------------------------------------------------------------------------


def limits_section(found: Sequence[Limit]) -> Section:
    """What keeps sentences from being supported, by how many of them."""
    rows = [(one.title, one.measured, one.effect, one.fix) for one in found]
    table = table_of(("Limit", "Measured", "Effect", "Fix and price"), rows, stacked=True, style="limits")
    lead = "By the number of sentences affected." if rows else "Nothing: no sentence is limited."
    return section("limits", "What limits the result?", lead, table)


# --- the page ---------------------------------------------------------------------------------------------------------


def benches(book: RunIndex) -> dict[str, str]:
    """The page whose bench holds each score: the first one holds all where they are few enough."""
    scored = [d for d in book.dimensions if book.on(d)]
    if book.run.table is not None:
        several = len(about_agents(book)) > MOST
        return {d: f"sentences-{at:03d}.html" if several else "sentences.html" for at, d in enumerate(scored, 1)}
    if len(about_agents(book)) <= MOST:
        return dict.fromkeys(scored, "index.html")
    return {d: "index.html" if at == 0 else f"sentences-{at:03d}.html" for at, d in enumerate(scored)}


def first_scores(book: RunIndex) -> dict[str, str]:
    """The pages with a bench, each with the first score that it holds."""
    return {path: dimension for dimension, path in reversed(benches(book).items())}


def overview(book: RunIndex, deeper: Sequence[tuple[str, str, str]]) -> Page:
    """The first page; ``deeper`` are the other pages as (words, path, what is there)."""
    found, levels = finding(book), [v.publication_level for v in book.run.verdicts]
    pages, allowed = benches(book), names_allowed(book)
    level = "no-claim" if found.verdict is None else found.verdict.publication_level
    title: Inline = found.said
    if found.verdict is not None:
        title = Markup('<span class="said">“{}”</span>').format(found.said)
    lead: Inline = found.also if found.verdict is None or not found.also else (bold("Say also:"), " ", found.also)
    links = Markup("").join(
        Markup('<li><a href="{}">{}</a><span class="sub">{}</span></li>').format(path, name, said)
        for name, path, said in deeper
    )
    sections, table = (
        [tiers_section(book), planted_section(book), judges_section(book), limits_section(limits_of(book))],
        book.run.table,
    )
    if table is not None:
        planted = [sections[1]] if book.study.cells_judged else []
        orders = [orders_section(table)] if table.orders else []
        sections = [sections[0], panel_section(book), *orders, *planted, limits_section(limits_of(book)[:_CUTS])]
        sections = [*sections, read_section(table)] if table.about else [read_section(table), *sections]
        sections.append(next_section(next_steps(book)))
    if table is None and found.verdict is None and not any(level != "no-claim" for level in levels):
        sections = [sections[3], *sections[1:3]] if not book.agents else [sections[3], sections[0], *sections[1:3]]
    deep = Section("more", "Where is the rest?", "", (Markup('<ul class="deep">{}</ul>').format(links),))
    asked = bench(book, pages, "index.html", copying=allowed)
    (head, said), parts = found.notice, list[Inline]()
    if table is not None and table.about:
        parts = [prose(table.about, 600)]
    elif said:
        parts = [bold(head), f" {said} ", Linked("What was planted", "plan.html#panel")]
    if not book.preregistered and table is None:
        parts += [
            " " if parts else "",
            bold("Not preregistered."),
            " The scores had been seen when the plan was locked.",
        ]
    return Page(
        "index.html", book.study.title or book.study.name,
        lead, heading=(Mark(level), title), under=f"{found.second} {pairs_words(book)}".strip(),
        notice=tuple(parts),
        tallies=tuple(Tally(one, count(levels.count(one)), TALLY[one]) for one in LEVELS),
        of=counted_words(book), blocks=(asked,) if asked else (), sections=(*sections, deep), here="overview",
        styles=("bench.css",), scripts=("page.js", "bench.js") if asked else SCRIPTS,
    )  # fmt: skip


def sentence_pages(book: RunIndex) -> Iterator[Page]:
    """A bench of its own for each score that the first page has no room for."""
    pages, allowed = benches(book), names_allowed(book)
    for path, dimension in first_scores(book).items():
        if path != "index.html":
            block = bench(book, pages, path, copying=allowed)
            title, lead = f"Sentences on {score_words(dimension)}", "Any sentence on this score, with what decides it."
            if path == "sentences.html":
                title, lead = "Sentences", "Any sentence about these systems, with what decides it."
            yield Page(
                path, title, lead, blocks=(block,), up=Linked("Overview", "index.html"), here="overview",
                styles=("bench.css",), scripts=("page.js", "bench.js"),
            )  # fmt: skip
