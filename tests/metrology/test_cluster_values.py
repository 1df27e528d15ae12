"""Panel scores with grades missing, and paired differences: against least squares, loops, and planted severity."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark.errors import InputError
from assaymark.metrology import cluster_differences, panel_scores
from assaymark.metrology.comparisons import paired_differences, panel_fit

NAN = math.nan


def linked_parts(graded):
    """Part of each record by walking from record to judge to record."""
    part, count = [None] * len(graded), 0
    for start in range(len(graded)):
        if part[start] is not None or not graded[start].any():
            continue
        rows, judges = {start}, set()
        while True:
            judges = set(np.flatnonzero(graded[sorted(rows)].any(axis=0)).tolist())
            more = set(np.flatnonzero(graded[:, sorted(judges)].any(axis=1)).tolist())
            if more == rows:
                break
            rows = more
        for row in rows:
            part[row] = count
        count += 1
    return part


@given(st.integers(0, 2**32), st.integers(1, 9), st.integers(1, 5), st.floats(0, 0.9))
def test_scores_are_the_least_squares_fit_of_judges_and_records(seed, records, judges, missing):
    rng = np.random.default_rng(seed)
    grades = rng.integers(1, 6, (records, judges)).astype(float)
    grades[rng.random(grades.shape) < missing] = NAN
    graded = ~np.isnan(grades)
    found, part = panel_scores(grades), linked_parts(graded)
    assert list(found.part) == part
    n, j = np.nonzero(graded)
    design = np.zeros((n.size + judges, records + judges))
    design[np.arange(n.size), n] = design[np.arange(n.size), records + j] = 1
    for row, one in enumerate({p for p in part if p is not None}):  # judge effects of each part sum to zero
        members = graded[[p == one for p in part]].any(axis=0)
        design[n.size + row, records:][members] = 1
    expected = np.linalg.lstsq(design, np.concatenate([grades[n, j], np.zeros(judges)]), rcond=None)[0][:records]
    for score, value, one in zip(found.scores, expected, part, strict=True):
        assert score is None if one is None else score == pytest.approx(value, abs=1e-9)


def test_a_severe_judge_who_misses_weak_texts_changes_nothing():
    truth = np.array([5.0, 4.0, 4.0, 3.0, 2.0, 1.0])
    grades = truth[:, None] + [0.0, 0.5, -1.1]
    grades[3:, 2] = NAN
    grades[0, 0] = NAN
    scores = np.array(panel_scores(grades).scores)
    assert scores - scores[0] == pytest.approx(truth - truth[0])
    assert np.nanmean(grades, axis=1)[3] - np.nanmean(grades, axis=1)[0] != pytest.approx(-2.0, abs=0.3)


def test_records_of_parts_are_not_linked():
    found = panel_scores([[None, None, 3], [4, 5, None], [None, None, 1], [2, None, None], [None] * 3])
    assert found.part == (0, 1, 0, 1, None)
    assert found.scores == pytest.approx((3, 4.5, 1, 2.5, None))


def test_many_clusters_at_once_are_each_alone():
    rng = np.random.default_rng(1)
    grades = rng.integers(1, 6, (60, 4)).astype(float)
    grades[rng.random(grades.shape) < 0.4] = NAN
    codes = rng.integers(0, 7, 60)
    codes[codes == 3] = 4  # a cluster without records
    scores, part = panel_fit(grades, codes, 7)
    for g in np.unique(codes):
        alone = panel_scores(grades[codes == g])
        assert scores[codes == g] == pytest.approx(np.array(alone.scores, dtype=float), nan_ok=True)
        links = [None if one < 0 else one for one in part[codes == g].tolist()]
        assert [links.index(one) for one in links] == [alone.part.index(one) for one in alone.part]


def test_nothing_missing_is_the_plain_mean_to_the_last_bit():
    grades = np.random.default_rng(2).normal(3, 1, (9, 3))
    assert panel_scores(grades).scores == tuple(grades.mean(axis=1).tolist())


@pytest.mark.parametrize(
    ("grades", "message"),
    [([], "at least one of each"), ([1.0], "records by judges"), ([[1.0, math.inf]], "finite"), ([["x"]], "numbers")],
)
def test_what_is_wrong_with_grades_is_said(grades, message):
    with pytest.raises(InputError, match=message):
        panel_scores(grades)


@given(st.integers(0, 2**32), st.integers(1, 4), st.integers(1, 30), st.booleans())
def test_differences_are_means_over_common_cycles(seed, agents, records, parted):
    rng = np.random.default_rng(seed)
    rows = [
        (f"w{rng.integers(3)}", int(rng.integers(4)), int(rng.integers(agents)), float(rng.normal()),
         *([int(rng.integers(2))] if parted else []))
        for _ in range(records)
    ]  # fmt: skip
    first = {}
    for cluster, cycle, agent, *rest in rows:
        first.setdefault((cluster, cycle, agent), rest)
    expected = {}
    for i, j in combinations(range(agents), 2):
        gaps = {}
        for (cluster, cycle, agent), one in first.items():
            other = first.get((cluster, cycle, j))
            if agent == i and other is not None and one[1:] == other[1:]:
                gaps.setdefault(cluster, []).append(one[0] - other[0])
        expected[i, j] = {cluster: pytest.approx(np.mean(values)) for cluster, values in gaps.items()}
    assert cluster_differences(rows, agents) == expected


def test_every_pair_is_there():
    assert cluster_differences([], 3) == {(0, 1): {}, (0, 2): {}, (1, 2): {}}
    assert cluster_differences([("w", 1, 0, 3.0)], 1) == {}


def test_parts_may_be_left_out():
    scores = np.array([[3.0, 2.0], [NAN, 1.0], [4.0, 2.0]])
    found = paired_differences(scores, None, np.array([1, 1, 1]), 2)
    assert found[1].tolist() == [1.5]
    assert np.isnan(found[0]).all()


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (("w", 1, 0), r"must be \(cluster"),
        (("w", 1, 2, 3.0), "agent in 0..1"),
        (("w", 1, "a", 3.0), "agent in 0..1"),
        (("w", 1, 0, None), "finite score"),
        (("w", 1, 0, NAN), "finite score"),
        (("w", 1, 0, "high"), "finite score"),
    ],
)
def test_what_is_wrong_with_a_record_is_said(record, message):
    with pytest.raises(InputError, match=message):
        cluster_differences([("w", 1, 0, 3.0), record], 2)
