"""Verdicts on the order of a season's agents: its boundaries, its classes, agents without a place, and single pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise, product

from assaymark.claims.messages import Said, said
from assaymark.claims.season_index import COMPOSITE, EFFICIENCY, OUTCOME, SeasonIndex
from assaymark.claims.season_orders import PairState, SeasonOrder, SeasonPair
from assaymark.claims.season_panel import SeasonPanel
from assaymark.claims.season_types import SeasonVerdict
from assaymark.claims.season_words import claim_of, count, graded_verdict, p_said
from assaymark.records import StabilityStatus

_STATES: tuple[PairState, ...] = (
    "untested", "noise_unknown", "within_noise", "opposite", "not_significant", "one_family", "turned",
)  # fmt: skip

_NAMED = 3  # pairs that are named where many turn


@dataclass(frozen=True, slots=True, eq=False)
class SeasonCase:
    """What a verdict on an order is made of."""

    known: SeasonIndex
    panel: SeasonPanel
    order: SeasonOrder
    plan_hash: str


def order_verdicts(season: SeasonCase) -> list[SeasonVerdict]:
    """Boundaries from high to low, classes, and agents without a place."""
    order = season.order
    ties = [_tie(season, group) for group in order.groups if len(group) > 1]
    unplaced = [_unplaced(season, agent) for agent in order.unplaced]
    return [*_cuts(season), *ties, *unplaced, *(_ungraded(season, agent) for agent in season.known.ungraded)]


def pair_verdicts(season: SeasonCase) -> list[SeasonVerdict]:
    """Every pair by name. What is withheld of one names no direction."""
    return [_above(season, season.order.between(*two)) for two in combinations(sorted(season.known.graded), 2)]


# --- boundaries -----------------------------------------------------------------------------------------------------


def _cuts(season: SeasonCase) -> Iterator[SeasonVerdict]:
    """Between every two groups that follow each other; and where one agent alone has a place, its end of the table."""
    order, n = season.order, len(season.known.graded)
    for upper, lower in pairwise(order.groups):
        yield _cut(season, upper, lower)
    if len(order.groups) == 1 and len(order.groups[0]) == 1 and order.unplaced:
        group, others = order.groups[0], tuple(sorted(order.unplaced))
        if order.places(group) == (1, 1):
            yield _cut(season, group, others)
        elif order.places(group) == (n, n):
            yield _cut(season, others, group)


def _cut(season: SeasonCase, upper: tuple[str, ...], lower: tuple[str, ...]) -> SeasonVerdict:
    statement, pairs = _cut_said(season, upper, lower)
    closest = max(pairs, key=lambda pair: (pair.p, -pair.gap, pair.high, pair.low))
    claim = claim_of(
        "cut",
        statement,
        (*upper, *lower),
        asserts_order=True,
        labels={"upper": "+".join(upper), "lower": "+".join(lower)},
    )
    return graded_verdict(
        "cut",
        claim,
        statement,
        season.panel,
        season.plan_hash,
        stability="stable",
        reasons=(_firm_said(closest, len(pairs)), *_no_outcomes(season.known)),
        rests=[pair.contrast.id for pair in pairs],
        reserves=_reserves(season.known, (*upper, *lower)),
        withheld=said("claim.withheld.order", agents=(*upper, *lower)),
    )


def _cut_said(season: SeasonCase, upper: tuple[str, ...], lower: tuple[str, ...]) -> tuple[Said, list[SeasonPair]]:
    """What a boundary says, and the pairs it rests on: who scores highest or lowest is compared with everybody."""
    order, n = season.order, len(season.known.graded)
    for key, group, ends in (("highest", upper, (1, 1)), ("lowest", lower, (n, n))):
        if n > 2 and len(group) == 1 and group in order.groups and order.places(group) == ends:
            pairs = [order.between(group[0], other) for other in season.known.graded if other != group[0]]
            return said(f"claim.says.{key}", agent=group[0], count=count(n)), pairs
    pairs = [order.between(*two) for two in product(upper, lower)]
    return said("claim.says.above", upper=upper, lower=lower, n=len(upper)), pairs


def _firm_said(pair: SeasonPair, n: int) -> Said:
    """Why an order stands; of several differences the closest is named."""
    return said(
        "claim.reason.cut",
        n=n,
        high=pair.high,
        low=pair.low,
        gap=pair.gap,
        floor=pair.floor or 0.0,
        periods=pair.contrast.n,
        value=pair.contrast.value or 0.0,
        p=p_said(pair.p),
    )


def _reserves(known: SeasonIndex, agents: Iterable[str]) -> tuple[Said, ...]:
    """Agents whose totals are made of other parts than those they are compared with."""
    names = tuple(sorted(agents))
    found = []
    for key, lacking in (
        ("outcome", known.lacking(OUTCOME, names)),
        ("timing", known.lacking(EFFICIENCY, names)),
    ):
        if lacking and len(lacking) < len(names):
            found.append(said(f"claim.condition.{key}", agents=lacking))
    part = known.lacking(COMPOSITE, names)
    return (*found, *((said("claim.condition.part", agents=part),) if part else ()))


def _no_outcomes(known: SeasonIndex) -> tuple[Said, ...]:
    """Where no agent has an outcome all totals are made alike, which is a reason and no reserve."""
    none = known.graded and set(known.lacking(OUTCOME, known.graded)) == set(known.graded)
    return (said("claim.reason.outcomes_none"),) if none else ()


# --- classes --------------------------------------------------------------------------------------------------------


def _tie(season: SeasonCase, group: Sequence[str]) -> SeasonVerdict:
    inside = season.order.inside(group)
    firm = sum(pair.state == "firm" for pair in inside)
    statement = said("claim.says.tie_but" if firm else "claim.says.tie", agents=tuple(group), n=firm)
    return graded_verdict(
        "tie",
        claim_of("tie", statement, group),
        statement,
        season.panel,
        season.plan_hash,
        stability="tie-class",
        reasons=_tie_reasons(inside),
        rests=[pair.contrast.id for pair in inside],
        conditions=(_class_condition(inside),),
        withheld=said("claim.withheld.order", agents=tuple(group)),
    )


def _tie_reasons(inside: Sequence[SeasonPair]) -> list[Said]:
    """How many pairs have no order, by what keeps it from standing."""
    counts = Counter(pair.state for pair in inside)
    floor = max((pair.floor for pair in inside if pair.state == "within_noise" and pair.floor is not None), default=0.0)
    return [
        said(f"claim.reason.tie.{state}", n=counts[state], all=len(inside), floor=floor)
        for state in _STATES
        if counts[state]
    ]


def _class_condition(inside: Sequence[SeasonPair]) -> Said:
    """What has to be said with a class: its floor where that is all there is to it."""
    states = {pair.state for pair in inside}
    if states == {"within_noise"}:
        return said("claim.condition.class_floor", floor=max(pair.floor or 0.0 for pair in inside))
    return said("claim.condition.class_unknown" if states == {"noise_unknown"} else "claim.condition.class")


# --- agents without a place -----------------------------------------------------------------------------------------


def _unplaced(season: SeasonCase, agent: str) -> SeasonVerdict:
    known, pairs = season.known, season.order.unplaced[agent]
    low, high = known.detail(agent, "low"), known.detail(agent, "high")
    turns = [
        said(
            "claim.reason.turns_against",
            other=pair.low if pair.high == agent else pair.high,
            gap=pair.gap,
            judges=pair.turned[0],
        )
        for pair in sorted(pairs, key=lambda pair: (-pair.gap, pair.high, pair.low))[:_NAMED]
    ]
    if more := len(pairs) - len(turns):
        turns.append(said("claim.reason.turns_more", n=more))
    return _no_place(
        season,
        agent,
        stability="judge-dependent",
        reasons=(said("claim.reason.spread", spread=high - low, low=low, high=high), *turns),
        rests=(known.totals[agent].id, *(pair.contrast.id for pair in pairs)),
    )


def _ungraded(season: SeasonCase, agent: str) -> SeasonVerdict:
    rests = (season.known.totals[agent].id,)
    return _no_place(season, agent, stability="stable", reasons=(said("claim.reason.ungraded"),), rests=rests)


def _no_place(
    season: SeasonCase, agent: str, *, stability: StabilityStatus, reasons: Iterable[Said], rests: Iterable[str]
) -> SeasonVerdict:
    known = season.known
    statement = said("claim.says.placed", agent=agent, count=count(len(known.graded) + len(known.ungraded)))
    return graded_verdict(
        "unplaced",
        claim_of("unplaced", statement, (agent,), asserts_order=True),
        statement,
        season.panel,
        season.plan_hash,
        stability=stability,
        reasons=reasons,
        rests=rests,
        withheld=said("claim.withheld.placed", agent=agent),
        permitted=False,
    )


# --- pairs ----------------------------------------------------------------------------------------------------------


def _above(season: SeasonCase, pair: SeasonPair) -> SeasonVerdict:
    statement = said("claim.says.above", upper=(pair.high,), lower=(pair.low,), n=1)
    claim = claim_of(
        "above",
        statement,
        (pair.high, pair.low),
        scope="pairwise-contrast",
        asserts_order=True,
        labels={"high": pair.high, "low": pair.low},
    )
    stability: StabilityStatus = "stable"
    if pair.state != "firm":
        stability = "judge-dependent" if pair.state in ("turned", "one_family") else "tie-class"
    return graded_verdict(
        "above",
        claim,
        statement,
        season.panel,
        season.plan_hash,
        stability=stability,
        reasons=_pair_reasons(pair),
        rests=(pair.contrast.id,),
        reserves=_reserves(season.known, (pair.high, pair.low)),
        withheld=said("claim.withheld.order", agents=tuple(sorted((pair.high, pair.low)))),
    )


def _pair_reasons(pair: SeasonPair) -> tuple[Said, ...]:
    """Why the order of a pair stands, or the first thing that keeps it from standing."""
    if pair.state == "firm":
        return (_firm_said(pair, 1),)
    if pair.state == "turned":
        return tuple(said("claim.reason.turned", judges=judges) for judges in pair.turned)
    value = pair.contrast.value or 0.0
    return (
        said(
            f"claim.reason.{pair.state}",
            high=pair.high,
            low=pair.low,
            gap=pair.gap,
            floor=pair.floor or 0.0,
            periods=pair.contrast.n,
            value=abs(value) if pair.state == "opposite" else value,
            p=p_said(pair.p),
            alpha=pair.alpha,
        ),
    )
