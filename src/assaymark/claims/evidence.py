"""The measurements that verdicts rest on, by what they are about, and the decision rules of a season's plan."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from assaymark.claims.levels import OnFailure, Rules, Test
from assaymark.claims.messages import Said
from assaymark.errors import NotMeasurableError
from assaymark.records import AGGREGATE, Measurement, measurement_id

Key = tuple[str, frozenset[str]]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Contrast:
    """One pair on one dimension: the measured difference and its tests, before any correction."""

    measurement: Measurement
    high: str
    low: str
    difference: float | None


@dataclass(frozen=True, slots=True)
class SignedDifference:
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
    compared: frozenset[str]
    levels: Mapping[tuple[str, str | None, str], Measurement]
    drops: Mapping[tuple[str, str, frozenset[str]], Measurement]
    rows: Mapping[str, tuple[Any, ...]] | None = None
    tests: frozenset[str] | None = None
    memo: dict[Hashable, Any] = field(default_factory=dict)

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """What ``make`` gives, made the first time that it is asked for."""
        if key not in self.memo:
            self.memo[key] = make()
        found: T = self.memo[key]
        return found

    def named(self, name: str) -> tuple[Measurement, ...]:
        """Every measurement of this name."""
        return self.once("by_name", lambda: _by_name(self.by_id.values())).get(name, ())

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

    def tested(self, dimension: str) -> bool:
        """Whether differences on a dimension were tested; tables handed in without contrasts were not."""
        return len(self.agents) < 2 or dimension in self.compared

    def directed(self, name: str, dimension: str, one: str, other: str) -> SignedDifference | None:
        """The measurement ``name`` of a pair, turned so that above 0 means that ``one`` is higher."""
        found = self.get(name, dimension=dimension, high=one, low=other)
        if found is not None:
            return SignedDifference(found, found.value, found.low, found.high)
        found = self.get(name, dimension=dimension, high=other, low=one)
        if found is None:
            return None
        value, low, high = (None if end is None else -end for end in (found.value, found.high, found.low))
        return SignedDifference(found, value, low, high)

    def level(self, dimension: str, agent: str, family: str | None = None) -> Measurement | None:
        """The level of an agent, or its level without a judge family."""
        return self.levels.get((dimension, family, agent))

    @property
    def panel(self) -> Mapping[str, Any]:
        """What the tables say of the judges: families that are ``unknown``, and whether they were read ``in_parts``."""
        item = self.get("panel.families")
        return {} if item is None else item.detail

    @property
    def consecutive(self) -> bool | None:
        """Whether clusters of the overall score follow each other in time; None where that was not measured."""
        item = self.get("order.autocorrelation", dimension=AGGREGATE)
        return None if item is None else item.detail.get("order") == "consecutive"

    def measured_tests(self) -> frozenset[str]:
        """The tests whose p-values were measured, by the name they have in a contrast's detail."""
        details = (item.measurement.detail.items() for item in self.contrasts.values())
        return frozenset(name for detail in details for name, p in detail if name.startswith("p") and p is not None)


def index(
    measurements: Iterable[Measurement],
    families: Sequence[str] | None = None,
    agents: Sequence[str] | None = None,
    dimensions: Sequence[str] | None = None,
    *,
    tests: frozenset[str] | None = None,
) -> Index:
    """An `Index` over ``measurements``; a certificate, which holds one claim's part, names the rest."""
    by_id: dict[str, Measurement] = {}
    for measurement in measurements:
        if measurement.id in by_id:
            raise NotMeasurableError(f"{measurement.id} was measured twice; the tables are not of one analysis")
        by_id[measurement.id] = measurement
    grouped = _by_name(by_id.values())

    def pair(item: Measurement) -> frozenset[str]:
        return frozenset((item.labels["high"], item.labels["low"]))

    contrasts = {
        (item.labels["dimension"], pair(item)): Contrast(item, item.labels["high"], item.labels["low"], item.value)
        for item in grouped.get("contrast", ())
    }
    effects, kappas = grouped.get("score.effect", ()), grouped.get("kappa.mean_pairwise", ())
    agreements: dict[str, tuple[Measurement, ...]] = {}
    for item in kappas:
        if not item.state.startswith("too few"):
            agreements[item.labels["dimension"]] = (*agreements.get(item.labels["dimension"], ()), item)
    dropped = tuple(dict.fromkeys(item.labels["dropped"] for item in grouped.get("lofo.rho", ())))
    # One family cannot be left out: nobody would be left.
    dropped = dropped if len(dropped) > 1 else ()
    pooled = [item.labels["dimension"] for item in kappas if "format" not in item.labels]
    return Index(
        by_id,
        contrasts,
        agreements,
        agents=tuple(sorted({item.labels["agent"] for item in effects}) if agents is None else agents),
        dimensions=tuple((name for name in pooled if name != AGGREGATE) if dimensions is None else dimensions),
        families=dropped if families is None else tuple(families),
        compared=frozenset(dimension for dimension, _ in contrasts),
        levels={
            (item.labels["dimension"], item.labels.get("dropped"), item.labels["agent"]): item
            for item in (*effects, *grouped.get("lofo.effect", ()))
        },
        drops={
            (item.labels["dimension"], item.labels["dropped"], pair(item)): item
            for item in grouped.get("lofo.contrast", ())
        },
        tests=tests,
        memo={"by_name": grouped},
    )


def _by_name(items: Iterable[Measurement]) -> dict[str, tuple[Measurement, ...]]:
    found: dict[str, list[Measurement]] = {}
    for item in items:
        found.setdefault(item.name, []).append(item)
    return {name: tuple(group) for name, group in found.items()}


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
