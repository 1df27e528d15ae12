"""From grades to one value per cluster: what a panel says of a record when grades are missing, and paired gaps."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from assaymark.metrology import checks
from assaymark.metrology.checks import Floats, Ints
from assaymark.metrology.moderated import pairs_of, table_of


@dataclass(frozen=True, slots=True)
class PanelScores:
    """What a panel says of N records; None where a record has no grade.

    Attributes
    ----------
    scores : tuple of N floats or None
        Score of each record, in grade points, at the level of the average judge of its part.
    part : tuple of N ints or None
        Records with one number are linked by common judges, directly or through other records. Scores of different
        parts rest on different judges and must not be compared. Numbered from 0 in the order of the records.
    """

    scores: tuple[float | None, ...]
    part: tuple[int | None, ...]


def panel_scores(grades: ArrayLike) -> PanelScores:
    """Score of each record of a cluster when not every judge graded every record.

    The mean over whichever judges are there would reward a record for having missed a severe judge. Least squares on
    ``grade = judge + record``, judge effects summing to zero within each linked part, takes the severity of judges
    out (a two-way layout without interaction, unequal numbers; Scheffe 1959, chapter 4). With nothing missing it is
    the plain mean.

    Parameters
    ----------
    grades : float array of shape (N, J)
        One grade per record and judge of a cluster, trials averaged; None or NaN where there is none.

    Returns
    -------
    PanelScores

    Raises
    ------
    InputError
        Empty, not two axes, or an infinite grade.

    References
    ----------
    Scheffe, H. (1959). The Analysis of Variance. Wiley.

    Examples
    --------
    The second judge gives one point less than the first. The last record is linked to no other.

    >>> panel_scores([[4, 3, None], [3, 2, None], [5, None, None], [None, None, 2]])
    PanelScores(scores=(3.5, 2.5, 4.5, 2.0), part=(0, 0, 0, 1))
    """
    table = table_of("panel_scores", "grades", grades, "records by judges")
    scores, part = panel_fit(table, np.zeros(len(table), dtype=np.int64), 1)
    number = {label: k for k, label in enumerate(dict.fromkeys(part[part >= 0].tolist()))}
    return PanelScores(
        tuple(None if np.isnan(score) else score for score in scores.tolist()),
        tuple(number.get(label) for label in part.tolist()),
    )


def panel_fit(grades: Floats, codes: Ints, clusters: int) -> tuple[Floats, Ints]:
    """`panel_scores` of all clusters at once, from grades [N, J] and the cluster [N] of each record.

    Scores [N], NaN without a grade, and the part [N] of each within its cluster: the first judge that it is linked to,
    -1 without a grade.
    """
    graded = ~np.isnan(grades)
    if graded.all():
        return np.asarray(grades.mean(axis=1)), np.zeros(len(grades), dtype=np.int64)
    values = np.where(graded, grades, 0.0)
    count = graded.sum(axis=1)
    some = np.maximum(count, 1)
    mean = values.sum(axis=1) / some
    # Normal equations of the judges after the records are swept out: the Laplacian of the graph in which records link
    # judges. Its pseudo-inverse has effects that sum to zero in each linked part.
    shared = _by_code(graded[:, :, None] * (graded / some[:, None])[:, None, :], codes, clusters)
    laplacian = np.eye(grades.shape[1]) * shared.sum(axis=2)[:, None] - shared
    surplus = _by_code(np.where(graded, values - mean[:, None], 0.0), codes, clusters)
    effects = (np.linalg.pinv(laplacian, rcond=1e-12, hermitian=True) @ surplus[:, :, None])[:, :, 0]
    scores = np.where(count > 0, mean - np.where(graded, effects[codes], 0.0).sum(axis=1) / some, np.nan)
    linked = (shared > 0) | np.eye(grades.shape[1], dtype=bool)
    for _ in range(max(1, grades.shape[1] - 1).bit_length()):
        linked = linked @ linked
    first = linked.argmax(axis=2)
    return scores, np.where(count > 0, first[codes, graded.argmax(axis=1)], -1)


def cluster_differences(records: Iterable[Sequence[Any]], K: int) -> dict[tuple[int, int], dict[Hashable, float]]:
    """Mean paired difference of every pair of agents in every cluster, from single records.

    A pair is compared in the cycles in which both agents have a record, and in no other. Each cycle counts once, each
    cluster will count once: nothing here is weighted by how many records there are.

    Parameters
    ----------
    records : iterable of (cluster, cycle, agent, score) or (cluster, cycle, agent, score, part)
        ``agent`` is a number 0..K-1. Of several records of one agent in one cycle the first counts. With ``part``
        (`panel_scores`) only records of one part are compared.
    K : int
        Number of agents.

    Returns
    -------
    dict of (i, j) to {cluster: difference}
        Score of i minus score of j, i < j; every pair is there, clusters without a common cycle are not.

    Raises
    ------
    InputError
        A record of another length, an agent outside 0..K-1, or a score that is not finite.

    Examples
    --------
    >>> cluster_differences([("w1", 1, 0, 4.0), ("w1", 1, 1, 3.5), ("w1", 2, 0, 2.0), ("w2", 3, 1, 5.0)], 2)
    {(0, 1): {'w1': 0.5}}
    """
    source, agents = "cluster_differences", checks.whole("cluster_differences", "K", K, least=1)
    clusters: dict[Hashable, int] = {}
    rows: dict[tuple[int, Hashable], dict[int, tuple[float, Any]]] = {}
    for k, record in enumerate(records):
        if len(record) not in (4, 5):
            checks.fail(source, f"records[{k}]", f"must be (cluster, cycle, agent, score[, part]) (got {record!r})")
        cluster, cycle, agent, score = record[:4]
        if agent not in range(agents) or not isinstance(score, (int, float, np.number)) or not np.isfinite(score):
            checks.fail(source, f"records[{k}]", f"needs an agent in 0..{agents - 1} and a finite score ({record!r})")
        code = clusters.setdefault(cluster, len(clusters))
        rows.setdefault((code, cycle), {}).setdefault(int(agent), (float(score), tuple(record[4:5])))
    parts = {label: k for k, label in enumerate({part for row in rows.values() for _, part in row.values()})}
    scores, part = np.full((2, len(rows), agents), np.nan)
    for place, row in enumerate(rows.values()):
        for agent, (score, label) in row.items():
            scores[place, agent], part[place, agent] = score, parts[label]
    codes = np.array([code for code, _ in rows], dtype=np.int64)
    values = paired_differences(scores, part, codes, len(clusters)).T.tolist()
    pairs = zip(*(axis.tolist() for axis in pairs_of(agents)), strict=True)
    return {
        pair: {name: value for name, value in zip(clusters, column, strict=True) if value == value}
        for pair, column in zip(pairs, values, strict=True)
    }


def paired_differences(scores: Floats, part: Floats | Ints | None, codes: Ints, clusters: int) -> Floats:
    """Mean paired difference [G, pairs] of every pair, NaN without a common cycle.

    From scores [cycles, K], NaN where absent, their parts [cycles, K] (None: all one) and the cluster [cycles] of each
    cycle.
    """
    agents = scores.shape[1]
    blocks = [np.empty((clusters, 0))]
    for a in range(agents - 1):
        gaps = scores[:, a, None] - scores[:, a + 1 :]
        common = ~np.isnan(gaps)
        if part is not None:
            common &= part[:, a, None] == part[:, a + 1 :]
        cycles = _by_code(common.astype(np.float64), codes, clusters)
        with np.errstate(invalid="ignore"):  # a cluster without a common cycle has no mean
            blocks.append(_by_code(np.where(common, gaps, 0.0), codes, clusters) / cycles)
    return np.concatenate(blocks, axis=1)


def _by_code(values: Floats, codes: Ints, size: int) -> Floats:
    """Sums of the rows of ``values`` that share a code 0..size-1."""
    order = np.argsort(codes, kind="stable")
    counts = np.bincount(codes, minlength=size)
    present = np.flatnonzero(counts)
    sums = np.zeros((size, *values.shape[1:]))
    if present.size:
        sums[present] = np.add.reduceat(values[order], (np.cumsum(counts) - counts)[present], axis=0)
    return sums
