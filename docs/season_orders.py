"""Regenerate the tables of decision 0004: false rankings of equal agents, and power, in simulated seasons.

python docs/season_orders.py       twenty minutes
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

DOCS = Path(__file__).resolve().parent
# The worlds are those of the tests, so that the page and the tests cannot disagree.
sys.path.insert(0, str(DOCS.parent / "tests" / "planted"))

from season_worlds import World, decided, measured, played  # noqa: E402

from assaymark.claims import SeasonGates, SeasonVerdicts, decide_season  # noqa: E402
from assaymark.claims.season_claims import SeasonClaims  # noqa: E402
from assaymark.metrology import cluster_t, holm  # noqa: E402
from assaymark.records import AGGREGATE, Measurement  # noqa: E402
from assaymark.workflow.tracks import SeasonScores, kappa_measurement  # noqa: E402

PAGE = DOCS / "decisions" / "0004-orders-of-a-season.md"
ALPHA = 0.05
SEASONS = 400
CALM = {"noise": 0.5, "decisions": 0.1, "trials": 4, "replicates": 8}
EQUAL = (55.0,) * 4
NULLS: dict[str, Callable[[int], World]] = {
    "independent weeks": lambda periods: World(EQUAL, periods=periods, **CALM),
    "correlation .3 from week to week": lambda periods: World(EQUAL, periods=periods, serial=0.3, **CALM),
    "correlation .5": lambda periods: World(EQUAL, periods=periods, serial=0.5, **CALM),
    "one judge favours one agent by 15 points": lambda periods: World(EQUAL, periods=periods, favour=15.0, **CALM),
    "each judge has a taste of 4 points for each agent": lambda periods: World(EQUAL, periods=periods, taste=4.0),
    "a taste of 8 points": lambda periods: World(EQUAL, periods=periods, taste=8.0),
}
TASTES = {
    "equal, taste of 4 points": World(EQUAL, taste=4.0, periods=24),
    "equal, taste of 8 points": World(EQUAL, taste=8.0, periods=24),
    "15 points apart, no taste": World((75.0, 60.0, 45.0), periods=24),
    "15 points apart, taste of 8 points": World((75.0, 60.0, 45.0), taste=8.0, periods=24),
}
GAPS = (5.0, 10.0, 20.0)
LENGTHS = (12, 24, 36)


def seasons(world: World) -> list[list[Measurement]]:
    """The measurements of seasons of a world, the same ones every time."""
    rng = np.random.default_rng(4)
    return [measured(played(world, rng)) for _ in range(SEASONS)]


def ranked(found: SeasonVerdicts) -> bool:
    """True if any agent is claimed to rank first or above another."""
    return any(one.kind in ("first", "above") and one.verdict.publication_level != "no-claim" for one in found.verdicts)


def decide(measurements: Sequence[Measurement]) -> SeasonVerdicts:
    """The verdicts of a season whose judges pass all limits."""
    return decide_season(measurements, SeasonGates(on_failure="qualified"), "plan")


def as_if_independent(measurements: Sequence[Measurement]) -> bool:
    """True if a plain t test over periods ranks an agent: Holm, the noise floor and the sign without each family."""
    known = SeasonClaims(measurements, SeasonGates(), "").known
    items = [item for item in known.named("contrast") if item.value is not None]
    sums = [list(item.detail["cluster_sums"].values()) for item in items]
    tests = [cluster_t([total / count for total, count in one], range(len(one))) for one in sums]
    adjusted = holm([test.p for test in tests]) if tests else []
    return any(
        p <= ALPHA
        and item.detail["unresolved"] == ""
        and all(
            (one.value or 0.0) * (1.0 if one.labels["high"] == item.labels["high"] else -1.0) > 0
            for family in known.families
            if (one := known.drops.get((AGGREGATE, family, frozenset((item.labels["high"], item.labels["low"])))))
        )
        for item, p in zip(items, adjusted, strict=True)
    )


def in_range(scores: SeasonScores) -> SeasonScores:
    """Scores of periods between 0 and 100, which bands are defined for."""
    periods = {
        name: {agent: {judge: min(100.0, max(0.0, one)) for judge, one in row.items()} for agent, row in agents.items()}
        for name, agents in scores.periods.items()
    }
    return replace(scores, periods=periods)


def percent(hits: Sequence[bool]) -> str:
    """A share."""
    return f"{100 * float(np.mean(hits)):.1f} %".replace(".0 %", " %")


def nulls() -> list[str]:
    """The share of seasons of equal agents in which any ranking is claimed."""
    lengths = [f"{weeks} weeks" for weeks in LENGTHS]
    lines = [
        f"| four equal agents | {' | '.join(f'{one}, plain t | {one}' for one in lengths)} |",
        f"|---|{'---:|---:|' * len(lengths)}",
    ]
    for name, world in NULLS.items():
        cells = []
        for weeks in LENGTHS:
            found = seasons(world(weeks))
            cells += [
                percent([as_if_independent(one) for one in found]),
                percent([ranked(decide(one)) for one in found]),
            ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def gate() -> list[str]:
    """Return the table of seasons in which any ranking is claimed, with and without limits of kappa."""
    lines = ["| agents, 24 weeks | any ranking | and kappa of .2 or more | and of .4 or more |", "|---|---:|---:|---:|"]
    for name, world in TASTES.items():
        rng = np.random.default_rng(4)
        found = []
        for _ in range(SEASONS):
            season = played(world, rng)
            kappa = kappa_measurement(in_range(season.scores), world.plan, rng).value
            found.append((ranked(decided(season)), -1.0 if kappa is None else kappa))
        cells = [percent([one and kappa >= cut for one, kappa in found]) for cut in (-2.0, 0.2, 0.4)]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def power() -> list[str]:
    """The share of seasons in which a true difference of two agents is found."""
    lines = [f"| two agents | {' | '.join(f'{weeks} weeks' for weeks in LENGTHS)} |", "|---|---:|---:|---:|"]
    for gap in GAPS:
        cells = [percent([ranked(decide(one)) for one in seasons(World((55.0 + gap, 55.0), periods=weeks))])
                 for weeks in LENGTHS]  # fmt: skip
        lines.append(f"| {gap:g} points apart | {' | '.join(cells)} |")
    return lines


PARTS: dict[str, Callable[[], list[str]]] = {"nulls": nulls, "gate": gate, "power": power}


def main() -> None:
    """Put the tables between their marks."""
    for name, make in PARTS.items():
        begin, end = f"<!-- {name}: generated by docs/season_orders.py -->", f"<!-- end of {name} -->"
        table = "\n".join(make())
        before, rest = PAGE.read_text(encoding="utf-8").split(begin)
        PAGE.write_text(f"{before}{begin}\n\n{table}\n\n{end}{rest.split(end)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main()
