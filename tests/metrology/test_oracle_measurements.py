"""Judges against an oracle: planted errors recovered, kappa against its definition, and known quality for the panel."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from assaymark.errors import InputError
from assaymark.judging import load_rubric
from assaymark.metrology import (
    bootstrap_kappa,
    cluster_t,
    effective_judges,
    jackknife_kappa,
    known_measurements,
    oracle_measurements,
    score_table,
    weighted_kappa,
)
from assaymark.metrology.probes import ORACLE_DIMENSION
from assaymark.workflow.measure import oracle_known

JUDGES = ("auditor", "reader", "skeptic")
ERRORS = {"auditor": 0.0, "reader": 0.6, "skeptic": -0.4}


def studied(one_decision, one_judgment, *, n=120, clusters=5, noise=0.4, tag="", seed=3):
    """Records whose score by the oracle is known, and judges who err around it by an offset and by noise."""
    rng = np.random.default_rng(seed)
    decisions = [one_decision("ash", k, f"w{k % clusters}", tag=tag) for k in range(n)]
    truth = {one.record_id: int(rng.integers(2, 5)) for one in decisions}
    judgments = []
    for one in decisions:
        for judge in JUDGES:
            seen = np.clip(truth[one.record_id] + ERRORS[judge] + rng.normal(0, noise), 1, 5)
            scores = {ORACLE_DIMENSION: float(seen), "clarity": float(rng.integers(1, 6))}
            judgments.append(one_judgment(one.record_id, judge, scores))
    return score_table(judgments, decisions), truth


def found_in(tables, oracle, plan, **options):
    found = {(m.name, m.labels.get("judge")): m for m in oracle_measurements(tables, oracle, plan, **options)}
    assert list(found) == [(name, who) for who in (None, *JUDGES) for name in ("oracle.kappa", "oracle.error")]
    return found


@pytest.fixture(scope="module")
def scored(one_decision, one_judgment):
    return studied(one_decision, one_judgment)


def test_planted_errors_are_recovered(scored, study):
    table, truth = scored
    found = found_in([table], truth, study())
    for judge, offset in ERRORS.items():
        m = found["oracle.error", judge]
        assert m.low < offset < m.high
        assert (m.n, m.unit, m.level) == (120, "rubric points", 0.95)
    assert found["oracle.error", None].value == pytest.approx(np.mean([found["oracle.error", j].value for j in JUDGES]))
    kappas = {who: found["oracle.kappa", who].value for who in JUDGES}
    assert kappas["auditor"] == max(kappas.values())
    # Leniency lowers kappa and leaves the correlation alone.
    r = [found["oracle.kappa", judge].detail["r"] for judge in JUDGES]
    assert min(r) > 0.8
    assert kappas["reader"] < min(r)


def test_every_number_is_that_of_its_definition(scored, study):
    table, truth = scored
    found = found_in([table], truth, study())
    oracle = np.array([truth[key] for key in table.trajectories])
    clusters = [table.clusters[g] for g in table.cluster]
    column = table.dimensions.index(ORACLE_DIMENSION)
    for j, judge in enumerate(table.judges):
        scores = table.scores[:, j, column]
        ratings = np.clip(np.floor(scores + 0.5), 1, 5).astype(int)
        both = np.column_stack([ratings, oracle])
        kappa, error = found["oracle.kappa", judge], found["oracle.error", judge]
        boot, jack = bootstrap_kappa(both, clusters), jackknife_kappa(both, clusters)
        assert kappa.value == weighted_kappa(ratings, oracle)
        assert (kappa.low, kappa.high) == pytest.approx((jack.low, jack.high))
        assert (kappa.detail["bootstrap"]["low"], kappa.detail["bootstrap"]["high"]) == (boot.low, boot.high)
        assert kappa.detail["r"] == pytest.approx(np.corrcoef(scores, oracle)[0, 1])
        counts = np.array(kappa.detail["table"])
        assert counts.sum() == 120
        assert counts[3, 2] == np.sum((ratings == 4) & (oracle == 3))
        tested = cluster_t(scores - oracle, clusters)
        assert (error.value, error.low, error.high) == (tested.difference, tested.low, tested.high)


def test_tables_are_pooled_and_items_without_a_score_are_left_out(one_decision, one_judgment, study):
    one, truth = studied(one_decision, one_judgment, n=40, tag="a")
    other, more = studied(one_decision, one_judgment, n=30, tag="b", seed=4)
    known = {**truth, **dict(list(more.items())[:10])}
    both = found_in([one, other], {**known, "elsewhere": 3}, study())
    apart = [found_in([table], known, study())["oracle.error", "reader"] for table in (one, other)]
    pooled = both["oracle.error", "reader"]
    assert (pooled.n, apart[0].n, apart[1].n) == (50, 40, 10)
    assert pooled.value == pytest.approx((40 * apart[0].value + 10 * apart[1].value) / 50)


def test_the_oracle_itself_has_no_error(one_decision, one_judgment, study):
    decisions = [one_decision("ash", k, f"w{k % 4}") for k in range(24)]
    truth = {one.record_id: 1 + k % 5 for k, one in enumerate(decisions)}
    judgments = [
        one_judgment(one.record_id, judge, {ORACLE_DIMENSION: float(truth[one.record_id])})
        for one in decisions
        for judge in JUDGES
    ]
    found = found_in([score_table(judgments, decisions)], truth, study())
    assert {m.value for (name, _), m in found.items() if name == "oracle.kappa"} == {1.0}
    assert {m.value for (name, _), m in found.items() if name == "oracle.error"} == {0.0}


def test_many_clusters_draw_their_bootstrap(one_decision, one_judgment, study):
    table, truth = studied(one_decision, one_judgment, clusters=12)
    plan = study("[inference]\nresamples = 1000")
    one, again, other = (
        found_in([table], truth, plan, rng=rng)["oracle.kappa", "auditor"]
        for rng in (None, np.random.default_rng(plan.seed), np.random.default_rng(9))
    )
    assert one.detail["bootstrap"] == again.detail["bootstrap"] != other.detail["bootstrap"]
    assert (other.value, other.low, other.high) == (one.value, one.low, one.high)


# --- what cannot be measured ------------------------------------------------------------------------------------------


def test_nothing_scored_and_nothing_known_have_their_states(scored, study):
    table, _ = scored
    for tables in ([table], []):
        states = {m.state for m in oracle_measurements(tables, {}, study())}
        assert states == {"not measurable: no scored item has an oracle score"}


def test_a_rubric_without_the_dimension_has_its_state(scored, study):
    table, truth = scored
    states = {m.state for m in oracle_measurements([table], truth, study(), dimension="elegance")}
    assert states == {"not measurable: the rubric does not ask for elegance"}


def test_one_score_on_both_sides_has_an_error_and_no_kappa(one_decision, one_judgment, study):
    decisions = [one_decision("ash", k, f"w{k % 3}") for k in range(9)]
    judgments = [one_judgment(d.record_id, j, {ORACLE_DIMENSION: 4.0}) for d in decisions for j in JUDGES]
    found = found_in([score_table(judgments, decisions)], {d.record_id: 3 for d in decisions}, study())
    kappa, error = found["oracle.kappa", "reader"], found["oracle.error", "reader"]
    assert kappa.value is None
    assert kappa.state == "undefined: both judges gave one rating to all 9 items"
    assert kappa.detail["r"] is None
    assert error.value == 1.0


def test_one_cluster_has_values_without_intervals(one_decision, one_judgment, study):
    table, truth = studied(one_decision, one_judgment, n=20, clusters=1)
    found = found_in([table], truth, study())
    for m in found.values():
        assert m.value is not None
        assert (m.low, m.high, m.level) == (None, None, None)
    assert "needs at least two" in found["oracle.kappa", None].detail["interval_method"]


@pytest.mark.parametrize("score", [0, 6, 3.5, float("nan")])
def test_scores_off_the_scale_are_refused(scored, study, score):
    table, truth = scored
    with pytest.raises(InputError, match="must be a whole number from 1 to 5"):
        list(oracle_measurements([table], {**truth, "t": score}, study()))


def test_tables_of_other_dimensions_are_refused(one_decision, one_judgment, scored, study):
    table, truth = scored
    decisions = [one_decision("ash", 0, "w0", tag="z")]
    other = score_table([one_judgment(decisions[0].record_id, j, {"clarity": 3.0}) for j in JUDGES], decisions)
    with pytest.raises(InputError, match="the same judges and dimensions"):
        list(oracle_measurements([table, other], truth, study()))


# --- known quality ----------------------------------------------------------------------------------------------------


def locked(rubric):
    return SimpleNamespace(rubric=load_rubric(rubric))


def test_the_effective_number_of_judges_rests_on_the_oracle(scored, study):
    table, truth = scored
    known = oracle_known(locked("v1.1"), truth, {})
    found = {m.labels["dimension"]: m for m in known_measurements([table], known, study())}
    oracle = np.array([truth[key] for key in table.trajectories])
    errors = table.scores[:, :, table.dimensions.index(ORACLE_DIMENSION)] - oracle[:, None]
    assert found[ORACLE_DIMENSION].value == pytest.approx(effective_judges(errors))
    assert found[ORACLE_DIMENSION].value == pytest.approx(3, abs=0.5)
    assert found["clarity"].value is None


def test_what_construction_fixes_goes_before_and_other_wordings_make_no_quality_known():
    built = {"a": {ORACLE_DIMENSION: 1.0, "clarity": 2.0}, "c": {"clarity": 4.0}}
    both = oracle_known(locked("constraints-1.0"), {"a": 5, "b": 3}, built)
    assert both == {"a": built["a"], "b": {ORACLE_DIMENSION: 3.0}, "c": built["c"]}
    assert oracle_known(locked("v1.0"), {"a": 5, "b": 3}, built) == built
