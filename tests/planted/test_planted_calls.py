"""`plan-calls` on planted studies: what it recommends gets there about as often as it says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from planted_studies import AGENTS, PLANTED, calibration, simulated, study_of, verdicts_on
from repetitions import over_seeds, untraced

from assaymark.claims import decide_claims
from assaymark.errors import InputError
from assaymark.metrology import Composer, Spread, Truth, analyse, dstudy_variance, gated
from assaymark.workflow import ASSUMPTIONS, plan_calls_report
from assaymark.workflow import plan_calls_lines as lines

FIRST = study_of("inference = {resamples = 1000}\nclaims = {pairs = false, within = false, cells = false}")
LEADER = "first[agent=ash,dimension=aggregate]"
TWICE = replace(PLANTED.panel[0], trials=2, trial_noise=Spread(0.3))
NOISY = replace(PLANTED.panel[0], trials=2, trial_noise=Spread(1.6, 0.9))


def ahead(*means: float, base: Truth = PLANTED, judge=None, **more) -> Truth:
    """A world with agents of these means, and with another first judge."""
    composers = tuple(Composer(name, mean) for name, mean in zip(AGENTS, means, strict=False))
    panel = base.panel if judge is None else (judge, *base.panel[1:])
    return replace(base, **{"composers": composers, "panel": panel, "cycles": 6, **more})


CLOSE, CLEAR = ahead(3.2, 3.0, 2.9), ahead(3.8, 3.0, 2.9, clusters=12)


def measured(truth, plan, *seed, adversarial=None):
    """A simulated study with its measurements and verdicts; ``adversarial`` is put in place of what they say."""
    table = simulated(truth, *seed)
    found = analyse(table, plan, rng=np.random.default_rng([*seed, 1]))
    verdicts = decide_claims(found, plan, "hash", variants=False)
    if adversarial is not None:
        verdicts = tuple(replace(verdict, adversarial_status=adversarial) for verdict in verdicts)
    return table, found, verdicts


def planned(truth, *seed, budget, adversarial=None, plan=FIRST, level=None, **more):
    """What is planned for a study, or for one whose verdicts have another ``level``."""
    table, found, verdicts = measured(truth, plan, *seed, adversarial=adversarial)
    if level is not None:
        verdicts = [replace(verdict, publication_level=level) for verdict in verdicts]
    return plan_calls_report(table, plan, verdicts, found, budget_calls=budget, seed=1, **more)


def states(plan) -> dict[str, str]:
    return {one.name: one.state for one in plan.options}


def chances(plan) -> dict[str, float]:
    """How often the claim in focus reaches the level aimed at, by option."""
    return {name: found.probability for (claim, name), found in plan.prospects.items() if claim == plan.focus.claim.id}


# --- how often it gets there ------------------------------------------------------------------------------------------


def test_new_cycles_reach_it_as_often_as_predicted():
    """Studies with levels drawn anew, whose leader is not yet significant: predicted and real shares, on average."""
    predicted, reached = untraced(lambda: calibration(FIRST, spread=0.3, pilots=24, studies=8, budget=450, seed=5))
    assert abs(predicted - reached) <= 0.10
    assert 0.2 < predicted < 0.8  # a share near 0 or 1 would be no test


def test_more_trials_help_where_noise_between_trials_is_what_binds():
    """A judge whose calls repeat badly keeps kappa below the cut-off; averaging more of them lifts it above."""
    plan = FIRST.model_copy(update={"gates": FIRST.gates.model_copy(update={"repetition_stability": 0.0})})
    noisy = replace(NOISY, disagreement=Spread(0.4))
    truth = ahead(3.6, 3.0, 2.6, judge=noisy, clusters=10, cycles=12)
    result = planned(truth, 6, budget=3700, adversarial="passed", plan=plan, studies=50, claim=LEADER)
    assert (result.focus.level, result.focus.aim) == ("qualified", "headline")
    chosen = result.recommended()
    assert chosen.name == "more trials"
    fresh = ahead(3.6, 3.0, 2.6, judge=replace(noisy, trials=2 + chosen.calls // 360), clusters=10, cycles=12)

    def reaches(number: int) -> bool:
        verdicts = verdicts_on(simulated(fresh, 7, number), plan)
        (leader,) = (verdict for verdict in verdicts if verdict.claim.id == LEADER)
        return leader.agreement_status == "publish" and leader.stability_status == "stable"

    reached = sum(over_seeds(reaches, range(40)))
    assert abs(chances(result)[chosen.name] - reached / 40) <= 0.10


def test_trials_that_may_not_be_averaged_help_nobody():
    """Under the locked gate a judge that repeats itself this badly counts with its first trial alone."""
    table, found, verdicts = measured(ahead(3.5, 3.0, 2.9, judge=NOISY), FIRST, 11, adversarial="passed")
    one, other = (
        plan_calls_report(given, FIRST, verdicts, found, budget_calls=270, seed=1, studies=10)
        for given in (table, gated(table, FIRST))
    )
    assert one == other
    more = [found for (_, name), found in one.prospects.items() if name == "more trials"]
    assert more
    assert all(found.reached in (0, found.studies) for found in more)  # further trials change nothing


def test_a_recommendation_that_rarely_works_says_so():
    doubt = "even that does not reach it."
    poor = planned(ahead(3.3, 3.0, 2.9, clusters=4), 9, budget=100, studies=40)
    assert 0 < chances(poor)[poor.recommended().name] < 0.5
    assert any(doubt in line for line in lines(poor))
    good = planned(ahead(3.6, 3.0, 2.9, clusters=3), 10, budget=900, studies=20)
    assert chances(good)[good.recommended().name] > 0.5
    assert not any(doubt in line for line in lines(good))


# --- options ----------------------------------------------------------------------------------------------------------


def test_control_cells_are_recommended_where_nothing_else_is_missing():
    result = planned(CLEAR, 8, budget=600, adversarial="not tested", studies=20)
    assert result.focus.claim.id == LEADER
    assert (result.recommended().name, result.recommended().calls) == ("control cells", 300)
    assert all(one.cells for one in result.options)
    said = "control cells: 100 texts of control cells A and B for the whole panel; 300 calls; reaches headline if"
    assert said in "\n".join(lines(result))
    poor = planned(CLEAR, 8, budget=200, adversarial="not tested")
    assert states(poor) == {"control cells": "not affordable: it needs 300 calls"}
    assert poor.recommended() is None
    assert "No option reached it in any simulated study." in lines(poor)


def test_what_cannot_be_paid_for_or_known_says_so():
    found = states(planned(CLOSE, 9, budget=80, studies=5))
    assert found["half the new cycles"] == "ok"
    assert found["another family"] == "not affordable: it needs 90 calls"
    assert found["more trials"].startswith("not measured: no judge was asked twice")
    assert states(planned(CLOSE, 9, budget=4))["new cycles"] == "not affordable: one cycle needs 9 calls"
    asked = planned(ahead(3.2, 3.0, 2.9, judge=TWICE), 9, budget=80, studies=5)
    assert states(asked)["more trials"] == "not affordable: it needs 90 calls"
    # With one judge agreement is not measurable, and no number of calls to the same judge changes that.
    alone, plan = replace(CLOSE, panel=CLOSE.panel[:1]), study_of("claims = {pairs = false}", families=("north",))
    result = planned(alone, 9, budget=300, plan=plan, studies=5)
    assert states(result)["another family"].startswith("not measured: with one judge")
    assert result.recommended() is None
    assert all(found.reached == 0 for found in result.prospects.values())


def test_every_option_is_simulated_and_counted_alike_under_equal_seeds():
    result, again = (planned(ahead(3.2, 3.0, 2.9, judge=TWICE), 9, budget=400, studies=10) for _ in range(2))
    assert result == again
    assert states(result) == dict.fromkeys(("half the new cycles", "new cycles", "another family", "more trials"), "ok")
    assert all(one.calls <= 400 for one in result.options)
    for one in result.options:
        found = [result.prospects[target.claim.id, one.name] for target in result.targets]
        assert all(each.low <= each.probability <= each.high and each.studies == 10 for each in found)
        assert result.rising[one.name] == pytest.approx(sum(each.probability for each in found))


def test_the_cheapest_of_the_good_options_is_recommended():
    result = planned(ahead(3.5, 3.0, 2.9, clusters=3), 10, budget=900, studies=20)
    chosen, best = result.recommended(), max(chances(result).values())
    good = [one for one in result.options
            if one.state == "ok" and result.prospects[result.focus.claim.id, one.name].high >= best]  # fmt: skip
    assert chosen in good
    assert all(one.calls >= chosen.calls for one in good)


# --- the D-study ------------------------------------------------------------------------------------------------------


def test_the_d_study_finds_the_planted_components_and_the_cheapest_extension():
    """Two agents on one dimension; whole scores add a twelfth of a squared point to the noise between trials."""
    judges = tuple(replace(one, disagreement=Spread(0.3), trials=2, trial_noise=Spread(0.2)) for one in PLANTED.panel)
    truth = ahead(3.1, 2.9, panel=judges, dimensions=("d0",), interaction=Spread(0.2), residual=Spread(0.35),
                  clusters=60, cycles=4)  # fmt: skip
    known = {"budget": 10, "adversarial": "passed", "level": "no-claim", "studies": 2}
    design = planned(truth, 3, **known).design
    assert (design.now, design.more_calls) == ({"G": 60, "C": 4, "J": 3, "T": 2}, 0)
    wanted = {"agent_cluster": 0.04, "residual": 0.1225, "judge_agent": 0.0, "judge_agent_cluster": 0.0,
              "disagreement": 0.09, "trial": 0.04 + 1 / 12}  # fmt: skip
    assert dict(design.components) == pytest.approx(wanted, abs=0.03)
    assert design.gap == pytest.approx(0.2, abs=0.06)
    uneven = planned(replace(truth, clusters=12, panel=(*judges[:2], replace(judges[2], trials=1))), 3, **known)
    assert any("Now: 3 judges, 1 to 2 trials, 4 cycles in each of 12 clusters" in line for line in lines(uneven))
    few, best = uneven.design, uneven.design.cheapest
    assert few.power_now < 0.8 <= best.power
    assert few.more_calls == 2 * (best.G * best.C * best.J * best.T - 12 * 4 * (2 * min(2, best.T) + 1)) > 0
    size = {name: getattr(best, name) for name in "GCJT"}
    assert best.variance == pytest.approx(dstudy_variance(few.components, **size, random=False))


@pytest.mark.parametrize(
    ("change", "state"),
    [
        ({"panel": tuple(replace(one, family="north") for one in CLOSE.panel)}, "one judge family, needs two"),
        ({"cycles": 1}, "one cycle in each cluster, needs two"),
        ({"clusters": 1}, "no two agents share two clusters that all judges scored"),
    ],
)
def test_a_d_study_that_cannot_be_computed_says_why(change, state):
    said = lines(planned(replace(CLOSE, **change), 9, budget=300, studies=1))
    (line,) = (line for line in said if line.startswith("D-study"))
    assert line == f"D-study: not computed: {state}."
    assert len(line) <= 80


def test_a_claim_on_a_dimension_is_planned_at_the_level_of_its_first_step():
    """All pairs of all claimed dimensions share a fifth of alpha beside the aggregate, and all of it without."""
    table, found, verdicts = measured(CLOSE, FIRST, 9)
    (names,) = {tuple(table.dimensions)}
    claim = next(verdict.claim.id for verdict in verdicts if verdict.claim.dimension == names[0])
    for claimed, width, share in ((None, len(names), 0.2), (["aggregate", names[0]], 1, 0.2), ([names[0]], 1, 1)):
        claims = FIRST.claims.model_copy(update={"dimensions": claimed})
        plan = FIRST.model_copy(update={"claims": claims})
        result = plan_calls_report(table, plan, verdicts, found, budget_calls=300, seed=1, studies=1, claim=claim)
        assert result.design.level == pytest.approx(share * plan.inference.alpha / (width * 3))


# --- words ------------------------------------------------------------------------------------------------------------


def test_what_is_withheld_is_not_said():
    said = lines(planned(CLOSE, 9, budget=300, studies=5))
    assert said[0] == "no-claim now, qualified aimed at: A first rank on the overall score."
    assert not any(name in line for name in AGENTS for line in said)
    assert "D-study of this run: the gap, tested at level 0.013." in said  # its size would be withheld
    assert said[-len(ASSUMPTIONS) :] == [f"Assumed: {line}" for line in ASSUMPTIONS]


@pytest.mark.parametrize(("status", "level"), [("contaminated", "no-claim"), ("construct-sensitive", "qualified")])
def test_no_calls_undo_a_failed_control_cell(status, level):
    said = lines(planned(CLEAR, 8, budget=600, adversarial=status, level=level, studies=2, claim=LEADER))
    assert said[1].startswith("No ")
    assert len(said) == 2


def test_headlines_need_no_calls():
    result = planned(CLOSE, 9, budget=10, level="headline")
    assert (result.focus, result.recommended()) == (None, None)
    assert lines(result) == ["Every ranking claim of this study is a headline or beyond the reach of more calls."]


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"budget": 0}, r"budget_calls: must be at least 1 \(got 0\)"),
        ({"budget": 10, "studies": 0}, "studies: must be at least 1"),
        ({"budget": 10, "claim": "first"}, "claim: must be the id of a ranking claim of this study below headline"),
    ],
)
def test_it_says_what_is_wrong(parts, message):
    with pytest.raises(InputError, match=message):
        planned(CLOSE, 9, **parts)
