"""The evidence ledger as measurements, and the arithmetic of stated forecasts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import get_args

import numpy as np

from assaymark.errors import NotMeasurableError
from assaymark.judging.evidence.chance import chance_corrected
from assaymark.judging.evidence.material import Material
from assaymark.quantiles import t_quantile
from assaymark.records import Context, Decision, Evidence, EvidenceState, Measurement, sha256_text

STATES: tuple[EvidenceState, ...] = get_args(EvidenceState)
FORECAST_TOLERANCE = 0.01
"""Percentage points within which a stated portfolio forecast equals the weighted sum of its parts.

Forecasts are stated to hundredths of a point, rounded or cut; a difference of more than one hundredth is neither.
"""

_FLOAT_SLACK = 1e-9
_SHARE_METHOD = "share; interval: linearised over clusters, t with clusters - 1 degrees of freedom"
_CHANCE_METHOD = "(observed - chance) / (1 - chance); subjects permuted within unit and decimals; interval: none"


def evidence_summary(
    evidence: Sequence[Evidence],
    decisions: Sequence[Decision],
    contexts: Mapping[str, Context] | Mapping[str, Material] | None = None,
    *,
    rng: np.random.Generator,
    level: float = 0.95,
    permutations: int = 200,
) -> tuple[Measurement, ...]:
    """The measurements of a numeric ledger: states, support beyond chance, and records without any number.

    Parameters
    ----------
    evidence : sequence of Evidence
        The ledger of ``decisions``; evidence of other decisions is left out.
    decisions : sequence of Decision
        All that were ledgered, those without a number included.
    contexts : mapping of context id to Context or Material, optional
        Needed to correct support for chance; without it that row says so.
    rng : numpy Generator
        Draws the permutations.
    level : float
        Of the intervals, in (0, 1). Shares of 0 and 1 have none: the clusters do not vary.
    permutations : int
        How many to draw.

    Returns
    -------
    tuple of Measurement
        ``evidence.share`` for each state, overall and then by agent; ``evidence.no_number_share`` likewise;
        ``evidence.chance_corrected``. Shares lie in [0, 1].
    """
    known = {decision.record_id: decision for decision in decisions}
    ledger = sorted((e for e in evidence if e.decision in known), key=lambda e: (e.decision, e.part, e.start))
    inputs = _hash(ledger, decisions)
    agents = sorted({decision.agent.id for decision in decisions})
    rows: list[Measurement] = []
    for agent in (None, *agents):
        own = [decision for decision in decisions if agent is None or decision.agent.id == agent]
        rows += _of_agent(ledger, own, agent, level, inputs)
    rows.append(_chance(ledger, known, contexts, rng, permutations, inputs))
    return tuple(rows)


def _of_agent(
    ledger: Sequence[Evidence], decisions: Sequence[Decision], agent: str | None, level: float, inputs: str
) -> list[Measurement]:
    """The shares of one agent, or of all."""
    labels = {} if agent is None else {"agent": agent}
    cluster_of = {decision.record_id: decision.cluster for decision in decisions}
    numbers = [item for item in ledger if item.decision in cluster_of]
    told = {item.decision for item in numbers}
    totals = Counter(cluster_of[item.decision] for item in numbers)
    by_state: dict[str, Counter[str]] = defaultdict(Counter)
    for item in numbers:
        by_state[item.state][cluster_of[item.decision]] += 1
    rows = [
        _share("evidence.share", {"state": state, **labels}, by_state[state], totals, "numbers", level, inputs)
        for state in STATES
    ]
    silent = Counter(decision.cluster for decision in decisions if decision.record_id not in told)
    everyone = Counter(decision.cluster for decision in decisions)
    return [*rows, _share("evidence.no_number_share", labels, silent, everyone, "records", level, inputs)]


def _share(
    name: str,
    labels: Mapping[str, str],
    hits: Mapping[str, int],
    totals: Mapping[str, int],
    n_of: str,
    level: float,
    inputs: str,
) -> Measurement:
    """One share with its cluster interval."""
    n, count = sum(totals.values()), sum(hits.values())
    if n == 0:
        return Measurement(
            name=name, labels=labels, value=None, n=0, n_of=n_of, method=_SHARE_METHOD,
            state=f"undefined: no {n_of}", inputs=inputs, detail={"count": 0},
        )  # fmt: skip
    clusters = sorted(totals)
    interval = _interval([hits.get(c, 0) for c in clusters], [totals[c] for c in clusters], level)
    return Measurement(
        name=name,
        labels=labels,
        value=count / n,
        n=n,
        n_of=n_of,
        method=_SHARE_METHOD,
        low=interval[0] if interval else None,
        high=interval[1] if interval else None,
        level=level if interval else None,
        unit="share",
        inputs=inputs,
        detail={"count": count, "clusters": len(clusters)},
    )


def _interval(hits: Sequence[int], totals: Sequence[int], level: float) -> tuple[float, float] | None:
    """Cluster interval of a ratio of sums; None where the clusters show no spread to make one from."""
    groups, n = len(totals), sum(totals)
    share = sum(hits) / n
    if groups < 2 or share in (0.0, 1.0):
        return None
    residuals = np.asarray(hits, dtype=np.float64) - share * np.asarray(totals, dtype=np.float64)
    error = float(np.sqrt(groups / (groups - 1) * np.square(residuals).sum())) / n
    reach = t_quantile(0.5 + level / 2, groups - 1) * error
    return max(0.0, share - reach), min(1.0, share + reach)


def _chance(
    ledger: Sequence[Evidence],
    known: Mapping[str, Decision],
    contexts: Mapping[str, Context] | Mapping[str, Material] | None,
    rng: np.random.Generator,
    permutations: int,
    inputs: str,
) -> Measurement:
    """Support by an asset's own row, corrected for chance."""
    try:
        if contexts is None:
            raise NotMeasurableError("contexts are needed to permute rows (got none)")
        materials = {name: _material(contexts[name]) for name in sorted(contexts)}
        context_of = {name: decision.context_id for name, decision in known.items()}
        found = chance_corrected(ledger, materials, context_of, rng=rng, permutations=permutations)
    except NotMeasurableError as exc:
        return Measurement(
            name="evidence.chance_corrected", labels={}, value=None, n=0, n_of="numbers", method=_CHANCE_METHOD,
            state=f"undefined: {exc}", inputs=inputs,
        )  # fmt: skip
    return Measurement(
        name="evidence.chance_corrected",
        labels={},
        value=found.corrected,
        n=found.n,
        n_of="numbers",
        method=_CHANCE_METHOD,
        unit="share beyond chance",
        inputs=inputs,
        detail={
            "observed": found.observed,
            "chance": found.chance,
            "permutations": found.permutations,
            "chance_low": found.low,
            "chance_high": found.high,
        },
    )


def _material(one: Context | Material) -> Material:
    return one if isinstance(one, Material) else Material.of(one)


def _hash(ledger: Sequence[Evidence], decisions: Sequence[Decision]) -> str:
    """sha256 over what the shares are computed from."""
    lines = [f"{item.decision}\t{item.part}\t{item.start}\t{item.state}\t{item.rule}" for item in ledger]
    lines += sorted(f"{decision.record_id}\t{decision.agent.id}\t{decision.cluster}" for decision in decisions)
    return sha256_text("\n".join(lines))


# --- stated forecasts -----------------------------------------------------------------------------------------------


def forecast_mismatches(decisions: Sequence[Decision], *, tolerance: float = FORECAST_TOLERANCE) -> Measurement:
    """The share of stated portfolio forecasts that differ from the weighted sum of their parts.

    A decision counts when ``stages["forecast"]`` states ``portfolio_pct`` and, under ``holdings``, a forecast for
    every instrument that an action gives a weight. A sum is taken to agree within ``tolerance``, one hundredth of a
    percentage point by default: that is what rounding or cutting to the two decimals of the format can do.

    Parameters
    ----------
    decisions : sequence of Decision
        Those without a forecast are passed over.
    tolerance : float
        Percentage points.

    Returns
    -------
    Measurement
        ``forecast.mismatch``; ``detail`` holds the count, the tolerance and the records that differ.
    """
    gaps = {d.record_id: gap for d in decisions if (gap := _gap(d)) is not None}
    differing = sorted(name for name, gap in gaps.items() if abs(gap) > tolerance + _FLOAT_SLACK)
    method = f"stated portfolio forecast against the weighted sum of its parts, tolerance {tolerance:g} points"
    if not gaps:
        return Measurement(
            name="forecast.mismatch", labels={}, value=None, n=0, n_of="forecasts", method=method,
            state="undefined: no forecast was stated with its parts", detail={"count": 0, "tolerance": tolerance},
        )  # fmt: skip
    return Measurement(
        name="forecast.mismatch",
        labels={},
        value=len(differing) / len(gaps),
        n=len(gaps),
        n_of="forecasts",
        method=method,
        unit="share",
        inputs=sha256_text("\n".join(f"{name}\t{gaps[name]!r}" for name in sorted(gaps))),
        detail={"count": len(differing), "tolerance": tolerance, "records": differing},
    )


def _gap(decision: Decision) -> float | None:
    """Stated forecast minus the weighted sum of the holdings' forecasts, in points; None if it cannot be formed."""
    stage = decision.stages.get("forecast")
    if not isinstance(stage, Mapping) or not isinstance(stage.get("holdings"), Mapping):
        return None
    weights = {a.instrument: a.weight for a in decision.actions if a.weight is not None}
    stated = _number(stage.get("portfolio_pct"))
    parts = {name: _number(stage["holdings"].get(name)) for name in weights}
    known = {name: part for name, part in parts.items() if part is not None}
    if stated is None or not weights or len(known) < len(parts):
        return None
    return stated - sum(weights[name] * part for name, part in known.items())


def _number(value: object) -> float | None:
    """A finite number as a float, or None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not np.isfinite(value):
        return None
    return float(value)
