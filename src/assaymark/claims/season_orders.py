"""Which orders of a season's agents stand: pairs, groups between firm boundaries, and agents without a place.

An order needs three things at once. Over the periods of the season the difference is significant after Holm, so that it
is no accident of one week. Between the totals it is larger than what noise alone makes, so that the same decisions
graded again would show it too. And it keeps its sign when any one judge family is left out, in both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Literal

from assaymark.claims.season_index import SeasonIndex
from assaymark.metrology.contrasts import holm
from assaymark.records import Measurement

PairState = Literal[
    "firm", "untested", "noise_unknown", "within_noise", "opposite", "not_significant", "one_family", "turned"
]

_ZERO = 1e-9  # points; sums of floats


@dataclass(frozen=True, slots=True)
class SeasonPair:
    """Two agents, the one with the higher total first.

    Attributes
    ----------
    p : float
        Of the difference over periods, after Holm; 1 where it could not be tested.
    gap : float
        Between the totals, points.
    floor : float or None
        What noise alone stays below; None where nothing was repeated.
    turned : names of judges
        Each the judges of one family; without them the order is the other way round, or gone.
    state : str
        "firm", or the first thing that keeps the order from standing. "turned" means that all else is there.
    """

    high: str
    low: str
    contrast: Measurement
    p: float
    alpha: float
    gap: float
    floor: float | None
    turned: tuple[str, ...]
    state: PairState


def season_pairs(known: SeasonIndex, alpha: float) -> dict[frozenset[str], SeasonPair]:
    """Every pair of graded agents with its state; ``alpha`` is the share of the error rate that orders have."""
    items = [known.contrasts[frozenset(two)] for two in combinations(known.graded, 2)]
    if not items:
        return {}
    adjusted = holm([_p(item) for item in items])
    return {
        frozenset((pair.high, pair.low)): pair
        for pair in (_pair(item, float(p), alpha, known) for item, p in zip(items, adjusted, strict=True))
    }


def _p(item: Measurement) -> float:
    """Unadjusted; a pair that could not be tested keeps its place in the family with 1."""
    return 1.0 if item.value is None else float(item.detail["p"])


def _pair(item: Measurement, p: float, alpha: float, known: SeasonIndex) -> SeasonPair:
    high, low = item.labels["high"], item.labels["low"]
    floor = item.detail.get("floor")
    gap = known.total(high) - known.total(low)
    turned = _turned(item)
    limit = None if floor is None else float(floor)
    return SeasonPair(high, low, item, p, alpha, gap, limit, turned, _state(item, p, alpha, gap, limit, turned))


def _turned(item: Measurement) -> tuple[str, ...]:
    """Judges without whom the difference over periods or the one between the totals is not above zero."""
    found = set()
    for name in ("without", "totals_without"):
        left = item.detail.get(name) or {}
        found |= {who for who, value in left.items() if value is None or float(value) <= _ZERO}
    return tuple(sorted(found))


def _state(
    item: Measurement, p: float, alpha: float, gap: float, floor: float | None, turned: Sequence[str]
) -> PairState:
    if item.value is None:
        return "untested"
    if floor is None:
        return "noise_unknown"
    if gap <= floor + _ZERO:
        return "within_noise"
    if item.value < -_ZERO:
        return "opposite"
    if p > alpha:
        return "not_significant"
    if not item.detail.get("without"):
        return "one_family"
    return "turned" if turned else "firm"


@dataclass(frozen=True, slots=True, eq=False)
class SeasonOrder:
    """The order of a season's agents as far as it stands.

    ``groups`` are the agents between firm boundaries, from high to low, each in alphabetical order. ``unplaced`` are in
    none of them; each with the pairs that turn.
    """

    pairs: Mapping[frozenset[str], SeasonPair]
    groups: tuple[tuple[str, ...], ...]
    unplaced: Mapping[str, tuple[SeasonPair, ...]]

    def between(self, one: str, two: str) -> SeasonPair:
        """The pair of two agents."""
        return self.pairs[frozenset((one, two))]

    def inside(self, group: Sequence[str]) -> list[SeasonPair]:
        """The pairs of a group."""
        return [self.between(*two) for two in combinations(group, 2)]

    def places(self, group: Sequence[str]) -> tuple[int, int]:
        """First and last place of a group. An agent without a place may stand on either side, unless that is firm."""
        at = self.groups.index(tuple(group))
        above = sum(map(len, self.groups[:at]))
        below = sum(map(len, self.groups[at + 1 :]))
        total = sum(map(len, self.groups)) + len(self.unplaced)
        for agent in self.unplaced:
            sides = {self._side(agent, other) for other in group}
            above += sides == {"above"}
            below += sides == {"below"}
        return above + 1, total - below

    def _side(self, agent: str, other: str) -> Literal["above", "below", "open"]:
        pair = self.between(agent, other)
        if pair.state != "firm":
            return "open"
        return "above" if pair.high == agent else "below"


def season_order(known: SeasonIndex, alpha: float, *, claimable: bool) -> SeasonOrder:
    """The order of a season's agents.

    Parameters
    ----------
    alpha : float
        The share of the error rate that orders have.
    claimable : bool
        Whether the panel's agreement and datasheets let an order be claimed at all. If not, there is one group.
    """
    pairs = season_pairs(known, alpha)
    if not claimable:
        groups = (tuple(sorted(known.graded)),) if known.graded else ()
        return SeasonOrder(pairs, groups, {})
    unplaced = dict(_unplaced(known, pairs))
    placed = [name for name in known.graded if name not in unplaced]
    return SeasonOrder(pairs, tuple(_groups(placed, pairs)), unplaced)


def _unplaced(
    known: SeasonIndex, pairs: Mapping[frozenset[str], SeasonPair]
) -> Iterator[tuple[str, tuple[SeasonPair, ...]]]:
    """The agents whose place depends on who judges.

    A pair that has all evidence and turns without one judge family is no tie: the judges see two different agents. Of
    the two it is the one whose judges are further apart, if they are further apart than the two totals.
    """
    turning = [pair for pair in pairs.values() if pair.state == "turned"]
    for agent in known.graded:
        spread = known.spread(agent)
        mine = [
            pair
            for pair in turning
            if agent in (pair.high, pair.low)
            and spread > pair.gap
            and spread >= max(known.spread(pair.high), known.spread(pair.low)) - _ZERO
        ]
        if mine:
            yield agent, tuple(mine)


def _groups(agents: Sequence[str], pairs: Mapping[frozenset[str], SeasonPair]) -> Iterator[tuple[str, ...]]:
    """Agents by falling total, cut where everybody above stands firmly above everybody below."""
    start = 0
    for at in range(1, len(agents) + 1):
        crossing = [pairs[frozenset(two)] for two in product(agents[:at], agents[at:])]
        if all(pair.state == "firm" for pair in crossing):
            yield tuple(sorted(agents[start:at]))
            start = at
