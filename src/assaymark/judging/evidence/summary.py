"""The evidence ledger as measurements, and the arithmetic of stated forecasts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from assaymark.errors import NotMeasurableError
from assaymark.judging.evidence.context_index import Material
from assaymark.judging.evidence.rules import Reading
from assaymark.quantiles import t_quantile
from assaymark.records import Context, Decision, Evidence, EvidenceState, Measurement, sha256_text

# How much of the agreement with an asset's own row would have come about by chance.


ROW_RULES = frozenset(("row-labelled", "row-part-labelled", "row-unlabelled", "row-other-horizon"))
"""The rules under which a number is supported by a cell of its subject's own row."""

_UNSETTLED = frozenset(("unmatched", "partial-context", "one-cell-differs"))


@dataclass(frozen=True, slots=True)
class Chance:
    """Agreement of numbers with their subject's row: observed, expected by chance, and corrected for it.

    ``low`` and ``high`` are the 2.5 % and 97.5 % quantiles of agreement over the permutations.
    """

    observed: float
    chance: float
    corrected: float
    n: int
    permutations: int
    low: float
    high: float


def chance_corrected(
    evidence: Sequence[Evidence],
    materials: Mapping[str, Material],
    contexts: Mapping[str, str],
    *,
    rng: np.random.Generator,
    permutations: int = 200,
) -> Chance:
    """``(observed - chance) / (1 - chance)`` for numbers about instruments (season methodology v0.4, evidence).

    0 is what numbers of the same unit and precision would reach against somebody else's row, 1 is full agreement.
    Chance is the mean agreement after the subjects were permuted among the numbers of equal unit and decimals (and
    equal universe, so that every subject has a row). Taken are the numbers that a row supports and those that nothing
    settles; agreement here is with any cell of the row, whatever its label, which makes chance larger, not smaller.

    Raises
    ------
    NotMeasurableError
        No number qualifies, or chance agreement is complete.
    """
    rows = _qualified(evidence, materials, contexts)
    if not rows:
        raise NotMeasurableError("chance agreement is undefined: no number is about an instrument with facts")
    strata = defaultdict(list)
    for item, material in rows:
        strata[material.subjects.ids, item.unit, _decimals(item.quote)].append((item, material))
    observed = 0
    drawn = np.zeros(permutations)
    for key in sorted(strata, key=repr):
        agrees, own = _table(strata[key])
        index = np.arange(len(own))
        observed += int(agrees[index, own].sum())
        shuffled = rng.permuted(np.tile(own, (permutations, 1)), axis=1)
        drawn += agrees[index, shuffled].sum(axis=1)
    share, expected = observed / len(rows), float(drawn.mean()) / len(rows)
    if expected >= 1.0:
        raise NotMeasurableError("chance agreement is complete: every number agrees with every row")
    low, high = (float(q) / len(rows) for q in np.quantile(drawn, (0.025, 0.975)))
    return Chance(share, expected, (share - expected) / (1 - expected), len(rows), permutations, low, high)


def _qualified(
    evidence: Sequence[Evidence], materials: Mapping[str, Material], contexts: Mapping[str, str]
) -> list[tuple[Evidence, Material]]:
    """The numbers that a row supports, and those that nothing settles, with their material."""
    found = []
    for item in evidence:
        if item.rule not in ROW_RULES and item.rule not in _UNSETTLED:
            continue
        material = materials.get(contexts.get(item.decision, ""))
        row = -1 if material is None else material.subjects.rows.get(item.subject, -1)
        if material is not None and row >= 0 and material.cells.bounds[row] < material.cells.bounds[row + 1]:
            found.append((item, material))
    return found


def _decimals(quote: str) -> int:
    """Digits after the point of a printed number."""
    _, point, rest = quote.partition(".")
    digits = 0
    while point and digits < len(rest) and rest[digits] in "0123456789":
        digits += 1
    return digits


def _table(members: Sequence[tuple[Evidence, Material]]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Which number agrees with which row of its own material [n, instruments], and its own row [n]."""
    first = members[0][1]
    agrees = np.zeros((len(members), len(first.subjects.ids)), dtype=bool)
    own = np.array([material.subjects.rows[item.subject] for item, material in members], dtype=np.int64)
    groups: dict[int, list[int]] = defaultdict(list)
    for at, (_, material) in enumerate(members):
        groups[id(material)].append(at)
    for places in groups.values():
        agrees[places] = _agreement([members[at][0] for at in places], members[places[0]][1])
    return agrees, own


def _agreement(items: Sequence[Evidence], material: Material) -> NDArray[np.bool_]:
    """Agreement of each number with each row of one material, over any cell and with the printed sign."""
    cells = material.cells
    readings = [_reading(item) for item in items]
    rate = np.array([reading.as_rate for reading in readings])[:, None]
    size = np.array([reading.size for reading in readings])[:, None]
    half = np.array([reading.half for reading in readings])[:, None]
    sign = np.array([_sign(item.quote) for item in items])[:, None]
    stored = np.where(rate, cells.values.rate[None, :], cells.values.plain[None, :])
    plus, minus = np.abs(stored - size) <= half, np.abs(stored + size) <= half
    hits = np.where(sign > 0, plus, np.where(sign < 0, minus, plus | minus)) | ((plus | minus) & cells.depth[None, :])
    counts = np.concatenate([np.zeros((len(items), 1), dtype=np.int64), np.cumsum(hits, axis=1)], axis=1)
    totals: NDArray[np.bool_] = counts[:, cells.bounds[1:]] > counts[:, cells.bounds[:-1]]
    return totals


def _reading(item: Evidence) -> Reading:
    """The first reading of a ledgered number, from its record alone."""
    size = abs(item.number)
    digits = "".join(c for c in item.quote if c in "0123456789.").strip(".")
    printed = float(digits) if digits.count(".") <= 1 and digits else size
    step = (size / printed if printed else 1.0) * 10.0 ** -_decimals(item.quote)
    if item.unit == "percent":
        return Reading(True, size / 100, step / 100)
    if item.unit == "bps":
        return Reading(True, size / 1e4, step / 1e4)
    return Reading(False, size, step)


def _sign(quote: str) -> int:
    """The printed sign of a number: -1, 0 for none, 1."""
    head = quote[:4]
    return -1 if any(dash in head for dash in "-−–") else int("+" in head)


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
    """The measurements of a numeric ledger: states, support beyond chance, and records without any number."""
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
