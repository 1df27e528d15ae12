"""The first page of a study: the finding with its condition, the sentence bench, and the evidence for the finding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Final

from markupsafe import Markup

from assaymark.claims import kind_of, scope_words
from assaymark.records import AGGREGATE, Level, Verdict
from assaymark.report import blocks as b
from assaymark.report import text as t
from assaymark.report.blocks import Block, Inline, small
from assaymark.report.charts.canvas import NARROW, WIDE
from assaymark.report.charts.models import Strip, TierRow, strip_axis, tier_chart
from assaymark.report.datasheet.reading import datasheet_path
from assaymark.report.inputs import RunIndex, Tier, ranked_alone, score_words, supported_orders, tiers
from assaymark.report.levels import effect_of, ordered_verdicts, tier_ends
from assaymark.report.page import SCRIPTS
from assaymark.report.study import scores
from assaymark.report.study.bench import all_built_in, bench_markup, names_allowed
from assaymark.report.study.checks import failed_judges, limits_of, own_test, own_tests_words
from assaymark.report.study.controls import GOOD, Control, controls
from assaymark.report.study.plan import invalid_words
from assaymark.report.text import known
from assaymark.text import clean, count, number, percent, prose, span

CHARTED: Final = 9
"""Maximum number of small charts on the first page; the page of agents has every score."""

_CUTS: Final = 5
"""Maximum number of sentences about tiers, and of limits, on the first page of an imported table."""

_SAID: Final = {
    **dict.fromkeys(("passed", "substance", "invariant", "noticed"), "passes"),
    **dict.fromkeys(("failed", "verbosity-bias", "terse-favoured", "style-sensitive", "not noticed"), "fails"),
    "inconclusive": "is open", "not tested": "is not tested",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class StudyFinding:
    """The heading: a supported ``title`` with its ``verdict``, or the reason why there is none."""

    title: str
    verdict: Verdict | None
    also: str
    second: str
    notice: tuple[str, str]


def top_finding(index: RunIndex) -> StudyFinding:
    """The finding: the first rank overall, else the first pair, on the overall score before the dimensions."""
    order = {"first": 0, "pair": 1, "within": 2, "cell": 3}
    supported = [v for v in ordered_verdicts(index) if v.publication_level != "no-claim"]
    supported.sort(key=lambda v: (order[kind_of(v.claim)] == 3, v.claim.dimension != AGGREGATE, order[kind_of(v.claim)],
                             -t.RANK[v.publication_level]))  # fmt: skip
    # The notice on built-in judges and agents, as a heading and a sentence; empty without any.
    graders, makers = ({one.name for one in some} for some in (index.run.reference_panel, index.run.reference_agents))
    judges, (all_judges, all_agents) = {judge.name for judge in index.study.judges}, all_built_in(index)
    ours, notice, second = sorted(clean(name, 60) for name in graders & judges), ("", ""), list[str]()
    if all_judges and all_agents:
        said_of = "Agents and judges are built-in rules with known flaws; nothing here describes a language model."
        notice = "Demonstration.", said_of
    elif all_judges:
        said_of = f"The decisions are given, the {t.plural(len(judges), 'judge')} are simple rules with known flaws. "
        notice = "Built-in judges.", f"{said_of}Their scores say nothing about a language model, so copying is off."
    elif ours:
        are = "is a built-in judge" if len(ours) == 1 else "are built-in judges"
        notice = "Built-in judges.", f"{t.listing(ours)} {are} with known flaws, no language model."
    elif makers:
        named = "Every agent" if all_agents else t.listing([clean(maker, 60) for maker in sorted(makers)])
        are = "is a built-in rule" if all_agents or len(makers) == 1 else "are built-in rules"
        notice = "Built-in agents.", f"{named} {are} with known properties, no language model."
    if not supported:
        limits = limits_of(index) if index.run.verdicts else []  # the reason why nothing is supported, and its fix
        none = "No claim is supported." if index.run.verdicts else "No claim was decided."
        reason = index.untestable or (f"{limits[0][0]}: {limits[0][1]} {limits[0][3]}" if limits else none)
    elif not names_allowed(index):
        also = f"{t.counted(len(supported), 'sentence')} would be supported if the judges were no built-in rules."
        return StudyFinding("Built-in judges scored these agents", None, also, "", notice)
    if supported_orders(index, AGGREGATE):
        second = [_not_ranked(tier) for tier in tiers(index, AGGREGATE) if not tier.single]
    if agreed := [s for d in index.dimensions if d != AGGREGATE and (s := index.status(d)) is not None]:
        some = t.words(agreed.count("publish")) if "publish" in agreed else "none"
        weak = f", weakly on {t.words(agreed.count('methodology'))}" if "methodology" in agreed else ""
        second.append(f"The judges agree on {some} of {t.plural(len(agreed), 'dimension')}{weak}.")
    if not supported:
        return StudyFinding("No sentence is supported by this study yet", None, reason, " ".join(second), notice)
    verdict = supported[0]
    conditions = [prose(one, 400) for one in [c.text for c in verdict.conditions] or [verdict.condition or ""] if one]
    also = prose(" ".join(conditions), 900)
    return StudyFinding(prose(verdict.claim.statement, 400), verdict, also, " ".join(second), notice)


def _not_ranked(tier: Tier) -> str:
    """The sentence that the agents of a tier cannot be ranked, or not all of them."""
    return (
        f"{_short_list([clean(agent, 60) for agent in tier.agents])} cannot {'all ' if tier.inside else ''}be ranked."
    )


def _short_list(names: Sequence[str]) -> str:
    return t.listing(names) if len(names) <= 6 else f"{', '.join(names[:5])} and {count(len(names) - 5)} others"


def totals_line(index: RunIndex) -> str:
    """The totals behind the tallies: sentences, decisions, judges and clusters."""
    run, clusters, noun = index.run, index.clusters, "decision" if index.run.table is None else "answer"
    fixed = "fixed in advance" if index.preregistered else "not preregistered, so none without a condition"
    parts = [f"of {t.counted(len(run.verdicts), 'sentence')} {fixed}", t.counted(index.answers, noun),
             t.counted(len(run.study.judges), "judge")]  # fmt: skip
    return " · ".join([*parts, t.counted(clusters, "cluster")] if clusters else parts)


def tier_rows(index: RunIndex, dimension: str) -> list[TierRow]:
    """The tiers of a score as rows of a chart."""
    rows, alone, groups = [], ranked_alone(index, dimension), tiers(index, dimension)
    for at, tier in enumerate(groups):
        ends, point = tier_ends(index, tier, dimension), None
        written, remark = "" if ends is None else f"{span(*ends)}, one tier", "no ranking inside"
        if tier.agents[0] in alone and (item := effect_of(index, tier.agents[0], dimension)) is not None:
            point = item.value
            limits = (None, None) if ends is None or item.low is None else ends
            written = t.as_text(item) if point is None else t.interval(point, *limits)
        if tier.single:
            sides = (("above", groups[at + 1 :]), ("below", groups[:at]))
            others = [(word, sum(len(other.agents) for other in part)) for word, part in sides if part]
            remark = ", ".join(f"{word} {t.plural(n, 'other')}" for word, n in others) or "alone"
        elif tier.inside:
            remark = "some pairs ranked"
        names = tuple(clean(agent, 60) for agent in tier.agents)
        rows.append(TierRow(names, tier.level, ends, point, written, remark))
    return rows


def scores_axis(index: RunIndex) -> tuple[float, float]:
    """The shared axis of all scores: between whole points of the scale, or the whole scale without scores."""
    lowest, highest = index.study.scale
    ends = [end for d in index.dimensions for tier in tiers(index, d) for end in tier_ends(index, tier, d) or ()]
    low = max(lowest, math.floor(min(ends, default=lowest)))
    high = min(highest, math.ceil(max(ends, default=highest)))
    return (low, high) if low < high else (low, min(highest, low + 1)) if low < highest else (lowest, highest)


def _tiers_section(index: RunIndex) -> b.Section:
    """The tiers on the overall score, then on each dimension, on one axis."""
    axis, level, table = scores_axis(index), percent(index.study.inference.level), index.run.table
    scored = [d for d in index.dimensions if d != AGGREGATE and (index.on(d) or index.status(d) is not None)][:CHARTED]
    blocks, charts = list[Block](), list[b.Figure]()
    for at, dimension in enumerate((AGGREGATE, *scored)):
        rows, title, reason = tier_rows(index, dimension), index.title(dimension), tuple[str, ...]()
        if index.status(dimension) == "halt":  # too little agreement: no tier may be drawn
            needed = number(index.study.gates.halt)
            reason = ("Judges do not agree", f"{index.gating_words(dimension)}; {needed} needed")
        if reason and at:  # not even the tiers of that dimension are shown
            rows = [TierRow(tuple(clean(agent, 60) for agent in index.agents), "no-claim", None, None, "")]
        lines = reason or [f"{t.listing(row.names)}: {row.shown or 'no score'}, {row.remark}" for row in rows]
        desc, draw = "; ".join(lines), partial(tier_chart, rows, axis, reasons=reason)
        # The ends of each tier, and the score of an agent alone in its tier.
        ends = ((t.listing(row.names), *(row.ends or ("", "")), "" if row.point is None else row.point) for row in rows)
        values = b.Table(("Agents", "Low", "High", "Score"), tuple(tuple(map(str, end)) for end in ends))
        if not at and index.agents:
            title = f"Overall score, {index.study.scale_text}, with {level} interval"
            blocks.append(b.plot("tiers", title, _ranks_words(index, AGGREGATE), draw, desc, None, values,
                                  alt="Overall score by tier", width=WIDE, tablet=not reason))  # fmt: skip
        elif at:
            status, item = index.status(dimension), index.gating(dimension)
            kappa = f"{index.gating_words(dimension)}{'' if item is None else t.interval_of(item)}"
            agree = "Judges do not agree" if status == "halt" else "Judges agree"
            if status == "methodology":
                agree = "Judges agree weakly"
                kappa += f"; {number(index.study.gates.publish)} needed without a condition"
            note = "" if reason else _ranks_words(index, dimension)
            charts.append(b.plot(f"tier{at - 1}", title, f"{agree}: {kappa}", draw, desc, None, values,
                                  alt=f"{title} by tier", width=NARROW, note=note))  # fmt: skip
    small = [b.beside(*charts, style="small3")] if charts else []
    if table is not None:
        cuts, flips = tier_sentences(index)[:_CUTS], reversed_sentences(index)[:_CUTS]
        blocks += [*_quotes(cuts), *(b.Prose(s) for s in (best_agents(index),) if s), *small, *_quotes(flips, cuts)]
    else:
        blocks += small
    key = "Square: an agent’s score. Box: a tier from end to end; its agents cannot be ranked. Half fill: a condition."
    return b.Section("ahead", "Who is ahead, and can it be said?", tiers_words(index), (*blocks, b.Prose(key)))


QuotedSentence = tuple[str, Level, tuple[str, ...]]
"""A sentence with its level and the conditions to be quoted with it."""


def conditions_of(sentences: Sequence[QuotedSentence], above: Sequence[QuotedSentence] = ()) -> tuple[list[str], str]:
    """The conditions specific to each sentence, and those shared by all, without the shared ones of all ``above``."""
    shared, before = (
        [text for text in group[0][2] if all(text in also for _, _, also in group)] if group else []
        for group in (sentences, above)
    )
    own = [" ".join(condition for condition in also if condition not in (*shared, *before)) for _, _, also in sentences]
    rest = " ".join(condition for condition in shared if condition not in before)
    if not sentences or not (rest or before):
        return own, ""
    lead = f"Say with {'each of them' if len(sentences) > 1 else 'it'}"
    return own, f"{lead}{', besides the above' if before else ''}: {rest}" if rest else f"{lead} what is said above."


def _quotes(sentences: Sequence[QuotedSentence], above: Sequence[QuotedSentence] = ()) -> list[Block]:
    """Sentences that can be copied with their conditions, and below them the conditions that they share."""
    own, shared = conditions_of(sentences, above)
    quotes = [
        b.ClaimQuote(level, text, condition, copy=" ".join((text, *also)))
        for (text, level, also), condition in zip(sentences, own, strict=True)
    ]
    return [*quotes, *(b.Prose(text) for text in (shared,) if text)]


def reversed_sentences(index: RunIndex) -> list[QuotedSentence]:
    """Pairs ranked one way on a dimension and the other way on another, in the form of `tier_sentences`."""
    by_pair = {d: {v.claim.subjects: v for v in index.on(d, "pair") if v.publication_level != "no-claim"}
               for d in index.dimensions if d != AGGREGATE and names_allowed(index)}  # fmt: skip
    sentences = []
    for dimension, other in combinations(by_pair, 2):
        for high, low in by_pair[dimension].keys() & {pair[::-1] for pair in by_pair[other]}:
            both = by_pair[dimension][high, low], by_pair[other][low, high]
            scores = f"on {score_words(dimension)}, and below it on {score_words(other)}"
            also: dict[str, None] = {}
            for name, verdict, against in ((dimension, *both), (other, *both[::-1])):
                for c in verdict.conditions:
                    texts = {its.text for its in against.conditions if its.id == c.id}
                    if c.id != "specific":  # the sentence says it
                        ahead = f"{score_words(name)}: " if texts and c.text not in texts else ""
                        also[prose(ahead + c.text, 400)] = None
            level = t.weakest(verdict.publication_level for verdict in both)
            sentences.append((f"{clean(high, 60)} scores above {clean(low, 60)} {scores}.", level, tuple(also)))
    return sorted(sentences)


def _ranks_words(index: RunIndex, dimension: str) -> str:
    """The simultaneous rank interval of each agent in a tier of more than three; empty if there is no such tier."""
    possible, of = index.summary.ranks.get(dimension, {}), count(len(index.agents))
    lines = [
        f"{clean(agent, 60)} {t.ordinal_span(*possible.get(agent, tier.ranks))}"
        for tier in tiers(index, dimension) if len(tier.agents) > 3 for agent in tier.agents
    ]  # fmt: skip
    more = f" and {count(len(lines) - 12)} more" if len(lines) > 12 else ""
    return f"Possible ranks of {of}: {', '.join(lines[:12])}{more}." if lines else ""


def tier_sentences(index: RunIndex) -> list[QuotedSentence]:
    """A sentence for each cut between tiers, of all above against all below, and for each pair ranked inside a tier."""
    groups, orders = tiers(index, AGGREGATE), supported_orders(index, AGGREGATE)
    families = index.get("panel.families")
    by_pair, sentences = {v.claim.subjects: v for v in index.on(AGGREGATE, "pair")}, list[QuotedSentence]()
    for cut in range(1, len(groups) if names_allowed(index) else 1):
        above, below = ([agent for tier in part for agent in tier.agents] for part in (groups[:cut], groups[cut:]))
        pairs = [(agent, other) for agent in above for other in below]
        conditions = dict.fromkeys(prose(c.text, 400) for pair in pairs for c in by_pair[pair].conditions)
        level = t.weakest(orders[pair] for pair in pairs)
        scope = max((scope_words(families, by_pair[pair].other_judges) for pair in pairs), key=len)
        on = f"on {score_words(AGGREGATE)}{scope}."
        first = [v for v in index.on(AGGREGATE, "first") if v.claim.subjects[:1] == (above[0],)]
        if len(above) == 1 and first and first[0].publication_level != "no-claim":
            leads = first[0]
            text, level = prose(leads.claim.statement, 400), leads.publication_level
            conditions = dict.fromkeys(prose(c.text, 400) for c in leads.conditions)
        elif len(above) == 1:
            text = f"{clean(above[0], 60)} scores above the other {t.words(len(below))} agents {on}"
        elif len(below) == 1:
            text = f"{clean(below[0], 60)} scores lowest of the {t.words(len(index.agents))} agents {on}"
        else:
            named = t.listing([clean(agent, 60) for agent in above])
            text = f"{named} score above the other {t.plural(len(below), 'agent')} {on}"
        sentences.append((text, level, tuple(conditions)))
    for tier in groups if names_allowed(index) else ():
        for verdict in map(by_pair.__getitem__, tier.inside):
            also = tuple(prose(c.text, 400) for c in verdict.conditions)
            sentences.append((prose(verdict.claim.statement, 400), verdict.publication_level, also))
    return sentences


def best_agents(index: RunIndex) -> str:
    """The agents one of which is the best, with simultaneous confidence; empty if no agent is excluded."""
    top = [clean(agent, 60) for agent in index.summary.top_set.get(AGGREGATE, ())]
    narrowed = 1 < len(top) < len(index.agents)
    return f"The best agent is one of {count(len(top))}: {_short_list(top)}." if narrowed else ""


def tiers_words(index: RunIndex) -> str:
    """The number of tiers on the overall score, and of dimensions without a ranking."""
    groups = tiers(index, AGGREGATE)
    if not groups:
        return "No agent was scored."
    several = f"{t.plural(len(groups), 'tier').capitalize()} on the overall score."
    sentence = several if len(groups) > 1 else f"On the overall score {_not_ranked(groups[0])}"
    if halted := sum(d != AGGREGATE and index.status(d) == "halt" for d in index.dimensions):
        verb = "has" if halted == 1 else "have"
        sentence += f" {t.plural(halted, 'dimension').capitalize()} {verb} no ranking, because the judges do not agree."
    return sentence


def planted_words(index: RunIndex) -> str:
    """One sentence on whether planted texts fool the judges."""
    gated = [c for c in controls(index) if c.gate is not None]
    bad = [c for c in gated if c.outcome not in GOOD]
    changed = [c for c in gated if c.reversals and c not in bad]
    named = t.listing([_planted_name(c) for c in (bad or changed)])
    if not gated:
        return "Not known: no control texts were graded."
    if bad:
        return f"Not reliably. {t.sentence(named)[:-1]} are not scored as they should be."
    if changed:
        return f"Not reliably. Leave out one judge and {named} are no longer scored as they should be."
    return "No. The judges pass every kind of control text, also with any one of them left out."


def _planted_name(control: Control) -> str:
    names = {"cell_a": "confident but wrong texts", "cell_b": "short but right texts"}
    return names.get(control.cell, control.name.lower() + " texts")


def _planted_section(index: RunIndex) -> b.Section:
    """Control texts with a known right treatment: the first two kinds by all judges, then without each family."""
    gated, columns = [c for c in controls(index) if c.gate is not None], list[tuple[Block, ...]]()
    for control in gated[:2]:
        cells, gate, score = index.study.cells, control.gate, control.score
        names = {judge.family: judge.name for judge in index.study.judges}
        drops = sorted(index.all("cell.drop", cell=control.cell), key=lambda m: m.labels.get("dropped", ""))
        rows = [("all judges", gate, control.outcome)] if gate is not None else []
        rows += [(f"without {clean(names.get(f := m.labels.get('dropped', ''), f), 60)}", m,
                  str(m.detail.get("outcome", ""))) for m in drops]  # fmt: skip
        low = control.cell in ("cell_a", "red_team")
        band: tuple[float | None, float | None] = (None, 0.0) if low else (-cells.substance, cells.substance)
        ends = [end for _, m, _ in rows for end in (m.value, m.low, m.high) if end is not None]
        axis = strip_axis(ends, *(end for end in band if end is not None), 0.0)
        graded, honest = score or gate, index.value("cell.honest", AGGREGATE)
        n = "" if graded is None else f" ({t.counted(graded.n, 'text')})"
        mean = f" Mean score {index.link(score, number(score.value))}" if known(score) else ""
        mean += f", real texts {number(honest)}." if mean and honest is not None else "." if mean else ""
        rule = "scored lower: passes" if low else f"within ±{cells.substance:g}: passes"
        against = "the weakest quarter of real texts" if low else "real texts"
        lines = []
        for name, item, outcome in rows:
            phrase = _SAID.get(outcome, clean(outcome, 40) or "has no outcome")
            if not known(item):
                lines.append((name, "", t.as_text(item), phrase))
                continue
            first = item is rows[0][1]
            cuts = tuple((end, f"{end:g}".replace("-", "−") if first else "", False) for end in band if end is not None)
            strip = Strip(axis, cuts, ((item.value, item.low, item.high),), "p" if phrase == "passes" else "n", band)
            lines.append((name, Markup(strip.svg()), index.link(item, t.signed(item.value)), phrase))
        columns.append((
            Markup("<h3>{}</h3>").format(t.sentence(_planted_name(control))[:-1] + n),
            b.Prose(f"Points against {against}; {rule}.{mean}", "cap"),
            b.Table(("Judges", "Points", "Value", "Result"), tuple(lines), frozenset({2}), "", stacked=True,
                    style="drops"),
        ))  # fmt: skip
    values = " and ".join(clean(c.title.partition(": ")[2] or c.title, 60) for c in gated[:2])
    more = f" of {t.counted(len(gated), 'kind')}: {values}" if len(gated) > 2 else ""
    rest = b.Prose((b.Linked(f"All control texts{more}", "controls.html"), ". Bars: intervals over clusters."))
    blocks = (b.Columns(tuple(columns)), rest) if columns else ()
    return b.Section("planted", "Do planted texts fool the judges?", planted_words(index), blocks)


def _judges_section(index: RunIndex) -> b.Section:
    """One row per judge: points for filler, points for a requirement, the score of an empty text, and its own test."""
    run, limits_set = index.run, (index.study.datasheets.set if index.study.datasheets else {})
    failing, rows, makers = failed_judges(index), [], dict[str, list[str]]()
    columns, axes = (("point.verbosity", "verbosity"), ("point.slope", "slope")), {}
    for name, key in columns:
        items = [own_test(index, name, judge.name) for judge in run.study.judges]
        ends = [end for m in items if m is not None for end in (m.value, m.low, m.high) if end is not None]
        axes[name] = strip_axis(ends, limits_set.get(key, 0.0), 0.0)
    for agent in index.agents:
        makers.setdefault(index.family(agent), []).append(clean(agent, 60))
    for judge in sorted(run.study.judges, key=lambda judge: judge.name):
        name, same = clean(judge.name, 60), makers.get(clean(judge.family, 60), [])
        lead: Inline = b.Linked(name, datasheet_path(judge.name)) if judge.name in run.datasheets else name
        cells: list[Inline] = [(lead, small(f" same maker as {t.listing(same)}")) if same else lead]
        for measure, key in columns:
            item, cut = own_test(index, measure, judge.name), limits_set.get(key)
            if not known(item):
                cells.append(t.as_text(item))
                continue
            over = cut is not None and (item.value > cut if key == "verbosity" else item.value < cut)
            point = (item.value, item.low, item.high)
            cells.append(scores.strip_cell(axes[measure], cut or 0.0, point, t.signed(item.value), over))
        cells += [t.as_text(own_test(index, "point.vacuum_score", judge.name)), invalid_words(index, judge.name)]
        tested = "within limits" if index.all("datasheet.gate", judge=judge.name) else "no limit set"
        rows.append((*cells, b.bold("over the limit") if judge.name in failing else tested))
    cut = limits_set.get("verbosity")
    dashed = "0" if cut is None else f"limit {number(cut)}"
    header = (
        "Judge", ("Points for 100 words of filler", small(f" dashed: {dashed}")),
        ("Points for a further requirement", small(" dashed: 0, notices nothing")),
        ("Empty text scores", small(" 1.00 is right")), "Invalid replies", "Own test",
    )  # fmt: skip
    table = b.Table(header, tuple(rows), frozenset({3, 4}), summary="", stacked=True, style="tests")
    return b.Section("judges", "How good are the judges?", judges_words(index), (table,))


def judges_words(index: RunIndex) -> str:
    """The judges that are within, or over, the limits of the plan."""
    failing, panel = failed_judges(index), index.study.judges
    if failing:
        rest = len(panel) - len(failing)
        others = f" The {t.words(rest) + ' others are' if rest > 1 else 'other is'} within the limits." if rest else ""
        return f"{t.sentence(own_tests_words(index))}{others}"
    if not index.tests:
        return "Not known: the judges were not tested on texts of known quality."
    return t.sentence(f"Every judge is within the limits: {own_tests_words(index)}" if index.study.datasheets else (
        "The plan set no limits for the judges’ own tests"
    ))  # fmt: skip


def overview(index: RunIndex, deeper: Sequence[tuple[str, str, str]]) -> b.Page:
    """The first page; ``deeper`` are the other pages as (words, path, description)."""
    front, levels, table = top_finding(index), [v.publication_level for v in index.run.verdicts], index.run.table
    level, title = "no-claim" if front.verdict is None else front.verdict.publication_level, front.title
    heading: Inline = title if front.verdict is None else Markup('<span class="said">“{}”</span>').format(title)
    lead: Inline = front.also if front.verdict is None or not front.also else (b.bold("Say also:"), " ", front.also)
    links = Markup("").join(
        Markup('<li><a href="{}">{}</a><span class="sub">{}</span></li>').format(path, name, subtitle)
        for name, path, subtitle in deeper
    )
    # The limits that keep sentences from being supported, by the number of sentences.
    shown = limits_of(index) if table is None else limits_of(index)[:_CUTS]
    limits = b.section(
        "limits", "What limits the result?",
        "By the number of sentences affected." if shown else "Nothing: no sentence is limited.",
        b.table_of(("Limit", "Measured", "Effect", "Fix and price"), shown, stacked=True, style="limits"),
    )  # fmt: skip
    ahead, planted = _tiers_section(index), _planted_section(index)
    if table is not None:
        sections = [ahead, scores.judges_section(index), *([scores.orders_section(table)] if table.orders else []),
                    *([planted] if index.study.cells_judged else []), limits]  # fmt: skip
        sections = [*sections, scores.read_section(table)] if table.about else [scores.read_section(table), *sections]
        steps = tuple((words, Markup("<br><code>{}</code>").format(code)) for words, code in scores.next_steps(index))
        sections.append(b.Section("next", "What to do next, with the same options?", "", (b.Items(steps),)))
    elif front.verdict is None and not any(level != "no-claim" for level in levels):
        sections = [limits, *([ahead] if index.agents else []), planted, _judges_section(index)]
    else:
        sections = [ahead, planted, _judges_section(index), limits]
    deep = b.Section("more", "Where is the rest?", "", (Markup('<ul class="deep">{}</ul>').format(links),))
    asked = bench_markup(index, "index.html")
    (head, text), parts = front.notice, list[Inline]()
    if table is not None and table.about:
        parts = [prose(table.about, 600)]
    elif text:
        parts = [b.bold(head), f" {text} ", b.Linked("What was planted", "plan.html#panel")]
    if not index.preregistered and table is None:
        late = " The scores had been seen when the plan was locked."
        parts += [" " if parts else "", b.bold("Not preregistered."), late]
    return b.Page(
        "index.html", index.study.title or index.study.name,
        lead, heading=(b.Mark(level), heading), under=f"{front.second} {scores.pairs_words(index)}".strip(),
        notice=tuple(parts),
        tallies=t.tally(levels),
        of=totals_line(index), blocks=(asked,) if asked else (), sections=(*sections, deep), here="overview",
        styles=("bench.css",), scripts=("page.js", "bench.js") if asked else SCRIPTS,
    )  # fmt: skip
