"""Claims about models on a benchmark: planted orders are supported, noise is not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from assaymark.claims import DISSOCIATION, DRAWDOWN, SHARPE_CONTRAST, Board, decide_benchmark
from assaymark.metrology import OrderPlan, ScoredItems, board_measurements
from assaymark.plan import OrderRules
from assaymark.records import Measurement

BOARD = Board("balanced", "CEPS under the balanced profile", "profiles")
RULES = OrderPlan(OrderRules(), span=1.0, unit="", cycle="item")


def scored(values, parts=None):
    values = np.asarray(values, dtype=float)
    m, n = values.shape
    clusters = tuple(f"{k:03d}" for k in range(n))
    return ScoredItems(tuple("abcdefghij"[:m]), values, clusters, tuple(parts or ("w",) * n))


def measured(values, *, other=None, parts=None, board=BOARD, order="exchangeable"):
    others = {} if other is None else {board.name: scored(other, parts)}
    return list(board_measurements({board.name: scored(values, parts)}, RULES, others=others, order=order))


def ranked(measurements, boards=(BOARD,), **rules):
    inference = OrderRules(**{name: rules.pop(name) for name in ("alpha", "margin") if name in rules})
    return decide_benchmark(measurements, boards, "plan", inference, **{"families": 1, **rules})


def decided(*args, **rules):
    return ranked(*args, **rules)[0]


def planted(levels, *, noise=0.02, n=24, seed=1):
    rng = np.random.default_rng(seed)
    return np.array(levels)[:, None] + rng.normal(0, 0.2, n) + rng.normal(0, noise, (len(levels), n))


def by_id(found):
    return {one.claim.id: one for one in found}


def supported(found):
    return {one.claim.id for one in found if one.publication_level != "no-claim"}


def order(high, low):
    return f"above[dimension=balanced,high={high},low={low}]"


def first(model):
    return f"first[agent={model},dimension=balanced]"


def about(found, kind, *models):
    """The verdict of a kind on two models, in whichever direction."""
    return next(
        one for name, one in by_id(found).items() if name.startswith(kind) and {*models} == {*one.claim.subjects}
    )


def orders_in(measure, boards=(BOARD,), seeds=200):
    """In how many of 200 drawn benchmarks any order is supported: in none without a contrast of a small p."""

    def ordered(items) -> bool:
        small = any(item.name == "contrast" and item.detail["p"] <= 0.05 for item in items)
        return small and any(one.claim.asserts_order and one.publication_level != "no-claim"
                             for one in decided(items, boards))  # fmt: skip

    return sum(ordered(measure(seed)) for seed in range(seeds))


def test_planted_tiers_are_found_and_their_pairs_supported():
    """a = b > c = d > e: two cuts, and no order inside a tier."""
    found, (board,) = ranked(measured(planted([0.6, 0.6, 0.4, 0.4, 0.1])))
    assert board.tiers == (("a", "b"), ("c", "d"), ("e",))
    assert board.ranks == {"a": (1, 2), "b": (1, 2), "c": (3, 4), "d": (3, 4), "e": (5, 5)}
    assert (board.pairs, board.open_pairs) == (10, 2)
    assert by_id(found)[order("a", "e")].publication_level == "headline"
    inside = about(found, "above", "a", "b")
    assert (inside.publication_level, inside.stability_status) == ("no-claim", "tie-class")
    assert inside.reasons[0].startswith("The difference is not resolved: p = ")
    assert not any(name.startswith("first") for name in supported(found))


def test_a_leader_ranks_first_and_its_claim_has_every_field_of_format_2():
    found = by_id(decided(measured(planted([0.6, 0.4, 0.4, 0.4]))))
    leader, pair = found[first("a")], found[order("a", "b")]
    assert leader.claim.statement == "a ranks first of the four models on CEPS under the balanced profile."
    statuses = leader.publication_level, leader.agreement_status, leader.adversarial_status
    assert statuses == ("headline", "not judged", "not judged")
    assert (leader.claim.dimension, leader.claim.scope, leader.stability) == ("balanced", "benchmark", None)
    assert leader.p < leader.p_adjusted == leader.p_adjusted_headline < 0.05
    assert (leader.caps, set(leader.fragility)) == ((), {"own variance of each pair"})
    assert pair.pair_state == "ordered"
    assert (pair.own_family, pair.length, pair.distinct, pair.other_judges) == ("not-applicable",) * 4


def test_models_that_are_shown_to_score_alike_are_within_the_margin():
    found = decided(measured(planted([0.5, 0.5, 0.2])))
    close = about(found, "within", "a", "b")
    assert close.publication_level == "headline"
    says = "a and b score within 0.075 of each other on CEPS under the balanced profile"
    assert close.claim.statement.startswith(says)
    assert "90 % interval" in close.claim.statement
    assert not close.claim.asserts_order
    assert set(close.fragility) == {"margin 0.05", "margin 0.1"}
    assert about(found, "within", "a", "c").publication_level == "no-claim"
    # An order below the margin says so.
    small = by_id(decided(measured(planted([0.53, 0.5], noise=0.01))))[order("a", "b")]
    assert (small.pair_state, small.publication_level) == ("ordered-by-less-than-the-margin", "headline")
    assert [one.id for one in small.conditions] == ["small-gap"]


def lacking(model, share, *, left_out="", part=BOARD.family):
    detail = {"missing": round(200 * share), "left_out": left_out}
    return item("missing.share", {"model": model, "part": part}, share, 200, "replies asked for", detail=detail)


@pytest.mark.parametrize("levels", [[0.6, 0.3, 0.5], [0.6, 0.5]])
def test_a_model_that_was_left_out_is_on_no_board_and_orders_of_the_others_are_qualified(levels):
    why, last = "12.5% of its replies are missing, at most 5.0%", "abc"[len(levels) - 1]
    values = planted(levels)
    values[-1] = np.nan
    items = replace(scored(values), unscored={last: why})
    found = decided([*board_measurements({BOARD.name: items}, RULES), lacking(last, 0.125, left_out=why)])
    verdicts = by_id(found)
    ours, leader = verdicts[first(last)], verdicts[first("a")]
    assert (ours.publication_level, ours.reasons) == ("no-claim", (f"{last} has no score: {why}.",))
    if len(levels) == 2:
        assert (leader.publication_level, leader.stability_status) == ("no-claim", "not tested")
        assert leader.reasons == ("a is the only model with a score, and cannot be tested.",)
        assert not supported(found)
        return
    assert supported(found) == {first("a"), order("a", "b")}
    for one in (leader, verdicts[order("a", "b")]):
        assert (one.publication_level, one.binding) == ("qualified", ("missing_replies",))
        said = [condition.text for condition in one.conditions if condition.id == "missing-replies"]
        assert said == [f"c was left out of the {BOARD.family}: {why}."]
    assert " of the two models with a score on " in leader.claim.statement


def test_what_is_missing_within_the_limit_is_said_of_its_orders_and_caps_none():
    found = by_id(
        decided([*measured(planted([0.6, 0.4, 0.4, 0.4])), lacking("b", 0.04), lacking("c", 0.5, part="other")])
    )
    some, other = (found[order("a", low)] for low in "bc")
    assert (some.publication_level, other.publication_level) == ("headline", "headline")
    (said,) = [one.text for one in some.conditions if one.id == "missing-replies"]
    assert said == "b gave no reply to 8 of 200 calls of the profiles (4.0 %)."
    assert "missing-replies" not in {one.id for one in other.conditions}


THREE = (Board("all", "CEPS", "p"), Board("one", "CEPS of one", "p"), Board("two", "CEPS of two", "p"))


def test_equal_models_are_ordered_no_more_often_than_alpha_allows():
    # .05 of 200 is 10; more than 20 once in a thousand times
    assert orders_in(lambda seed: measured(planted([0.5] * 4, seed=seed, n=12))) <= 20


def test_boards_of_one_family_hold_together_at_its_alpha():
    """Four equal models on two profiles and over both: any false order on any of the three boards."""

    def drawn(seed):
        rng = np.random.default_rng([seed, 9])
        parts = {name: scored(rng.normal(0.5, 0.1, (4, 12))) for name in ("one", "two")}
        whole = scored((parts["one"].values + parts["two"].values) / 2)
        return list(board_measurements({"all": whole, **parts}, RULES))

    assert orders_in(drawn, THREE) <= 20
    # Other boards share alpha with the first.
    values = planted([0.5, 0.5], n=10)
    three = list(board_measurements({board.name: scored(values) for board in THREE}, RULES))
    assert [board.alpha for board in ranked(three, THREE)[1]] == pytest.approx([0.04, 0.01, 0.01])
    assert ranked(measured(values))[1][0].alpha == pytest.approx(0.05)


def test_few_clusters_are_said_and_two_cannot_be_tested():
    few = by_id(decided(measured(planted([0.9, 0.1], n=4))))[order("a", "b")]
    assert (few.publication_level, few.condition) == ("headline", "Few clusters (4): this rests on normal errors.")
    (untested,) = [v for v in decided(measured(planted([0.9, 0.1], n=2))) if v.claim.id.startswith("above")]
    assert (untested.stability_status, untested.pair_state) == ("not tested", "cannot-be-tested")
    assert untested.reasons == (
        "a and b: cannot be tested (2 common clusters; 3 are needed, 5 or more to have a chance).",
    )


def test_clusters_that_follow_each_other_or_depend_lower_every_order_to_qualified():
    values = planted([0.6, 0.3], n=18)
    found = by_id(decided(measured(values, order="consecutive")))[order("a", "b")]
    assert (found.publication_level, found.fragility) == ("qualified", {})
    assert [one.id for one in found.conditions] == ["consecutive"]
    few = by_id(decided(measured(values[:, :11], order="consecutive")))
    assert few[order("a", "b")].stability_status == "not tested"
    rng = np.random.default_rng(6)
    swing = np.sin(np.arange(30) / 3)
    values = np.stack([0.8 + 0.05 * swing, 0.3 - 0.05 * swing]) + rng.normal(0, 0.005, (2, 30))
    found = by_id(decided(measured(values)))[order("a", "b")]
    assert (found.publication_level, [one.id for one in found.conditions]) == ("qualified", ["autocorrelated"])


def test_what_was_seen_before_the_plan_was_locked_is_no_headline():
    found = decided([*measured(planted([0.6, 0.3])), ratio("a", 2.0, 0.001)], preregistered=False)
    said = [one for one in found if one.publication_level != "no-claim"]
    assert {one.publication_level for one in said} == {"qualified"}
    assert all("not-preregistered" in {c.id for c in one.conditions} and not one.preregistered for one in said)


def test_an_order_that_a_window_or_the_other_convention_turns_around_is_qualified():
    gap = np.array([0.5] * 12 + [-0.2] * 4) + np.random.default_rng(5).normal(0, 0.02, 16)
    parts = ["calm"] * 12 + ["crash"] * 4
    turned = by_id(decided(measured(np.stack([gap, np.zeros(16)]), parts=parts)))[order("a", "b")]
    assert (turned.publication_level, turned.stability_status) == ("qualified", "rule-dependent")
    assert turned.conditions[0].text == "Without calm the ranking is reversed."
    assert turned.fragility["calm"] == "no-claim"
    assert ("stability", "qualified") in [(one.field, one.level) for one in turned.caps]
    formulas, two, three = (
        "By the formulas of PortBench’s published code",
        planted([0.6, 0.3]),
        planted([0.6, 0.3, 0.3]),
    )
    third = three.copy()
    third[2] = three[0] + 0.1
    alike = planted([0.5, 0.5])
    for kind, values, other, says in (
        ("above", two, two[::-1], "the ranking is reversed."),
        (first("a"), three, third, "1 of the 2 pairs is reversed: a and c."),
        ("within", alike, alike + np.array([[0.2], [0.0]]), "the two score further apart."),
    ):
        (one,) = [v for v in decided(measured(values, other=other)) if v.claim.id.startswith(kind)]
        assert (one.publication_level, one.conditions[0].text) == ("qualified", f"{formulas} {says}")


def test_one_model_alone_has_no_order():
    verdicts, (board,) = ranked(measured(planted([0.5])))
    assert (verdicts, board.tiers) == ((), (("a",),))


def test_families_of_the_plan_share_alpha_whether_or_not_they_were_run():
    """A difference that is significant by itself is not when the plan has two further families, measured or not."""
    values = planted([0.5, 0.5], noise=0.1, n=10, seed=4)
    values[0] += 0.08
    boards = (BOARD, Board("x", "X", "two"), Board("y", "Y", "three"))
    (p,) = [item.detail["p"] for item in measured(values) if item.name == "contrast"]
    assert supported(decided(measured(values), alpha=p * 1.5))
    assert supported(decided(measured(values), boards, alpha=p * 1.5))
    assert not supported(decided(measured(values), alpha=p * 1.5, families=3))


def unscored(values, *names, parts=None):
    """The board of `measured` where these models have no score."""
    items = scored(values, parts)
    gone = [items.models.index(name) for name in names]
    items.values[gone] = np.nan
    items = replace(items, unscored=dict.fromkeys(names, "it never chooses"))
    return list(board_measurements({BOARD.name: items}, RULES))


def test_nothing_is_claimed_of_a_model_without_a_score_and_its_pairs_keep_their_places():
    found, (board,) = ranked(unscored(planted([0.9, 0.6, 0.4, 0.1]), "a"))
    verdicts = by_id(found)
    assert not any("a" in one.claim.subjects for one in verdicts.values() if one.publication_level != "no-claim")
    assert verdicts[first("a")].reasons == ("a has no score: it never chooses.",)
    assert about(found, "above", "a", "b").reasons[0] == "a has no score: it never chooses."
    leader = verdicts[first("b")]
    says = "b ranks first of the three models with a score on CEPS under the balanced profile."
    assert (leader.claim.statement, leader.publication_level) == (says, "headline")
    assert (board.models, board.tiers) == (("b", "c", "d"), (("b",), ("c",), ("d",)))
    assert board.ranks == {"b": (1, 1), "c": (2, 2), "d": (3, 3)}
    assert board.unscored == {"a": "no score: it never chooses"}
    assert len(verdicts) == len(by_id(decided(measured(planted([0.9, 0.6, 0.4, 0.1])))))  # the candidates of the plan
    # p of three models alone would be corrected for three pairs; it is for six.
    alone = by_id(decided(measured(planted([0.9, 0.6, 0.4, 0.1])[1:])))
    ours = [one.p_adjusted for one in verdicts.values() if "a" not in one.claim.subjects]
    assert max(one.p_adjusted for one in alone.values()) <= max(ours)


def test_a_model_without_a_score_does_not_hide_that_neighbours_depend():
    waves = np.sin(np.arange(24) / 3)[None] * np.array([[0.2], [-0.2], [0.0]]) + planted([0.9, 0.5, 0.1])
    board = decided(unscored(waves, "c"))
    assert "autocorrelation" in by_id(board)[order("a", "b")].condition


def test_one_model_with_a_score_ranks_nowhere():
    found, (board,) = ranked(unscored(planted([0.9, 0.6]), "a"))
    assert not supported(found)
    assert board.tiers == (("b",),)


# --- drawdown limits ------------------------------------------------------------------------------------------------


def item(name, labels, value, n, n_of, **more):
    return Measurement(name=name, labels=labels, value=value, n=n, n_of=n_of, method="m", **more)


def fall(model, window, value, *, other=None, profile="balanced", tolerance=0.1, wanted=("x", "y")):
    seen = value if other is None else other
    detail = {"tolerance": tolerance, "stress": True, "wanted": list(wanted), "other": seen}
    return item(DRAWDOWN, {"model": model, "profile": profile, "window": window}, value, 80, "days", detail=detail)


def agreeing(low, high, value, n):
    return item(DISSOCIATION, {"board": "all"}, value, n, "models", low=low, high=high, level=0.95)


def test_a_drawdown_limit_is_a_fact_about_every_window():
    found = by_id(decided([fall("a", "x", 0.08), fall("a", "y", 0.1), fall("b", "x", 0.05), fall("b", "y", 0.124)], ()))
    kept, broken = found["gate[model=a,profile=balanced]"], found["gate[model=b,profile=balanced]"]
    assert kept.claim.statement.startswith("a stays within a drawdown of 10 % in all two stress windows")
    assert broken.claim.statement == "b falls by more than 10 % under the balanced profile in y (12.4 %)."
    assert {kept.publication_level, broken.publication_level} == {"headline"}
    count = found["gates[profile=balanced]"]
    assert count.claim.statement.startswith("One of two models stays within")


def test_what_is_counted_or_compared_without_a_model_that_was_left_out_is_qualified():
    why = "100.0% of its replies are missing, at most 5.0%"
    gone = [replace(fall("c", window, None), state=f"no score: {why}") for window in "xy"]
    falls = [*gone, *(fall(model, window, 0.05) for model in "ab" for window in "xy")]
    ranks = agreeing(0.7, 0.9, 0.8, 3)
    found = by_id(decided([*falls, ranks, lacking("c", 1.0, left_out=why, part="pipeline")], ()))
    assert found["gate[model=a,profile=balanced]"].publication_level == "headline"
    lost = found["gate[model=c,profile=balanced]"]
    assert (lost.publication_level, lost.reasons) == ("no-claim", (f"c has no score: {why}.",))
    count = found["gates[profile=balanced]"]
    assert count.claim.statement.startswith("Two of two models with a score stay within")
    assert count.claim.subjects == ("a", "b")
    for one in (count, found["dissociation[board=all]"]):
        assert (one.publication_level, one.binding) == ("qualified", ("missing_replies",))
        assert one.condition == f"c was left out of the pipeline: {why}."


@pytest.mark.parametrize(
    ("falls", "level", "words"),
    [
        # not every window; a side of the limit that the other convention sees otherwise; the limit itself, which as a
        # float sum of falls may lie a rounding above (section 3.3: 1e-9)
        ([fall("a", "x", 0.02)], "no-claim", "stays within"),
        ([fall("a", "x", 0.09, other=0.11), fall("a", "y", 0.02)], "qualified", "stays within"),
        ([fall("a", "x", 0.1 + 1e-12), fall("a", "y", 0.0)], "headline", "stays within"),
    ],
)
def test_a_drawdown_limit_is_about_every_window_and_both_conventions(falls, level, words):
    one = by_id(decided(falls, ()))["gate[model=a,profile=balanced]"]
    assert one.publication_level == level
    assert words in one.claim.statement
    assert level != "qualified" or "x" in one.condition


# --- equal weight, and questions against pipeline -------------------------------------------------------------------


def ratio(model, value, p, *, other=None, state="ok"):
    labels = {"model": model, "profile": "balanced", "window": "normal"}
    if value is None:
        return item(SHARPE_CONTRAST, labels, None, 252, "days", state=state)
    detail = {"p": p} | ({} if other is None else {"other": other})
    return item(SHARPE_CONTRAST, labels, value, 252, "days", low=value - 1, high=value + 1, level=0.95, detail=detail)


def test_only_a_significant_ratio_beats_equal_weight():
    found = by_id(decided([ratio("a", 2.0, 0.001), ratio("b", 2.0, 0.2), ratio("c", -2.0, 0.001)], ()))
    levels = {name.split("=")[1].split(",")[0]: one.publication_level for name, one in found.items()}
    assert levels == {"a": "headline", "b": "no-claim", "c": "no-claim"}
    reasons = {one.claim.subjects[0]: one.reasons[0] for one in found.values()}
    assert reasons["b"] == "The difference is not shown to be above zero (p = .200 after Holm, .05 needed)."
    assert reasons["c"] == "The difference is not shown to be above zero."


def test_a_ratio_without_a_value_says_why():
    flat = ratio("a", None, 1.0, state="not defined: it never varies")
    (one,) = decided([flat], ())
    assert one.publication_level == "no-claim"
    assert "never varies" in one.reasons[0]
    # It keeps its place among the comparisons of the plan, so that nothing else is found the more easily for it.
    assert supported(decided([ratio("b", 2.0, 0.03)], ()))
    assert not supported(decided([flat, ratio("b", 2.0, 0.03)], ()))


@pytest.mark.parametrize(
    ("low", "high", "level", "word"),
    [(0.6, 0.9, "headline", "agrees"), (-0.4, 0.3, "headline", "differs"), (0.2, 0.8, "no-claim", "differs")],
)
def test_ranks_agree_or_differ_where_the_whole_interval_says_so(low, high, level, word):
    (one,) = decided([agreeing(low, high, (low + high) / 2, 10)], ())
    assert one.publication_level == level
    assert word in one.claim.statement
