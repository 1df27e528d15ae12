"""Scoring plans and scores of a season: laws, and what is refused."""

from __future__ import annotations

import math
from importlib.resources import files
from statistics import median

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from assaymark import judging
from assaymark.errors import InputError, UnknownNameError
from assaymark.judging import season as judging_season

NAMES = ("v0.3", "v0.4")
TEXTS = {
    name: (files("assaymark.judging.season") / "plans" / f"{name}.toml").read_text(encoding="utf-8") for name in NAMES
}
TEXT = TEXTS["v0.4"]
PLAN, SINGLE = judging.load_scoring("v0.4"), judging.load_scoring("v0.3")


def with_efficiency(**rule):
    return PLAN.model_copy(update={"efficiency": judging_season.EfficiencyRule(weight=10, **rule)})


RELATIVE = with_efficiency(scale="relative")
REASONING, EVIDENCE = ([part.name for part in axis] for axis in (PLAN.reasoning, PLAN.evidence))


def test_two_plans_ship_and_a_digest_is_of_every_rule_and_not_of_the_file():
    assert judging.scoring_names() == NAMES
    assert judging.load_scoring() == PLAN
    for name, text in TEXTS.items():
        plan = judging.load_scoring(name)
        assert plan.version == name
        assert set(judging_season.PROCESS) <= {part.name for part in plan.reasoning}
        for same in ("# said otherwise\n" + text, text.replace("= 12", "= 12.0")):
            assert judging.parse_scoring(same).digest == plan.digest
    with pytest.raises(UnknownNameError, match=r"unknown scoring plan 'v0\.5'\. Did you mean 'v0\.[34]'"):
        judging.load_scoring("v0.5")
    changed = [
        ('grader = "grounded', 'grader = "ungrounded'), ('panel = "median"', 'panel = "single"'),
        ("strong = 67", "strong = 68"), ("least_seconds = 1.0", "least_seconds = 2.0"),
        ('scale = "absolute"', 'scale = "relative"'), ("reference_s = 60.0", "reference_s = 30.0"),
        ("level = 0.95", "level = 0.9"), ('["reasoning", "evidence"]', '["reasoning"]'),
        ('title = "Thesis quality"', 'title = "Quality of the thesis"'),
    ]  # fmt: skip
    others = [TEXT.replace(old, new) for old, new in changed]
    others.append(TEXT.replace("weight = 25", "weight = 20").replace("weight = 15", "weight = 20", 1))
    digests = {judging.parse_scoring(one).digest for one in (*TEXTS.values(), *others)}
    assert len(digests) == len(others) + 2


@pytest.mark.parametrize(("old", "new", "says"), [
    ("weight = 25", "weight = 24", "the parts of evidence must sum to 100 (got 99)"),
    ("weight = 12", "weight = 13", "the parts of reasoning must sum to 100 (got 102)"),
    ("process = 15", "process = 20", "the four components must sum to 100 (got 105)"),
    ('["reasoning", "evidence"]', '["evidence", "evidence"]', "names a component twice"),
    ('["reasoning", "evidence"]', "[]", "needs at least 1 (got 0)"), ("[ties]", "[tie]", "tie"),
    ("mixed = 45", "mixed = 67", "mixed must begin below strong (got mixed 67, strong 67)"),
    ('"temporal_consistency"', '"steadiness"', "missing: temporal_consistency"),
    ('"no_contradiction"', '"claim_support"', "claim_support more than once"),
    ('panel = "median"', 'panel = "mean"', "'single' or 'median'"), ("level = 0.95", "level = 1.0", "below 1"),
    ("weight = 10\nleast_seconds = 1.0", "weight = nan\nleast_seconds = 1.0", "finite number"),
    ("least_seconds = 1.0", "least_seconds = 0", "above 0"), ("reference_s = 60.0", "reference_s = 0", "above 0"),
    ('scale = "absolute"', 'scale = "best"', "'absolute' or 'relative'"),
    ('version = "v0.4"', "version = ", "not TOML"),
])  # fmt: skip
def test_a_plan_that_cannot_be_meant_is_refused(old, new, says):
    assert old in TEXT
    with pytest.raises(InputError) as caught:
        judging.parse_scoring(TEXT.replace(old, new), source="mine.toml")
    assert str(caught.value).startswith("mine.toml")
    assert says in str(caught.value)


def test_every_wrong_field_is_named_and_without_an_outcome_the_shares_still_make_a_whole():
    with pytest.raises(InputError) as caught:
        judging.parse_scoring(TEXT.replace("strong = 67", 'strong = "high"').replace("weight = 8", "weight = 0"))
    assert {problem.where for problem in caught.value.problems} >= {"bands.strong", "reasoning.7.weight"}
    for receivers in ('["reasoning", "evidence"]', '["process"]', '["reasoning", "evidence", "process"]'):
        weights = judging.parse_scoring(TEXT.replace('["reasoning", "evidence"]', receivers)).composite
        shares = weights.shares(outcome=False)
        assert sum(shares.values()) == pytest.approx(100)
        assert weights.shares(outcome=True) == {"reasoning": 40, "evidence": 35, "process": 15, "outcome": 10}
        if receivers == '["process"]':
            assert shares == pytest.approx({"reasoning": 40, "evidence": 35, "process": 25})


points = st.floats(0, 100)
panels = st.lists(points, min_size=1, max_size=7)
maybe = st.none() | points
times = st.lists(st.tuples(points, st.none() | st.floats(0, 1e6)), min_size=1, max_size=6)


def grades(names):
    return st.fixed_dictionaries(dict.fromkeys(names, points))


@given(points, points)
@example(44.49, 44.5)
@example(66.49, 66.5)
@example(66.49999999999999, 66.5)
def test_a_band_is_its_definition_and_a_higher_score_is_in_no_lower_one(a, b):
    for score in (a, b):
        whole = math.floor(round(score, 9) + 0.5)
        assert judging.band(score) == ("strong" if 67 <= whole <= 100 else "mixed" if 45 <= whole <= 66 else "weak")
    order = ("weak", "mixed", "strong")
    assert order.index(judging.band(min(a, b))) <= order.index(judging.band(max(a, b)))


def test_bands_at_their_edges_and_of_numbers_of_numpy():
    edges = (0, 44.49, 44.5, 45, 66.49, 66.5, 66.49999999999999, 100, np.float32(66.5), np.int64(67))
    assert [judging.band(score)[0] for score in edges] == [*"wwmmmsssss"]


@given(panels, maybe, st.randoms(use_true_random=False))
def test_a_total_is_nine_tenths_of_the_median_and_a_tenth_of_efficiency_in_any_order(scores, quick, random):
    found, total = judging.contested_band(scores), judging.total_score(scores, quick)
    named = {judging.band(score) for score in scores}
    assert (found.contested, found.judges) == (len(named) > 1, len(scores))  # where two judges name two
    assert found.band == judging.band(median(scores))
    assert {found.lowest, found.highest} <= named
    assert (found.state == "single judge") == (len(scores) == 1)
    expected = median(scores) if quick is None else 0.9 * median(scores) + 0.1 * quick
    assert total == pytest.approx(expected, abs=1e-9)
    assert 0 <= total <= 100
    other = random.sample(scores, len(scores))
    assert (judging.total_score(other, quick), judging.contested_band(other)) == (total, found)


@given(grades(REASONING), points, points, points, maybe)
def test_axes_and_composites_are_weighted_means_of_what_there_is(scores, r, e, p, o):
    found = judging.weighted_axis(scores, PLAN.reasoning)
    by_definition = sum(scores[part.name] * part.weight for part in PLAN.reasoning) / 100
    assert found == pytest.approx(by_definition, abs=1e-9)
    assert min(scores.values()) <= found <= max(scores.values())
    found = judging.composite(r, e, p, o)
    if o is None:
        by_definition = (40 + 10 * 40 / 75) * r / 100 + (35 + 10 * 35 / 75) * e / 100 + 15 * p / 100
    else:
        by_definition = 0.40 * r + 0.35 * e + 0.15 * p + 0.10 * o
    assert found == pytest.approx(by_definition, abs=1e-9)
    assert 0 <= found <= 100
    # equal scores have exactly their value as mean
    assert judging.composite(r, r, r) == judging.composite(r, r, r, r) == r
    assert judging.process_score(r, r) == judging.total_score([r] * 3, r) == r


@given(
    st.lists(st.tuples(grades(REASONING), grades(EVIDENCE)), min_size=1, max_size=3),
    st.sampled_from([*REASONING, *EVIDENCE]), points, maybe, maybe,
)  # fmt: skip
def test_raising_any_grade_never_lowers_the_total(judges, part, higher, outcome, quick):
    def total(given):
        return judging.total_score([judging.judge_score("j", r, e, outcome).composite for r, e in given], quick)

    raised = tuple(
        {name: max(value, higher) if name == part else value for name, value in axis.items()} for axis in judges[0]
    )
    assert total([raised, *judges[1:]]) >= total(judges)


@given(times, points)
def test_efficiency_is_its_definition_on_either_scale(agents, quality):
    one, seconds = zip(*agents, strict=True)
    absolute, relative = (judging.efficiency(one, seconds, plan=plan) for plan in (PLAN, RELATIVE))
    for value, q, s in zip(absolute, one, seconds, strict=True):
        assert value is None if s is None else value == pytest.approx(q * min(1, 60 / max(s, 1)))
    rates = [None if s is None else q / max(s, 1) for q, s in agents]
    best = max((rate for rate in rates if rate is not None), default=0)
    for value, rate in zip(relative, rates, strict=True):
        known = best and rate is not None
        assert (value == pytest.approx(100 * rate / best) and 0 <= value <= 100) if known else value is None
    assert not best or max(value for value in relative if value is not None) == 100
    # an agent without a timing changes nobody's efficiency, nor does a fast rule on the absolute scale
    for plan, found in ((PLAN, absolute), (RELATIVE, relative)):
        assert judging.efficiency([*one, quality], [*seconds, None], plan=plan) == [*found, None]
    assert judging.efficiency([*one, 90], [*seconds, 0.03])[:-1] == absolute


def test_efficiency_takes_arrays_and_counts_nobody_as_faster_than_a_second():
    same, seconds = np.array([80.0, 80.0, 80.0]), np.array([0.01, 1.0, np.nan])
    assert judging.efficiency(same, seconds) == [80.0, 80.0, None]
    assert judging.efficiency([80, 90], [20.0, 0.03]) == [80.0, 90.0]
    for plan, quality, taken, found in (
        (RELATIVE, same, seconds, [100.0, 100.0, None]), (RELATIVE, [80, 90], [20.0, 0.03], [40 / 9, 100.0]),
        (with_efficiency(least_seconds=4, scale="relative"), [80, 40], [1, 4], [100.0, 50.0]),
        (with_efficiency(least_seconds=4, reference_s=2), [80, 40], [1, 8], [40.0, 10.0]),
        (RELATIVE, [0, 0], [1, 2], [None, None]),  # a quality of nothing cannot be scaled
        (PLAN, [0, 0], [1, 2], [0.0, 0.0]), (PLAN, [], [], []),
    ):  # fmt: skip
        assert judging.efficiency(quality, taken, plan=plan) == pytest.approx(found)
    for seconds, found in (((2.0, 9.0, None, 4.0, None), (4.0, 3, 2)), ((None, None), (None, 0, 2))):
        assert judging.decision_time(seconds) == judging.DecisionTime(*found)  # what was not measured is left out


def test_a_judge_score_says_by_which_rules_and_the_process_score_follows_the_plans_weights():
    scores = {name: 50 + k for k, name in enumerate(REASONING)}
    found = judging.judge_score("auditor", scores, dict.fromkeys(EVIDENCE, 30), 90, plan=SINGLE)
    assert (found.judge, found.evidence, found.outcome) == ("auditor", 30.0, 90.0)
    assert found.process == (scores["temporal_consistency"] + scores["portfolio_discipline"]) / 2
    assert found.composite == judging.composite(found.reasoning, 30, found.process, 90)
    assert (found.grader, found.plan) == ("grounded_financial_reasoning_judge_v0.3", SINGLE.digest)
    assert found.band == judging.band(found.composite)
    heavier = tuple(
        part.model_copy(update={"weight": 30.0}) if part.name == "portfolio_discipline" else part
        for part in PLAN.reasoning
    )
    assert judging.process_score(40, 80, plan=PLAN.model_copy(update={"reasoning": heavier})) == 70
    assert judging.process_score(40, 80) == 60
    # a plan for one judge takes one and no efficiency
    assert judging.total_score([51], plan=SINGLE) == judging.total_score([51], 99, plan=SINGLE) == 51
    with pytest.raises(InputError, match=r"plan v0\.3 is for a single judge \(got 3 composites\)"):
        judging.total_score([51, 52, 53], plan=SINGLE)


def test_what_is_no_score_or_no_time_is_refused_everywhere_and_all_problems_are_told_at_once():
    for bad in (-0.1, 100.1, math.nan, math.inf, True, "60", None, 10**400):
        for call in (
            lambda bad: judging.band(bad), lambda bad: judging.composite(bad, 50, 50),
            lambda bad: judging.process_score(50, bad), lambda bad: judging.total_score([50, bad]),
            lambda bad: judging.contested_band([bad]), lambda bad: judging.efficiency([bad], [1.0]),
            lambda bad: judging.weighted_axis(dict.fromkeys(EVIDENCE, 50) | {"valuation_use": bad}, PLAN.evidence),
        ):  # fmt: skip
            with pytest.raises(InputError, match=r"must be a number in 0\.\.100"):
                call(bad)
    for bad in (-1.0, math.inf, True, "3"):
        with pytest.raises(InputError, match=r"seconds\[1\]: must be a finite number from 0, or None"):
            judging.efficiency([50, 60], [1.0, bad])
    fives = dict.fromkeys(EVIDENCE, 5)
    for call, wrong in (
        (lambda: judging.weighted_axis({EVIDENCE[0]: 101, "x": 3}, PLAN.evidence), [*EVIDENCE[1:], "x", EVIDENCE[0]]),
        (lambda: judging.composite(101, 50, -1, math.nan), ["reasoning", "process", "outcome"]),
        (lambda: judging.efficiency([50, 101], [-1, 2]), ["seconds[0]", "quality[1]"]),
        (lambda: judging.judge_score("j", dict.fromkeys(REASONING[1:], 5), fives), REASONING[:1]),
        (lambda: judging.total_score([]), ["judges"]), (lambda: judging.contested_band(()), ["judges"]),
        (lambda: judging.efficiency([1, 2], [1]), ["seconds"]),
    ):  # fmt: skip
        with pytest.raises(InputError) as caught:
            call()
        assert [problem.where for problem in caught.value.problems] == wrong
