"""A D-study of a claim: the cheapest extension of a run's design that would find the difference it rests on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from assaymark.errors import NotMeasurableError
from assaymark.metrology.comparisons import Comparisons
from assaymark.metrology.components import Components
from assaymark.metrology.decision_study import (
    MOST_CLUSTERS,
    MOST_CYCLES,
    MOST_JUDGES,
    MOST_TRIALS,
    PARTS,
    DStudy,
    contrast_components,
    design_power,
    dstudy,
    dstudy_variance,
    variance_per_cost,
)
from assaymark.metrology.planning import detectable_levels, dimensions_claimed
from assaymark.metrology.reliability import judge_agent_variance
from assaymark.metrology.table import ScoreTable
from assaymark.protocol import Study
from assaymark.records import AGGREGATE, Claim, Measurement


@dataclass(frozen=True, slots=True)
class ClaimDesign:
    """A D-study of one claim: which extension of the present design finds its gap with the plan's power.

    Attributes
    ----------
    state : str
        "ok", or why the rest is empty.
    gap, level, power : float or None
        Smallest difference that the claim rests on, as measured; the level it is tested at; the power wanted.
    components : mapping of `PARTS` to float
        Of the panel, in squared points; the trial component is 0 where no judge was asked twice (``trials_known``).
    now : mapping of "G", "C", "J", "T" to int
        The present design as a balanced one: clusters, cycles in each, judges, trials. ``power_now`` is its power.
    variance : float or None
        Of the gap in the present design, and ``per_call``, by how much one more call spent on each changes it.
    cheapest : DStudy or None
        The extension with the fewest calls that has the power; None where none that was tried has it.
    more_calls : int or None
        What it needs beside the calls of the present design.
    """

    state: str
    gap: float | None = None
    level: float | None = None
    power: float | None = None
    components: Mapping[str, float] = field(default_factory=dict)
    trials_known: bool = False
    now: Mapping[str, int] = field(default_factory=dict)
    power_now: float | None = None
    variance: float | None = None
    per_call: Mapping[str, float | None] = field(default_factory=dict)
    cheapest: DStudy | None = None
    more_calls: int | None = None


def claim_design(
    table: ScoreTable,
    study: Study,
    components: Components,
    trials: float,
    claim: Claim,
    measurements: Sequence[Measurement],
) -> ClaimDesign:
    """The cheapest extension of the present design that finds the smallest difference which a claim rests on.

    ``table`` has means over trials, ``trials`` of them by each judge on average; ``components`` are its own.
    """
    if len(set(table.families)) < 2:
        return ClaimDesign("one judge family, needs two")
    found = Comparisons.of_table(table, study)
    scale = found.names.index(claim.dimension)
    known, state = None, "no two agents share two clusters that all judges scored"
    with suppress(NotMeasurableError):
        liking = np.array([judge_agent_variance(means) for means in found.judge_means])
        known = contrast_components(found.cells, found.cluster, liking)
    gap, level = _gap(claim, measurements), _level_of(study, found, claim)
    if known is None or math.isnan(known.v["residual"][scale]) or gap is None:
        if known is not None:
            state = "one cycle in each cluster, needs two" if gap is not None else "these records show no such gap"
        return ClaimDesign(state)
    v = {part: float(known.v[part][scale]) for part in PARTS if part != "trial"}
    asked = max(1, round(trials))
    noise = [components.judge("trial", judge).variance for judge in table.judges]
    trial = float(np.mean([0.0 if one is None else one for one in noise]))
    v |= {"disagreement": max(0.0, v["disagreement"] - trial / asked), "trial": trial}
    now = {"G": round(known.clusters), "C": max(1, round(known.cycles)), "J": len(table.judges), "T": asked}
    random, power, agents = study.claims.judges == "any", study.inference.mde_power, len(table.agents)
    price = {"record": 0.0, "call": 1.0}
    best = dstudy(v, gap, price, agents, random=random, alpha=level, power=power, least=now,
                  most_clusters=max(MOST_CLUSTERS, now["G"]))  # fmt: skip
    return ClaimDesign(
        "ok",
        gap=gap,
        level=level,
        power=power,
        components=v,
        trials_known=any(one is not None for one in noise),
        now=now,
        power_now=design_power(v, gap, level, now, random),
        variance=dstudy_variance(v, **now, random=random),
        per_call=variance_per_cost(v, agents, price, random, **now),
        cheapest=best,
        more_calls=None if best is None else round(best.cost) - agents * math.prod(now.values()),
    )


def _gap(claim: Claim, measurements: Sequence[Measurement]) -> float | None:
    """The smallest difference that a claim rests on, in its direction; None where one is missing or not above 0."""
    high, *low = claim.subjects
    about = [
        item
        for item in measurements
        if item.name == "contrast"
        and item.labels["dimension"] == claim.dimension
        and {high, *low} <= {item.labels["high"], item.labels["low"]}
    ]
    gaps = [item.value if item.labels["high"] == high else None for item in about]
    known = [gap for gap in gaps if gap is not None and gap > 0]
    return min(known) if known and len(known) == len(gaps) else None


def _level_of(study: Study, found: Comparisons, claim: Claim) -> float:
    """The level at which one contrast of a leader, or a single pair at the first step, is tested."""
    share, dimensions = 1.0, len(found.names) - 1
    if dimensions > 1 and dimensions_claimed(study):
        share = study.inference.aggregate_share
        share = share if claim.dimension == AGGREGATE else (1 - share) / dimensions
    leader, pair = detectable_levels(len(found.agents), share * study.inference.alpha)
    return leader if len(claim.subjects) == 1 else pair


def design_lines(design: ClaimDesign, budget: int, *, withheld: bool) -> Iterator[str]:
    """The D-study in lines of at most 80 characters; the size of a difference that is withheld is not said."""
    if design.state != "ok":
        yield f"D-study: not computed: {design.state}."
        return
    gap = "the gap" if withheld else f"a gap of {design.gap:.2f}"
    yield f"D-study of this run: {gap}, tested at level {design.level:.2g}."
    yield f"  Now: {_sizes(design.now)}; power {design.power_now:.2f}."
    if design.cheapest is None:
        most = f"{MOST_JUDGES} judges, {MOST_TRIALS} trials, {MOST_CYCLES} cycles, {MOST_CLUSTERS} clusters"
        yield f"  No design up to {most} has power {design.power:g}."
    elif not design.more_calls:
        yield f"  That has power {design.power:g} for this gap: more calls are not what is missing."
    else:
        within = "" if design.more_calls <= budget else f", beyond the budget of {budget}"
        yield f"  Cheapest with power {design.power:g}: {design.more_calls} more calls{within}:"
        best = design.cheapest
        size = {"G": best.G, "C": best.C, "J": best.J, "T": best.T}
        yield f"    {_sizes(size)}; power {best.power:.2f}."
    yield f"  Variance of the gap: {design.variance:.2g}. One more call spent on each takes off"
    parts = {"judges": "J", "trials": "T", "cycles": "C", "clusters": "G"}
    gains = {name: -(design.per_call[key] or 0.0) for name, key in parts.items()}
    bought = [f"{name} {gain:.1e}" for name, gain in gains.items() if name != "trials" or design.trials_known]
    yield f"    {', '.join(bought)}{'' if design.trials_known else '; trials not measured'}."


def _sizes(size: Mapping[str, int]) -> str:
    words = {"J": "judge", "T": "trial", "C": "cycle", "G": "cluster"}
    judges, trials, cycles, clusters = (f"{size[key]} {word}{'s' * (size[key] > 1)}" for key, word in words.items())
    return f"{judges}, {trials}, {cycles} in each of {clusters}"
