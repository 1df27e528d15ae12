"""The measurements a verdict may rest on, indexed by what they are about."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from assaymark.errors import NotMeasurableError
from assaymark.records import AGGREGATE, Measurement, measurement_id

Key = tuple[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Contrast:
    """One pair on one dimension: the measured difference and its tests, before any correction.

    ``difference`` is None when the two never answered the same question.
    """

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
        try:
            return self.contrasts[dimension, frozenset((one, other))]
        except KeyError:
            raise NotMeasurableError(f"no contrast of {one} and {other} on {dimension} was measured") from None

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
    """An `Index` over ``measurements``; a certificate, which holds one claim's part, names the rest.

    Parameters
    ----------
    measurements : of one analysis
    families, agents, dimensions : names, optional
        The judge families that were left out, the agents and the dimensions of the rubric, where the measurements do
        not show all of them.
    rows : mapping of scale to `assaymark.claims.orders.Row`, optional
        Every pair as the order procedure sees it.
    tests : names, optional
        The other tests that could reject something in this design.

    Raises
    ------
    NotMeasurableError
        Two measurements have one id: the tables are not one analysis.
    """
    by_id: dict[str, Measurement] = {}
    grouped: dict[str, list[Measurement]] = defaultdict(list)
    for measurement in measurements:
        if measurement.id in by_id:
            raise NotMeasurableError(f"{measurement.id} was measured twice; the tables are not of one analysis")
        by_id[measurement.id] = measurement
        grouped[measurement.name].append(measurement)
    contrasts = {}
    for item in grouped["contrast"]:
        high, low, dimension = item.labels["high"], item.labels["low"], item.labels["dimension"]
        contrasts[dimension, frozenset((high, low))] = Contrast(item, high, low, item.value)
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
            (
                item.labels["dimension"],
                item.labels["dropped"],
                frozenset((item.labels["high"], item.labels["low"])),
            ): item
            for item in grouped["lofo.contrast"]
        },
        rows=rows,
        tests=tests,
    )
