"""The outside judge: when it is asked, about which pairs, and what it says (ValueBlindBench sections 3.5 and 5.2)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from assaymark.metrology.cells import measured
from assaymark.metrology.checks import Floats
from assaymark.metrology.contrasts import cluster_t
from assaymark.protocol import Study
from assaymark.records import JSON, Measurement

_TOLERANCE = 1e-9  # 0.9 from ranks is not always 0.9 in binary floats

Pair = tuple[str, str, str]
"""Dimension, the agent that stands higher with the whole panel, and the one that stands lower."""


@dataclass(frozen=True, slots=True)
class ProbePlan:
    """Whether the outside judge has to be asked, about which pairs, and why.

    ``pairs`` are all that some drop reverses or levels; ``rho`` is each family's smallest rank correlation over the
    claimed dimensions (None where it is undefined), reached on the dimension in ``worst``.
    """

    pairs: tuple[Pair, ...]
    rho: Mapping[str, float | None]
    needed: bool
    reason: str
    worst: Mapping[str, str] = field(default_factory=dict)


def contested(measurements: Iterable[Measurement], study: Study) -> ProbePlan:
    """What the outside judge has to look at, from the drops of the main panel.

    It is needed when leaving out some family brings the rank correlation on a claimed dimension below the plan's
    ``stability.rho``, or turns a contrast that the panel resolves: unresolved pairs are tied whatever the drops say.
    It then judges every pair that a drop reverses, also the unresolved ones, as its answer decides about tie classes.

    Parameters
    ----------
    measurements : of the main panel
        ``contrast``, ``lofo.contrast`` and ``lofo.rho`` are read.
    study : Study
        Claimed dimensions and ``stability.rho``.

    Returns
    -------
    ProbePlan

    Examples
    --------
    >>> from assaymark.protocol import parse_study
    >>> study = parse_study('name = "s"\\nseed = 1\\n[[judges]]\\nname = "j"\\nmodel = "m/x"\\nfamily = "f"')
    >>> contested([], study).reason
    'no judge family could be left out'
    """
    found = [m for m in measurements if _claimed(study, m.labels.get("dimension"))]
    resolved = {_pair(m) for m in found if m.name == "contrast" and m.detail.get("resolved")}
    drops = [m for m in found if m.name == "lofo.contrast" and m.value is not None]
    turned = tuple(dict.fromkeys(_pair(m) for m in drops if m.value is not None and m.value <= 0))
    rho: dict[str, float | None] = {m.labels["dropped"]: None for m in found if m.name == "lofo.rho"}
    worst: dict[str, str] = {}
    for m in found:
        if m.name == "lofo.rho" and m.value is not None:
            so_far = rho[m.labels["dropped"]]
            if so_far is None or m.value < so_far:
                rho[m.labels["dropped"]], worst[m.labels["dropped"]] = m.value, m.labels["dimension"]
    limit = study.stability.rho
    low = [
        f"without {name} rho is {r:.2g} on {worst[name]}"
        for name, r in rho.items()
        if r is not None and r < limit - _TOLERANCE
    ]
    lost = [
        f"{high} above {lower} on {dimension}"
        for dimension, high, lower in turned
        if (dimension, high, lower) in resolved
    ]
    if low:
        reason = f"{'; '.join(low)}: below {limit:g}"
    elif lost:
        reason = f"a drop reverses what the panel resolves: {'; '.join(lost)}"
    elif not drops and not worst:
        reason = "no judge family could be left out"
    else:
        reason = f"no drop brings rho below {limit:g} or reverses a resolved contrast"
    return ProbePlan(turned, rho, bool(low or lost), reason, worst)


def _claimed(study: Study, dimension: str | None) -> bool:
    return dimension is not None and (study.claims.dimensions is None or dimension in study.claims.dimensions)


def _pair(m: Measurement) -> Pair:
    return m.labels["dimension"], m.labels["high"], m.labels["low"]


def probe_measurements(
    plan: ProbePlan,
    scores: Mapping[str, Mapping[str, float]],
    agents: Mapping[str, str],
    cycles: Mapping[str, str],
    clusters: Mapping[str, str],
    study: Study,
) -> Iterator[Measurement]:
    """What the outside judge says about the contested pairs.

    The difference is in the panel's direction: positive confirms it, an interval that contains 0 makes the pair a tie,
    one below 0 contradicts the panel. One common cluster gives no interval.

    Parameters
    ----------
    plan : ProbePlan
        From `contested`.
    scores : mapping of trajectory to mapping of dimension to score
        The outside judge's scores (means over its trials), the aggregate among them; empty before it was asked.
    agents, cycles, clusters : mapping of trajectory to name
        For every trajectory in ``scores``.
    study : Study
        Names the outside judge, and the level of the intervals.

    Yields
    ------
    Measurement
        ``probe.state`` always; ``probe.contrast`` for each contested pair once the judge was asked.
    """
    judge = study.stability.probe
    state = _state(plan, study, bool(scores))
    yield Measurement(
        name="probe.state",
        labels={},
        value=float(len(plan.pairs)) if state == "ok" else None,
        n=len(scores),
        n_of="trajectories",
        method="pairs that some drop reverses or levels",
        state=state,
        detail={"pairs": [list(pair) for pair in plan.pairs], "rho": dict(plan.rho), "reason": plan.reason},
    )
    if state != "ok" or judge is None:
        return
    for dimension, high, low in plan.pairs:
        sides = [_by_cycle(scores, agents, cycles, dimension, agent) for agent in (high, low)]
        common = sorted(sides[0].keys() & sides[1].keys())
        where = {cycles[key]: clusters[key] for key in scores}
        gaps = np.array([sides[0][cycle] - sides[1][cycle] for cycle in common])
        groups = [where[cycle] for cycle in common]
        found = cluster_t(gaps, groups, level=study.inference.level) if common else None
        detail: dict[str, JSON] = {"p": found.p if found else None, "judge": judge.name, "family": judge.family}
        detail["cluster_sums"] = _cluster_sums(gaps, groups)
        yield measured(
            "probe.contrast",
            {"dimension": dimension, "high": high, "low": low},
            found,
            study,
            method="mean paired difference within common cycles, outside judge",
            state="never compared",
            n=len(common),
            n_of="common cycles",
            detail=detail,
        )


def _state(plan: ProbePlan, study: Study, asked: bool) -> str:
    if not plan.needed:
        return f"not needed: {plan.reason}"
    if study.stability.probe is None:
        return f"not committed: the plan names no outside judge, and {plan.reason}"
    return "ok" if asked else f"not measured: {study.stability.probe.name} has given no usable score"


def _by_cycle(
    scores: Mapping[str, Mapping[str, float]],
    agents: Mapping[str, str],
    cycles: Mapping[str, str],
    dimension: str,
    agent: str,
) -> dict[str, float]:
    """One agent's mean score of each cycle on one dimension."""
    found: dict[str, list[float]] = defaultdict(list)
    for key in sorted(scores):
        if agents[key] == agent and dimension in scores[key]:
            found[cycles[key]].append(scores[key][dimension])
    return {cycle: float(np.mean(values)) for cycle, values in found.items()}


def _cluster_sums(gaps: Floats, groups: Sequence[str]) -> dict[str, JSON]:
    names, codes = np.unique(groups, return_inverse=True)
    sums, counts = np.bincount(codes, weights=gaps), np.bincount(codes)
    return {str(name): [float(s), int(n)] for name, s, n in zip(names, sums, counts, strict=True)}
