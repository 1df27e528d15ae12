"""Conduct of agents: planted shares and medians come back, and what nobody counted has a name."""

from __future__ import annotations

import math
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from slow_orders import changed, some, unusable

from assaymark import metrology as mt
from assaymark.errors import InputError
from assaymark.judging import load_rubric
from assaymark.records import Measurement
from assaymark.workflow import known_scores

KEPT, BROKEN = (("max_weight", True), ("min_cash", True)), (("max_weight", False), ("min_cash", False))


def asked(**more) -> mt.AgentBehaviour:
    usual = {"agent": "ash", "cluster": "calm", "usable": True, "checks": KEPT, "tokens": 50}
    return mt.AgentBehaviour(**usual | more)


def found(*conduct: mt.AgentBehaviour, level: float = 0.95) -> dict[str, Measurement]:
    return {item.id: item for item in mt.conduct_measurements(conduct, level=level)}


def test_the_planted_share_of_answers_comes_back_with_its_flags():
    lost = [asked(usable=False, checks=None, flags=(flag,)) for flag in ("refused", "refused", "invalid-reply")]
    item = found(*[asked()] * 6, asked(flags=("rejected-order",)), *lost)["agent.answered[agent=ash]"]
    assert (item.value, item.n, item.n_of, (item.low, item.high)) == (0.7, 10, "questions", mt.wilson(7, 10))
    assert item.detail["flags"] == {"invalid-reply": 1, "refused": 2, "rejected-order": 1}
    assert "takes decisions as independent" in item.method
    # Limits are counted over usable decisions with a book.
    made = [*[asked()] * 3, asked(checks=BROKEN), asked(checks=None), asked(usable=False, checks=None)]
    item = found(*made)["agent.limits_kept[agent=ash]"]
    assert (item.value, item.n, item.detail["breaches"]) == (0.75, 4, {"max_weight": 1, "min_cash": 1})
    # A rule that is stated twice breaks once a decision.
    twice = found(asked(checks=(("max_weight", False), ("max_weight", False))))
    assert twice["agent.limits_kept[agent=ash]"].detail["breaches"] == {"max_weight": 1}
    # A regime in which all fails widens the ends over clusters only.
    made = [asked(cluster=f"regime {at}", checks=BROKEN if at == 0 else KEPT) for at in range(5) for _ in range(50)]
    item = found(*made)["agent.limits_kept[agent=ash]"]
    # Five cluster means 0, 1, 1, 1, 1: mean 0.8, standard error 0.2, t(4) = 2.776.
    ends = (pytest.approx(0.8 - 2.7764 * 0.2, abs=1e-4), 1.0)
    assert (item.value, item.detail["clusters"], item.detail["t_low"], item.detail["t_high"]) == (0.8, 5, *ends)
    assert item.high - item.low < 0.11
    for made in ([asked()] * 4, [asked(checks=BROKEN), asked()], [asked(cluster="x"), asked()]):
        detail = found(*made)["agent.limits_kept[agent=ash]"].detail
        assert (detail["t_low"], detail["t_high"]) == (None, None)


def test_medians_have_their_quartiles_and_say_what_is_not_known():
    made = [asked(seconds=value, output_tokens=int(10 * value)) for value in (1.0, 2.0, 3.0, 4.0, 50.0)]
    items = found(*made, asked(), asked(usable=False, checks=None, seconds=900.0, tokens=0))
    seconds, tokens = items["agent.seconds[agent=ash]"], items["agent.text_tokens[agent=ash]"]
    assert (seconds.value, seconds.n, seconds.unit) == (3.0, 5, "seconds")
    assert seconds.detail == {"lower": 2.0, "upper": 4.0, "unknown": 1}
    assert (items["agent.output_tokens[agent=ash]"].value, tokens.value, tokens.n) == (30.0, 50.0, 6)
    # An agent that never answered has states and one share of zero.
    items = found(*[asked(usable=False, checks=None, flags=("no-answer",), tokens=0)] * 3)
    assert (items["agent.answered[agent=ash]"].value, items["agent.answered[agent=ash]"].low) == (0.0, 0.0)
    assert {item.name: item.state for item in items.values() if item.value is None} == {
        "agent.limits_kept": "undefined: no usable decisions with a book",
        "agent.seconds": "no timing: no usable decision has a time",
        "agent.output_tokens": "not counted: no usable decision has a token count of its provider",
        "agent.text_tokens": "undefined: no usable decision",
    }
    assert found() == {}
    with pytest.raises(InputError, match="level"):
        found(asked(), level=1.0)


CONDUCT = st.builds(
    mt.AgentBehaviour, agent=st.sampled_from(["ash", "birch"]), cluster=st.sampled_from(["a", "b", "c"]),
    usable=st.booleans(),
    flags=st.lists(st.sampled_from(["refused", "rejected-order"]), max_size=2, unique=True).map(tuple),
    checks=st.none() | st.sampled_from([KEPT, BROKEN]), seconds=st.none() | st.floats(0, 100),
    output_tokens=st.none() | st.integers(0, 9999), tokens=st.integers(0, 500),
)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(st.lists(CONDUCT, max_size=12), st.randoms(use_true_random=False))
def test_the_order_of_the_records_changes_nothing_and_intervals_hold_their_share(made, rng):
    items = found(*made)
    assert found(*rng.sample(made, len(made))) == items
    answered = [item.labels["agent"] for item in items.values() if item.name == "agent.answered"]
    assert answered == sorted(answered)
    for item in items.values():
        assert (item.value is None) == (item.state != "ok")
        assert item.low is None or 0 <= item.low <= item.value <= item.high <= 1


# Judges against an oracle: planted errors recovered, kappa against its definition, and known quality for the panel
JUDGES = ("auditor", "reader", "skeptic")
ERRORS = {"auditor": 0.0, "reader": 0.6, "skeptic": -0.4}


def studied(one_decision, one_judgment, *, n=120, clusters=5, tag="", seed=3):
    """Records whose score by the oracle is known, and judges who err around it by an offset and by noise."""
    rng, judgments = np.random.default_rng(seed), []
    decisions = [one_decision("ash", k, f"w{k % clusters}", tag=tag) for k in range(n)]
    truth = {one.record_id: int(rng.integers(2, 5)) for one in decisions}
    for one, judge in product(decisions, JUDGES):
        seen = np.clip(truth[one.record_id] + ERRORS[judge] + rng.normal(0, 0.4), 1, 5)
        scores = {mt.ORACLE_DIMENSION: float(seen), "clarity": float(rng.integers(1, 6))}
        judgments.append(one_judgment(one.record_id, judge, scores))
    return mt.score_table(judgments, decisions), truth


def found_in(tables, oracle, plan, **options):
    found = {(m.name, m.labels.get("judge")): m for m in mt.oracle_measurements(tables, oracle, plan, **options)}
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
    assert kappas["reader"] < 0.8 < min(r)
    # Every number is that of its definition.
    oracle = np.array([truth[key] for key in table.trajectories])
    clusters = [table.clusters[g] for g in table.cluster]
    column = table.scores[:, :, table.dimensions.index(mt.ORACLE_DIMENSION)]
    for judge, scores in zip(table.judges, column.T, strict=True):
        ratings = np.clip(np.floor(scores + 0.5), 1, 5).astype(int)
        both = np.column_stack([ratings, oracle])
        kappa, error = found["oracle.kappa", judge], found["oracle.error", judge]
        boot, jack = mt.bootstrap_kappa(both, clusters), mt.jackknife_kappa(both, clusters)
        wanted = (mt.weighted_kappa(ratings, oracle), jack.low, jack.high, np.corrcoef(scores, oracle)[0, 1])
        assert (kappa.value, kappa.low, kappa.high, kappa.detail["r"]) == pytest.approx(wanted)
        assert (kappa.detail["bootstrap"]["low"], kappa.detail["bootstrap"]["high"]) == (boot.low, boot.high)
        assert kappa.detail["table"] == mt.contingency(ratings, oracle).tolist()
        tested = mt.cluster_t(scores - oracle, clusters)
        assert (error.value, error.low, error.high) == (tested.difference, tested.low, tested.high)


def table_of(one_decision, one_judgment, seen, clusters):
    """Every judge gives each record the score that is named for it."""
    decisions = [one_decision("ash", k, f"w{k % clusters}") for k in range(len(seen))]
    scores = {one.record_id: {mt.ORACLE_DIMENSION: float(seen[one.record_id])} for one in decisions}
    return mt.score_table([one_judgment(key, judge, own) for key, own in scores.items() for judge in JUDGES], decisions)


def test_tables_are_pooled_and_items_without_a_score_are_left_out(one_decision, one_judgment, study):
    one, truth = studied(one_decision, one_judgment, n=40, tag="a")
    other, more = studied(one_decision, one_judgment, n=30, tag="b", seed=4)
    known = {**truth, **dict(list(more.items())[:10]), "elsewhere": 3}
    tables = ([one, other], [one], [other])
    pooled, *apart = (found_in(each, known, study())["oracle.error", "reader"] for each in tables)
    assert (pooled.n, apart[0].n, apart[1].n) == (50, 40, 10)
    assert pooled.value == pytest.approx((40 * apart[0].value + 10 * apart[1].value) / 50)
    # The oracle itself has no error.
    truth = {f"ash.{k:04d}.1": 1 + k % 5 for k in range(24)}
    table = table_of(one_decision, one_judgment, truth, clusters=4)
    values = {(name, m.value) for (name, _), m in found_in([table], truth, study()).items()}
    assert values == {("oracle.kappa", 1.0), ("oracle.error", 0.0)}
    # Many clusters draw their bootstrap.
    table, truth = studied(one_decision, one_judgment, clusters=12)
    plan, rngs = study("[inference]\nresamples = 1000"), (None, np.random.default_rng(1), np.random.default_rng(9))
    one, again, other = (found_in([table], truth, plan, rng=rng)["oracle.kappa", "auditor"] for rng in rngs)
    assert one.detail["bootstrap"] == again.detail["bootstrap"] != other.detail["bootstrap"]
    assert (other.value, other.low, other.high) == (one.value, one.low, one.high)


def test_what_the_oracle_cannot_measure(scored, one_decision, one_judgment, study):
    table, truth = scored
    unknown, wording = "no scored item has an oracle score", "the rubric does not ask for elegance"
    for tables, known, more, state in (([table], {}, {}, unknown), ([], {}, {}, unknown),
                                       ([table], truth, {"dimension": "elegance"}, wording)):  # fmt: skip
        states = {m.state for m in mt.oracle_measurements(tables, known, study(), **more)}
        assert states == {f"not measurable: {state}"}
    # One score on both sides has an error and no kappa.
    names = [f"ash.{k:04d}.1" for k in range(9)]
    flat = table_of(one_decision, one_judgment, dict.fromkeys(names, 4), clusters=3)
    found = found_in([flat], dict.fromkeys(names, 3), study())
    kappa, error = found["oracle.kappa", "reader"], found["oracle.error", "reader"]
    assert (kappa.value, kappa.state) == (None, "undefined: both judges gave one rating to all 9 items")
    assert (kappa.detail["r"], error.value) == (None, 1.0)
    # One cluster has values without intervals.
    table, truth = studied(one_decision, one_judgment, n=20, clusters=1)
    found = found_in([table], truth, study())
    assert {(m.value is None, m.low, m.high, m.level) for m in found.values()} == {(False, None, None, None)}
    assert "needs at least two" in found["oracle.kappa", None].detail["interval_method"]
    # Scores off the scale and tables of other dimensions are refused.
    table, truth = scored
    other = mt.score_table([one_judgment("ash.0000.1z", j, {"clarity": 3.0}) for j in JUDGES],
                           [one_decision("ash", 0, "w0", tag="z")])  # fmt: skip
    whole, same = "must be a whole number from 1 to 5", "the same judges and dimensions"
    off_the_scale = [([table], score, whole) for score in (0, 6, 3.5, math.nan)]
    for tables, score, message in (*off_the_scale, ([table, other], 3, same)):
        with pytest.raises(InputError, match=message):
            list(mt.oracle_measurements(tables, {**truth, "t": score}, study()))


def test_the_effective_number_of_judges_rests_on_the_oracle(scored, study):
    table, truth = scored

    def known_by(rubric, seen, built):
        return known_scores(SimpleNamespace(rubric=load_rubric(rubric)), seen, built)

    known = known_by("v1.1", truth, {})
    found = {m.labels["dimension"]: m for m in mt.known_measurements([table], known, study())}
    oracle = np.array([truth[key] for key in table.trajectories])
    errors = table.scores[:, :, table.dimensions.index(mt.ORACLE_DIMENSION)] - oracle[:, None]
    assert found[mt.ORACLE_DIMENSION].value == pytest.approx(mt.effective_judges(errors))
    assert (found[mt.ORACLE_DIMENSION].value, found["clarity"].value) == (pytest.approx(3, abs=0.5), None)
    # What construction fixes goes before and other wordings make no quality known.
    built = {"a": {mt.ORACLE_DIMENSION: 1.0, "clarity": 2.0}, "c": {"clarity": 4.0}}
    both = known_by("constraints-1.0", {"a": 5, "b": 3}, built)
    assert both == {"a": built["a"], "b": {mt.ORACLE_DIMENSION: 3.0}, "c": built["c"]}
    assert known_by("v1.0", {"a": 5, "b": 3}, built) == built


# Post-cutoff against earlier clusters: the t test it is when balanced, planted gaps, error rates, and its states
POST = 'contamination = {post_cutoff = ["week04"]}'


def split(records, plan, instruments=None):
    table = mt.score_table(records[1], records[0])
    found = list(mt.contamination_measurements(table, plan, instruments or {}))
    return table, {m.labels["split"]: m for m in found}


@pytest.mark.parametrize("post", [(4,), (1, 3), (0, 1, 2)])
def test_balanced_records_are_students_two_sample_test_on_cluster_means(post):
    rng = np.random.default_rng(3)
    agent, cluster = (axis.ravel() for axis in np.indices((4, 50)))
    cluster = cluster // 10
    scores = 3 + 0.4 * agent + rng.normal(0, 0.5, 5)[cluster] + rng.normal(0, 1, agent.size)
    later = np.isin(cluster, post)
    gap = mt.cluster_gap(scores, agent, cluster, later, level=0.9)
    means = np.array([scores[cluster == c].mean() for c in range(5)])
    inside = np.isin(np.arange(5), post)
    assert gap.difference == pytest.approx(scores[later].mean() - scores[~later].mean())
    if len(post) > 1:
        expected = stats.ttest_ind(means[inside], means[~inside])
        ends, p = tuple(expected.confidence_interval(0.9)), expected.pvalue
    else:  # one more draw from the clusters that there are: Student's prediction interval
        error = means[~inside].std(ddof=1) * math.sqrt(1 + 1 / 4)
        half, p = stats.t.ppf(0.95, 3) * error, 2 * stats.t.sf(abs(gap.difference) / error, 3)
        ends = (gap.difference - half, gap.difference + half)
    assert (gap.p, gap.low, gap.high) == pytest.approx((p, *ends))
    assert f"t(3), {len(post)} against {5 - len(post)} clusters" in gap.method


@given(st.integers(0, 5000))
def test_unbalanced_records_are_the_regression_within_agents(seed):
    rng = np.random.default_rng(seed)
    agent = np.concatenate([np.repeat(np.arange(3), 2), rng.integers(0, 3, 30)])
    cluster = np.concatenate([np.tile([0, 4], 3), rng.integers(0, 5, 30)])
    scores, post = rng.normal(size=36), cluster >= 3
    gap = mt.cluster_gap(scores, agent, cluster, post)
    # The coefficient of the side beside a constant for each agent.
    design = np.concatenate([np.eye(3)[agent], post[:, None]], axis=1)
    assert gap.difference == pytest.approx(np.linalg.lstsq(design, scores, rcond=None)[0][-1], abs=1e-9)
    assert gap.low < gap.difference < gap.high
    other = mt.cluster_gap(-scores, np.array([2, 0, 1])[agent], 7 - cluster, post)
    assert (other.difference, other.p) == (pytest.approx(-gap.difference, abs=1e-9), pytest.approx(gap.p))


def test_who_decides_after_the_cutoff_does_not_pass_for_a_gap():
    """A strong agent that mostly joins late lifts the plain mean, and not the gap."""
    rng = np.random.default_rng(5)
    cluster = np.concatenate([np.repeat(np.arange(5), 20), np.repeat(np.arange(5), [2, 2, 2, 2, 40])])
    agent = np.concatenate([np.zeros(100, dtype=int), np.ones(48, dtype=int)])
    scores = 3 + 1.5 * agent + rng.normal(0, 0.2, 148)
    post = cluster == 4
    gap = mt.cluster_gap(scores, agent, cluster, post)
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
        hits += mt.cluster_gap(scores, agent, cluster, cluster < post).p <= 0.05
    low, high = stats.binom.ppf([0.0005, 0.9995], studies, 0.05)
    assert low <= hits <= high


def test_a_planted_gap_is_found_and_no_gap_is_bounded(make, study):
    records = make(cycles=20)
    table, found = split(records, study(POST))
    plain = found["all"]
    assert plain.low < 0 < plain.high
    scores, post = table.stacked.mean(axis=1)[:, 0], table.cluster == 4
    assert plain.value == pytest.approx(scores[post].mean() - scores[~post].mean())
    sides = {"n_post": 80, "n_earlier": 320, "clusters_post": 1, "clusters_earlier": 4, "absent": [], "one_sided": []}
    assert plain.detail == {"p": plain.detail["p"], **sides}
    assert (plain.n, plain.n_of, plain.level, plain.unit) == (400, "trajectories", 0.95, "rubric points")
    assert plain.inputs == table.digest
    ids = {d.record_id for d in records[0] if d.cluster == "week04"}
    worse = changed(records[1], lambda j: j.trajectory in ids, lambda own: {k: max(1.0, s - 1) for k, s in own.items()})
    _, found = split((records[0], worse), study(POST))
    assert found["all"].high < 0
    assert found["all"].detail["p"] < 0.05


def test_splits_by_instrument_and_those_that_are_missing_from_a_side(make, study):
    records = make()
    weeks = {"BTC": "01234", "ETH": "01", "SOL": "234"}
    about = {d.record_id: frozenset(name for name, when in weeks.items() if d.cluster[-1] in when) for d in records[0]}
    table, found = split(records, study(POST), about)
    assert list(found) == ["all", "instrument:BTC", "instrument:ETH", "instrument:SOL"]
    assert (found["all"].detail["absent"], found["all"].value) == (["ETH"], found["instrument:BTC"].value)
    sol = found["instrument:SOL"]
    assert (sol.detail["n_post"], sol.detail["n_earlier"], sol.detail["clusters_earlier"]) == (40, 80, 2)
    scores, post = table.stacked.mean(axis=1)[:, 0], table.cluster == 4
    assert sol.value == pytest.approx(scores[post].mean() - scores[(table.cluster >= 2) & ~post].mean())
    eth = found["instrument:ETH"]
    assert eth.state == "not measurable: no record after the cutoff (clusters week04)"
    assert (eth.value, eth.detail["p"], eth.detail["absent"]) == (None, None, ["ETH"])


def test_agents_on_one_side_only_say_nothing(make, study):
    _, found = split(some(make(), lambda d: d.agent.id != "elm" or d.cluster == "week04"), study(POST))
    assert (found["all"].detail["one_sided"], found["all"].n, found["all"].detail["n_post"]) == (["elm"], 150, 30)
    _, found = split(some(make(cycles=2), lambda d: (d.agent.id == "elm") == (d.cluster == "week04")), study(POST))
    assert found["all"].state == "not measurable: no agent has records on both sides of the cutoff"
    # One cluster on each side has no test.
    _, found = split(make(clusters=2), study('contamination = {post_cutoff = ["week01"]}'))
    m = found["all"]
    assert (m.state, m.low, m.level, m.detail["p"]) == ("ok", None, None, 1.0)
    assert m.method.endswith("one cluster on each side cannot be tested, p = 1")
    # Clusters that do not vary leave the number of choices.
    cluster, agent = np.repeat(np.arange(5), 2), np.tile([0, 1], 5)
    flat = mt.cluster_gap(np.full(10, 3.0), agent, cluster, cluster == 4)
    step = mt.cluster_gap(3.0 + (cluster >= 3), agent, cluster, cluster >= 3)
    assert (flat.difference, flat.p, flat.low, step.difference, step.p) == (0.0, 1.0, None, 1.0, 0.1)


def test_what_cannot_be_compared_says_why(make, study):
    decisions, judgments = make(cycles=2)
    unscored = "not measurable: no trajectory has a usable score from every judge"
    later = "not measurable: no record after the cutoff (clusters later)"
    every = [f"week0{k}" for k in range(5)]
    for post, seen, state in (
        ([], judgments, "not measured: the plan names no post-cutoff clusters"), (["later"], judgments, later),
        (["week04"], unusable(judgments), unscored), (every, judgments, "not measurable: no record before the cutoff"),
    ):  # fmt: skip
        _, found = split((decisions, seen), study(f"contamination = {{post_cutoff = {post}}}" if post else ""))
        assert [(m.state, m.value) for m in found.values()] == [(state, None)]
