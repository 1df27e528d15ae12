"""Any score scale: what agreement is measured by, and what an affine change of the scores leaves as it is."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark.claims import certificate, decide_claims, index, verify
from assaymark.errors import InputError
from assaymark.metrology import (
    ScoreTable,
    Truth,
    analyse,
    analyse_sums,
    simulate_scores,
    table_from_arrow,
    variance_components,
)
from assaymark.metrology.bootstrap import intraclass
from assaymark.metrology.design import fitted_truth
from assaymark.metrology.measure_panel import cross_family_pairs
from assaymark.metrology.simulation import Composer, Panelist, Spread
from assaymark.metrology.streaming import sums_of
from assaymark.metrology.sums import NotStreamableError
from assaymark.protocol import RubricChoice, Scale, Study, parse_study, plan_hash

PANEL = {"auditor": "north", "reader": "south", "skeptic": "east"}
DIMENSIONS = ("clarity", "risk")


def study_of(scale: Scale = (1, 5), extra: str = "", agreement: str | None = None) -> Study:
    listed = "".join(f'[[judges]]\nname = "{n}"\nmodel = "elsewhere/{n}"\nfamily = "{f}"\n' for n, f in PANEL.items())
    chosen = "" if agreement is None else f'agreement = "{agreement}"\n'
    rubric = "" if scale == (1, 5) and not chosen else f"[rubric]\nscale = {list(scale)}\n{chosen}"
    return parse_study(f'name = "mine"\nseed = 3\n{rubric}\n{extra}\n{listed}')


def rows(change: Any = float, *, levels: tuple[int, int] = (1, 5), seed: int = 1) -> pa.Table:
    """Whole scores on ``levels``, each put on another scale by ``change``, in the order of cycles."""
    rng, found = np.random.default_rng(seed), []
    low, high = levels
    for cycle in range(48):
        base = (low + high) / 2 + rng.normal(0, (high - low) / 8)
        for k, (agent, effect) in enumerate({"ash": 0.25, "birch": 0.06, "cedar": 0.0, "elm": 0.0}.items()):
            true = base + (high - low) * effect + rng.normal(0, (high - low) / 9, 2)
            for judge, family in PANEL.items():
                seen = np.clip(np.rint(true + rng.normal(0, (high - low) / 10, 2)), low, high).tolist()
                found.append({
                    "trajectory": 4 * cycle + k, "agent": agent, "cluster": f"week{cycle // 6}", "judge": judge,
                    "family": family, "trial": 1, "cycle": cycle, "clarity": change(seen[0]), "risk": change(seen[1]),
                })  # fmt: skip
    return pa.Table.from_pylist(found)


def found_in(table: ScoreTable, study: Study) -> tuple[dict[str, Any], list[Any]]:
    measurements = analyse(table, study, rng=np.random.default_rng(1))
    return {item.id: item for item in measurements}, list(decide_claims(measurements, study, "plan"))


def icc_by_anova(x: np.ndarray) -> float:
    """ICC(A,1) of items [n, 2] from the mean squares of a two-way layout (McGraw and Wong 1996, table 4)."""
    n, k = x.shape
    grand, items, judges = x.mean(), x.mean(axis=1), x.mean(axis=0)
    rows_ = k * ((items - grand) ** 2).sum() / (n - 1)
    columns = n * ((judges - grand) ** 2).sum() / (k - 1)
    error = ((x - items[:, None] - judges + grand) ** 2).sum() / ((n - 1) * (k - 1))
    return float((rows_ - error) / (rows_ + (k - 1) * error + k / n * (columns - error)))


@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 400)), min_size=3, max_size=40))
def test_the_correlation_of_two_judges_is_that_of_the_analysis_of_variance(items):
    x = np.array(items) / 4
    a, b = x.T - 37.5
    found = float(intraclass(len(x), a.sum(), b.sum(), a @ a, b @ b, a @ b))
    constant = np.ptp(x, axis=0) == 0
    if constant.all():
        assert math.isnan(found)
    elif constant.any():
        assert found == 0
    else:
        assert found == pytest.approx(icc_by_anova(x), abs=1e-9)


def test_a_scale_of_many_levels_is_compared_by_its_scores():
    study = study_of((0, 100))
    table = table_from_arrow(rows(lambda x: x, levels=(0, 100)), dimensions=DIMENSIONS, scale=(0, 100))
    known, verdicts = found_in(table, study)
    for place, name in enumerate(("aggregate", *DIMENSIONS)):
        item = known[f"kappa.mean_pairwise[dimension={name}]"]
        columns = table.stacked[:, :, place]
        pairs = [icc_by_anova(columns[:, list(pair)]) for pair in cross_family_pairs(table.families)]
        assert item.value == pytest.approx(np.mean(pairs), abs=1e-9)
        assert "intraclass correlation" in item.method
        assert item.low < item.value < item.high
        assert item.detail["bootstrap"]["low"] < item.value < item.detail["bootstrap"]["high"]
        # The jackknife over clusters, slowly.
        without = [
            np.mean([icc_by_anova(columns[table.cluster != g][:, list(p)]) for p in cross_family_pairs(table.families)])
            for g in range(len(table.clusters))
        ]
        se = math.sqrt(7 / 8 * np.square(np.array(without) - np.mean(pairs)).sum())
        assert item.high - item.value == pytest.approx(2.364624 * se, rel=1e-5)
    assert known["kappa.fleiss[dimension=aggregate]"].state.startswith("not measured")
    said = " ".join(reason for verdict in verdicts for reason in verdict.reasons)
    assert "agree on the overall score at intraclass correlation" in said
    assert "kappa" not in said
    assert not [name for verdict in verdicts for name in verdict.fragility if "kappa" in name or "half-even" in name]
    assert any("within 7.5 of each other" in verdict.claim.statement for verdict in verdicts)
    assert any("margin 5" in verdict.fragility for verdict in verdicts)
    indexed = index(known.values())
    for verdict in verdicts:
        checked = verify(certificate(verdict, indexed, study))
        assert checked.ok, (verdict.claim.id, checked)


LEVELS = ("score.effect", "lofo.effect", "single.level")


@pytest.mark.parametrize(
    ("scale", "low", "factor", "agreement"),
    [((0, 100), 0, 25, "icc"), ((-2, 2), -2, 1, "icc"), ((0, 1), 0, 0.25, "icc"), ((0, 4), 0, 1, "kappa"),
     ((11, 15), 11, 1, "kappa"), ((1, 9), 1, 2, None)],
)  # fmt: skip
def test_an_affine_change_of_the_scores_changes_no_verdict(scale, low, factor, agreement):
    """p-values, states, tiers and levels stay, gaps and their ends are multiplied. On 1..9 the aggregate is rounded to
    finer categories, so that its kappa is another: there only what decides orders is the same."""
    one, another = study_of(agreement=agreement), study_of(scale, agreement=agreement)
    tables = (
        table_from_arrow(rows(), dimensions=DIMENSIONS),
        table_from_arrow(rows(lambda x: low + factor * (x - 1)), dimensions=DIMENSIONS, scale=scale),
    )
    (first, verdicts), (second, changed) = (found_in(t, s) for t, s in zip(tables, (one, another), strict=True))
    assert first.keys() == second.keys()
    for name, item in first.items():
        other = second[name]
        if agreement is None and name.startswith("kappa"):
            continue
        assert item.state == other.state, name
        points = {"rubric points": factor, "squared points": factor**2}.get(item.unit, 1)
        start = low - factor if item.name in LEVELS else 0
        for part in ("value", "low", "high"):
            mine = getattr(item, part)
            wanted = None if mine is None else pytest.approx(start + mine * points, abs=1e-9, rel=1e-7)
            assert getattr(other, part) == wanted, (name, part)
        for part in ("p", "p_adjusted", "p_equivalence"):
            if part in item.detail:
                assert other.detail[part] == pytest.approx(item.detail[part], rel=1e-6), (name, part)
    assert [(v.claim.id, v.stability_status, v.publication_level) for v in verdicts] == [
        (v.claim.id, v.stability_status, v.publication_level) for v in changed
    ]
    assert [sorted(v.fragility.values()) for v in verdicts] == [sorted(v.fragility.values()) for v in changed]


def test_pass_and_fail_are_a_scale():
    table = table_from_arrow(rows(lambda x: float(x >= 3)), dimensions=DIMENSIONS, scale=(0, 1))
    study = study_of((0, 1))
    assert (study.rubric.coefficient, study.rubric.categories) == ("kappa", 2)
    known, _ = found_in(table, study)
    item = known["kappa.mean_pairwise[dimension=clarity]"]
    assert np.shape(item.detail["tables"]["auditor|reader"]) == (2, 2)
    assert 0 < item.value < 1
    assert known["contrast[dimension=clarity,high=ash,low=elm]"].value > 0.1


@pytest.mark.parametrize(("levels", "agreement"), [((0, 10), None), ((3, 5), None), ((0, 10), "icc"), ((-2, 2), None)])
def test_sums_say_what_the_rows_say_on_any_whole_scale(levels, agreement):
    source, study = rows(int, levels=levels), study_of(levels, agreement=agreement)
    table = table_from_arrow(source, dimensions=DIMENSIONS, scale=levels)
    by_row = {item.id: item for item in analyse(table, study, rng=np.random.default_rng(1))}
    sums = sums_of(source, dimensions=DIMENSIONS, scale=levels)
    for item in analyse_sums(sums, study, rng=np.random.default_rng(1)):
        if item.name.startswith(("kappa", "redundancy", "score.effect", "contrast")):
            assert item.value == (None if by_row[item.id].value is None else pytest.approx(by_row[item.id].value))
            assert item.detail.get("tables") == by_row[item.id].detail.get("tables")


def test_a_scale_that_cannot_be_summed_is_named():
    with pytest.raises(NotStreamableError, match=r"scores on 0\.\.100 have too many levels"):
        sums_of(rows(int, levels=(0, 100)), dimensions=DIMENSIONS, scale=(0, 100))


def test_scores_off_the_scale_are_named_with_it():
    with pytest.raises(InputError, match=r"usable scores lie in 1\.\.10 \(got 11"):
        table_from_arrow(rows(lambda x: x + 6), dimensions=DIMENSIONS, scale=(1, 10))


def test_limits_in_points_grow_with_the_scale_unless_they_are_set():
    assert study_of((1, 5)) == study_of()
    ten = study_of((1, 10), "[cells]\nhalo = 0.2\n")
    assert (ten.cells.substance, ten.cells.verbosity, ten.cells.halo) == (0.675, 1.125, 0.2)
    assert ten.inference.mde_sd == 2.25
    assert (ten.points, ten.scale_text, ten.rubric.coefficient) == (9, "1 to 10", "kappa")
    built = Study(**{name: getattr(study_of(), name) for name in ("name", "seed", "judges")},
                  rubric=RubricChoice(scale=(0, 100)))  # fmt: skip
    assert built.cells.substance == 7.5


def test_a_plan_on_1_to_5_keeps_its_hash_and_another_scale_has_another():
    plain = study_of()
    assert "scale" not in plain.model_dump(mode="json")["rubric"]
    assert plan_hash(plain, {}) == plan_hash(study_of(extra="[rubric]\nscale = [1, 5]\n"), {})
    assert plan_hash(plain, {}) != plan_hash(study_of((1, 6)), {})
    assert plan_hash(plain, {}) != plan_hash(study_of(agreement="icc"), {})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[rubric]\nscale = [5, 1]\n", "names its lowest score first"),
        ("[rubric]\nscale = [1, inf]\n", "finite"),
        ('[rubric]\nscale = [0, 100]\nagreement = "kappa"\n', "at most 11"),
        ('[rubric]\nscale = [0, 0.5]\nagreement = "kappa"\n', "whole from end to end"),
        ("oracle = true\n[rubric]\nscale = [1, 10]\n", "oracle scores on 1..5 alone"),
        ("[rubric]\nscale = [1, 10]\n[datasheets]\nvacuum_score = 11\n", "must lie on the scale, 1..10"),
        ("[datasheets]\nvacuum_score = 6\n", "must lie on the scale, 1..5"),
        ("[datasheets]\nslope = -5\n", "±4"),
    ],
)
def test_a_scale_that_cannot_be(text, said):
    with pytest.raises(InputError) as error:
        study_of(extra=text)
    assert said in str(error.value)


def test_simulated_studies_stay_on_the_scale():
    truth = Truth(
        (Composer("ash", 60.0), Composer("elm", 95.0)), (Panelist("auditor", "north"), Panelist("reader", "south")),
        residual=Spread(20.0), scale=(0, 100),
    )  # fmt: skip
    table = simulate_scores(truth, np.random.default_rng(2))
    assert (table.scores.min() >= 0, table.scores.max()) == (True, 100)
    fitted = fitted_truth(table, variance_components(table), (0, 100))
    assert fitted.means.max() > 60
    share = replace(table, scores=table.scores / 100, trials={n: t / 100 for n, t in table.trials.items()})
    continuous = fitted_truth(share, variance_components(share), (0, 1))
    drawn = simulate_scores(continuous, np.random.default_rng(3))
    assert 0.2 < drawn.scores.mean() < 1
    assert len(np.unique(drawn.scores)) > 50
