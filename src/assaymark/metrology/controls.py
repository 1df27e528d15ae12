"""Control cells: what the panel does with records whose right treatment is known (ValueBlindBench sections 3.5, 5.5).

A cell is held against the honest records. Verbose-but-wrong records (cell A, and red-team cells) must fall below the
honest first quartile; terse-but-correct ones (cell B) must stay near the honest mean; a paraphrase must score like the
record it was made from, and a record with one number changed must score lower than it. Each gate is also computed
without the judges of the family that wrote the cell (halo) and without each judge family (drops).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from assaymark.errors import NotMeasurableError
from assaymark.metrology import checks
from assaymark.metrology.checks import Floats, Ints
from assaymark.metrology.comparisons import natural
from assaymark.metrology.contrasts import Contrast, Tested, contrast_of, holm, t_test
from assaymark.metrology.control_agreement import cell_agreement
from assaymark.metrology.design import planning_mde
from assaymark.metrology.effects import group_sums
from assaymark.metrology.measure_kappa import ONE_FAMILY
from assaymark.metrology.measure_panel import agreement_measurements
from assaymark.metrology.panel import panel_of
from assaymark.metrology.scores import ScoreTable
from assaymark.metrology.stability import averaging, drops_of, gated
from assaymark.protocol import Cells, Study
from assaymark.records import JSON, DerivationKind, Measurement

# The rules of the control cells: what a cell's number says, at the plan's cut-offs (ValueBlindBench section 3.5).


TerseOutcome = Literal["substance", "verbosity-bias", "inconclusive", "terse-favoured"]
CellOutcome = Literal[
    TerseOutcome, "passed", "failed", "invariant", "style-sensitive", "noticed", "not noticed", "not tested"
]

TOLERANCE: Final = 1e-9
"""Slack of every gate: (0.3 + 0.4 + 0.5) / 3 is below 0.4 in binary floating point, and must publish."""

FALLING: Final = ("cell_a", "red_team", "fact_flip")
"""Cells that have to score lower: their test is one-sided, at the plan's ``cells.alpha``."""

SUBSTANCE: Final = 0.3
VERBOSITY: Final = 0.5


def cell_b_outcome(
    delta: float, significant: bool, *, substance: float = SUBSTANCE, verbosity: float = VERBOSITY
) -> TerseOutcome:
    """What the terse-but-correct control says about the rubric (ValueBlindBench section 3.5)."""
    if math.isnan(delta):
        raise NotMeasurableError("the outcome of cell B is undefined: its difference from honest records is NaN")
    if abs(delta) <= substance + TOLERANCE:
        return "substance"
    if delta > 0:
        return "terse-favoured"
    return "verbosity-bias" if delta < -verbosity - TOLERANCE and significant else "inconclusive"


def cell_outcome(
    cell: str, value: float, p: float, p_holm: float, *, flat: bool, cells: Cells, alpha: float
) -> CellOutcome:
    """What the rule of a control cell says of its number (ValueBlindBench section 3.5)."""
    if cell in FALLING:
        if p < cells.alpha:
            return "noticed" if cell == "fact_flip" else "passed"
        if flat and value < 0:
            return "not tested"
        return "not noticed" if cell == "fact_flip" else "failed"
    if cell == "cell_b":
        return cell_b_outcome(value, p_holm <= alpha, substance=cells.substance, verbosity=cells.verbosity)
    if abs(value) <= cells.substance + TOLERANCE:
        return "invariant"
    return "style-sensitive" if p_holm <= alpha else "inconclusive"


POINTS: Final = "rubric points"
PAIRED: Final = ("paraphrase", "fact_flip", "length_matched")
"""Cells whose records are each held against the honest record they were made from."""

GATED: Final = ("cell_a", "cell_b", "paraphrase", "fact_flip", "length_matched", "red_team")
"""Cells with a rule. Ladders and vacuum records have none here: only their scores are reported."""

_ONE_CLUSTER = "undefined: one cluster cannot be tested, needs two"
_NO_SCORES = "not measurable: no trajectory has a usable score from every judge"


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """One control cell as the judges scored it.

    ``parents`` (the honest record each was made from, or None) and ``composers`` (the family of the model that wrote
    it) are in the order of ``table.trajectories``.
    """

    kind: DerivationKind
    table: ScoreTable
    parents: tuple[str | None, ...]
    composers: tuple[str, ...]

    def __post_init__(self) -> None:
        for name, given in (("parents", self.parents), ("composers", self.composers)):
            if len(given) != self.table.n:
                checks.fail("Cell", name, f"must have one entry for each of {self.table.n} records (got {len(given)})")
        if self.kind == "honest":
            checks.fail("Cell", "kind", "honest records are what a cell is held against, not a cell")


# --- the rules ------------------------------------------------------------------------------------------------------


def _outcome(held: _Held, column: int, p_holm: float, study: Study) -> CellOutcome:
    """The outcome of the gate whose number and test are in one column."""
    kind, number, p = held.cell.kind, float(held.tested.difference[column]), float(held.p[column])
    if held.state:
        return "inconclusive" if held.state == _ONE_CLUSTER and kind not in FALLING else "not tested"
    # All clusters fall alike: the sign test that is left cannot reach alpha with so few of them.
    flat = bool(np.isnan(held.tested.low[column]))
    return cell_outcome(kind, number, p, p_holm, flat=flat, cells=study.cells, alpha=study.inference.alpha)


def _cutoff(kind: str, study: Study) -> str:
    """The rule of a gate in words."""
    cells, alpha = study.cells, f"at {study.inference.alpha:g} after Holm over all cell gates"
    if kind == "fact_flip":
        return f"noticed if below the unchanged record at one-sided p < {cells.alpha:g}"
    if kind in FALLING:
        return f"passed if below the honest first quartile at one-sided p < {cells.alpha:g}"
    if kind == "cell_b":
        return (
            f"substance within {cells.substance:g} of honest records; verbosity-bias more than {cells.verbosity:g} "
            f"below and significant {alpha}; terse-favoured more than {cells.substance:g} above"
        )
    return f"invariant within {cells.substance:g} of the original; beyond it style-sensitive if significant {alpha}"


# --- one cell held against the honest records -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Honest:
    """Honest panel scores [V, n, K] of every variant: the whole panel, then without each judge family."""

    table: ScoreTable
    drops: Mapping[str, list[int]]
    scores: Floats

    @classmethod
    def of(cls, table: ScoreTable) -> _Honest:
        try:
            drops = drops_of(table.families)
        except NotMeasurableError:
            drops = {}
        return cls(table, drops, _variants(table, drops))

    def seen(self, variant: Ints, which: str) -> float | None:
        """Mean or first quartile of the aggregate under the judges of each record, averaged over records."""
        if not self.table.n or not variant.size:
            return None
        found = self.scores[:, :, 0].mean(axis=1) if which == "mean" else self.quartile
        return float(found[variant].mean())

    @property
    def quartile(self) -> Floats:
        """First quartile of the aggregate under every variant."""
        return np.asarray(np.quantile(self.scores[:, :, 0], 0.25, axis=1))


@dataclass(frozen=True, slots=True, eq=False)
class _Held:
    """A cell's aggregate minus what it is held against, summed by cluster and tested.

    Columns of ``tested``, ``p`` and ``sums`` [G, V + 2] are the variants, then each record without the judges of its
    composer's family, then the whole panel minus that: the halo. ``own`` [n] is the variant without a record's own
    family, 0 where no judge shares it. ``rows`` are the records that can be compared.
    """

    cell: Cell
    scores: Floats
    rows: Ints
    own: Ints
    family: str | None
    state: str | None
    method: str
    clusters: tuple[str, ...]
    counts: Ints
    sums: Floats
    tested: Tested
    p: Floats

    def triggered(self, study: Study) -> bool:
        """Whether the composer's own judges move the gate number so far that it is primary without them."""
        measured = self.family is not None and self.state in (None, _ONE_CLUSTER)
        return measured and abs(float(self.tested.difference[-1])) >= study.cells.halo - TOLERANCE

    def primary(self, study: Study) -> tuple[int, Ints, str]:
        """Column of the gate, variant of each record, and the words for it."""
        if self.cell.kind in GATED and self.triggered(study):
            return self.sums.shape[1] - 2, self.own, f"without {self.family}"
        return 0, np.zeros_like(self.own), "panel"

    def chosen(self, study: Study) -> Floats:
        """The cell's primary panel scores [n, K]."""
        return np.asarray(self.scores[self.primary(study)[1], np.arange(self.cell.table.n)])


def _variants(table: ScoreTable, drops: Mapping[str, list[int]]) -> Floats:
    """Panel scores [V, n, K] of the whole panel and without each family."""
    stacked = table.stacked
    return np.stack([stacked.mean(axis=1), *(stacked[:, keep].mean(axis=1) for keep in drops.values())])


def _hold(cell: Cell, honest: _Honest, study: Study) -> _Held:
    """Differences of one cell from what its kind is held against, under every variant of the panel."""
    table = cell.table
    scores = _variants(table, honest.drops)
    place = {family: v for v, family in enumerate(honest.drops, start=1)}
    own = np.array([place.get(family, 0) for family in cell.composers], dtype=np.int64)
    rows, base, method = _reference(cell, honest)
    gaps = scores[:, rows, 0] - base
    without = gaps[own[rows], np.arange(rows.size)]
    codes, at = np.unique(table.cluster[rows], return_inverse=True)
    counts = np.bincount(at, minlength=codes.size)
    sums = group_sums(np.column_stack([gaps.T, without, gaps[0] - without]), at, codes.size)
    state = _state(honest.table.n, table.n, rows.size, codes.size)
    blank = np.full(sums.shape[1], np.nan)
    tested = Tested(np.zeros_like(blank), np.ones_like(blank), blank, blank, 0, ("",) * blank.size)
    if state in (None, _ONE_CLUSTER):
        tested = t_test(sums, counts, level=study.inference.level)
    falls = cell.kind in FALLING
    return _Held(
        cell=cell,
        scores=scores,
        rows=rows,
        own=own,
        family=", ".join(sorted(set(cell.composers) & set(table.families))) or None,
        state=state,
        method=method,
        clusters=tuple(table.clusters[c] for c in codes),
        counts=counts,
        sums=sums,
        tested=tested,
        p=np.where(tested.difference < 0, tested.p / 2, 1 - tested.p / 2) if falls else tested.p,
    )


def _state(honest: int, scored: int, compared: int, clusters: int) -> str | None:
    """Why the gate of a cell has no number, or None."""
    if not honest:
        return "not measurable: no honest trajectory has a usable score from every judge"
    if not scored:
        return _NO_SCORES
    if not compared:
        return "not measurable: no record of the cell was made from an honest record that was scored"
    return _ONE_CLUSTER if clusters < 2 else None


def _reference(cell: Cell, honest: _Honest) -> tuple[Ints, Floats, str]:
    """Records of the cell that can be compared [m], what each is held against [V, m], and how that reads."""
    table, scores, everything = cell.table, honest.scores[:, :, 0], np.arange(cell.table.n)
    if cell.kind in PAIRED:
        place = {key: row for row, key in enumerate(honest.table.trajectories)}
        found = np.array([place.get(parent or "", -1) for parent in cell.parents], dtype=np.int64)
        rows = np.flatnonzero(found >= 0)
        return rows, scores[:, found[rows]], "mean paired difference from the honest record it was made from"
    if not honest.table.n:
        return everything, np.zeros((scores.shape[0], table.n)), "difference from honest records"
    if cell.kind == "cell_b":
        base, alone = _matched(scores.T, honest.table, table)
        method = "mean difference from the honest mean of the same cluster"
        return everything, base.T, f"{method} ({alone} without one: from the mean of all)" if alone else method
    base = np.repeat(honest.quartile[:, None], table.n, axis=1)
    return everything, base, "mean difference from the honest first quartile"


def _matched(reference: Floats, table: ScoreTable, onto: ScoreTable) -> tuple[Floats, int]:
    """For each record of ``onto`` the mean of ``reference`` [n, K] in its cluster, and how many found none there."""
    counts = np.bincount(table.cluster, minlength=len(table.clusters))
    sums = group_sums(reference, table.cluster, len(table.clusters))
    means = np.concatenate([sums / np.maximum(counts, 1)[:, None], reference.mean(axis=0, keepdims=True)])
    place = {name: g for g, name in enumerate(table.clusters) if counts[g]}
    where = np.array([place.get(name, -1) for name in onto.clusters], dtype=np.int64)[onto.cluster]
    return means[where], int((where < 0).sum())


# --- measurements ---------------------------------------------------------------------------------------------------


def cell_measurements(
    honest: ScoreTable, cells: Sequence[Cell], study: Study, *, rng: np.random.Generator | None = None
) -> Iterator[Measurement]:
    """Scores, agreement, gate, halo and drops of every control cell (ValueBlindBench sections 3.5 and 5.5)."""
    _check(honest, cells)
    if not cells:
        return
    honest, cells = averaged_alike(honest, cells, study)
    rng = np.random.default_rng(study.seed) if rng is None else rng
    panel = _Honest.of(honest)
    held = [_hold(cell, panel, study) for cell in cells]
    ruled = [one for one in held if one.cell.kind in GATED]
    # Each set of judges has its own Holm family: the primary ones, and all without one family.
    adjusted = _adjusted(ruled, [one.primary(study)[0] for one in ruled])
    dropped = {family: _adjusted(ruled, [v] * len(ruled)) for v, family in enumerate(panel.drops, start=1)}
    # The plan's minimum detectable effect of an aggregate contrast between two honest agents.
    present = np.zeros((len(honest.agents), len(honest.cycles)))
    present[honest.agent, honest.cycle] = 1
    common = (present @ present.T)[np.triu_indices(len(honest.agents), 1)]
    mde = planning_mde(study, int(np.median(common[common > 0])), common.size) if common.any() else None
    yield from _summaries("cell.honest", honest, panel.scores[0], panel, study, {})
    for one in held:
        chosen, words = one.chosen(study), one.primary(study)[2]
        more: dict[str, JSON] = {"primary": words, "values": np.sort(np.round(chosen[:, 0], 4)).tolist()}
        yield from _summaries("cell.score", one.cell.table, chosen, panel, study, more, cell=one.cell.kind)
        if one not in ruled:
            continue
        # Agreement inside the cell, exactly as it is measured on honest records.
        for found in agreement_measurements(panel_of(one.cell.table, study), rng):
            if found.name == "kappa.mean_pairwise" and "format" not in found.labels:
                method = f"{found.method}; undefined by design: all texts deserve the same score"
                yield replace(found, name="cell.kappa", labels={**found.labels, "cell": one.cell.kind}, method=method)
        yield _gate(one, panel, study, adjusted[one.cell.kind], mde)
        yield _halo(one, panel, study)
        yield _agreement(one, honest, study, adjusted[one.cell.kind])
        for family in dict.fromkeys(honest.families):
            yield _drop(one, panel, study, family, dropped.get(family, {}))
    yield from _separation({one.cell.kind: one for one in held}, honest, study)


def averaged_alike(honest: ScoreTable, cells: Sequence[Cell], study: Study) -> tuple[ScoreTable, list[Cell]]:
    """Honest table and cells with those judges' trials averaged whom the honest records allow it (section 3.4)."""
    decided = averaging(honest, study)
    return gated(honest, study, decided), [replace(cell, table=gated(cell.table, study, decided)) for cell in cells]


def _check(honest: ScoreTable, cells: Sequence[Cell]) -> None:
    kinds = [cell.kind for cell in cells]
    if len(set(kinds)) < len(kinds):
        checks.fail("cell_measurements", "cells", f"at most one of each kind (got {', '.join(sorted(kinds))})")
    for cell in cells:
        # A table without usable scores does not know its dimensions.
        same = cell.table.names == honest.names or not (cell.table.n and honest.n)
        if not same or (cell.table.judges, cell.table.families) != (honest.judges, honest.families):
            checks.fail("cell_measurements", cell.kind, "must have the judges and dimensions of the honest records")


def _adjusted(ruled: Sequence[_Held], columns: Sequence[int]) -> dict[str, float]:
    """Holm-adjusted p by kind; what could not be tested holds its place with 1."""
    p = [1.0 if one.state else float(one.p[column]) for one, column in zip(ruled, columns, strict=True)]
    return dict(zip([one.cell.kind for one in ruled], holm(p).tolist(), strict=True)) if p else {}


def measured(
    name: str, labels: dict[str, str], found: Contrast | None, study: Study, *, method: str, state: str, **parts: Any
) -> Measurement:
    """A number in rubric points with the interval of its test, or, without one, the state that says why."""
    return Measurement(
        name=name,
        labels=labels,
        value=found.difference if found else None,
        method=f"{method}; {found.method}" if found else method,
        state="ok" if found else state,
        low=found.low if found else None,
        high=found.high if found else None,
        level=study.inference.level if found and found.low is not None else None,
        unit=POINTS,
        **parts,
    )


def _summaries(
    name: str, table: ScoreTable, scores: Floats, panel: _Honest, study: Study, detail: dict[str, JSON], **labels: str
) -> Iterator[Measurement]:
    """Mean, quartiles and interval of panel scores [n, K] under each name; single values of the aggregate alone."""
    codes, at = np.unique(table.cluster, return_inverse=True)
    method = "mean panel score, quartiles by linear interpolation"
    if table.n:
        tested = t_test(group_sums(scores, at, codes.size), np.bincount(at), level=study.inference.level)
        quartiles = np.quantile(scores, (0.25, 0.5, 0.75), axis=0).T.tolist()
    for k, dimension in enumerate(panel.table.names):
        more = {**detail, "clusters": int(codes.size)}
        more |= dict(zip(("q1", "median", "q3"), quartiles[k], strict=True)) if table.n else {}
        if k:
            more.pop("values", None)
        found = contrast_of(tested, k, n=table.n) if table.n else None
        parts: dict[str, Any] = {"n": table.n, "n_of": "trajectories", "inputs": table.digest, "detail": more}
        yield measured(name, {**labels, "dimension": dimension}, found, study, method=method, state=_NO_SCORES, **parts)


def _agreement(held: _Held, honest: ScoreTable, study: Study, p_holm: float) -> Measurement:
    """Whether every judge family sees what the cell's sentence says, and kappa over the cell and honest records."""
    cell = held.cell
    scores, reference = cell.table.stacked[held.rows, :, 0], honest.stacked[..., 0]
    codes = {name: g for g, name in enumerate(sorted({*honest.clusters, *cell.table.clusters}, key=natural))}
    where = [codes[cell.table.clusters[g]] for g in cell.table.cluster[held.rows]]
    against = np.array([codes[honest.clusters[g]] for g in honest.cluster], dtype=np.int64)
    if cell.kind in PAIRED:
        place = {key: row for row, key in enumerate(honest.trajectories)}
        parents = [place[parent] for row in held.rows if (parent := cell.parents[row]) in place]
        reference, against = reference[parents], against[parents]
    line = np.argsort(against, kind="stable")  # a jackknife over time numbers the clusters as they come
    reference, against = reference[line], against[line]
    labels = {"cell": cell.kind}
    method = "each judge family's own difference from honest records, one-sided, jackknife over clusters"
    common: dict[str, Any] = {"n": held.rows.size, "n_of": "trajectories", "method": method}
    if held.state or len(set(honest.families)) < 2:
        state = held.state or ONE_FAMILY
        return Measurement(name="cell.agreement", labels=labels, value=None, state=state, **common)
    tests = [
        cell_agreement(flip + sign * scores, where, flip + sign * reference, against, honest.families,
                       threshold=threshold, quantile=quantile, alpha=alpha,
                       consecutive=study.inference.order_of(honest.clusters) == "consecutive")
        for sign, flip, threshold, quantile, alpha in _asked(held, study, p_holm)
    ]  # fmt: skip
    unanimous, left_out = all(one.unanimous for one in tests), all(one.leave_one_out for one in tests)
    kappa = tests[0].pooled_kappa
    gates = study.gates
    status = "halt"
    if kappa is not None and unanimous and kappa >= gates.publish - TOLERANCE:
        status = "publish"
    elif kappa is not None and left_out and kappa >= gates.halt - TOLERANCE:
        status = "methodology"
    return Measurement(
        name="cell.agreement",
        labels=labels,
        value=kappa,
        state="ok" if kappa is not None else "undefined: two judge families gave one rating each",
        detail={
            "status": status,
            "unanimous": unanimous,
            "leave_one_out": left_out,
            "each": {family: tests[0].each[family].delta for family in tests[0].each},
            "p": {family: max(one.each[family].p for one in tests) for family in tests[0].each},
        },
        **common,
    )


def _asked(held: _Held, study: Study, p_holm: float) -> list[tuple[float, float, float, float | None, float]]:
    """What every family has to show: (sign, flip, threshold below, quantile, level); scores are flipped for "above"."""
    kind, cells, alpha = held.cell.kind, study.cells, study.inference.alpha
    below, above = (1.0, 0.0), (-1.0, 6.0)
    if kind in FALLING:
        return [(*below, 0.0, None if kind == "fact_flip" else 0.25, cells.alpha)]
    outcome = _outcome(held, held.primary(study)[0], p_holm, study)
    if outcome in ("substance", "invariant"):
        return [(*side, -cells.substance, None, alpha) for side in (below, above)]
    if outcome == "terse-favoured" or (outcome == "style-sensitive" and held.tested.difference[0] > 0):
        return [(*above, cells.substance, None, alpha)]
    threshold = cells.verbosity if kind == "cell_b" else cells.substance
    return [(*below, threshold, None, alpha)]


def _number(
    name: str, held: _Held, panel: _Honest, study: Study, column: int, detail: dict[str, JSON], **labels: str
) -> Measurement:
    """One column of a cell's differences as a measurement."""
    found = None if held.state else contrast_of(held.tested, column, n=held.rows.size)
    inputs, where = f"{panel.table.digest}+{held.cell.table.digest}", {"cell": held.cell.kind, **labels}
    parts: dict[str, Any] = {"n": held.rows.size, "n_of": "trajectories", "inputs": inputs, "detail": detail}
    return measured(name, where, found, study, method=held.method, state=held.state or "ok", **parts)


def _decided(held: _Held, column: int, p_holm: float, study: Study) -> dict[str, JSON]:
    return {
        "outcome": _outcome(held, column, p_holm, study),
        "p": None if held.state else float(held.p[column]),
        "p_holm": None if held.state else p_holm,
    }


def _gate(held: _Held, panel: _Honest, study: Study, p_holm: float, mde: float | None) -> Measurement:
    """The rule's number of one cell under its primary judges."""
    column, variant, words = held.primary(study)
    number = float(held.tested.difference[column])
    sums = zip(held.clusters, held.sums[:, column].tolist(), held.counts.tolist(), strict=True)
    detail = _decided(held, column, p_holm, study)
    detail |= {
        "cutoff": _cutoff(held.cell.kind, study),
        "honest_mean": panel.seen(variant, "mean"),
        "honest_q1": panel.seen(variant, "q1"),
        "cluster_sums": {name: [total, n] for name, total, n in sums},
        "mde": mde,
        "in_mde": number / mde if mde and not held.state else None,
        "primary": words,
    }
    if held.cell.kind in PAIRED:
        detail["no_parent"] = held.cell.table.n - held.rows.size
    if held.state == _ONE_CLUSTER:
        detail["difference"] = number
    return _number("cell.gate", held, panel, study, column, detail)


def _halo(held: _Held, panel: _Honest, study: Study) -> Measurement:
    """How far the composer's own judges move the gate number. It needs no test, so one cluster is enough."""
    state = None if held.state == _ONE_CLUSTER else held.state
    if state is None and held.family is not None and not panel.drops:
        state = ONE_FAMILY
    method = "gate number with all judges minus without those of the composer's family"
    detail: dict[str, JSON] = {"family": held.family, "triggered": held.triggered(study)}
    found = replace(held, state=state, method=method)
    return _number("cell.halo", found, panel, study, held.sums.shape[1] - 1, detail)


def _drop(held: _Held, panel: _Honest, study: Study, family: str, adjusted: Mapping[str, float]) -> Measurement:
    """The gate number without one judge family."""
    column = list(panel.drops).index(family) + 1 if panel.drops else 0
    found = held if panel.drops or held.state else replace(held, state=ONE_FAMILY)
    detail = _decided(found, column, adjusted.get(held.cell.kind, 1.0), study)
    return _number("cell.drop", found, panel, study, column, detail, dropped=family)


def _separation(held: Mapping[str, _Held], honest: ScoreTable, study: Study) -> Iterator[Measurement]:
    """How far terse-but-correct records stand above verbose-but-wrong ones, on each dimension."""
    a, b = held.get("cell_a"), held.get("cell_b")
    if a is None and b is None:
        return
    missing = [kind for kind in ("cell_a", "cell_b") if kind not in held or not held[kind].cell.table.n]
    tested = None
    if a is not None and b is not None and not missing:
        base, _ = _matched(a.chosen(study), a.cell.table, b.cell.table)
        codes, at = np.unique(b.cell.table.cluster, return_inverse=True)
        sums = group_sums(b.chosen(study) - base, at, codes.size)
        tested = t_test(sums, np.bincount(at), level=study.inference.level)
    n = 0 if b is None else b.cell.table.n
    for k, dimension in enumerate(honest.names):
        yield measured(
            "cell.separation",
            {"dimension": dimension},
            None if tested is None else contrast_of(tested, k, n=n),
            study,
            method="mean of cell B minus the mean of cell A in the same cluster (of all of it where it has none there)",
            state=f"not measured: no usable scores in {' and '.join(missing)}",
            n=n,
            n_of="trajectories of cell B",
            inputs="+".join(one.cell.table.digest for one in (a, b) if one is not None),
            detail={"p": None if tested is None else float(tested.p[k])},
        )
