"""Conduct of agents: planted shares and medians come back, and what nobody counted has a name."""

from __future__ import annotations

import math
import random
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from slow_orders import changed, unusable

from assaymark.errors import InputError
from assaymark.judging import load_rubric
from assaymark.metrology import (
    ORACLE_DIMENSION,
    AgentBehaviour,
    bootstrap_kappa,
    cluster_gap,
    cluster_t,
    conduct_measurements,
    contamination_measurements,
    effective_judges,
    jackknife_kappa,
    known_measurements,
    oracle_measurements,
    score_table,
    weighted_kappa,
    wilson,
)
from assaymark.records import Measurement
from assaymark.workflow import oracle_known

KEPT, BROKEN = (("max_weight", True), ("min_cash", True)), (("max_weight", False), ("min_cash", False))


def asked(agent: str = "ash", cluster: str = "calm", **more) -> AgentBehaviour:
    return AgentBehaviour(**{"agent": agent, "cluster": cluster, "usable": True, "checks": KEPT, "tokens": 50, **more})


def found(*conduct: AgentBehaviour, level: float = 0.95) -> dict[str, Measurement]:
    return {item.id: item for item in conduct_measurements(conduct, level=level)}


def test_the_planted_share_of_answers_comes_back_with_its_flags():
    lost = [asked(usable=False, checks=None, flags=(flag,)) for flag in ("refused", "refused", "invalid-reply")]
    item = found(*[asked()] * 6, asked(flags=("rejected-order",)), *lost)["agent.answered[agent=ash]"]
    assert (item.value, item.n, item.n_of) == (0.7, 10, "questions")
    assert (item.low, item.high) == wilson(7, 10)
    assert item.detail["flags"] == {"invalid-reply": 1, "refused": 2, "rejected-order": 1}
    assert "takes decisions as independent" in item.method
    # Limits are counted over usable decisions with a book.
    made = [*[asked()] * 3, asked(checks=BROKEN), asked(checks=None), asked(usable=False, checks=None)]
    item = found(*made)["agent.limits_kept[agent=ash]"]
    assert (item.value, item.n) == (0.75, 4)
    assert item.detail["breaches"] == {"max_weight": 1, "min_cash": 1}
    # A rule that is stated twice breaks once a decision.
    twice = (("max_weight", False), ("max_weight", False))
    assert found(asked(checks=twice))["agent.limits_kept[agent=ash]"].detail["breaches"] == {"max_weight": 1}
    # A regime in which all fails widens the ends over clusters only.
    made = [
        asked(cluster=f"regime {at}", checks=BROKEN if at == 0 else KEPT) for at in range(5) for _ in range(50)
    ]  # fmt: skip
    item = found(*made)["agent.limits_kept[agent=ash]"]
    low, high = item.detail["t_low"], item.detail["t_high"]
    assert item.detail["clusters"] == 5
    assert item.value == 0.8
    # Five cluster means 0, 1, 1, 1, 1: mean 0.8, standard error 0.2, t(4) = 2.776.
    assert low == pytest.approx(0.8 - 2.7764 * 0.2, abs=1e-4)
    assert high == 1.0
    assert item.high - item.low < 0.11


@pytest.mark.parametrize("made", [[asked()] * 4, [asked(checks=BROKEN), asked()], [asked(cluster="x"), asked()]])
def test_there_are_no_ends_over_clusters_where_none_can_be_given(made):
    detail = found(*made)["agent.limits_kept[agent=ash]"].detail
    assert (detail["t_low"], detail["t_high"]) == (None, None)


def test_medians_have_their_quartiles_and_say_what_is_not_known():
    made = [asked(seconds=value, output_tokens=int(10 * value)) for value in (1.0, 2.0, 3.0, 4.0, 50.0)]
    items = found(*made, asked(), asked(usable=False, checks=None, seconds=900.0, tokens=0))
    seconds = items["agent.seconds[agent=ash]"]
    assert (seconds.value, seconds.n, seconds.unit) == (3.0, 5, "seconds")
    assert seconds.detail == {"lower": 2.0, "upper": 4.0, "unknown": 1}
    assert items["agent.output_tokens[agent=ash]"].value == 30.0
    assert (items["agent.text_tokens[agent=ash]"].value, items["agent.text_tokens[agent=ash]"].n) == (50.0, 6)
    # An agent that never answered has states and one share of zero.
    items = found(*[asked(usable=False, checks=None, flags=("no-answer",), tokens=0)] * 3)
    assert items["agent.answered[agent=ash]"].value == 0.0
    assert items["agent.answered[agent=ash]"].low == 0.0
    states = {item.name: item.state for item in items.values() if item.value is None}
    assert states == {
        "agent.limits_kept": "undefined: no usable decisions with a book",
        "agent.seconds": "no timing: no usable decision has a time",
        "agent.output_tokens": "not counted: no usable decision has a token count of its provider",
        "agent.text_tokens": "undefined: no usable decision",
    }
    # Nothing asked is nothing measured.
    assert found() == {}
    # A level that is none is refused.
    with pytest.raises(InputError, match="level"):
        found(asked(), level=1.0)


CONDUCT = st.builds(
    AgentBehaviour, agent=st.sampled_from(["ash", "birch"]), cluster=st.sampled_from(["a", "b", "c"]),
    usable=st.booleans(),
    flags=st.lists(st.sampled_from(["refused", "rejected-order"]), max_size=2, unique=True).map(tuple),
    checks=st.none() | st.sampled_from([KEPT, BROKEN]), seconds=st.none() | st.floats(0, 100),
    output_tokens=st.none() | st.integers(0, 9999), tokens=st.integers(0, 500),
)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(st.lists(CONDUCT, max_size=12), st.randoms(use_true_random=False))
def test_the_order_of_the_records_changes_nothing_and_intervals_hold_their_share(made, rng):
    shuffled = rng.sample(made, len(made))
    items = found(*made)
    assert found(*shuffled) == items
    for item in items.values():
        assert (item.value is None) == (item.state != "ok")
        if item.low is not None:
            assert 0 <= item.low <= item.value <= item.high <= 1


def test_agents_stand_in_alphabetical_order_whatever_they_did():
    names = [f"agent {letter}" for letter in "dbca"]
    random.Random(1).shuffle(names)
    made = [item for item in conduct_measurements([asked(agent=name) for name in names]) if item.value == 1.0]
    seen = [item.labels["agent"] for item in made if item.name == "agent.answered"]
    assert seen == sorted(names)


# Judges against an oracle: planted errors recovered, kappa against its definition, and known quality for the panel

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
    # The oracle itself has no error.
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
    # Many clusters draw their bootstrap.
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
    # A rubric without the dimension has its state.
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
    # One cluster has values without intervals.
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
    # What construction fixes goes before and other wordings make no quality known.
    built = {"a": {ORACLE_DIMENSION: 1.0, "clarity": 2.0}, "c": {"clarity": 4.0}}
    both = oracle_known(locked("constraints-1.0"), {"a": 5, "b": 3}, built)
    assert both == {"a": built["a"], "b": {ORACLE_DIMENSION: 3.0}, "c": built["c"]}
    assert oracle_known(locked("v1.0"), {"a": 5, "b": 3}, built) == built


# Post-cutoff against earlier clusters: the t test it is when balanced, planted gaps, error rates, and its states

POST = 'contamination = {post_cutoff = ["week04"]}'
SOME = {"BTC": "01234", "SOL": "234"}


def split(records, plan, instruments=None):
    table = score_table(records[1], records[0])
    found = list(contamination_measurements(table, plan, instruments or {}))
    return table, {m.labels["split"]: m for m in found}


def shifted(records, clusters, by):
    decisions, judgments = records
    ids = {d.record_id for d in decisions if d.cluster in clusters}
    moved = changed(judgments, lambda j: j.trajectory in ids,
                    lambda own: {k: min(5.0, max(1.0, s + by)) for k, s in own.items()})  # fmt: skip
    return decisions, moved


@pytest.mark.parametrize("post", [(4,), (1, 3), (0, 1, 2)])
def test_balanced_records_are_students_two_sample_test_on_cluster_means(post):
    rng = np.random.default_rng(3)
    agent, cluster = (axis.ravel() for axis in np.indices((4, 50)))
    cluster = cluster // 10
    scores = 3 + 0.4 * agent + rng.normal(0, 0.5, 5)[cluster] + rng.normal(0, 1, agent.size)
    later = np.isin(cluster, post)
    gap = cluster_gap(scores, agent, cluster, later, level=0.9)
    means = np.array([scores[cluster == c].mean() for c in range(5)])
    inside = np.isin(np.arange(5), post)
    oracle = stats.ttest_ind(means[inside], means[~inside]) if len(post) > 1 else None
    assert gap.difference == pytest.approx(scores[later].mean() - scores[~later].mean())
    if oracle is not None:
        ends = oracle.confidence_interval(0.9)
        assert gap.p == pytest.approx(oracle.pvalue)
        assert (gap.low, gap.high) == pytest.approx((ends.low, ends.high))
    else:
        # One more draw from the clusters that there are: Student's prediction interval.
        error = means[~inside].std(ddof=1) * math.sqrt(1 + 1 / 4)
        half = stats.t.ppf(0.95, 3) * error
        assert gap.high - gap.difference == gap.difference - gap.low == pytest.approx(half)
        assert gap.p == pytest.approx(2 * stats.t.sf(abs(gap.difference) / error, 3))
    assert f"t(3), {len(post)} against {5 - len(post)} clusters" in gap.method


def by_regression(scores, agent, post):
    """The coefficient of the side beside a constant for each agent."""
    design = np.concatenate([np.eye(agent.max() + 1)[agent], post[:, None]], axis=1)
    return np.linalg.lstsq(design, scores, rcond=None)[0][-1]


@given(st.integers(0, 5000))
def test_unbalanced_records_are_the_regression_within_agents(seed):
    rng = np.random.default_rng(seed)
    agent = np.concatenate([np.repeat(np.arange(3), 2), rng.integers(0, 3, 30)])
    cluster = np.concatenate([np.tile([0, 4], 3), rng.integers(0, 5, 30)])
    scores, post = rng.normal(size=36), cluster >= 3
    gap = cluster_gap(scores, agent, cluster, post)
    assert gap.difference == pytest.approx(by_regression(scores, agent, post), abs=1e-9)
    assert gap.low < gap.difference < gap.high
    other = cluster_gap(-scores, np.array([2, 0, 1])[agent], 7 - cluster, post)
    assert other.difference == pytest.approx(-gap.difference, abs=1e-9)
    assert other.p == pytest.approx(gap.p)


def test_who_decides_after_the_cutoff_does_not_pass_for_a_gap():
    """A strong agent that mostly joins late lifts the plain mean, and not the gap."""
    rng = np.random.default_rng(5)
    cluster = np.concatenate([np.repeat(np.arange(5), 20), np.repeat(np.arange(5), [2, 2, 2, 2, 40])])
    agent = np.concatenate([np.zeros(100, dtype=int), np.ones(48, dtype=int)])
    scores = 3 + 1.5 * agent + rng.normal(0, 0.2, 148)
    post = cluster == 4
    gap = cluster_gap(scores, agent, cluster, post)
    assert scores[post].mean() - scores[~post].mean() > 0.7
    assert gap.difference == pytest.approx(0.0, abs=0.15)
    assert gap.low < 0 < gap.high


@pytest.mark.parametrize("between", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("post", [1, 2])
def test_true_nulls_are_rejected_at_the_stated_rate(between, post):
    rng, studies, hits = np.random.default_rng(11), 1500, 0
    agent, cluster = (axis.ravel() for axis in np.indices((2, 30)))
    cluster = cluster // 6
    for _ in range(studies):
        scores = agent + between * rng.normal(size=5)[cluster] + rng.normal(size=60)
        hits += cluster_gap(scores, agent, cluster, cluster < post).p <= 0.05
    low, high = stats.binom.ppf([0.0005, 0.9995], studies, 0.05)
    assert low <= hits <= high


def test_a_planted_gap_is_found_and_no_gap_is_bounded(make, study):
    records = make(cycles=20)
    table, found = split(records, study(POST))
    plain = found["all"]
    assert plain.low < 0 < plain.high
    scores, post = table.stacked.mean(axis=1)[:, 0], table.cluster == 4
    assert plain.value == pytest.approx(scores[post].mean() - scores[~post].mean())
    assert plain.detail == {
        "p": plain.detail["p"], "n_post": 80, "n_earlier": 320, "clusters_post": 1, "clusters_earlier": 4,
        "absent": [], "one_sided": [],
    }  # fmt: skip
    assert (plain.n, plain.n_of, plain.level, plain.unit) == (400, "trajectories", 0.95, "rubric points")
    assert plain.inputs == table.digest
    _, found = split(shifted(records, {"week04"}, -1.0), study(POST))
    assert found["all"].high < 0
    assert found["all"].detail["p"] < 0.05


def test_splits_by_instrument_and_those_that_are_missing_from_a_side(make, study):
    records = make()
    about = {
        d.record_id: frozenset(name for name, weeks in SOME.items() if d.cluster[-1] in weeks)
        | ({"ETH"} if d.cluster < "week02" else set())
        for d in records[0]
    }
    table, found = split(records, study(POST), about)
    assert list(found) == ["all", "instrument:BTC", "instrument:ETH", "instrument:SOL"]
    assert found["all"].detail["absent"] == ["ETH"]
    assert found["all"].value == found["instrument:BTC"].value
    sol = found["instrument:SOL"]
    assert (sol.detail["n_post"], sol.detail["n_earlier"], sol.detail["clusters_earlier"]) == (40, 80, 2)
    scores, rows = table.stacked.mean(axis=1)[:, 0], table.cluster >= 2
    post = table.cluster == 4
    assert sol.value == pytest.approx(scores[post].mean() - scores[rows & ~post].mean())
    eth = found["instrument:ETH"]
    assert eth.state == "not measurable: no record after the cutoff (clusters week04)"
    assert (eth.value, eth.detail["p"], eth.detail["absent"]) == (None, None, ["ETH"])


def test_agents_on_one_side_only_say_nothing(make, study):
    decisions, judgments = make()
    kept = [d for d in decisions if d.agent.id != "elm" or d.cluster == "week04"]
    ids = {d.record_id for d in kept}
    _, found = split((kept, [j for j in judgments if j.trajectory in ids]), study(POST))
    assert found["all"].detail["one_sided"] == ["elm"]
    assert (found["all"].n, found["all"].detail["n_post"]) == (150, 30)
    # One cluster on each side has no test.
    _, found = split(make(clusters=2), study('contamination = {post_cutoff = ["week01"]}'))
    m = found["all"]
    assert (m.state, m.low, m.level, m.detail["p"]) == ("ok", None, None, 1.0)
    assert m.method.endswith("one cluster on each side cannot be tested, p = 1")
    # Clusters that do not vary leave the number of choices.
    cluster = np.repeat(np.arange(5), 2)
    agent = np.tile([0, 1], 5)
    flat = cluster_gap(np.full(10, 3.0), agent, cluster, cluster == 4)
    assert (flat.difference, flat.p, flat.low) == (0.0, 1.0, None)
    step = cluster_gap(3.0 + (cluster >= 3), agent, cluster, cluster >= 3)
    assert (step.difference, step.p) == (1.0, 0.1)


@pytest.mark.parametrize(
    ("plan", "state"),
    [
        ("", "not measured: the plan names no post-cutoff clusters"),
        ('contamination = {post_cutoff = ["later"]}', "not measurable: no record after the cutoff (clusters later)"),
        (
            'contamination = {post_cutoff = ["week00", "week01", "week02", "week03", "week04"]}',
            "not measurable: no record before the cutoff",
        ),
    ],
)
def test_what_cannot_be_compared_says_why(make, study, plan, state):
    _, found = split(make(cycles=2), study(plan))
    assert [(m.state, m.value) for m in found.values()] == [(state, None)]


def test_no_common_agent_and_no_score_are_states(make, study):
    decisions, judgments = make(cycles=2)
    kept = [d for d in decisions if (d.agent.id == "elm") == (d.cluster == "week04")]
    ids = {d.record_id for d in kept}
    _, found = split((kept, [j for j in judgments if j.trajectory in ids]), study(POST))
    assert found["all"].state == "not measurable: no agent has records on both sides of the cutoff"
    _, found = split((decisions, unusable(judgments)), study(POST))
    assert found["all"].state == "not measurable: no trajectory has a usable score from every judge"
