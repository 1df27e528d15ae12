"""Measurements of control conditions, and the agreement of judges on them.

All texts of a control cell deserve the same score, so there is no variance within it for judges to agree on, and kappa
is near 0 for any judges. Claims are about the difference from honest records; agreement is tested on that difference.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assaymark.errors import NotMeasurableError
from assaymark.metrology import checks, estimates
from assaymark.metrology.checks import Floats, Ints
from assaymark.metrology.comparisons import natural
from assaymark.metrology.contrasts import Contrast, TestSet, holm, t_test, to_contrast
from assaymark.metrology.design import planning_mde
from assaymark.metrology.estimates import number
from assaymark.metrology.kappa import averaging, drops_of, gated, settled_half_up
from assaymark.metrology.measure_panel import agreement_measurements
from assaymark.metrology.panel import panel_of
from assaymark.metrology.scores import ScoreTable
from assaymark.plan import TOLERANCE
from assaymark.protocol import CellThresholds, Study
from assaymark.records import JSON, DerivationKind, Measurement

CellStatus = Literal["publish", "methodology", "halt", "not measurable"]

PUBLISH = 0.4
METHODOLOGY = 0.2


@dataclass(frozen=True, slots=True)
class CellShift:
    """The judges' difference between a control cell and honest records; negative is below.
    ``p`` is one-sided, against "not more than the threshold below". Without a standard error (all of the cell's or all
    honest records are in one cluster) p is 1."""

    delta: float
    se: float | None
    df: float
    p: float


@dataclass(frozen=True, slots=True)
class CellAgreement:
    """The agreement of judge families on the difference of a control cell; see `cell_agreement`."""

    status: CellStatus
    unanimous: bool
    leave_one_out: bool
    pooled_kappa: float | None
    panel: CellShift
    each: dict[str, CellShift]
    drops: dict[str, CellShift]


def cell_agreement(
    cell: ArrayLike, cell_cluster: Sequence[Any] | NDArray[Any], honest: ArrayLike,
    honest_cluster: Sequence[Any] | NDArray[Any], families: Sequence[str], threshold: float = 0.0,
    quantile: float | None = None, alpha: float = 0.05, consecutive: bool = False, rounded: bool = True,
) -> CellAgreement:  # fmt: skip
    """Test whether all judge families find the difference between a control cell and honest records (Berger 1982)."""
    source, names = "cell_agreement", list(dict.fromkeys(families))
    checks.probability(source, "alpha", alpha)
    if quantile is not None:
        checks.probability(source, "quantile", quantile)
    # Mean over the judges of each family [n, F], NaN if none has a score.
    tables = list[Floats]()
    for name, grades in (("cell", cell), ("honest", honest)):
        scores = estimates.scores_of(source, name, grades, 2)
        if (judges := scores.shape[1]) != len(families):
            checks.fail(source, "families", f"must have one entry for each of {judges} judges (got {len(families)})")
        member = np.array([[family == other for other in names] for family in families], dtype=np.float64)
        counts = ~np.isnan(scores) @ member
        tables.append((np.where(np.isnan(scores), 0.0, scores) @ member) / np.where(counts > 0, counts, np.nan))
    checks.labels(source, "cell_cluster", cell_cluster, len(tables[0]))
    checks.labels(source, "honest_cluster", honest_cluster, len(tables[1]))
    codes = estimates.cluster_codes(source, [*honest_cluster, *cell_cluster], len(tables[0]) + len(tables[1]))
    in_cell, in_honest = (~np.isnan(table).any(axis=1) for table in tables)
    for name, complete in (("cell", in_cell), ("honest", in_honest)):
        if not complete.any():
            raise NotMeasurableError(f"cell_agreement: no {name} record has a score from every judge family")
    texts, records = tables[0][in_cell], tables[1][in_honest]
    _, codes = np.unique(codes[np.concatenate([in_honest, in_cell])], return_inverse=True)
    # Each family alone, all families, and all without each.
    count = len(names)
    panels = np.concatenate([np.eye(count), np.full((count, 1), 1 / count)], axis=1)
    if count > 1:
        panels = np.concatenate([panels, (1 - np.eye(count)) / (count - 1)], axis=1)
    places = codes[len(records) :], codes[: len(records)]
    shifts = _shifts((texts @ panels, records @ panels), places, threshold, quantile, consecutive)
    each, drops = dict(zip(names, shifts, strict=False)), dict(zip(names, shifts[count + 1 :], strict=False))
    # Mean pairwise kappa of families [., F] on both sets, each with half of the weight.
    ratings = np.concatenate([texts, records])
    if rounded:
        ratings = settled_half_up(ratings)
    weights = np.repeat([1 / len(texts), 1 / len(records)], [len(texts), len(records)])
    kappas = [kappa_of_records(ratings[:, a], ratings[:, b], weights) for a, b in combinations(range(count), 2)]
    defined = [kappa for kappa in kappas if kappa is not None]
    kappa = float(np.mean(defined)) if defined and len(defined) == len(kappas) else None
    unanimous, robust = (bool(shifts) and all(shift.p <= alpha + TOLERANCE for shift in shifts.values())
                       for shifts in (each, drops))  # fmt: skip
    status: CellStatus = "not measurable" if count < 2 else _status(kappa, unanimous, robust, PUBLISH, METHODOLOGY)
    return CellAgreement(status, unanimous, robust, kappa, shifts[count], each, drops)


def _status(
    kappa: float | None, unanimous: bool, robust: bool, publish: float, halt: float
) -> Literal["publish", "methodology", "halt"]:
    """Return the claim status that the families' own tests and their kappa permit."""
    if kappa is not None and unanimous and kappa >= publish - TOLERANCE:
        return "publish"
    return "methodology" if kappa is not None and robust and kappa >= halt - TOLERANCE else "halt"


def cell_equivalent(agreement: CellAgreement, *, margin: float = 0.3, alpha: float = 0.05) -> bool:
    """Return True if every judge family scores the cell within a margin of honest records (Schuirmann 1987)."""
    checks.probability("cell_equivalent", "alpha", alpha)
    if not margin > 0:
        checks.fail("cell_equivalent", "margin", f"must be above 0 (got {margin!r})")
    return all(
        shift.se is not None
        and estimates.student_estimate(margin - abs(shift.delta), shift.se, shift.df).p_up <= alpha + TOLERANCE
        for shift in agreement.each.values()
    )


def kappa_of_records(x: ArrayLike, y: ArrayLike, weights: ArrayLike | None = None) -> float | None:
    """Compute quadratic-weighted kappa of two raters on weighted records; None if both gave a single rating."""
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    share = np.ones(first.size) if weights is None else np.asarray(weights, dtype=np.float64)
    share = share / share.sum()
    means = share @ first, share @ second
    variance = share @ np.square(first - means[0]) + share @ np.square(second - means[1])
    if variance <= 1e-12:
        return None
    return float(1 - share @ np.square(first - second) / (variance + (means[0] - means[1]) ** 2))


def _shifts(
    scores: tuple[Floats, Floats], places: tuple[Ints, Ints], threshold: float, quantile: float | None,
    consecutive: bool,
) -> list[CellShift]:  # fmt: skip
    """Compute the shift of every column of cell and honest scores, tested by a jackknife over the clusters of both."""
    clusters = int(max(place.max() for place in places)) + 1
    sums = np.zeros((2, clusters, scores[0].shape[1]))
    counts = np.zeros((2, clusters))
    for which, (table, place) in enumerate(zip(scores, places, strict=True)):
        np.add.at(sums[which], place, table)
        np.add.at(counts[which], place, 1)
    # A cell record is compared with the honest mean of its own cluster if there is one, else with a common reference.
    matched = (counts[1] > 0) & (quantile is None)
    means = sums[1] / np.maximum(counts[1], 1)[:, None]
    totals = np.where(matched[:, None], sums[0] - counts[0][:, None] * means, sums[0])
    totals, alone = (
        estimates.leave_out(totals, consecutive), estimates.leave_out(np.where(matched, 0.0, counts[0]), consecutive),
    )  # fmt: skip
    n, m = estimates.leave_out(counts[0], consecutive)[:, None], estimates.leave_out(counts[1], consecutive)[:, None]
    if quantile is None:
        reference = estimates.leave_out(sums[1], consecutive) / np.where(m > 0, m, np.nan)
    else:
        units = (estimates.neighbour_blocks(clusters) if consecutive else np.arange(clusters))[places[1]]
        masks = [np.ones(units.size, dtype=np.bool_), *(units != unit for unit in range(len(n) - 1))]
        reference = np.full((len(n), totals.shape[1]), np.nan)
        for row, rows in enumerate(masks):
            if rows.any():
                reference[row] = np.quantile(scores[1][rows], quantile, axis=0)
    deltas = (totals - alone[:, None] * np.where(alone[:, None] > 0, reference, 0.0)) / np.where(n > 0, n, np.nan)
    df = len(deltas) - 2
    if df < 1 or np.isnan(deltas).any():
        return [CellShift(delta, None, 0, 1.0) for delta in deltas[0].tolist()]
    return [
        CellShift(delta, se, df, estimates.student_estimate(-delta - threshold, se, df).p_up)
        for delta, se in zip(deltas[0].tolist(), estimates.jackknife_se(deltas[0], deltas[1:]).tolist(), strict=True)
    ]


TerseOutcome = Literal["substance", "verbosity-bias", "inconclusive", "terse-favoured"]
CellOutcome = Literal[
    TerseOutcome, "passed", "failed", "invariant", "style-sensitive", "noticed", "not noticed", "not tested"
]

FALLING: Final = ("cell_a", "red_team", "fact_flip")
"""Cells that must score lower than honest records; tested one-sided at the plan's ``cells.alpha``."""

PAIRED: Final = ("paraphrase", "fact_flip", "length_matched")
"""Cells whose records are each compared with the honest record that they were derived from."""

GATED: Final = ("cell_a", "cell_b", "paraphrase", "fact_flip", "length_matched", "red_team")
"""Cells with a pass rule. Ladders and vacuum records have none: only their scores are reported."""

SUBSTANCE: Final = 0.3
VERBOSITY: Final = 0.5
_ONE_CLUSTER = "undefined: one cluster cannot be tested, needs two"


def cell_b_outcome(
    delta: float, significant: bool, *, substance: float = SUBSTANCE, verbosity: float = VERBOSITY
) -> TerseOutcome:
    """Classify the result of the terse-but-correct control (ValueBlindBench section 3.5).

    "substance" within ``substance`` of honest; "verbosity-bias" more than ``verbosity`` below and significant; between,
    or below without significance, "inconclusive"; "terse-favoured" more than ``substance`` above.

    >>> cell_b_outcome(-0.1, False), cell_b_outcome(-0.8, True)
    ('substance', 'verbosity-bias')
    """
    if math.isnan(delta):
        raise NotMeasurableError("the outcome of cell B is undefined: its difference from honest records is NaN")
    if abs(delta) <= substance + TOLERANCE:
        return "substance"
    if delta > 0:
        return "terse-favoured"
    return "verbosity-bias" if delta < -verbosity - TOLERANCE and significant else "inconclusive"


def cell_outcome(
    cell: str, value: float, p: float, p_holm: float, flat: bool, cells: CellThresholds, alpha: float
) -> CellOutcome:
    """Apply the rule of a control cell to its value (ValueBlindBench section 3.5)."""
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


@dataclass(frozen=True, slots=True, eq=False)
class ControlCell:
    """One control cell with the judges' scores.
    ``parents`` (the honest record that each was derived from, or None) and ``composers`` (the family of the model that
    wrote it) are in the order of ``table.trajectories``."""

    kind: DerivationKind
    table: ScoreTable
    parents: tuple[str | None, ...]
    composers: tuple[str, ...]

    def __post_init__(self) -> None:
        for name, names in (("parents", self.parents), ("composers", self.composers)):
            if len(names) != self.table.n:
                checks.fail("Cell", name, f"must have one entry for each of {self.table.n} records (got {len(names)})")
        if self.kind == "honest":
            checks.fail("Cell", "kind", "honest records are the reference of control cells, not a cell")


def _variants(table: ScoreTable, drops: Mapping[str, list[int]]) -> Floats:
    """Compute panel scores [V, n, K] of the whole panel and without each family."""
    stacked = table.stacked
    return np.stack([stacked.mean(axis=1), *(stacked[:, keep].mean(axis=1) for keep in drops.values())])


def _cluster_means(reference: Floats, table: ScoreTable, onto: ScoreTable) -> tuple[Floats, int]:
    """Return the mean of ``reference`` [n, K] in the cluster of each record of ``onto``, and the number without one."""
    counts = np.bincount(table.cluster, minlength=len(table.clusters))
    sums = estimates.group_sums(reference, table.cluster, len(table.clusters))
    means = np.concatenate([sums / np.maximum(counts, 1)[:, None], reference.mean(axis=0, keepdims=True)])
    place = {name: g for g, name in enumerate(table.clusters) if counts[g]}
    cluster_row = np.array([place.get(name, -1) for name in onto.clusters], dtype=np.int64)[onto.cluster]
    return means[cluster_row], int((cluster_row < 0).sum())


class _Held:
    """A cell's aggregate minus that of its reference, summed by cluster and tested.
    Variants of the panel are the whole panel, then without each judge family. Columns of ``tested``, ``p`` and ``sums``
    [G, V + 2] are the variants, then each record without the judges of its composer's family, then the whole panel
    minus that (self-preference, "halo"). ``own`` [n] is the variant without a record's own family, 0 if no judge shares
    it. ``rows`` are the comparable records, ``state`` is the reason if there is no value. ``primary`` is the column of
    the gate, the variant of each record, and its description; ``chosen`` [n, K] are those panel scores."""

    def __init__(self, cell: ControlCell, honest: ScoreTable, reference: Floats, study: Study) -> None:
        self.cell, self.honest, self.reference, self.study = cell, honest, reference[:, :, 0], study
        table, kind, self.drops = cell.table, cell.kind, drops_of(honest.families)
        scores, self.rows = _variants(table, self.drops), np.arange(table.n)
        self.quartile = np.quantile(self.reference, 0.25, axis=1) if honest.n else np.full(len(scores), np.nan)
        place = {family: v for v, family in enumerate(self.drops, start=1)}
        makers = np.array([place.get(family, 0) for family in cell.composers], dtype=np.int64)
        self.family = ", ".join(sorted(set(cell.composers) & set(table.families))) or None
        if kind in PAIRED:
            row_of = {key: row for row, key in enumerate(honest.trajectories)}
            parents = np.array([row_of.get(parent or "", -1) for parent in cell.parents], dtype=np.int64)
            self.rows = np.flatnonzero(parents >= 0)
            base = self.reference[:, parents[self.rows]]
            self.method = "mean paired difference from the honest record it was made from"
        elif not honest.n:
            base, self.method = np.zeros((len(scores), table.n)), "difference from honest records"
        elif kind == "cell_b":
            means, alone = _cluster_means(self.reference.T, honest, table)
            base, self.method = means.T, "mean difference from the honest mean of the same cluster"
            self.method += f" ({alone} without one: from the mean of all)" if alone else ""
        else:
            base = np.repeat(self.quartile[:, None], table.n, axis=1)
            self.method = "mean difference from the honest first quartile"
        rows = self.rows
        gaps = scores[:, rows, 0] - base
        without = gaps[makers[rows], np.arange(rows.size)]
        codes, at = np.unique(table.cluster[rows], return_inverse=True)
        self.clusters, self.counts = [table.clusters[c] for c in codes], np.bincount(at, minlength=codes.size)
        self.sums = estimates.group_sums(np.column_stack([gaps.T, without, gaps[0] - without]), at, codes.size)
        self.state: str | None = _ONE_CLUSTER if codes.size < 2 else None
        if not rows.size:
            self.state = "not measurable: no record of the cell was made from an honest record that was scored"
        if not table.n:
            self.state = estimates.NO_SCORES
        if not honest.n:
            self.state = "not measurable: no honest trajectory has a usable score from every judge"
        blank = np.full(self.sums.shape[1], np.nan)
        self.tested = TestSet(np.zeros_like(blank), np.ones_like(blank), blank, blank, 0, ("",) * blank.size)
        tested = self.state in (None, _ONE_CLUSTER)
        if tested:
            self.tested = t_test(self.sums, self.counts, study.inference.level)
        p, halo = self.tested.p, abs(float(self.tested.difference[-1]))
        self.p = np.where(self.tested.difference < 0, p / 2, 1 - p / 2) if kind in FALLING else p
        # If the judges of the composer's family change the gate value too much, it is primary without them.
        self.triggered = tested and self.family is not None and halo >= study.cells.halo - TOLERANCE
        self.primary: tuple[int, Ints, str] = 0, np.zeros_like(makers), "panel"
        if kind in GATED and self.triggered:
            self.primary = blank.size - 2, makers, f"without {self.family}"
        self.chosen: Floats = scores[self.primary[1], np.arange(table.n)]

    def decided(self, column: int, p_holm: float, state: str | None) -> dict[str, JSON]:
        """Return the outcome and p-values of the gate in one column."""
        if state:
            outcome = "inconclusive" if state == _ONE_CLUSTER and self.cell.kind not in FALLING else "not tested"
            return {"outcome": outcome, "p": None, "p_holm": None}
        # All clusters agree exactly: only the sign test remains, which cannot reach alpha with so few clusters.
        flat, p = bool(np.isnan(self.tested.low[column])), float(self.p[column])
        value, alpha = float(self.tested.difference[column]), self.study.inference.alpha
        outcome = cell_outcome(self.cell.kind, value, p, p_holm, flat, self.study.cells, alpha)
        return {"outcome": outcome, "p": p, "p_holm": p_holm}

    def measure(
        self, name: str, column: int, state: str | None, detail: dict[str, JSON], method: str = "", **labels: str
    ) -> Measurement:
        """Convert one column of differences to a measurement."""
        effect = None if state else to_contrast(self.tested, column, self.rows.size)
        return measured(name, {"cell": self.cell.kind, **labels}, effect, self.study, (self.rows.size, "trajectories"),
                        method or self.method, state or "ok", detail,
                        inputs=f"{self.honest.digest}+{self.cell.table.digest}")  # fmt: skip

    def gate(self, p_holm: float, mde: float | None) -> Measurement:
        """Measure the gate value of one cell with its primary judges."""
        column, variant, words = self.primary
        kind, cells = self.cell.kind, self.study.cells
        alpha = f"at {self.study.inference.alpha:g} after Holm over all cell gates"
        cutoff = (
            f"invariant within {cells.substance:g} of the original; beyond it style-sensitive if significant {alpha}"
        )
        if kind == "fact_flip":
            cutoff = f"noticed if below the unchanged record at one-sided p < {cells.alpha:g}"
        elif kind in FALLING:
            cutoff = f"passed if below the honest first quartile at one-sided p < {cells.alpha:g}"
        elif kind == "cell_b":
            cutoff = (
                f"substance within {cells.substance:g} of honest records; verbosity-bias more than {cells.verbosity:g} "
                f"below and significant {alpha}; terse-favoured more than {cells.substance:g} above"
            )
        # Mean and first quartile of the honest aggregate by the judges of each record, averaged over records.
        mean = q1 = None
        if self.honest.n and variant.size:
            mean, q1 = float(self.reference.mean(axis=1)[variant].mean()), float(self.quartile[variant].mean())
        value = float(self.tested.difference[column])
        sums = zip(self.clusters, self.sums[:, column].tolist(), self.counts.tolist(), strict=True)
        detail = self.decided(column, p_holm, self.state)
        detail |= {"cutoff": cutoff, "honest_mean": mean, "honest_q1": q1, "mde": mde, "primary": words}
        detail["cluster_sums"] = {name: [total, n] for name, total, n in sums}
        detail["in_mde"] = value / mde if mde and not self.state else None
        if kind in PAIRED:
            detail["no_parent"] = self.cell.table.n - self.rows.size
        if self.state == _ONE_CLUSTER:
            detail["difference"] = value
        return self.measure("cell.gate", column, self.state, detail)

    def agreement(self, p_holm: float) -> Measurement:
        """Test whether every judge family supports the cell's claim; also kappa over the cell and honest records."""
        cell, honest, study, rows = self.cell, self.honest, self.study, self.rows
        count, labels, name = (rows.size, "trajectories"), {"cell": cell.kind}, "cell.agreement"
        method = "each judge family's own difference from honest records, one-sided, jackknife over clusters"
        if self.state or len(set(honest.families)) < 2:
            return number(Measurement, name, labels, None, count, method, self.state or estimates.ONE_FAMILY)
        scores, reference = cell.table.stacked[rows, :, 0], honest.stacked[..., 0]
        codes = {name: g for g, name in enumerate(sorted({*honest.clusters, *cell.table.clusters}, key=natural))}
        cluster_of = [codes[cell.table.clusters[g]] for g in cell.table.cluster[rows]]
        against = np.array([codes[honest.clusters[g]] for g in honest.cluster], dtype=np.int64)
        if cell.kind in PAIRED:
            place = {key: row for row, key in enumerate(honest.trajectories)}
            parents = [place[parent] for row in rows if (parent := cell.parents[row]) in place]
            reference, against = reference[parents], against[parents]
        line = np.argsort(against, kind="stable")  # a jackknife over time numbers clusters by first appearance
        reference, against = reference[line], against[line]
        # The test for every family: (sign, flip, threshold below, quantile, level); scores are flipped for "above".
        cells, alpha = study.cells, study.inference.alpha
        outcome = self.decided(self.primary[0], p_holm, self.state)["outcome"]
        below, above = (1.0, 0.0), (-1.0, sum(study.scale))
        asked: list[tuple[float, float, float, float | None, float]]
        asked = [(*below, cells.verbosity if cell.kind == "cell_b" else cells.substance, None, alpha)]
        if cell.kind in FALLING:
            asked = [(*below, 0.0, None if cell.kind == "fact_flip" else 0.25, cells.alpha)]
        elif outcome in ("substance", "invariant"):
            asked = [(*side, -cells.substance, None, alpha) for side in (below, above)]
        elif outcome == "terse-favoured" or (outcome == "style-sensitive" and self.tested.difference[0] > 0):
            asked = [(*above, cells.substance, None, alpha)]
        consecutive, form = study.inference.order_of(honest.clusters) == "consecutive", study.rubric.coefficient

        def tested(sign: float, flip: float, threshold: float, quantile: float | None, level: float) -> CellAgreement:
            return cell_agreement(flip + sign * scores, cluster_of, flip + sign * reference, against, honest.families,
                                  threshold, quantile, level, consecutive, form == "kappa")  # fmt: skip

        tests = [tested(*one) for one in asked]
        unanimous, left_out = all(test.unanimous for test in tests), all(test.leave_one_out for test in tests)
        # Kappa is of unflipped scores, whose halves round up; it depends on neither threshold nor level.
        plain = next((test for (sign, *_), test in zip(asked, tests, strict=True) if sign > 0), None)
        kappa = (plain or tested(*below, 0.0, None, alpha)).pooled_kappa
        status = _status(kappa, unanimous, left_out, study.gates.publish, study.gates.halt)
        detail: dict[str, JSON] = {"status": status, "unanimous": unanimous, "leave_one_out": left_out}
        detail |= {} if form == "kappa" else {"coefficient": "icc"}
        detail["each"] = {family: shift.delta for family, shift in tests[0].each.items()}
        detail["p"] = {family: max(test.each[family].p for test in tests) for family in tests[0].each}
        return number(
            Measurement, name, labels, kappa, count, method, "undefined: two judge families gave one rating each",
            detail,
        )  # fmt: skip


def cell_measurements(
    honest: ScoreTable, cells: Sequence[ControlCell], study: Study, *, rng: np.random.Generator | None = None
) -> Iterator[Measurement]:
    """Measure scores, agreement, gate, halo and family drops of each control cell (ValueBlindBench 3.5 and 5.5)."""
    kinds = [cell.kind for cell in cells]
    if len(set(kinds)) < len(kinds):
        checks.fail("cell_measurements", "cells", f"at most one of each kind (got {', '.join(sorted(kinds))})")
    for cell in cells:
        # A table without usable scores does not know its dimensions.
        same = cell.table.names == honest.names or not (cell.table.n and honest.n)
        if not same or (cell.table.judges, cell.table.families) != (honest.judges, honest.families):
            checks.fail("cell_measurements", cell.kind, "must have the judges and dimensions of the honest records")
    if not cells:
        return
    honest, cells = gate_cells(honest, cells, study)
    rng = np.random.default_rng(study.seed) if rng is None else rng
    drops = drops_of(honest.families)
    reference = _variants(honest, drops)
    measured_cells = [_Held(cell, honest, reference, study) for cell in cells]
    ruled = [cell for cell in measured_cells if cell.cell.kind in GATED]

    def adjusted(columns: Sequence[int]) -> dict[str, float]:
        """Compute Holm-adjusted p-values by kind; an untestable one enters the family as 1."""
        p = [1.0 if cell.state else float(cell.p[column]) for cell, column in zip(ruled, columns, strict=True)]
        return dict(zip([cell.cell.kind for cell in ruled], holm(p).tolist(), strict=True)) if p else {}

    # Each set of judges has its own Holm family: the primary judges, and all without one family.
    p_holm = adjusted([cell.primary[0] for cell in ruled])
    dropped = {family: adjusted([v] * len(ruled)) for v, family in enumerate(drops, start=1)}
    # The plan's minimum detectable effect of an aggregate contrast between two honest agents.
    present = np.zeros((len(honest.agents), len(honest.cycles)))
    present[honest.agent, honest.cycle] = 1
    common = (present @ present.T)[np.triu_indices(len(honest.agents), 1)]
    mde = planning_mde(study, int(np.median(common[common > 0])), common.size) if common.any() else None
    yield from _summaries("cell.honest", honest, reference[0], honest.names, study, {}, {})
    plain = study
    if study.rubric.coefficient == "alpha":  # a cell's few texts have every judge's score; alpha is for honest ones
        plain = study.model_copy(update={"rubric": study.rubric.model_copy(update={"agreement": None})})
    for one in measured_cells:
        kind, chosen = one.cell.kind, one.chosen
        more: dict[str, JSON] = {"primary": one.primary[2], "values": np.sort(np.round(chosen[:, 0], 4)).tolist()}
        yield from _summaries("cell.score", one.cell.table, chosen, honest.names, study, more, {"cell": kind})
        if one not in ruled:
            continue
        # Agreement within the cell, measured exactly as on honest records.
        for measurement in agreement_measurements(panel_of(one.cell.table, plain), rng):
            if measurement.name == "kappa.mean_pairwise" and "format" not in measurement.labels:
                yield replace(measurement, name="cell.kappa", labels={**measurement.labels, "cell": kind},
                              method=f"{measurement.method}; undefined by design: all texts deserve the same score",
                )  # fmt: skip
        yield one.gate(p_holm[kind], mde)
        # The effect of the composer's own judges on the gate value. It is not tested, so one cluster is enough.
        state = None if one.state == _ONE_CLUSTER else one.state
        if state is None and one.family is not None and not drops:
            state = estimates.ONE_FAMILY
        yield one.measure("cell.halo", one.sums.shape[1] - 1, state, {"family": one.family, "triggered": one.triggered},
                          "gate number with all judges minus without those of the composer's family")  # fmt: skip
        yield one.agreement(p_holm[kind])
        for family in dict.fromkeys(honest.families):
            column, state = (list(drops).index(family) + 1 if drops else 0), one.state
            state = state if drops or state else estimates.ONE_FAMILY
            detail = one.decided(column, dropped.get(family, {}).get(kind, 1.0), state)
            yield one.measure("cell.drop", column, state, detail, dropped=family)
    yield from _separation({cell.cell.kind: cell for cell in measured_cells}, honest.names, study)


def gate_cells(honest: ScoreTable, cells: Sequence[ControlCell], study: Study) -> tuple[ScoreTable, list[ControlCell]]:
    """Average the trials of judges whose stability on honest records permits it, in all tables (section 3.4)."""
    decided = averaging(honest, study)
    return gated(honest, study, decided), [replace(cell, table=gated(cell.table, study, decided)) for cell in cells]


def measured(
    name: str, labels: dict[str, str], contrast: Contrast | None, study: Study, count: tuple[int, str], method: str,
    state: str, detail: dict[str, JSON], **parts: Any,
) -> Measurement:  # fmt: skip
    """Make a measurement in rubric points with the interval of its test, or with the reason for having none."""
    value, ends = (None, None) if contrast is None else (contrast.difference, (contrast.low, contrast.high))
    return number(Measurement, name, labels, value, count, f"{method}; {contrast.method}" if contrast else method,
                  state, detail, ends, study.inference.level, estimates.POINTS, **parts)  # fmt: skip


def _summaries(
    name: str, table: ScoreTable, scores: Floats, names: Sequence[str], study: Study, detail: dict[str, JSON],
    labels: dict[str, str],
) -> Iterator[Measurement]:  # fmt: skip
    """Measure mean, quartiles and interval of panel scores [n, K] by name; single values for the aggregate only."""
    codes, at = np.unique(table.cluster, return_inverse=True)
    if table.n:
        tested = t_test(estimates.group_sums(scores, at, codes.size), np.bincount(at), study.inference.level)
        quartiles = np.quantile(scores, (0.25, 0.5, 0.75), axis=0).T.tolist()
    for k, dimension in enumerate(names):
        more = {**detail, "clusters": int(codes.size)}
        more |= dict(zip(("q1", "median", "q3"), quartiles[k], strict=True)) if table.n else {}
        if k:
            more.pop("values", None)
        yield measured(name, {**labels, "dimension": dimension}, to_contrast(tested, k, table.n) if table.n else None,
                       study, (table.n, "trajectories"), "mean panel score, quartiles by linear interpolation",
                       estimates.NO_SCORES, more, inputs=table.digest)  # fmt: skip


def _separation(cells: Mapping[str, _Held], names: Sequence[str], study: Study) -> Iterator[Measurement]:
    """Measure the difference of terse-but-correct minus verbose-but-wrong records on each dimension."""
    a, b = cells.get("cell_a"), cells.get("cell_b")
    if a is None and b is None:
        return
    missing = [kind for kind in ("cell_a", "cell_b") if kind not in cells or not cells[kind].cell.table.n]
    tested = None
    if a is not None and b is not None and not missing:
        base, _ = _cluster_means(a.chosen, a.cell.table, b.cell.table)
        codes, at = np.unique(b.cell.table.cluster, return_inverse=True)
        tested = t_test(estimates.group_sums(b.chosen - base, at, codes.size), np.bincount(at), study.inference.level)
    n = 0 if b is None else b.cell.table.n
    for k, dimension in enumerate(names):
        yield measured(
            "cell.separation", {"dimension": dimension}, None if tested is None else to_contrast(tested, k, n), study,
            (n, "trajectories of cell B"),
            "mean of cell B minus the mean of cell A in the same cluster (of all of it where it has none there)",
            f"not measured: no usable scores in {' and '.join(missing)}",
            {"p": None if tested is None else float(tested.p[k])},
            inputs="+".join(cell.cell.table.digest for cell in (a, b) if cell is not None),
        )  # fmt: skip
