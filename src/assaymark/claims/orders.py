"""Rankings of agents that the scores support, and the evidence for claims: the same for studies, seasons, boards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, cast

import numpy as np

from assaymark.claims.levels import Index, Rules
from assaymark.metrology import holm
from assaymark.metrology.checks import Bools, Floats
from assaymark.metrology.orders import LEVEL_SLACK, publish_scales, rank_intervals, stability_state, tiers
from assaymark.plan import EQUAL_LENGTH, TOLERANCE
from assaymark.records import (
    AGGREGATE,
    Level,
    Measurement,
    PairState,
    StabilityFinding,
    StabilityState,
    StabilityStatus,
    Verdict,
)

Pass = Literal["plain", "gated", "headline"]
_PASSES: Final[tuple[Pass, ...]] = ("plain", "gated", "headline")
GAP: Final = "{gap}"
"""Placeholder for the difference in a reason, filled in only for supported claims."""


@dataclass(frozen=True, slots=True)
class PairRow:
    """One pair on one scale, the input of the ranking procedure; ``high`` is the agent that the panel scored higher."""

    high: str
    low: str
    testable: bool
    p: Mapping[str, float]
    floor: float | None = None
    length: float | None = None
    others: float | None = None
    disinterested: bool = True
    equivalence: float = 1.0
    near: Mapping[str, float] = field(default_factory=dict)
    unresolved: str = ""

    def within(self, margin: float) -> float:
        """Return the equivalence p-value for a margin."""
        return self.near.get(f"{margin:g}", self.equivalence)

    def value(self, rules: Rules, which: Pass) -> float:
        """Return the p-value that one pass of the procedure uses."""
        if not self.testable or self.unresolved:
            return 1.0
        p = self.p.get(rules.test, 1.0)
        if which == "plain":
            return p
        if self.floor is not None and self.disinterested:
            p = max(p, self.floor)
        if which == "gated":
            return p
        p = max(p, self.length or 0.0) if self.disinterested else 1.0
        return max(p, 1.0 if self.others is None else self.others) if rules.any_judges else p


@dataclass(frozen=True, slots=True)
class PairResult:
    """Results for one pair on one scale: adjusted p-values by pass, publication, stability and equivalence."""

    row: PairRow
    plain: float
    gated: float
    headline: float
    published: frozenset[Pass]
    stability: StabilityFinding
    within: bool
    p_within: float

    @property
    def ordered(self) -> bool:
        """True if the order is published and stable under leave-one-family-out."""
        return "gated" in self.published and self.stability.state == "stable"

    @property
    def state(self) -> PairState:
        """State of the pair."""
        if not self.row.testable:
            return "cannot-be-tested"
        if self.ordered:
            return "ordered-by-less-than-the-margin" if self.within else "ordered"
        return "within-the-margin" if self.within else "not-resolved"

    def other(self, agent: str) -> str:
        """Return the other agent of the pair."""
        return self.row.low if self.row.high == agent else self.row.high


@dataclass(frozen=True, eq=False)
class Orders:
    """Results for every pair on every scale under one set of rules, and the leaders."""

    agents: tuple[str, ...]
    pairs: dict[tuple[str, frozenset[str]], PairResult]
    leaders: Mapping[tuple[str, str], str | None]
    alpha: float
    alpha_dimensions: float

    def level(self, dimension: str) -> float:
        """Return the level that adjusted p-values on a scale are compared with."""
        return self.alpha if dimension == AGGREGATE else self.alpha_dimensions

    def pair(self, dimension: str, first: str, other: str) -> PairResult:
        """Return the result for a pair, named in either order."""
        return self.pairs[dimension, frozenset((first, other))]

    def of(self, dimension: str, agent: str) -> list[PairResult]:
        """Return the results for all pairs of one agent."""
        return [self.pair(dimension, agent, other) for other in self.agents if other != agent]


class _Run(NamedTuple):
    """Result of one pass by scale: adjusted p-values, published pairs, leader; levels of aggregate and dimensions."""

    adjusted: Mapping[str, Floats]
    published: Mapping[str, Bools]
    leaders: Mapping[str, str | None]
    alpha: float
    alpha_dimensions: float


def orders_of(index: Index, rules: Rules) -> Orders:
    """Return the rankings that the measurements support under ``rules``."""
    # Cached by the rules that rankings depend on.
    place = "orders", rules.test, rules.source, rules.alpha, rules.share, rules.margin, rules.any_judges, rules.scales
    if place in index.memo:
        decided: Orders = index.memo[place]
        return decided
    rows = {scale: of_scale for scale, of_scale in rows_of(index).items() if rules.claims_scale(scale)}
    by_source = _run_source_rule(index.agents, rows, rules) if rules.source else None
    runs: dict[Pass, _Run] = {which: by_source or _run_procedure(index, rows, rules, which) for which in _PASSES}
    close = holm(np.array([row.within(rules.margin) for row in rows[AGGREGATE]])) if rows.get(AGGREGATE) else np.ones(0)
    # Without judges there is no family to leave out.
    untouched = StabilityFinding(state="not-measurable" if rules.judged else "stable")
    pairs: dict[tuple[str, frozenset[str]], PairResult] = {}
    for scale, of_scale in rows.items():
        adjusted = zip(*(runs[which].adjusted[scale].tolist() for which in _PASSES), strict=True)
        published = zip(*(runs[which].published[scale].tolist() for which in _PASSES), strict=True)
        near = close.tolist() if scale == AGGREGATE else [None] * len(of_scale)
        for row, (plain, gated, headline), passed, p_within in zip(of_scale, adjusted, published, near, strict=True):
            shown = frozenset([which for which, yes in zip(_PASSES, passed, strict=True) if yes])
            within = p_within is not None and p_within <= rules.alpha + LEVEL_SLACK
            pairs[scale, frozenset((row.high, row.low))] = PairResult(
                row, plain, gated, headline, shown, untouched, within, 1.0 if p_within is None else p_within
            )
    leaders: dict[tuple[str, str], str | None] = {
        (scale, which): run.leaders[scale] for which, run in runs.items() for scale in rows
    }
    whole = Orders(index.agents, pairs, leaders, runs["gated"].alpha, runs["gated"].alpha_dimensions)
    index.memo[place] = whole
    if not rules.judged:
        return whole
    # Leave-one-family-out for every pair that some pass publishes
    leading = {(scale, agent) for (scale, _), agent in leaders.items()}
    for key, pair in list(pairs.items()):
        if pair.published or any((key[0], agent) in leading for agent in key[1]):
            pairs[key] = replace(pair, stability=_stability(index, key[0], pair, rules, adjusted=True))
    for which in ("gated", "plain"):
        leader = leaders.get((AGGREGATE, which))
        pairs_of = [key for key in pairs if key[0] == AGGREGATE and leader in key[1]]
        alone = {key: _stability(index, AGGREGATE, pairs[key], rules, adjusted=False) for key in pairs_of}
        # A leader's pairs need no correction among themselves if all of them are stable.
        for key, state in alone.items() if all(state.state == "stable" for state in alone.values()) else ():
            if which == "gated" or "gated" not in pairs[key].published:  # the gated pass takes precedence
                pairs[key] = replace(pairs[key], stability=state)
    return whole


def rows_of(index: Index) -> Mapping[str, tuple[PairRow, ...]]:
    """Return every pair on every tested scale, in the order of the agents' names."""
    if index.rows is not None:
        return index.rows
    scales = [scale for scale in (AGGREGATE, *index.dimensions) if scale in index.compared]
    pairs = list(combinations(index.agents, 2))
    return index.once("rows", lambda: {scale: tuple(row_of(index, scale, *pair) for pair in pairs) for scale in scales})


def row_of(index: Index, scale: str, first: str, other: str) -> PairRow:
    """Build one pair from its contrast and the contrasts of its bias tests."""
    item = index.contrast(scale, first, other)
    pair = scale, item.labels["high"], item.labels["low"]
    recusal, length, others = (index.by_pair.get((f"{of}.contrast", *pair)) for of in ("recusal", "length", "judges"))
    near: list[dict[str, float]] = []  # equivalence p-values by margin as text; "" is the margin of the plan
    for detail in ({} if measurement is None else measurement.detail for measurement in (item, recusal)):
        here = {"": float(detail["p_equivalence"])} if "p_equivalence" in detail else {}
        near.append(here | ({name: float(p) for name, p in detail.get("p_equivalence_at", {}).items()} if here else {}))
    within, aside = near
    if recusal is not None:
        within = {name: max(p, aside.get(name, 1.0)) for name, p in within.items()}
    skipped = ("p_equivalence", "p_equivalence_at", "p_specific")
    return PairRow(
        item.labels["high"],
        item.labels["low"],
        item.value is not None,
        {
            name: float(p)
            for name, p in item.detail.items()
            if p is not None and (name == "p" or (name.startswith("p_") and name not in skipped))
        },
        None if recusal is None or recusal.value is None else _p_in_direction(recusal),
        None if length is None else length_floor(length),
        None if others is None else _p_in_direction(others),
        recusal is None or recusal.value is not None,
        within.pop("", 1.0),
        within,
        str(item.detail.get("unresolved", "")),
    )


def length_floor(item: Measurement) -> float:
    """Return the p-value at equal length that a headline must pass; 0 if only length counts and lengths are equal."""
    alone = item.detail.get("covariates", ["log2"]) == ["log2"]
    if alone and abs(float(item.detail.get("gap", 0.0))) < EQUAL_LENGTH + TOLERANCE:
        return 0.0
    return _p_in_direction(item)


def _p_in_direction(item: Measurement) -> float:
    """Return the p-value of a contrast; 1 if its sign is not that of the claim."""
    return float(item.detail["p"]) if item.value is not None and item.value > 0 else 1.0


def _run_procedure(index: Index, rows: Mapping[str, Sequence[PairRow]], rules: Rules, which: Pass) -> _Run:
    """Run the gatekeeping procedure: leader first, then Shaffer's steps, and the dimensions after the aggregate."""
    agents = index.agents
    p = {scale: np.array([row.value(rules, which) for row in of_scale]) for scale, of_scale in rows.items()}
    # Cached by p-values, because many rules and passes have the same ones.
    key = "run", rules.alpha, rules.share, *((scale, values.tobytes()) for scale, values in p.items())
    if (cached := index.memo.get(key)) is not None:
        again: _Run = cached
        return again
    # For each pair in the order of names: +1 if the first agent is higher, -1 if the second is, 0 if untestable.
    ahead = {
        scale: np.array([0.0 if not row.testable else 1.0 if row.high < row.low else -1.0 for row in of_scale])
        for scale, of_scale in rows.items()
    }
    names = [scale for scale in rows if scale != AGGREGATE]
    # With one dimension the aggregate equals it, and alpha is not split.
    single = names[0] if AGGREGATE in rows and names and len(index.dimensions) == 1 else None
    level = rules.share * rules.alpha if AGGREGATE in rows and names and single is None else rules.alpha
    tested = {scale: values for scale, values in p.items() if scale != single}
    leader, published, adjusted, rest = publish_scales(ahead, tested, rules.alpha, level)
    first: dict[str, str | None] = {}
    for scale in tested:
        wins = Counter(row.high for row, yes in zip(rows[scale], published[scale].tolist(), strict=True) if yes)
        first[scale] = next((agent for agent in agents if len(agents) > 1 and wins[agent] == len(agents) - 1), None)
    if AGGREGATE in rows:
        first[AGGREGATE] = None if leader is None else agents[leader]
    if single is not None:
        adjusted[single] = adjusted[AGGREGATE]
        published[single] = published[AGGREGATE] & (ahead[single] == ahead[AGGREGATE])
        first[single] = first[AGGREGATE] if published[single].any() else None
    run = _Run(adjusted, published, first, level, rest if single is None else level)
    index.memo[key] = run
    return run


def _run_source_rule(agents: Sequence[str], rows: Mapping[str, Sequence[PairRow]], rules: Rules) -> _Run:
    """Apply ValueBlindBench's rule (section 3.9): Holm over all pairs, for the aggregate and the dimensions apart."""
    alpha = rules.alpha / 2 if AGGREGATE in rows and len(rows) > 1 else rules.alpha
    raw = {scale: np.array([row.p.get(rules.test, 1.0) for row in pairs]) for scale, pairs in rows.items() if pairs}
    adjusted = {AGGREGATE: holm(raw[AGGREGATE])} if AGGREGATE in raw else {}
    if names := [scale for scale in raw if scale != AGGREGATE]:
        pooled = holm(np.concatenate([raw[scale] for scale in names]))
        adjusted |= dict(zip(names, np.split(pooled, len(names)), strict=True))
    published = {
        scale: (values <= alpha + LEVEL_SLACK) & np.array([row.testable for row in rows[scale]])
        for scale, values in adjusted.items()
    }

    def leads(agent: str, scale: str) -> bool:
        # Above every other agent after Holm over its own contrasts.
        own_rows = [row for row in rows[scale] if agent in (row.high, row.low)]
        p = holm(np.array([row.p.get(rules.test, 1.0) if row.high == agent else 1.0 for row in own_rows] or [1.0]))
        return bool(own_rows) and bool((p <= alpha + LEVEL_SLACK).all())

    first = {scale: next((agent for agent in agents if leads(agent, scale)), None) for scale in rows}
    return _Run(adjusted, published, first, alpha, alpha)


def _stability(index: Index, scale: str, pair: PairResult, rules: Rules, *, adjusted: bool) -> StabilityFinding:
    """Return the effect of leaving out each judge family on a pair; under the source's rule only the sign counts."""
    if not index.families:
        return StabilityFinding(state="not-measurable")
    drops: dict[str, Any] = {}
    for family in index.families:
        item = index.drop(scale, family, pair.row.high, pair.row.low)
        value = None if item is None else item.value
        if value is not None and item is not None and item.labels["high"] != pair.row.high:
            value = -value
        p = 0.0 if rules.source or item is None else float(item.detail.get("p", 1.0))
        more = () if rules.source or not adjusted or item is None else (float(item.detail.get("p_adjusted", 1.0)),)
        drops[family] = (value, p, *more)
    state, families = stability_state(1.0, drops, rules.alpha)
    return StabilityFinding(cast(StabilityState, state.replace(" ", "-")), families)


def tiers_and_ranks(
    agents: Sequence[str], claimed: Iterable[tuple[str, str]]
) -> tuple[tuple[tuple[str, ...], ...], dict[str, tuple[int, int]]]:
    """Return tiers from high to low, cut where all above are claimed above all below, and each agent's rank range."""
    names = sorted(agents)
    if not names:
        return (), {}
    orders = [(names.index(high), names.index(low)) for high, low in claimed]
    groups = tuple(tuple(names[k] for k in group) for group in tiers(orders, len(names)))
    return groups, dict(zip(names, rank_intervals(orders, len(names)), strict=True))


@dataclass(frozen=True, slots=True)
class ClaimEvidence:
    """Evidence for a claim about agents: its stability status, the reason, and the pairs that it compares."""

    status: StabilityStatus
    reason: str
    measurements: tuple[str, ...]
    pairs: tuple[PairResult, ...] = ()
    published: frozenset[str] = frozenset()
    stability: StabilityFinding | None = None
    state: PairState | None = None
    p: float | None = None
    p_adjusted: float | None = None
    p_adjusted_headline: float | None = None
    gap: str = ""
    tested: bool = True

    def reason_at(self, level: Level) -> str:
        """Return the reason, with the difference filled in unless the level is no-claim."""
        return self.reason.replace(GAP, self.gap if level != "no-claim" else "")

    @property
    def compared(self) -> frozenset[str]:
        """The agents of the pairs."""
        return frozenset(name for pair in self.pairs for name in (pair.row.high, pair.row.low))


def contrasts_of(kind: str, dimension: str, pairs: Sequence[PairResult], index: Index) -> list[Measurement]:
    """Return the contrasts of one kind for the pairs that have one."""
    items = (index.by_pair.get((f"{kind}.contrast", dimension, pair.row.high, pair.row.low)) for pair in pairs)
    return [item for item in items if item is not None]


@dataclass(frozen=True, slots=True)
class Summary:
    """Summary of all verdicts by scale: tiers, rank ranges, the top set, and pairs within the margin."""

    tiers: Mapping[str, tuple[tuple[str, ...], ...]]
    ranks: Mapping[str, Mapping[str, tuple[int, int]]]
    top_set: Mapping[str, tuple[str, ...]]
    within_margin: Mapping[str, tuple[tuple[str, ...], ...]]


def summary_of(
    verdicts: Sequence[Verdict], agents: Sequence[str], unranked: Mapping[str, Collection[str]] = MappingProxyType({})
) -> Summary:
    """Derive tiers and rank ranges from the supported orders, at no additional error."""
    claimed: dict[str, list[tuple[str, str]]] = {}
    within: dict[str, list[tuple[str, ...]]] = {}
    ranked: dict[str, list[str]] = {}
    for verdict in verdicts:
        claim, head, scale = verdict.claim, verdict.claim.id.partition("[")[0], verdict.claim.dimension
        supported = verdict.publication_level != "no-claim"
        if head in ("first", "above"):
            names = ranked.setdefault(scale, [agent for agent in agents if agent not in unranked.get(scale, ())])
            others = claim.subjects[1:] or [agent for agent in names if agent != claim.subjects[0]]
            claimed.setdefault(scale, []).extend((claim.subjects[0], other) for other in others if supported)
        elif head == "within":
            within.setdefault(scale, []).extend([tuple(sorted(claim.subjects))] if supported else [])
    by_scale = {scale: tiers_and_ranks(names, claimed[scale]) for scale, names in ranked.items() if len(names) > 1}
    return Summary(
        {scale: tiers for scale, (tiers, _) in by_scale.items()},
        {scale: ranks for scale, (_, ranks) in by_scale.items()},
        {scale: tuple(a for a, (best, _) in ranks.items() if best == 1) for scale, (_, ranks) in by_scale.items()},
        {scale: tuple(pairs) for scale, pairs in within.items()},
    )
