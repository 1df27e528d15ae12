"""The columns against the definition: classes, agreement, refusals."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark.errors import InputError
from assaymark.metrology import decompose
from assaymark.metrology.datasheet import CLASSES, OUTCOMES, VERDICTS, agreement_arrays, decompose_arrays
from assaymark.metrology.datasheet import calls as arrays_module
from assaymark.metrology.datasheet.calls import OUTCOME_OF, decomposition_of, pair_class


@st.composite
def logs(draw):
    """Columns of a log: some calls of up to three judges on up to eight pairs in up to three tasks, in any order."""
    size = draw(st.integers(1, 40))
    keys = draw(
        st.lists(
            st.tuples(st.integers(0, 2), st.integers(0, 7), st.integers(0, 1)), min_size=1, max_size=size, unique=True
        )
    )
    verdicts = draw(st.lists(st.integers(0, 4), min_size=len(keys), max_size=len(keys)))
    task_of = draw(st.lists(st.integers(0, 2), min_size=8, max_size=8))
    judge, pair, order = map(list, zip(*keys, strict=True))
    return judge, pair, order, verdicts, [task_of[p] for p in pair]


def slow(log):
    """Class counts and incomplete pairs straight from the definition."""
    seen = {(j, p, o): (v, t) for j, p, o, v, t in zip(*log, strict=True)}
    classes, alone = Counter(), Counter()
    for judge, pair in {(j, p) for j, p, _ in seen}:
        both = [seen.get((judge, pair, order)) for order in (0, 1)]
        if None in both:
            alone[judge] += 1
        else:
            classes[judge, both[0][1], pair_class(VERDICTS[both[0][0]], VERDICTS[both[1][0]])] += 1
    return classes, alone


@given(logs())
def test_columns_give_what_the_definition_gives(log):
    found = decompose_arrays(*log)
    classes, alone = slow(log)
    for place, count in np.ndenumerate(found.pairs):
        assert count == classes[place]
    assert found.pairs.sum() == sum(classes.values())
    assert found.incomplete.tolist() == [alone[judge] for judge in range(max(log[0]) + 1)]
    assert found.calls.sum(axis=1).tolist() == [
        [sum((j, v) == (judge, verdict) for j, v in zip(log[0], log[3], strict=True)) for verdict in range(5)]
        for judge in range(max(log[0]) + 1)
    ]


@given(logs())
def test_sorting_gives_what_the_table_gives(log):
    dense = decompose_arrays(*log)
    limit = arrays_module._DENSE
    arrays_module._DENSE = 0
    try:
        sparse = decompose_arrays(*log)
    finally:
        arrays_module._DENSE = limit
    assert np.array_equal(dense.pairs, sparse.pairs)
    assert np.array_equal(dense.incomplete, sparse.incomplete)


def test_a_judges_counts_are_its_decomposition():
    rng = np.random.default_rng(3)
    first, second = rng.integers(0, 5, (2, 500))
    pair = np.arange(500)
    columns = [np.zeros(1000, int), np.r_[pair, pair], np.r_[pair * 0, pair * 0 + 1], np.r_[first, second]]
    counts = decompose_arrays(*columns, np.r_[pair, pair] % 7)
    slow_way = decompose([VERDICTS[v] for v in first], [VERDICTS[v] for v in second])
    assert decomposition_of(counts.pairs[0].sum(axis=0)) == slow_way
    assert counts.pairs.shape == (1, 7, len(CLASSES))


@given(logs())
def test_agreement_tables_count_common_calls(log):
    judge, pair, order, verdict, task = log
    call = [p * 2 + o for p, o in zip(pair, order, strict=True)]
    answers = {(j, c): (OUTCOME_OF[v], t) for j, c, v, t in zip(judge, call, verdict, task, strict=True)}
    for found in agreement_arrays(judge, call, verdict, task):
        expected = Counter(
            (t, answers[found.first, c][0], answers[found.second, c][0])
            for (j, c), (_, t) in answers.items()
            if j == found.first and (found.second, c) in answers
        )
        assert {place: n for place, n in np.ndenumerate(found.tables) if n} == dict(expected)
        assert found.tables.shape[1:] == (len(OUTCOMES), len(OUTCOMES))


@given(logs(), st.sampled_from([0, 1 << 40]))
def test_by_content_averages_both_orders_of_every_pair(log, far):
    judge, pair, order, verdict, task = log
    said = {(j, p, o): OUTCOMES[OUTCOME_OF[v]] for j, p, o, v in zip(judge, pair, order, verdict, strict=True)}
    score = {("1", 0): 1, ("2", 0): -1, ("1", 1): -1, ("2", 1): 1}

    def preferred(j, p):
        both = [said.get((j, p, o)) for o in (0, 1)]
        if None in both or "invalid" in both:
            return None if None in both else 3
        ahead = sum(score.get((word, o), 0) for o, word in enumerate(both))
        return 0 if ahead > 0 else 1 if ahead < 0 else 2

    call = [far + p * 2 + o for p, o in zip(pair, order, strict=True)]
    for found in agreement_arrays(judge, call, verdict, task, content=True):
        expected = Counter()
        for p, t in dict(zip(pair, task, strict=True)).items():
            one, other = preferred(found.first, p), preferred(found.second, p)
            if one is not None and other is not None:
                expected[t, one, other] += 1
        assert {place: n for place, n in np.ndenumerate(found.tables) if n} == dict(expected)


GOOD = ([0, 0], [0, 0], [0, 1], [0, 2], [0, 0])


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        (3, [0, 5], "verdict_codes: codes must be 0..4 .first that is not: 5, row 1."),
        (2, [0, 2], "order_codes: codes must be 0..1"),
        (0, [0, -1], "judge_codes: codes must be at least 0"),
        (0, [0, 0, 0], "must be equally long .got 2, 3."),
        (0, [0.0, 0.0], "judge_codes: must be one axis of whole numbers"),
        (0, [], "judge_codes: must be one axis of whole numbers"),
        (2, [0, 0], "rows 1: asked before"),
        (4, [0, 1], "rows 0: task contradicts"),
    ],
)
def test_columns_that_make_no_sense_are_refused(column, value, message):
    columns = list(GOOD)
    columns[column] = value
    with pytest.raises(InputError, match=message):
        decompose_arrays(*columns)


def test_all_faults_of_a_log_are_named_at_once():
    with pytest.raises(InputError, match="2 problems"):
        decompose_arrays([0] * 9, [0] * 9, [0, 1] * 4 + [0], [0] * 9, [0] * 8 + [1])
    with pytest.raises(InputError, match="rows 1, 2, 3, 4, 5 and 2 more: asked before"):
        agreement_arrays([0] * 8, [0] * 8, [0] * 8, [0] * 8)
    with pytest.raises(InputError, match="task contradicts"):
        agreement_arrays([0, 1], [0, 0], [0, 0], [0, 1])
