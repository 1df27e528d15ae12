"""Seasons whose truth is known: hidden scores of agents, and judges with planted noise, favours and tastes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from statistics import median

import numpy as np
from numpy.typing import NDArray

from assaymark.claims import SeasonGates, SeasonVerdicts, decide_season
from assaymark.judging import DecisionTime, JudgeScore, ScoringPlan, band, load_scoring
from assaymark.metrology import Labels, OrderPlan, OrderTests
from assaymark.plan import OrderRules
from assaymark.records import Measurement
from assaymark.workflow import tracks

PLAN = load_scoring("v0.4")
UNTIMED = DecisionTime(None, 0, 0)


@dataclass(frozen=True)
class World:
    """What is true of a season.
    ``quality`` are the agents' hidden scores in points. All else are standard deviations in points: ``weeks`` of an
    agent between periods, with the lag-1 correlation ``serial``, ``noise`` of a judge between gradings of one text,
    ``decisions`` of an agent between replicates, ``taste`` of a judge for an agent in all of its periods. ``favour`` is
    what the first judge gives to agents of its own family, ``verbosity`` what it gives for each doubling of a text."""

    quality: tuple[float, ...]
    weeks: float = 4.0
    serial: float = 0.0
    noise: float = 3.0
    decisions: float = 1.0
    taste: float = 0.0
    favour: float = 0.0
    verbosity: float = 0.0
    judges: int = 3
    periods: int = 12
    trials: int = 2
    replicates: int = 4
    own: int = 1
    harshness: tuple[float, ...] = (-4.0, 0.0, 5.0)
    plan: ScoringPlan = field(default=PLAN)

    @property
    def agents(self) -> tuple[str, ...]:
        return tuple(f"a{at:02d}" for at in range(len(self.quality)))

    @property
    def families(self) -> dict[str, str]:
        """The first ``own`` agents are of the first judge's family."""
        return {name: "f0" if at < self.own else "elsewhere" for at, name in enumerate(self.agents)}


@dataclass(frozen=True)
class Played:
    """A season of a world: its grades, the words that were written by agent and period, and the agents' families."""

    scores: tracks.SeasonScores
    tokens: dict[tuple[str, str], int]
    families: dict[str, str]

    def totals(self) -> tracks.SeasonTotals:
        return tracks.season_totals(self.scores, dict.fromkeys(self.scores.agents, UNTIMED), PLAN)


def played(world: World, rng: np.random.Generator) -> Played:
    """Draw a season."""
    a, j, g = len(world.quality), world.judges, world.periods
    quality = np.array(world.quality)
    swing = rng.standard_normal((a, g))
    for k in range(1, g):
        swing[:, k] = world.serial * swing[:, k - 1] + np.sqrt(1 - world.serial**2) * swing[:, k]
    weekly = quality[:, None] + world.weeks * swing
    doublings = rng.normal(0.0, 1.0, (a, g))
    bias = np.resize(np.array(world.harshness), j)[None, :] + world.taste * rng.standard_normal((a, j))
    bias[: world.own, 0] += world.favour
    longer = np.zeros((a, j, g))
    longer[:, 0] = world.verbosity * doublings
    weeks = weekly[:, None] + bias[:, :, None] + longer + world.noise * rng.standard_normal((a, j, g))
    whole = weekly.mean(axis=1)[:, None] + bias + longer.mean(axis=2)
    trials = whole[:, :, None] + world.noise * rng.standard_normal((a, j, world.trials))
    decided = whole[:, :, None] + (world.decisions * rng.standard_normal((a, world.replicates)))[:, None]
    repeated = decided + world.noise * rng.standard_normal((a, j, world.replicates))
    names, judges, agents = [f"w{at:02d}" for at in range(g)], [f"j{at}" for at in range(j)], world.agents
    tokens = {(agent, name): max(1, round(200 * 2 ** doublings[i, k]))
              for i, agent in enumerate(agents) for k, name in enumerate(names)}  # fmt: skip
    graded = {
        agent: {
            judge: {t: _score(judge, points) for t, points in enumerate(row, start=1)}
            for judge, row in zip(judges, trials[i].tolist(), strict=True)
        }
        for i, agent in enumerate(agents)
    }

    def by_judge(points: NDArray[np.float64]) -> dict[str, float]:
        return dict(zip(judges, points.tolist(), strict=True))

    scores = tracks.SeasonScores(
        agents=agents, families={judge: f"f{at}" for at, judge in enumerate(judges)}, records=graded,
        periods={name: {agent: by_judge(weeks[i, :, k]) for i, agent in enumerate(agents)}
                 for k, name in enumerate(names)},
        replicates={agent: {k + 1: by_judge(repeated[i, :, k]) for k in range(world.replicates)}
                    for i, agent in enumerate(agents)},
    )  # fmt: skip
    return Played(scores, tokens, world.families)


def _score(judge: str, points: float) -> JudgeScore:
    value = min(100.0, max(0.0, float(points)))
    return JudgeScore(judge, value, value, value, None, value, band(value), PLAN.grader, PLAN.digest)


def measured(season: Played, people: Labels | None = None) -> list[Measurement]:
    """What orders rest on; agreement and datasheets are as good as can be, so that they withhold nothing."""
    totals = season.totals()
    kept = [
        Measurement(name="datasheet.gate", labels={"judge": judge}, value=0.0, n=1, n_of="limits", method="")
        for judge in season.scores.judges
    ]
    kappa = Measurement(name="season.kappa", labels={}, value=0.9, n=1, n_of="", method="")
    orders = [*tracks.season_orders(totals, season.families, season.tokens, OrderRules())]
    if people is not None:
        orders += tracks.season_people(totals, season.families, [*orders], people, PLAN, OrderRules())
    return [*tracks.table_measurements(totals), *orders, kappa, *kept]


def decided(season: Played) -> SeasonVerdicts:
    return decide_season(measured(season), SeasonGates(on_failure="qualified"), "plan")


def ordered(season: Played) -> set[tuple[str, ...]]:
    """First ranks and pairs that are claimed: none unless the tests of all judges alone resolve one."""
    found = tracks.season_comparisons(season.totals(), season.families, {}, "consecutive")
    tests = OrderTests(found, OrderPlan(OrderRules(), span=100.0, dimensions=False))
    # What length explains is a condition of a claim, and costs none.
    verdicts = decided(replace(season, tokens={})).verdicts if tests.resolved.any() else ()
    return {one.verdict.claim.subjects for one in verdicts
            if one.kind in ("first", "above") and one.verdict.publication_level != "no-claim"}  # fmt: skip


def panel_median(season: Played, agent: str) -> float:
    return median(season.scores.composites[agent].values())
