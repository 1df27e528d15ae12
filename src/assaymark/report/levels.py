"""The three levels of the first page (claims that are supported, supported only with a condition, or not supported) and
the leaderboard of agents. An unsupported claim is never shown as a sentence: the page names its subject, but not which
agent the panel scored higher. An agent alone in its tier has a rank and a score. Agents that share a tier share its
ranks and its range; each also has its own possible ranks, and the range of its scores by single judges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from assaymark.claims import KIND_NAMES, kind_of, suppressed_phrase
from assaymark.claims.messages import built_in_text, english
from assaymark.records import AGGREGATE, Measurement, Verdict
from assaymark.report import blocks as b
from assaymark.report import text as t
from assaymark.report.inputs import RunIndex, Tier, judged_range, score_words, supported_orders, tiers
from assaymark.report.study.checks import ONE_FAMILY, blockers, cap_words, checks_of, deciding_kappa, is_significant
from assaymark.report.study.controls import differs, finding_words
from assaymark.report.text import LEVELS, TAGS, TITLES, as_text, clipboard_text, known
from assaymark.text import clean, count, count_of, percent, prose, span

_RULES: Final = {
    "half-even rounding": "halves rounded to even",
    "own variance of each pair": "a test with each pair’s own variance",
    "clusters weighted by records": "a test with clusters weighted by records",
    "aggregate's share of alpha 0.5": "half of alpha for the overall score",
    "aggregate's share of alpha 1": "all of alpha for the overall score",
    "source: percentile bootstrap": "ValueBlindBench’s percentile bootstrap with Holm",
    "source: sign flip": "ValueBlindBench’s sign flip with Holm",
}
_SHOWN, _MORE, _NAMES = 3, 5, 6


def study_levels(index: RunIndex) -> tuple[b.ClaimList, ...]:
    """The three levels with their first claims by score and name: no page is sorted by an unsupported order."""
    levels = []
    for level in LEVELS:
        supported = [v for v in ordered_verdicts(index) if v.publication_level == level != "no-claim"]
        quotes = tuple(claim_quote(index, verdict) for verdict in supported[: _SHOWN + _MORE])
        groups, further = withheld_groups(index) if level == "no-claim" else (), len(supported) - len(quotes)
        rest = f"{count(further)} more on the page." if further else ""
        levels.append(b.ClaimList(level, TITLES[level], quotes[:_SHOWN] or groups, quotes[_SHOWN:], rest=rest))
    return tuple(levels)


def claim_quote(index: RunIndex, verdict: Verdict, id_: str = "") -> b.ClaimQuote:
    """A supported claim with its condition and its text for the clipboard."""
    statement, study = prose(verdict.claim.statement, 400), index.study
    condition = " ".join(filter(None, (built_in_words(index, verdict), prose(verdict.condition or "", 1200))))
    conditions = f"{condition} {amended_words(verdict.amended)}".strip()
    copy = clipboard_text(statement, conditions, study.title or study.name, index.run.locked_at, verdict.plan_hash)
    return b.ClaimQuote(verdict.publication_level, statement, condition, copy, id_)


def built_in_words(index: RunIndex, verdict: Verdict) -> str:
    """The statement that a claim's judges or agents are built in; control texts have no agents."""
    graders = {planted.name for planted in index.run.reference_panel}
    makers = {agent.name for agent in index.run.reference_agents}
    agents = {} if kind_of(verdict.claim) == "cell" else {name: name in makers for name in index.agents}
    judges = {judge.name: judge.name in graders for judge in index.study.judges}
    return built_in_text(english(), judges, agents, verdict.claim.subjects)


def amended_words(fields: Sequence[str]) -> str:
    """The statement that a claim was made under an amended plan; empty if the plan was not amended."""
    named = t.listing(sorted(clean(field, 80) for field in fields))
    return f"Made under a plan amended after its lock: {named}." if named else ""


def ordered_verdicts(index: RunIndex) -> tuple[Verdict, ...]:
    """Every verdict: the aggregate first, then the dimensions; sorted by kind, then by name."""

    def place(verdict: Verdict) -> tuple[int, str, int, tuple[str, ...], str]:
        claim, kind = verdict.claim, KIND_NAMES.index(kind_of(verdict.claim))
        return index.place(claim.dimension), claim.dimension, kind, tuple(sorted(claim.subjects)), claim.id

    return index.once(("ordered",), lambda: tuple(sorted(index.run.verdicts, key=place)))


def rule_words(rule: str) -> str:
    """The title of an alternative rule that the plan did not lock; an unknown one keeps its name."""
    return _RULES.get(rule) or clean(rule, 60)


def withheld_groups(index: RunIndex) -> tuple[b.WithheldGroup, ...]:
    """Unsupported claims in groups by score: aggregate and controls first, then the dimensions in rubric order."""
    dimensions = index.dimensions
    others = sorted({v.claim.dimension for v in index.run.verdicts if kind_of(v.claim) != "cell"} - set(dimensions))
    groups: list[b.WithheldGroup] = []
    for dimension in (*dimensions, *others):
        firsts, pairs, close = (
            [v for v in index.on(dimension, kind) if v.publication_level == "no-claim"]
            for kind in ("first", "pair", "within")
        )
        score, withheld = score_words(dimension), list[tuple[str, list[Verdict]]]()
        if firsts and pairs and len(firsts) + len(pairs) == len(index.on(dimension, "first", "pair")):
            withheld.append((f"Any ranking of the agents, or a first rank, on {score}.", [*firsts, *pairs]))
        else:
            # Pairs that share agents, as groups; the groups and their pairs in alphabetical order.
            linked: list[tuple[set[str], list[Verdict]]] = []
            for verdict in pairs:
                joined = [group for group in linked if group[0] & set(verdict.claim.subjects)]
                linked = [group for group in linked if group not in joined]
                linked.append((set(verdict.claim.subjects).union(*(group[0] for group in joined)),
                               [verdict, *(v for group in joined for v in group[1])]))  # fmt: skip
            for _, members in sorted(linked, key=lambda group: min(group[0])):
                part = sorted(members, key=lambda v: sorted(v.claim.subjects))
                names = sorted({name for v in part for name in v.claim.subjects})
                whole = len(part) == len(names) * (len(names) - 1) // 2
                claim = "Any ranking of" if whole else f"The ranking of {t.plural(len(part), 'pair')} among"
                some = [clean(name, 80) for name in names]
                some = some if len(some) <= _NAMES else [*some[: _NAMES - 1], f"{len(some) - _NAMES + 1} others"]
                withheld.append((f"{claim} {t.listing(some)} on {score}.", part))
            if firsts:
                partly = len(firsts) < len(index.on(dimension, "first"))
                withheld.append((f"A first rank for any {'other agent' if partly else 'agent'} on {score}.", firsts))
        if close:
            text = f"That the agents of {t.plural(len(close), 'pair')} score alike on {score}."
            withheld.append((text if len(close) > 1 else prose(suppressed_phrase(close[0].claim), 400), close))
        groups += [b.WithheldGroup(text, _reasons(index, part), len(part)) for text, part in withheld]
        for v in index.cells if dimension == AGGREGATE else ():
            if v.publication_level == "no-claim":
                stops = [check for check in checks_of(index, v)[0] if check.effect == "stops"]
                reasons = tuple(part for stop in stops
                            for part in ((f"{stop.name}: ", False), (str(stop.text), True), (". ", False)))  # fmt: skip
                groups.append(b.WithheldGroup(prose(suppressed_phrase(v.claim), 400), reasons, 1))
    return tuple(groups)


def _reasons(index: RunIndex, verdicts: Sequence[Verdict]) -> b.Segments:
    """The first check that stops some claims on one score, with its number; never which agent is ahead."""
    stops = [set(blockers(v)) for v in verdicts]
    if all("agreement" in fields for fields in stops):
        return (("Agreement: ", False), (str(deciding_kappa(index, verdicts[0])), True), (". ", False))
    pairs = [v for v in verdicts if kind_of(v.claim) != "first"]
    if not pairs:
        return (("No lead over every other agent is supported. ", False),)
    only, parts = len(pairs) == 1, list[tuple[str, bool]]()

    def part(some: Sequence[Verdict], lead: str, bound: str, tail: str) -> None:
        """Add one reason: how many pairs it stops, then the part in bold, then the rest."""
        subject = "The pair " if only else f"{t.plural(len(some), 'pair').capitalize()} "
        parts.extend(((subject + lead, False), (bound, True), (tail, False)))

    untested = [v for v in pairs if v.pair_state == "cannot-be-tested"]
    clear = [v for v in pairs if v not in untested and is_significant(index, v)]
    if untested:
        states = {t.state_words(m) for v in untested if (m := index.pair("contrast", v)) is not None}
        reason = " " + sorted(states)[0].removeprefix("cannot be tested").strip() if states else ""
        part(untested, "", "cannot be tested", f"{reason}. ")
    if unresolved := [v for v in pairs if v not in untested and v not in clear]:
        ps = [v.p_adjusted for v in unresolved if v.p_adjusted is not None]
        order = unresolved[0].claim.asserts_order
        level = index.alpha(unresolved[0].claim.dimension) if order else index.study.inference.alpha
        which = "the smallest adjusted" if len(ps) > 1 else "adjusted"
        tail = f": {which} {t.p_words(min(ps))}; {t.alpha(level)} needed. " if ps else ". "
        many = "is " if only or len(unresolved) == 1 else "are "
        part(unresolved, many, "not resolved" if order else "not shown to be so close", tail)
    # Pairs that depend on one judge family or are reversed without it, then those that rest on the agents' own makers.
    for state, singular, many in (
        ("rests-on", "needs judge family {names} to be seen", "need judge family {names} to be seen"),
        ("reversed-without", "reverses without judge family {names}", "reverse without judge family {names}"),
    ):
        if here := [v for v in clear if v.stability_status != "stable" and v.stability and v.stability.state == state]:
            names = sorted({clean(name, 60) for v in here if v.stability for name in v.stability.families})
            phrase = (singular if only or len(here) == 1 else many).format(names=t.listing(names, last="or"))
            part(here, "", phrase, ". ")
    if any(v.stability_status != "stable" and v.stability and v.stability.state == "not-measurable" for v in clear):
        parts += [("Whether it depends on the judge is ", False), (ONE_FAMILY, True), (". ", False)]
    if resting := [v for v in clear if "own_family" in blockers(v)]:
        ps = [v.p_adjusted for v in resting if v.p_adjusted is not None]
        rest, needed = (
            "rests" if only or len(resting) == 1 else "rest",
            t.alpha(index.alpha(resting[0].claim.dimension)),
        )
        tail = f"; without them adjusted {t.p_words(min(ps))}, {needed} needed. " if ps else ". "
        if not any(index.pair("recusal.contrast", v) for v in resting):  # the conflict is in other orders
            rest = f"{'waits' if rest == 'rests' else 'wait'} for rankings that rest"
        part(resting, f"{rest} on ", "judges from the agents’ own makers", tail)
    parts += holdout_words(index, clear)
    for field, phrase in (("adversarial", "The control texts fail"), ("human_anchor", "People’s grades contradict it")):
        if any(field in fields for fields in stops):
            parts += [(phrase, True), (". ", False)]
    return tuple(parts)


def holdout_words(index: RunIndex, pairs: Iterable[Verdict]) -> list[tuple[str, bool]]:
    """For how many pairs the held-out judge finds a difference, never in which direction; empty if it was not asked."""
    asked = [m for v in pairs if (m := index.pair("probe.contrast", v)) is not None and t.bounds_of(m)]
    if len(asked) < 2:
        return [(f"The held-out judge finds {finding_words(m)}. ", False) for m in asked]
    alike = sum(not differs(m) for m in asked)
    which = "all" if alike == len(asked) else t.words(alike) if alike else "none"
    about = f"The held-out judge was asked about {t.words(len(asked))} of them"
    return [(f"{about} and finds no difference in {which}. ", False)]


BoardRow = tuple[Tier, list[tuple[str, str, str, str]], str | None, str, str]
"""A tier; its agents as (name, family, possible ranks, range of the judges), where ranks are empty if they equal those
of the tier, and the range is empty if the agent has a score of its own; the score (None if neither an interval nor a
range of judges was measured) and its bounds; and the reason for the tier."""


def board_rows(index: RunIndex) -> tuple[BoardRow, ...]:
    """The tiers of the overall score from high to low, as rows of the leaderboard."""
    rows: list[BoardRow] = []
    possible, orders = index.summary.ranks.get(AGGREGATE, {}), supported_orders(index, AGGREGATE)
    for tier in tiers(index, AGGREGATE):
        ends, alone = tier_ends(index, tier), tier.ranked
        effect = effect_of(index, tier.agents[0]) if alone else None
        score, limits = None if ends is None else span(*ends), ""
        if known(effect) and ends is not None:
            whole, _, rest = t.interval(effect.value, *((None, None) if effect.low is None else ends)).partition(" (")
            score, limits = index.link(effect, whole), f"({rest}"
        elif alone and score is None:
            score = as_text(effect)
        agents = []
        for agent in tier.agents:
            here = possible.get(agent, tier.ranks)
            # The range of its scores by single judges.
            judged = None if alone else judged_range(index, AGGREGATE, agent)
            spread = "" if judged is None else index.link(effect_of(index, agent), span(*judged))
            own_ranks = "" if here == tier.ranks else t.ordinal_span(*here)
            agents.append((clean(agent, 80), index.family(agent), own_ranks, spread))
        # The reason for its rank, or the checks that stop the orders inside it.
        about = [v for v in index.on(AGGREGATE, "pair") if set(v.claim.subjects) <= set(tier.agents)]
        if tier.single:
            placing = sum(tier.agents[0] in pair for pair in orders)
            why = f"Ranked by {t.counted(placing, 'supported ranking')}" if placing else "No supported ranking"
        else:
            inside = sum(set(pair) <= set(tier.agents) for pair in orders)
            why = f"{count(inside)} of {t.counted(len(about), 'ranking')} inside supported" if about else (
                "No ranking was tested"
            )  # fmt: skip
            if stopped := sorted({field for v in about for field in blockers(v)}):
                why += f"; stopped by {t.listing([cap_words(name) for name in stopped])}"
            if about and all("agreement" in blockers(v) for v in about):
                why = f"The judges do not agree: {deciding_kappa(index, about[0])}"
        rows.append((tier, agents, score, limits, why))
    return tuple(rows)


def leaderboard_section(index: RunIndex) -> b.Section:
    """The leaderboard as a table, with a note on the method of its numbers."""
    level, rows = percent(index.study.inference.level), []
    for tier, agents, score, bounds, reason in board_rows(index):
        members: list[b.Inline] = []
        for name, family, ranks, judged in agents:
            details: list[b.Inline] = [b.small(f" rank {ranks}")] if ranks else []
            details += [b.small(" judges "), judged] if judged else []
            members.append((b.bold(name), *details, b.small(f" family {family}") if family else ""))
        none, ends = b.Styled("no range was measured", "gap"), b.small(f" {bounds or 'the tier from end to end'}")
        rank = b.with_note(tier.rank, "" if tier.ranked else " cannot be ranked")
        rows.append((rank, b.chained(members), none if score is None else (score, ends),
                     (b.Mark(tier.level, TAGS[tier.level]), b.small(f" {reason}"))))  # fmt: skip
    lead = (
        "Agents that cannot be ranked share a tier: its ranks and its range of scores. They are listed in alphabetical "
        "order, each with the lowest and the highest score that one of the judges gives it, and with the ranks that it "
        "can have where these are fewer."
    )
    effects = [m for agent in index.agents if known(m := effect_of(index, agent))]
    method = "No score was measured."
    if effects:
        sizes = sorted({m.n for m in effects})
        each = "" if len(sizes) == 1 else f"{count(sizes[0])} to "
        method = (
            f"Scores run from {index.study.scale_text}. Method: {clean(effects[0].method, 160)}. "
            f"{each}{count_of(sizes[-1], effects[0].n_of)} an agent. Level of the intervals: "
            f"{percent(effects[0].level or index.study.inference.level)}."
        )
    note = (
        f"{method} A number over a dotted line links to its measurement. ",
        b.Linked("Every measurement with its denominator", "measurements.html"), ".",
    )  # fmt: skip
    columns = ("Rank", "Agent", f"Panel score, {index.study.scale_text}, with {level} interval", "Verdict")
    table = b.Table(columns, tuple(rows), summary="", stacked=True, style="board")
    return b.Section("board", "Who is ahead?", lead, (table, *b.notes([note])))


def effect_of(index: RunIndex, agent: str, dimension: str = AGGREGATE) -> Measurement | None:
    """The measured score of an agent."""
    return index.get("score.effect", dimension, agent=agent)


def tier_ends(index: RunIndex, tier: Tier, dimension: str = AGGREGATE) -> tuple[float, float] | None:
    """The lowest and the highest bound of the tier's intervals; points alone would show the difference of two agents.
    The ends are clipped to the scale. Without intervals they are the lowest and the highest score that a single judge
    gives."""
    means = [m for agent in tier.agents if known(m := effect_of(index, agent, dimension))]
    ends = [end for m in means for end in (m.low, m.high, *((m.value,) if tier.single else ())) if end is not None]
    ends = ends or [end for agent in tier.agents for end in judged_range(index, dimension, agent) or ()]
    lowest, highest = index.study.scale
    return (max(lowest, min(ends)), min(highest, max(ends))) if ends else None
