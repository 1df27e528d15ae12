"""ValueBlindBench: the claim map (4.1) and the worked verdicts (5.3), from measurements with the published numbers.

They are decided by the source's own rule: Holm over percentile bootstrap p-values, and the sign of each drop.

Numbers that the paper does not print are marked as such; the gaps between the lower ranks, the drops, the probe, the
cells and the terse shares are the paper's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import combinations

import pytest

from assaymark.claims import Rules, certificate, decide, decide_claims, index, kind_of, summary_of
from assaymark.protocol import parse_study
from assaymark.records import AGGREGATE, Measurement, canonical_json

STUDY = parse_study(
    """
    name = "valueblindbench"
    seed = 42
    [[judges]]
    name = "claude-judge"
    model = "anthropic/sonnet"
    family = "claude"
    trials = 3
    [[judges]]
    name = "gpt-judge"
    model = "openai/gpt"
    family = "gpt"
    [[judges]]
    name = "gemini-judge"
    model = "google/gemini"
    family = "gemini"
    [stability.probe]
    name = "deepseek-v4-pro"
    model = "deepseek/v4"
    family = "deepseek"
    """
)
CLAUDE, GEMINI, GPT, QWEN = "claude-sonnet-4-6", "gemini-3.1-pro-preview", "gpt-5.5", "qwen3-235b-a22b"

KAPPA = {  # sections 4.1 and 5.1: value and interval
    AGGREGATE: (0.7168, 0.7006, 0.7330),
    "action_coherence": (0.9354, 0.9216, 0.9510),
    "risk_alignment": (0.8834, 0.8725, 0.8949),
    "uncertainty_handling": (0.7905, 0.7621, 0.8203),
    "position_sizing": (0.7626, 0.7470, 0.7770),
    "information_use": (0.6037, 0.5979, 0.6082),
    "constraint_awareness": (0.2022, 0.1792, 0.2256),
}
RHO = {"gemini": 1.0, "gpt": 1.0, "claude": 0.2}  # section 5.2
# Section 5.2: gpt-5.5 to gemini .009, gemini to qwen3 .018, gpt-5.5 to qwen3 .027. Which of the three stands highest is
# not printed, nor is Claude's lead; qwen3 is put first because the probe is reported as qwen3 minus gemini.
LEVELS = {CLAUDE: 4.71, QWEN: 4.254, GEMINI: 4.236, GPT: 4.227}
# Without Claude as a judge rank 1 stays and rho is .2: one of the orders of ranks 2 to 4 that give it.
WITHOUT = {"gemini": LEVELS, "gpt": LEVELS, "claude": {CLAUDE: 4.70, GPT: 4.29, QWEN: 4.26, GEMINI: 4.27}}
TERSE = {CLAUDE: (0, 250), GEMINI: (211, 250), GPT: (7, 250), QWEN: (0, 250)}  # section 5.3
TINY, LARGE = 2 / 1001, 0.6  # bootstrap p-values: the smallest of 1,000 resamples, and a lower-rank pair's


def measured(name: str, labels: Mapping[str, str], value: float | None, **more) -> Measurement:
    parts = {"n": 1000, "n_of": "trajectories", "method": "as published", **more}
    return Measurement(name=name, labels=labels, value=value, **parts)


def agreement():
    for dimension, (value, low, high) in KAPPA.items():
        yield measured("kappa.mean_pairwise", {"dimension": dimension}, value, low=low, high=high, level=0.95)


def agents(dimension):
    """Levels, contrasts and drops. On dimensions the paper prints no gaps; the aggregate's stand in for them."""
    for agent, level in LEVELS.items():
        yield measured("score.effect", {"dimension": dimension, "agent": agent}, level, n=250)
    for family, levels in WITHOUT.items():
        yield measured("lofo.rho", {"dimension": dimension, "dropped": family}, RHO[family], n=4, n_of="agents")
        for agent, level in levels.items():
            labels = {"dimension": dimension, "dropped": family, "agent": agent}
            yield measured("lofo.effect", labels, level, n=250)
    for high, low in combinations(LEVELS, 2):
        labels = {"dimension": dimension, "high": high, "low": low}
        p = TINY if high == CLAUDE else LARGE
        detail = {"p_bootstrap": p, "clusters": 5}
        yield measured("contrast", labels, LEVELS[high] - LEVELS[low], n=250, n_of="common cycles", detail=detail)
        for family, levels in WITHOUT.items():
            yield measured("lofo.contrast", {**labels, "dropped": family}, levels[high] - levels[low], n=250)


def controls():
    p = {"p": 1e-4, "p_holm": 1e-4, "primary": "panel"}
    yield measured("cell.gate", {"cell": "cell_a"}, 1.44 - 4.33, n=50, detail={"outcome": "passed", **p})
    bias = {"outcome": "verbosity-bias", **p}
    yield measured("cell.gate", {"cell": "cell_b"}, -2.81, n=50, low=-2.85, high=-2.77, level=0.95, detail=bias)
    for cell, outcome, value in (("cell_a", "passed", -2.89), ("cell_b", "verbosity-bias", -2.81)):
        yield measured("cell.halo", {"cell": cell}, 0.0, n=50, detail={"family": "claude", "triggered": False})
        agreed = {"unanimous": True, "leave_one_out": True}
        yield measured("cell.agreement", {"cell": cell}, 0.7, n=50, detail=agreed)  # not printed
        for family in RHO:
            labels = {"cell": cell, "dropped": family}
            yield measured("cell.drop", labels, value, n=50, detail={"outcome": outcome, **p})
    for agent, (below, n) in TERSE.items():
        yield measured("terse.share", {"agent": agent}, below / n, n=n, detail={"below": below, "tokens": 60})


def probe():
    labels = {"dimension": AGGREGATE, "high": QWEN, "low": GEMINI}
    detail = {"judge": "deepseek-v4-pro", "family": "deepseek"}
    yield measured("probe.contrast", labels, 0.04, n=247, low=-0.01, high=0.09, level=0.95, detail=detail)


@cache
def published() -> tuple[Measurement, ...]:
    per_dimension = [item for dimension in KAPPA for item in agents(dimension)]
    return (*agreement(), *per_dimension, *controls(), *probe())


@cache
def verdicts():
    return decided(published())


def decided(measurements):
    """Every verdict by the source's own rule."""
    known = index(measurements)
    by_source = replace(Rules.of(STUDY), test="p_bootstrap", source=True)
    return {v.claim.id: decide(v.claim, known, by_source, "hash") for v in decide_claims(measurements, STUDY, "hash")}


def first(agent, dimension=AGGREGATE):
    return verdicts()[f"first[agent={agent},dimension={dimension}]"]


def above(high, low):
    return verdicts()[f"above[dimension={AGGREGATE},high={high},low={low}]"]


def as_tuple(verdict):
    return (verdict.agreement_status, verdict.stability_status, verdict.adversarial_status, verdict.publication_level)


# --- section 5.3 ----------------------------------------------------------------------------------------------------


def test_section_5_3_worked_verdict_1_rank_1_is_qualified():
    verdict = first(CLAUDE)
    assert verdict.claim.scope == "aggregate-ranking"
    assert as_tuple(verdict) == ("publish", "stable", "construct-sensitive", "qualified")
    assert verdict.binding == ("adversarial",)
    agreement_reason, standing, *controls_said = verdict.reasons
    assert "kappa 0.72 (0.70 to 0.73)" in agreement_reason
    assert "holds without any one judge family" in standing
    assert any("Terse but correct rationales lose 2.81 points under this rubric" in said for said in controls_said)
    assert any(f"84.4 % of the rationales of {GEMINI} have fewer than 60 words" in said for said in controls_said)
    assert verdict.condition.startswith("Terse but correct rationales lose 2.81 points under this rubric.")


def test_section_5_3_worked_verdict_2_no_strict_order_of_qwen3_and_gemini():
    verdict = above(QWEN, GEMINI)
    assert verdict.claim.scope == "pairwise-contrast"
    assert as_tuple(verdict) == ("publish", "tie-class", "construct-sensitive", "no-claim")
    assert verdict.binding == ("stability",)
    assert any(GEMINI in said and "60 words" in said for said in verdict.reasons[2:])


# --- section 4.1 ----------------------------------------------------------------------------------------------------


def test_section_4_1_only_rank_1_is_publishable():
    allowed = {name for name, v in verdicts().items() if v.claim.asserts_order and v.publication_level != "no-claim"}
    on_the_aggregate = {name for name in allowed if "dimension=aggregate" in name and not name.startswith("above")}
    assert on_the_aggregate == {f"first[agent={CLAUDE},dimension=aggregate]"}
    pairs = {name for name in allowed if name.startswith("above[dimension=aggregate")}
    assert pairs == {f"above[dimension=aggregate,high={CLAUDE},low={other}]" for other in (GEMINI, GPT, QWEN)}
    assert not any(v.publication_level == "headline" and v.claim.asserts_order for v in verdicts().values())


def test_section_4_1_ranks_2_to_4_are_one_tier_not_a_strict_order():
    summary = summary_of(list(verdicts().values()), list(LEVELS))
    assert summary.tiers[AGGREGATE] == ((CLAUDE,), (GEMINI, GPT, QWEN))
    assert summary.ranks[AGGREGATE] == {CLAUDE: (1, 1), GEMINI: (2, 4), GPT: (2, 4), QWEN: (2, 4)}


@pytest.mark.parametrize("dimension", [name for name in KAPPA if name != AGGREGATE])
def test_section_4_1_five_dimensions_pass_and_one_is_downgraded(dimension):
    verdict = first(CLAUDE, dimension)
    expected = "methodology" if dimension == "constraint_awareness" else "publish"
    assert verdict.agreement_status == expected
    assert verdict.publication_level == "qualified"
    assert ("agreement" in verdict.binding) == (expected == "methodology")


def test_section_4_1_no_headline_on_constraint_awareness_whatever_else_is_green():
    """With clean cells and no terse agent the five dimensions reach a headline and this one does not."""
    clean = [item for item in published() if not item.name.startswith(("cell.", "terse."))]
    fine = {"p": 1e-4, "p_holm": 1e-4}
    cells = [
        measured("cell.gate", {"cell": "cell_a"}, -2.89, detail={"outcome": "passed", **fine}),
        measured("cell.gate", {"cell": "cell_b"}, -0.1, detail={"outcome": "substance", **fine}),
    ]
    found = {name: v.publication_level for name, v in decided([*clean, *cells]).items()}
    assert {name: found[f"first[agent={CLAUDE},dimension={name}]"] for name in KAPPA} == {
        **dict.fromkeys(KAPPA, "headline"),
        "constraint_awareness": "qualified",
    }


def test_section_4_1_cell_a_the_panel_does_not_simply_reward_verbosity():
    verdict = verdicts()["cell[cell=cell_a]"]
    assert verdict.claim.statement == (
        "The panel scores confident but wrong rationales below the bottom quartile of honest ones."
    )
    assert verdict.stability_status == "stable"
    assert verdict.adversarial_status == "passed", "the halo was 0.00"
    assert verdict.publication_level == "headline"


def test_section_4_1_cell_b_v1_0_is_construct_sensitive_for_terse_rationales():
    verdict = verdicts()["cell[cell=cell_b]"]
    assert verdict.claim.statement == (
        "The panel scores terse but correct rationales more than 0.5 points below honest ones."
    )
    assert "−2.810 points (−2.850 to −2.770)" in verdict.reasons[1]
    assert {v.adversarial_status for v in verdicts().values() if kind_of(v.claim) != "cell"} == {"construct-sensitive"}


def test_section_5_1_sensitivity_to_the_lower_bound_and_to_stricter_cutoffs():
    downgraded = first(CLAUDE, "constraint_awareness").fragility
    assert downgraded["lower bound of kappa"] == "no-claim"
    assert downgraded["kappa cut-offs 0.5 and 0.25"] == "no-claim"
    headline = first(CLAUDE).fragility
    assert headline["kappa cut-offs 0.5 and 0.25"] == "qualified", "rank 1 is insensitive to the stricter cut-offs"


def test_section_5_3_without_the_probe_the_lower_ranks_stay_a_class_for_want_of_evidence():
    """Here the gating test decides first: a gap of .018 points is nothing that a probe would have to settle."""
    without = [item for item in published() if item.name != "probe.contrast"]
    found = decided(without)
    verdict = found[f"above[dimension=aggregate,high={QWEN},low={GEMINI}]"]
    assert as_tuple(verdict) == ("publish", "tie-class", "construct-sensitive", "no-claim")
    assert "held-out judge" not in verdict.reasons[1]


def test_section_3_8_lower_ranks_that_were_significant_would_need_the_probe():
    """Had the bootstrap called the lower gaps significant, drop-Claude would have left them to DeepSeek."""
    eager = [
        Measurement(
            name=item.name, labels=item.labels, value=item.value, n=item.n, n_of=item.n_of, method=item.method,
            detail={**item.detail, "p_bootstrap": 1e-4},
        )
        if item.name == "contrast"
        else item
        for item in published()
    ]  # fmt: skip
    pair = f"above[dimension=aggregate,high={QWEN},low={GEMINI}]"
    assert decided(eager)[pair].stability_status == "tie-class"
    unprobed = decided([m for m in eager if m.name != "probe.contrast"])
    assert unprobed[pair].stability_status == "judge-dependent"
    assert decided(eager)[f"above[dimension=aggregate,high={GEMINI},low={GPT}]"].stability_status == "judge-dependent"


def test_this_protocols_own_rule_needs_more_than_a_bootstrap_p_value():
    """The paper prints no cluster means, so that nothing is published here by another rule than its own."""
    found = decide_claims(published(), STUDY, "hash")
    assert not any(v.claim.asserts_order and v.publication_level != "no-claim" for v in found)
    leader = next(v for v in found if v.claim.id == f"first[agent={CLAUDE},dimension=aggregate]")
    assert leader.fragility["source: percentile bootstrap"] == "qualified"


def test_section_3_8_each_verdict_has_a_certificate_without_text():
    known = index(published())
    for verdict in verdicts().values():
        found = certificate(verdict, known, STUDY)
        assert found["tuple"]["permitted_publication_level"] == verdict.publication_level
        assert len(canonical_json(found)) < 60_000
