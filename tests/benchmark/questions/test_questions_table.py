"""The table of one model in the shape of Table 8, with its intervals."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from assaymark.benchmark.questions import TEMPLATES, Context, QAScore, Question, Scored, tabulate
from assaymark.benchmark.questions.payloads import Number, Printed
from assaymark.errors import InputError

TABLE_8 = {
    "DS-V4-Flash": ((0.520, 0.843, 0.945, 1.00, 0.932, 0.652, 0.843), 0.819, 0.966, 0.715),
    "Qwen3.7-Max": ((0.500, 0.859, 0.951, 1.00, 0.954, 0.724, 0.742), 0.819, 0.977, 0.706),
    "DS-V4-Pro": ((0.520, 0.837, 0.963, 1.00, 0.992, 0.652, 0.760), 0.818, 0.996, 0.692),
    "DB-2.0-Lite": ((0.460, 0.798, 0.957, 0.956, 0.897, 0.810, 0.747), 0.804, 0.927, 0.704),
    "DB-2.0-Pro": ((0.440, 0.847, 0.963, 0.991, 0.912, 0.824, 0.530), 0.787, 0.952, 0.660),
    "Qwen3.6-Plus": ((0.440, 0.858, 0.968, 1.00, 0.804, 0.640, 0.768), 0.783, 0.902, 0.677),
    "GLM-5.1": ((0.440, 0.855, 0.964, 1.00, 0.421, 0.882, 0.738), 0.757, 0.711, 0.729),
    "Qwen3.6-35B-A3B": ((0.460, 0.808, 0.961, 1.00, 0.230, 0.564, 0.763), 0.684, 0.615, 0.649),
    "HY3-Preview": ((0.460, 0.386, 0.336, 0.975, 0.958, 0.468, 0.783), 0.624, 0.967, 0.524),
    "Kimi-K2.6": ((0.420, 0.422, 0.493, 0.956, 0.280, 0.684, 0.320), 0.511, 0.618, 0.462),
}
"""Rows of Table 8: T1 to T7, Mean, F, J."""


def scored(template, number, value, *, condition="full", regime="bull", state="ok"):
    payload = Printed((), "What?")
    mark = f"{template}-{number}"
    one = Question(mark, template, "test", regime, date(2025, 3, 3), payload, Context(), Number(0.0))
    return Scored(one, condition, QAScore(value, state))


def table(rows, seed=0, **more):
    return tabulate(rows, rng=np.random.default_rng(seed), **more)


@pytest.mark.parametrize("model", TABLE_8)
def test_the_columns_mean_f_and_j_of_table_8_follow_from_its_templates(model):
    values, mean, formula, judgment = TABLE_8[model]
    found = table([scored(name, 0, value) for name, value in zip(TEMPLATES, values, strict=True)])
    assert found.mean.value == pytest.approx(mean, abs=1e-3)
    assert found.formula.value == pytest.approx(formula, abs=1e-3)
    assert found.judgment.value == pytest.approx(judgment, abs=1e-3)


def test_shares_have_wilson_intervals():
    found = table([scored("T1", n, float(n < 26)) for n in range(50)]).templates["T1"]
    assert (found.value, found.n, found.method) == (0.52, 50, "wilson")
    assert (found.low, found.high) == pytest.approx(proportion_confint(26, 50, method="wilson"))


def test_a_perfect_score_has_an_interval_of_sensible_width():
    found = table([scored("T4", n, 1.0) for n in range(50)]).templates["T4"]
    assert found.low == pytest.approx(0.929, abs=1e-3)
    assert found.high == 1.0


def test_other_scores_are_resampled_and_cover_as_often_as_they_say():
    rng = np.random.default_rng(4)
    inside = 0
    for trial in range(200):
        values = rng.beta(4, 2, 60)
        found = table([scored("T2", n, float(value)) for n, value in enumerate(values)], seed=trial, resamples=400)
        inside += found.templates["T2"].low <= 4 / 6 <= found.templates["T2"].high
    assert 0.88 <= inside / 200 <= 0.99


def test_the_ablation_pairs_questions():
    rows = [scored("T5", n, 0.5 + n / 100) for n in range(20)]
    rows += [scored("T5", n, 0.3 + n / 100, condition="restricted") for n in range(20)]
    rows += [scored("T5", 99, 0.0, condition="restricted")]
    found = table(rows).ablation["T5"]
    assert (found.value, found.n) == (pytest.approx(0.2), 20)
    assert (found.low, found.high) == pytest.approx((0.2, 0.2))


def test_regimes_are_means_over_templates():
    rows = [scored("T2", n, 0.2) for n in range(9)] + [scored("T3", 0, 0.8), scored("T3", 1, 0.5, regime="bear")]
    found = table(rows).regimes
    assert found["bull"].value == pytest.approx(0.5)
    assert found["bull"].n == 10
    assert found["bear"].value == 0.5
    assert "crisis" not in found


def test_what_was_not_asked_has_no_number():
    found = table([scored("T4", 0, 0.5)])
    assert found.mean is found.formula is found.judgment is None
    assert set(found.templates) == {"T4"}
    assert found.restricted == found.ablation == {}
    assert found.templates["T4"].low is None


def test_states_are_counted():
    rows = [scored("T2", 0, 0.5), scored("T2", 1, 0.0, state="refused"), scored("T2", 2, 0.0, state="invalid")]
    assert table(rows).states == {"invalid": 1, "ok": 1, "refused": 1}


def test_nothing_and_twice_are_refused():
    with pytest.raises(InputError, match="there are none"):
        table([])
    with pytest.raises(InputError, match=r"1 questions were scored twice: T2-0 \(full\)"):
        table([scored("T2", 0, 0.5), scored("T2", 0, 0.6)])


@given(st.lists(st.floats(0, 1), min_size=2, max_size=12), st.integers(0, 9))
def test_every_cell_lies_within_its_interval_and_0_and_1(values, seed):
    found = table([scored("T2", n, value) for n, value in enumerate(values)], seed=seed, resamples=300).templates["T2"]
    assert -1e-12 <= found.low <= found.value + 1e-6
    assert found.value - 1e-6 <= found.high <= 1 + 1e-12


def test_the_same_generator_gives_the_same_table():
    rows = [scored(name, n, n / 30) for name in TEMPLATES for n in range(30)]
    assert table(rows, seed=3) == table(rows, seed=3)
