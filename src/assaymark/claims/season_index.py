"""The measurements of a season by what they are about, and the decision rules of its plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from assaymark.claims.evidence import Index, index
from assaymark.claims.instruments import OnFailure
from assaymark.claims.messages import Said
from assaymark.claims.rules import Rules, Test
from assaymark.judging.season.noise import IDENTICAL
from assaymark.records import AGGREGATE, Measurement

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
    """The decision rules of a season; all of them are in its locked file.

    Attributes
    ----------
    alpha : float
        Error rate, shared equally by the orders of agents and the comparisons with a baseline.
    publish, halt : float
        Cut-offs of the panel's kappa.
    on_failure : "qualified", "no-claim" or None
        What a claim may be at most while a judge fails its limits; None where no datasheets are demanded.
    baseline : str
        The baseline that agents are compared with.
    hindsight : tuple of Said
        Why the authors of the records may have known what came next. With any of it no claim is a headline, and it is
        a condition of each.
    margin : float
        Largest difference that counts as none, in points.
    any_judges : bool
        Whether a headline has to hold for other judges too.
    preregistered : bool
        Whether the plan was locked before its scores were seen.
    kappa : "point" or "lower"
        Whether the kappa or the lower end of its interval is held against the cut-offs.
    test : str
        Which p-values decide.
    """

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
    """The measurements of one season by what they are about.

    ``graded`` are the agents that have a total, by falling total; ``ungraded`` the others. ``orders`` has what orders
    of the graded agents rest on.
    """

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
    """Index the measurements of one season.

    Raises
    ------
    NotMeasurableError
        A measurement is there twice, or the contrast of two graded agents is missing.
    """
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
