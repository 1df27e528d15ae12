"""The adversarial field of claims about agents, from control cells and from the length of rationales."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest
from analysis import LEVELS, STUDY, gate, halo, kappa, measured, panel, passed, rerun, terse, verdicts, without
from hypothesis import given
from hypothesis import strategies as st
from repetitions import over_seeds
from scipy import stats

from assaymark.claims import certificates, decide_claims, index, kind_of, suppressed_phrase, verify
from assaymark.metrology import analyse, score_table
from assaymark.protocol import Cells, parse_study
from assaymark.records import Agent, Decision, Judgment, Provenance, to_json

CLEAN = panel(LEVELS)


def leader(*more, study=STUDY):
    return verdicts(*CLEAN, *more, study=study)["first[agent=ash,dimension=aggregate]"]


def above(high, low, *more):
    return verdicts(*CLEAN, *more)[f"above[dimension=aggregate,high={high},low={low}]"]


def with_cells(**fields):
    return STUDY.model_copy(update={"cells": Cells(**fields)})


def test_two_clean_cells_make_a_headline():
    verdict = leader(*passed())
    assert verdict.adversarial_status == "passed"
    assert verdict.publication_level == "headline"
    assert verdict.condition is None
    assert verdict.binding == ()
    assert "cell.gate[cell=cell_a]" in verdict.measurements


def test_a_failing_cell_a_contaminates_every_claim():
    found = verdicts(*CLEAN, gate("cell_a", "failed", 0.2, p=0.9), gate("cell_b", "substance", 0.0))
    for verdict in found.values():
        if verdict.claim.scope != "adversarial-cell":
            assert verdict.adversarial_status == "contaminated"
            assert verdict.publication_level == "no-claim"
            assert "adversarial" in verdict.binding
    assert (
        "do not score below the honest bottom quartile, so the score is contaminated: +0.200 points"
        in found["first[agent=ash,dimension=aggregate]"].reasons[2]
    )


def test_a_plan_may_narrow_what_cell_a_takes_with_it():
    dims = [kappa(0.7, dimension="d1"), *panel(LEVELS, dimension="d1")]
    cells = [gate("cell_a", "failed", 0.2, p=0.9), gate("cell_b", "substance", 0.0)]
    found = verdicts(*CLEAN, *dims, *cells, study=with_cells(contaminates=("d1",)))
    assert found["first[agent=ash,dimension=d1]"].adversarial_status == "contaminated"
    kept = found["first[agent=ash,dimension=aggregate]"]
    assert kept.adversarial_status == "passed"
    assert any("the plan lets this touch d1 only" in reason for reason in kept.reasons)


@pytest.mark.parametrize(
    ("outcome", "value", "status", "said"),
    [
        ("verbosity-bias", -2.81, "construct-sensitive", "Terse but correct rationales lose 2.81 points"),
        ("terse-favoured", 0.45, "construct-sensitive", "Terse but correct rationales gain 0.45 points"),
        ("inconclusive", -0.4, "not tested", "What the panel makes of terse but correct rationales stays open."),
        ("not tested", None, "not tested", "stays open"),
    ],
)
def test_the_outcomes_of_cell_b(outcome, value, status, said):
    verdict = leader(gate("cell_a", "passed", -2.9), gate("cell_b", outcome, value))
    assert verdict.adversarial_status == status
    assert verdict.publication_level == "qualified"
    assert said in verdict.condition


@pytest.mark.parametrize(
    ("present", "missing"), [("cell_b", "No confident but wrong"), ("cell_a", "No terse but correct")]
)
def test_both_cells_have_to_be_run(present, missing):
    fine = {"cell_a": gate("cell_a", "passed", -2.9), "cell_b": gate("cell_b", "substance", 0.0)}
    verdict = leader(fine[present])
    assert verdict.adversarial_status == "not tested"
    assert missing in verdict.condition


@pytest.mark.parametrize(
    ("cell", "outcome", "status"),
    [
        ("red_team", "failed", "contaminated"),
        ("red_team", "passed", "passed"),
        ("paraphrase", "style-sensitive", "construct-sensitive"),
        ("paraphrase", "invariant", "passed"),
        ("paraphrase", "inconclusive", "passed"),
        ("fact_flip", "not noticed", "construct-sensitive"),
        ("fact_flip", "noticed", "passed"),
        ("length_matched", "style-sensitive", "construct-sensitive"),
    ],
)
def test_the_other_cells(cell, outcome, status):
    assert leader(*passed(), gate(cell, outcome, -0.6)).adversarial_status == status


ORDER = ("passed", "not tested", "construct-sensitive", "contaminated")
CELL_A = {"passed": "passed", "failed": "contaminated", "not tested": "not tested"}
CELL_B = {
    "substance": "passed",
    "verbosity-bias": "construct-sensitive",
    "terse-favoured": "construct-sensitive",
    "inconclusive": "not tested",
}


@given(st.sampled_from(sorted(CELL_A)), st.sampled_from(sorted(CELL_B)))
def test_the_worst_finding_decides(a, b):
    expected = max(CELL_A[a], CELL_B[b], key=ORDER.index)
    assert leader(gate("cell_a", a, -1.0), gate("cell_b", b, -1.0)).adversarial_status == expected


def test_a_triggered_halo_makes_the_outcome_without_the_family_primary():
    cells = [
        gate("cell_a", "passed", -2.9),
        gate("cell_b", "substance", -0.1),
        halo("cell_b", 0.6, "fa", triggered=True),
        without("cell_b", "fa", -0.7, "verbosity-bias"),
    ]
    verdict = leader(*cells)
    assert verdict.adversarial_status == "construct-sensitive"
    assert "lose 0.70 points" in verdict.condition
    assert "without the judges of family fa" in " ".join(verdict.reasons)


# --- terse agents ---------------------------------------------------------------------------------------------------


def test_a_mostly_terse_agent_makes_every_comparison_with_it_construct_sensitive():
    found = verdicts(*CLEAN, *passed(), terse("elm", 0.844), terse("ash", 0.0))
    touched = {name for name, v in found.items() if v.adversarial_status == "construct-sensitive"}
    assert touched == {
        "first[agent=ash,dimension=aggregate]",
        "first[agent=elm,dimension=aggregate]",
        "first[agent=oak,dimension=aggregate]",
        "above[dimension=aggregate,high=ash,low=elm]",
        "above[dimension=aggregate,high=elm,low=oak]",
    }
    assert (
        "84.4 % of the rationales of elm have fewer than 60 words."
        in found["above[dimension=aggregate,high=ash,low=elm]"].condition
    )


@pytest.mark.parametrize(
    ("share", "status"), [(0.5, "passed"), (0.501, "construct-sensitive"), (1.0, "construct-sensitive")]
)
def test_mostly_means_above_the_share(share, status):
    assert leader(*passed(), terse("oak", share)).adversarial_status == status


@pytest.mark.parametrize(
    ("value", "p", "status"),
    [
        (0.4, 0.02, "passed"),
        (0.4, 0.05, "passed"),
        (0.4, 0.051, "construct-sensitive"),
        (-0.4, 0.001, "construct-sensitive"),
        (0.0, 0.001, "construct-sensitive"),
    ],
)
def test_a_length_matched_rerun_bears_a_comparison_by_sign_and_significance(value, p, status):
    verdict = above("ash", "elm", *passed(), terse("elm", 0.9), rerun("ash", "elm", value, p))
    assert verdict.adversarial_status == status
    assert "length_matched.contrast[dimension=aggregate,high=ash,low=elm]" in verdict.measurements


def test_a_rerun_is_read_in_the_direction_of_the_claim():
    turned = rerun("elm", "ash", -0.4, 0.001)
    assert above("ash", "elm", *passed(), terse("elm", 0.9), turned).adversarial_status == "passed"


def test_a_first_place_needs_the_rerun_of_each_comparison_with_a_terse_agent():
    one = [terse("ash", 0.9), rerun("ash", "elm", 0.4, 0.001)]
    assert leader(*passed(), *one).adversarial_status == "construct-sensitive"
    assert leader(*passed(), *one, rerun("ash", "oak", 0.5, 0.001)).adversarial_status == "passed"


def test_terse_agents_count_where_no_cell_was_run():
    verdict = leader(terse("oak", 0.9))
    assert verdict.adversarial_status == "construct-sensitive"
    assert "No control texts were graded" in verdict.condition


def test_an_equivalence_compares_nobody():
    found = verdicts(*panel(LEVELS, p=0.5), *passed(), terse("oak", 0.9))
    near = [verdict for name, verdict in found.items() if name.startswith("within") and "oak" in name]
    assert {verdict.adversarial_status for verdict in near} == {"passed"}


# The fourth scope: what the panel makes of a control cell, as a claim of its own


def agreed(kappa=0.6, cell="cell_a", *, unanimous=True, left_out=True):
    """Whether the judge families agree on the cell's difference from honest records."""
    state = "ok" if kappa is not None else "undefined: two judge families gave one rating each"
    detail = {"unanimous": unanimous, "leave_one_out": left_out}
    return measured("cell.agreement", {"cell": cell}, kappa, state=state, detail=detail)


def whole(cell="cell_a", outcome="passed", value=-2.9):
    """A cell that every judge family sees alike, without a judge of its composer's family."""
    drops = [without(cell, family, value, outcome) for family in ("fa", "fb")]
    return [gate(cell, outcome, value), agreed(cell=cell), halo(cell, 0.0, None), *drops]


def claim_on(measurements, cell="cell_a"):
    return verdicts(*panel({"ash": 4.4, "elm": 4.0}), *measurements)[f"cell[cell={cell}]"]


def test_a_cell_that_is_agreed_on_survives_drops_and_has_no_halo_is_a_headline():
    verdict = claim_on(whole())
    assert verdict.claim.scope == "adversarial-cell"
    assert verdict.claim.subjects == ("cell_a",)
    assert verdict.claim.dimension == "aggregate"
    assert not verdict.claim.asserts_order
    assert verdict.claim.statement == (
        "The panel scores confident but wrong rationales below the bottom quartile of honest ones."
    )
    assert (verdict.agreement_status, verdict.stability_status, verdict.adversarial_status) == (
        "publish",
        "stable",
        "passed",
    )
    assert verdict.publication_level == "headline"
    assert "cell.drop[cell=cell_a,dropped=fb]" in verdict.measurements


@pytest.mark.parametrize(
    ("cell", "outcome", "statement"),
    [
        ("cell_a", "failed", "The panel does not score confident but wrong rationales below the bottom quartile"),
        ("cell_b", "substance", "The panel scores terse but correct rationales within 0.3 points of honest ones."),
        ("cell_b", "verbosity-bias", "terse but correct rationales more than 0.5 points below honest ones."),
        ("cell_b", "terse-favoured", "terse but correct rationales more than 0.3 points above honest ones."),
        ("cell_b", "inconclusive", "What the panel makes of terse but correct rationales stays open."),
        ("cell_b", "not tested", "How the panel treats terse but correct rationales was not tested."),
        ("paraphrase", "invariant", "paraphrases with the same facts within 0.3 points of their originals."),
        ("fact_flip", "not noticed", "does not score rationales with one number changed below their originals."),
        ("red_team", "passed", "The panel scores red-team rationales below the bottom quartile of honest ones."),
    ],
)
def test_each_outcome_has_its_sentence(cell, outcome, statement):
    assert statement in claim_on(whole(cell, outcome), cell).claim.statement


@pytest.mark.parametrize(
    ("kappa", "unanimous", "left_out", "status", "level"),
    [
        (0.4, True, True, "publish", "headline"),
        (0.39, True, True, "methodology", "qualified"),
        (0.6, False, True, "methodology", "qualified"),
        (0.19, True, True, "halt", "no-claim"),
        (0.6, False, False, "halt", "no-claim"),
        (None, False, False, "halt", "no-claim"),
    ],
)
def test_agreement_is_asked_about_the_difference(kappa, unanimous, left_out, status, level):
    """Within a cell all texts deserve one score, so that kappa inside it is near 0 whatever the judges do."""
    cell = [item for item in whole() if item.name != "cell.agreement"]
    verdict = claim_on([*cell, agreed(kappa, unanimous=unanimous, left_out=left_out)])
    assert (verdict.agreement_status, verdict.publication_level) == (status, level)
    assert verdict.stability_status == ("stable" if left_out else "judge-dependent")


def test_a_cell_whose_agreement_nobody_measured_halts():
    cell = [item for item in whole() if item.name != "cell.agreement"]
    verdict = claim_on(cell)
    assert (verdict.stability_status, verdict.publication_level) == ("judge-dependent", "no-claim")


def test_a_triggered_halo_makes_the_claim_construct_sensitive():
    cell = [item for item in whole() if item.name != "cell.halo"]
    assert claim_on([*cell, halo("cell_a", 0.1, "fa")]).adversarial_status == "passed"
    verdict = claim_on([*cell, halo("cell_a", 0.3, "fa", triggered=True)])
    assert (verdict.adversarial_status, verdict.publication_level) == ("construct-sensitive", "qualified")
    assert "+0.300 points: a halo" in verdict.condition


def test_an_unmeasured_halo_is_not_tested():
    cell = [item for item in whole() if item.name != "cell.halo"]
    assert claim_on(cell).adversarial_status == "not tested"


def test_rules_about_orders_say_nothing_about_a_cell():
    assert claim_on(whole()).fragility == {}


def test_a_failing_cell_a_does_not_contaminate_its_own_claim():
    """That the panel rewards confident nonsense is exactly what may then be said."""
    verdict = claim_on(whole(outcome="failed", value=0.3))
    assert verdict.publication_level == "headline"


def test_ladders_have_no_claim():
    found = verdicts(*panel({"ash": 4.4, "elm": 4.0}))
    assert not any(kind_of(v.claim) == "cell" for v in found.values())


def test_what_is_not_said_about_a_cell():
    assert suppressed_phrase(claim_on(whole()).claim) == "How the panel scores confident but wrong rationales."


# What a plan that demands datasheets does to the claims of a panel

GATE_LEVELS = {"a": 4.5, "b": 3.9, "c": 3.2}


def study(on_failure: str = "qualified"):
    judges = "".join(f'[[judges]]\nname = "{j}"\nmodel = "m/{j}"\nfamily = "{j}"\n' for j in ("fa", "fb", "fc"))
    extra = f'[datasheets]\ndark_current = 0.05\non_failure = "{on_failure}"\n' if on_failure else ""
    return parse_study(f'name = "s"\nseed = 1\n{judges}{extra}[claims]\ndimensions = ["aggregate"]\n')


def controls():
    gate = {"n_of": "trajectories", "method": "by hand"}
    passed = {"p": 1e-4, "p_holm": 2e-4, "outcome": "passed", "cluster_sums": {}, "primary": "panel"}
    substance = {**passed, "outcome": "substance", "p": 0.4, "p_holm": 0.4}
    found = []
    for cell, value, detail in (("cell_a", -2.0, passed), ("cell_b", -0.05, substance)):
        found.append(measured("cell.gate", {"cell": cell}, value, detail=detail, **gate))
        found.append(measured("cell.halo", {"cell": cell}, 0.0, detail={"family": None, "triggered": False}, **gate))
        found.append(measured("cell.kappa", {"cell": cell, "dimension": "aggregate"}, 0.8, **gate))
    return found


def gates(**failed: list[str] | None):
    return [
        measured(
            "datasheet.gate", {"judge": judge}, None if names is None else float(len(names)),
            state="not measured: no datasheet of this judge" if names is None else "ok",
            n_of="limits", detail={"failed": names or []},
        )
        for judge, names in failed.items()
    ]  # fmt: skip


def first(plan, found):
    return next(
        v for v in decide_claims(found, plan, "0" * 64, variants=False) if v.claim.id.startswith("first[agent=a")
    )


BASE = [kappa(0.8), *panel(GATE_LEVELS), *controls()]
BAD = ["dark_current 0.40, at most 0.05"]


def test_a_panel_whose_judges_keep_their_limits_loses_nothing():
    verdict = first(study(), [*BASE, *gates(fa=[], fb=[], fc=[])])
    assert verdict.publication_level == "headline"
    assert "Every judge keeps the limits of its datasheet." in verdict.reasons


@pytest.mark.parametrize("failing", [BAD, None])
@pytest.mark.parametrize(("on_failure", "level"), [("qualified", "qualified"), ("no-claim", "no-claim")])
def test_a_judge_that_fails_or_shows_none_takes_claims_down_as_the_plan_says(failing, on_failure, level):
    verdict = first(study(on_failure), [*BASE, *gates(fa=[], fb=failing, fc=[])])
    assert verdict.publication_level == level
    assert "datasheets" in verdict.binding
    assert any("Judged as an instrument, fb fails the limits" in reason for reason in verdict.reasons)
    if level == "qualified":
        assert "Not every judge keeps the limits that the plan sets for them: fb." in verdict.condition


def test_the_plan_decides_whether_datasheets_matter():
    assert first(study(""), [*BASE, *gates(fa=BAD, fb=BAD, fc=BAD)]).publication_level == "headline"


def test_a_certificate_holds_the_gates_and_a_changed_one_is_found():
    plan, found = study("no-claim"), [*BASE, *gates(fa=[], fb=BAD, fc=[])]
    verdict = first(plan, found)
    (made,) = certificates([verdict], index(found), plan)
    stated = to_json(made)
    assert [entry["id"] for entry in stated["instruments"]] == [
        f"datasheet.gate[judge={j}]" for j in ("fa", "fb", "fc")
    ]
    stated["instruments"][1].update(value=0.0, failed=[])
    assert any("Every judge keeps the limits" in text for text in verify(stated).differences)


# Equal agents: how often a study of them ends in an order that may be said (it has to stay within 5 %)

AGENTS, JUDGES, DIMENSIONS = 4, 3, 6
STUDIES = 120
PLAN = parse_study(
    'name = "null"\nseed = 1\n'
    + "".join(f'[[judges]]\nname = "j{j}"\nmodel = "reference/auditor"\nfamily = "f{j}"\n' for j in range(JUDGES))
)
NOW = datetime(2026, 1, 5, tzinfo=UTC)


def decision(agent: int, cluster: int, cycle: int) -> Decision:
    return Decision(
        record_id=f"{agent}/{cluster}/{cycle}",
        episode_id=f"{cluster}/{cycle}",
        step=0,
        cluster=f"regime-{cluster}",
        decided_at=NOW,
        agent=Agent(id=f"agent-{agent}", family="x"),
        context_id="c",
        actions=(),
        rationales=(),
        format="sim",
        provenance=Provenance(source="simulation"),
    )


def null_study(rng: np.random.Generator, *, clusters: int, cycles: int, leader: float = 0.0) -> tuple[list, list]:
    """Four agents, the first ``leader`` points better; quality per trajectory and dimension is seen by all judges.

    Agents react differently to regimes (a cluster effect), so decisions of one cluster are not independent.
    """
    decisions, judgments = [], []
    for cluster in range(clusters):
        liking = rng.normal(0, 0.25, (AGENTS, DIMENSIONS))
        for cycle in range(cycles):
            task = rng.normal(0, 0.3)
            for agent in range(AGENTS):
                record = decision(agent, cluster, cycle)
                decisions.append(record)
                quality = 3.2 + task + leader * (agent == 0) + liking[agent] + rng.normal(0, 0.8, DIMENSIONS)
                for judge in range(JUDGES):
                    seen = np.clip(np.floor(quality + rng.normal(0, 0.5, DIMENSIONS) + 0.5), 1, 5)
                    judgments.append(
                        Judgment(
                            trajectory=record.record_id,
                            judge=f"j{judge}",
                            family=f"f{judge}",
                            rubric="v1.0",
                            trial=1,
                            status="ok",
                            scores={f"d{d}": float(seen[d]) for d in range(DIMENSIONS)},
                            call_key="k",
                        )
                    )
    return judgments, decisions


def orders(seed: int, **design) -> list[str]:
    """The order claims that one simulated study permits."""
    judgments, decisions = null_study(np.random.default_rng([77, seed]), **design)
    measurements = analyse(score_table(judgments, decisions), PLAN, rng=np.random.default_rng(seed))
    verdicts = decide_claims(measurements, PLAN, "hash", variants=False)
    return [v.claim.id for v in verdicts if v.claim.asserts_order and v.publication_level != "no-claim"]


def test_equal_agents_rarely_give_an_order_that_may_be_said():
    """At most 5 %: the count must not exceed the upper end of the central 99.9 % binomial band of that rate."""
    found = sum(over_seeds(lambda seed: bool(orders(seed, clusters=5, cycles=6)), range(STUDIES)))
    assert found <= stats.binom.ppf(0.9995, STUDIES, 0.05)


def test_a_planted_leader_is_found():
    """One agent a full point better on every dimension: its first place may be said in nearly every study."""
    claims = over_seeds(lambda seed: orders(seed, clusters=8, cycles=6, leader=1.0), range(12))
    assert sum("first[agent=agent-0,dimension=aggregate]" in found for found in claims) >= 11
    assert not any(name.startswith(f"first[agent=agent-{a}") for found in claims for name in found for a in (1, 2, 3))
