"""What was measured of a season, so that rules can look it up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from assaymark.claims.instruments import OnFailure
from assaymark.claims.messages import Said
from assaymark.errors import NotMeasurableError
from assaymark.records import Measurement

TOTAL = "season.total"
COMPOSITE = "season.composite"
OUTCOME = "season.outcome"
EFFICIENCY = "season.efficiency"
CONTRAST = "season.contrast"
KAPPA = "season.kappa"
EXCESS = "season.excess"
PROBE = "season.author_probe"

ABOVE_CHANCE = "above chance"


@dataclass(frozen=True, slots=True)
class SeasonGates:
    """What the verdicts of a season go by; all of it is in its locked file.

    Attributes
    ----------
    alpha : float
        Error rate, shared equally by the orders of agents and the comparisons with a baseline.
    publish, halt : float
        Cut-offs of the panel's kappa.
    on_failure : "qualified", "no-claim" or None
        What a claim may be at most while a judge does not keep its limits; None where no datasheets are demanded.
    baseline : str
        The baseline that agents are compared with.
    hindsight : tuple of Said
        Why the authors of the records may have known what came next. With any of it no claim is a headline, and it is
        said with each.
    """

    alpha: float = 0.05
    publish: float = 0.4
    halt: float = 0.2
    on_failure: OnFailure | None = None
    baseline: str = "equal weight"
    hindsight: tuple[Said, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class SeasonIndex:
    """The measurements of one season by what they are about.

    ``graded`` are the agents that have a total, by falling total; ``ungraded`` the others. ``contrasts`` are by pair.
    """

    measurements: tuple[Measurement, ...]
    graded: tuple[str, ...]
    ungraded: tuple[str, ...]
    judges: tuple[str, ...]
    totals: Mapping[str, Measurement]
    contrasts: Mapping[frozenset[str], Measurement]
    kappa: Measurement | None

    def total(self, agent: str) -> float:
        """The total of an agent that was graded."""
        value = self.totals[agent].value
        assert value is not None
        return value

    def detail(self, agent: str, name: str) -> float:
        """A number beside an agent's total."""
        return float(self.totals[agent].detail[name])

    def spread(self, agent: str) -> float:
        """How far an agent's judges are apart, in points."""
        return self.detail(agent, "high") - self.detail(agent, "low")

    def named(self, name: str) -> list[Measurement]:
        """All measurements of a name."""
        return [one for one in self.measurements if one.name == name]

    def lacking(self, name: str, agents: Iterable[str]) -> tuple[str, ...]:
        """Of some agents those for whom a quantity was looked for and has no value."""
        empty = {one.labels["agent"] for one in self.named(name) if one.value is None}
        return tuple(sorted(agent for agent in agents if agent in empty))


def season_index(measurements: Sequence[Measurement]) -> SeasonIndex:
    """The measurements of one season.

    Raises
    ------
    NotMeasurableError
        A measurement is there twice, or the contrast of two graded agents is missing.
    """
    ids = [one.id for one in measurements]
    if len(set(ids)) < len(ids):
        twice = next(name for name in ids if ids.count(name) > 1)
        raise NotMeasurableError(f"the measurements are not of one season: {twice} is there twice")
    totals = {one.labels["agent"]: one for one in measurements if one.name == TOTAL}
    graded = [name for name, one in totals.items() if one.value is not None]
    contrasts = {
        frozenset((one.labels["high"], one.labels["low"])): one for one in measurements if one.name == CONTRAST
    }
    found = SeasonIndex(
        measurements=tuple(measurements),
        graded=tuple(sorted(graded, key=lambda name: (-(totals[name].value or 0.0), name))),
        ungraded=tuple(sorted(set(totals) - set(graded))),
        judges=tuple(sorted({one.labels["judge"] for one in measurements if one.name == COMPOSITE})),
        totals=totals,
        contrasts=contrasts,
        kappa=next((one for one in measurements if one.name == KAPPA), None),
    )
    for at, high in enumerate(found.graded):
        for low in found.graded[at + 1 :]:
            if frozenset((high, low)) not in contrasts:
                raise NotMeasurableError(f"the contrast of {high} and {low} is missing")
    return found
