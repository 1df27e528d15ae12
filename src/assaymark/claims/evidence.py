"""The measurements that verdicts rest on, by what they are about, and the decision rules of a season's plan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Literal

from assaymark.claims.levels import OnFailure, Rules, Test
from assaymark.claims.messages import Said
from assaymark.errors import NotMeasurableError
from assaymark.records import AGGREGATE, IDENTICAL, Measurement, measurement_id

Key = tuple[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Contrast:
    """One pair on one dimension: the measured difference and its tests, before any correction."""

    measurement: Measurement
    high: str
    low: str
    difference: float | None


@dataclass(frozen=True, slots=True)
class Directed:
    """A difference "one minus other" with its interval, read from a measurement of the pair in either direction."""

    measurement: Measurement
    value: float | None
    low: float | None
    high: float | None


def equivalence_gap(item: Measurement) -> tuple[float, float, float, float] | None:
    """The difference of a pair from the first name to the second, the level in percent, and the ends of the interval
    that tests of equivalence go with; None where there is none."""
    ends = item.detail.get("equivalence_interval")
    if item.value is None or ends is None:
        return None
    turn = 1.0 if item.labels["high"] < item.labels["low"] else -1.0
    low, high = sorted(turn * end for end in ends)
    return turn * item.value, 100 * (2 * (item.level or 0.95) - 1), low, high


@dataclass(frozen=True, slots=True)
class Index:
    """Measurements by id, with the contrasts, the drops, and the kappas that gate each dimension."""

    by_id: Mapping[str, Measurement]
    contrasts: Mapping[Key, Contrast]
    agreements: Mapping[str, tuple[Measurement, ...]]
    agents: tuple[str, ...]
    dimensions: tuple[str, ...]
    families: tuple[str, ...]
    cells: tuple[str, ...]
    probed: frozenset[str]
    compared: frozenset[str]
    levels: Mapping[tuple[str, str | None, str], Measurement]
    drops: Mapping[tuple[str, str, frozenset[str]], Measurement]
    rows: Mapping[str, tuple[Any, ...]] | None = None
    tests: frozenset[str] | None = None
    memo: dict[Hashable, Any] = field(default_factory=dict)

    def named(self, name: str) -> tuple[Measurement, ...]:
        """Every measurement of this name."""
        if "by_name" not in self.memo:
            grouped: dict[str, list[Measurement]] = defaultdict(list)
            for item in self.by_id.values():
                grouped[item.name].append(item)
            self.memo["by_name"] = grouped
        return tuple(self.memo["by_name"].get(name, ()))

    def get(self, name: str, **labels: str) -> Measurement | None:
        """The measurement ``name`` with exactly these labels, if it was made."""
        return self.by_id.get(measurement_id(name, labels))

    def contrast(self, dimension: str, one: str, other: str) -> Contrast:
        """The contrast of two agents on a dimension, whichever of them is higher."""
        found = self.contrasts.get((dimension, frozenset((one, other))))
        if found is None:
            raise NotMeasurableError(f"no contrast of {one} and {other} on {dimension} was measured")
        return found

    def drop(self, dimension: str, family: str, one: str, other: str) -> Measurement | None:
        """The contrast of two agents without a judge family."""
        return self.drops.get((dimension, family, frozenset((one, other))))

    def within_without(self, dimension: str, family: str, one: str, other: str, margin: float) -> bool:
        """Whether two agents stay within a margin of each other without a judge family."""
        found = self.drop(dimension, family, one, other)
        return found is not None and found.value is not None and abs(found.value) < margin

    def tested(self, dimension: str) -> bool:
        """Whether differences on a dimension were tested; tables handed in without contrasts were not."""
        return len(self.agents) < 2 or dimension in self.compared

    def directed(self, name: str, dimension: str, one: str, other: str) -> Directed | None:
        """The measurement ``name`` of a pair, turned so that above 0 means that ``one`` is higher."""
        found = self.get(name, dimension=dimension, high=one, low=other)
        if found is not None:
            return Directed(found, found.value, found.low, found.high)
        found = self.get(name, dimension=dimension, high=other, low=one)
        if found is None:
            return None
        value, low, high = (None if end is None else -end for end in (found.value, found.high, found.low))
        return Directed(found, value, low, high)

    def level(self, dimension: str, agent: str, family: str | None = None) -> Measurement | None:
        """The level of an agent, or its level without a judge family."""
        return self.levels.get((dimension, family, agent))

    @property
    def families_unknown(self) -> str:
        """Whose families the tables do not give, "judges", "agents" or both; empty where they do."""
        item = self.get("panel.families")
        return "" if item is None else str(item.detail.get("unknown", ""))

    @property
    def in_parts(self) -> bool:
        """Whether only sums of a large table were measured, which do not say what needs single records."""
        item = self.get("panel.families")
        return item is not None and bool(item.detail.get("in_parts"))

    def measured_tests(self) -> frozenset[str]:
        """The tests whose p-values were measured, by the name they have in a contrast's detail."""
        found = (item.measurement.detail for item in self.contrasts.values())
        return frozenset(
            name for detail in found for name, p in detail.items() if name.startswith("p") and p is not None
        )


def index(
    measurements: Iterable[Measurement],
    *,
    families: Sequence[str] | None = None,
    rows: Mapping[str, tuple[Any, ...]] | None = None,
    agents: Sequence[str] | None = None,
    dimensions: Sequence[str] | None = None,
    tests: frozenset[str] | None = None,
) -> Index:
    """An `Index` over ``measurements``; a certificate, which holds one claim's part, names the rest."""
    by_id: dict[str, Measurement] = {}
    grouped: dict[str, list[Measurement]] = defaultdict(list)
    for measurement in measurements:
        if measurement.id in by_id:
            raise NotMeasurableError(f"{measurement.id} was measured twice; the tables are not of one analysis")
        by_id[measurement.id] = measurement
        grouped[measurement.name].append(measurement)

    def pair(item: Measurement) -> frozenset[str]:
        return frozenset((item.labels["high"], item.labels["low"]))

    contrasts = {
        (item.labels["dimension"], pair(item)): Contrast(item, item.labels["high"], item.labels["low"], item.value)
        for item in grouped["contrast"]
    }
    effects = grouped["score.effect"]
    agreements: dict[str, list[Measurement]] = defaultdict(list)
    for item in grouped["kappa.mean_pairwise"]:
        if not item.state.startswith("too few"):
            agreements[item.labels["dimension"]].append(item)
    dropped = tuple(dict.fromkeys(item.labels["dropped"] for item in grouped["lofo.rho"]))
    # One family cannot be left out: nobody would be left.
    dropped = dropped if len(dropped) > 1 else ()
    pooled = [item for item in grouped["kappa.mean_pairwise"] if "format" not in item.labels]
    return Index(
        by_id,
        contrasts,
        {dimension: tuple(items) for dimension, items in agreements.items()},
        agents=tuple(sorted({item.labels["agent"] for item in effects}) if agents is None else agents),
        dimensions=tuple(item.labels["dimension"] for item in pooled if item.labels["dimension"] != AGGREGATE)
        if dimensions is None
        else tuple(dimensions),
        families=dropped if families is None else tuple(families),
        cells=tuple(item.labels["cell"] for item in grouped["cell.gate"]),
        probed=frozenset(item.labels["dimension"] for item in grouped["probe.contrast"]),
        compared=frozenset(dimension for dimension, _ in contrasts),
        levels={
            (item.labels["dimension"], item.labels.get("dropped"), item.labels["agent"]): item
            for item in (*effects, *grouped["lofo.effect"])
        },
        drops={
            (item.labels["dimension"], item.labels["dropped"], pair(item)): item for item in grouped["lofo.contrast"]
        },
        rows=rows,
        tests=tests,
    )


TOTAL = "season.total"
COMPOSITE = "season.composite"
INVALID = "season.invalid"
OUTCOME = "season.outcome"
EFFICIENCY = "season.efficiency"
KAPPA = "season.kappa"
EXCESS = "season.excess"
PROBE = "season.author_probe"
NOISE = "season.noise"
FLAGGED = "agent.flagged_texts"

ABOVE_CHANCE = "above chance"
SILENT = "no usable answer"
"""State of the total of an agent that never gave one."""
SPAN = 100.0
"""Points between the ends of a season's scale."""


@dataclass(frozen=True, slots=True)
class SeasonGates:
    """The decision rules of a season; all of them are in its locked file."""

    alpha: float = 0.05
    publish: float = 0.4
    halt: float = 0.2
    on_failure: OnFailure | None = None
    baseline: str = "equal weight"
    hindsight: tuple[Said, ...] = ()
    margin: float = 0.075 * SPAN
    any_judges: bool = False
    preregistered: bool = True
    kappa: Literal["point", "lower"] = "point"
    test: Test = "p"

    def of_orders(self, alpha: float) -> Rules:
        """The rules that decide orders at their share of the error rate."""
        return Rules(
            self.publish, self.halt, alpha, test=self.test, margin=self.margin, any_judges=self.any_judges,
            on_failure=self.on_failure, preregistered=self.preregistered, span=SPAN,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class SeasonIndex:
    """The measurements of one season by what they are about."""

    measurements: tuple[Measurement, ...]
    graded: tuple[str, ...]
    ungraded: tuple[str, ...]
    totals: Mapping[str, Measurement]
    orders: Index
    kappa: Measurement | None

    def detail(self, agent: str, name: str) -> float:
        """A number beside an agent's total."""
        return float(self.totals[agent].detail[name])

    def named(self, name: str) -> list[Measurement]:
        """All measurements of a name."""
        return [one for one in self.measurements if one.name == name]

    def unchanging(self, agents: Iterable[str]) -> tuple[str, ...]:
        """Of some agents those whose replicates are all identical."""
        same = {one.labels["of"] for one in self.named(NOISE) if one.state == IDENTICAL and one.n_of == "replicates"}
        return tuple(sorted(same.intersection(agents)))

    def lacking(self, name: str, agents: Iterable[str]) -> tuple[str, ...]:
        """Of some agents those for whom a quantity was looked for and has no value."""
        empty = {one.labels["agent"] for one in self.named(name) if one.value is None}
        return tuple(sorted(agent for agent in agents if agent in empty))


def season_index(measurements: Sequence[Measurement]) -> SeasonIndex:
    """Index the measurements of one season."""
    totals = {one.labels["agent"]: one for one in measurements if one.name == TOTAL}
    graded = [name for name, one in totals.items() if one.value is not None]
    dropped = sorted({one.labels["dropped"] for one in measurements if one.name == "lofo.contrast"})
    found = SeasonIndex(
        measurements=tuple(measurements),
        graded=tuple(sorted(graded, key=lambda name: (-(totals[name].value or 0.0), name))),
        ungraded=tuple(sorted(set(totals) - set(graded))),
        totals=totals,
        orders=index(measurements, agents=sorted(graded), families=dropped),
        kappa=next((one for one in measurements if one.name == KAPPA), None),
    )
    for pair in combinations(found.orders.agents, 2):
        found.orders.contrast(AGGREGATE, *pair)
    return found
