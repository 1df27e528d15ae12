"""The claim map of ValueBlindBench section 4.1, from tables of scores through every step to the page.

`claim_map_study` says how the tables come about, and which published numbers contradict each other.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from itertools import combinations, product

import numpy as np
import pytest
from claim_map_study import (
    AGENTS,
    CORRELATION,
    CYCLES,
    DIMENSIONS,
    JUDGES,
    KAPPA,
    KAPPA_AGGREGATE,
    REGIMES,
    STABILITY,
    TERSE,
    honest_name,
    measurements,
    published_verdicts,
    study_of,
    tables,
    verdicts,
)

from assaymark.claims import Rules, certificates, decide, index, kind_of, summary_of, verify
from assaymark.judging import load_rubric
from assaymark.metrology import contested, holm
from assaymark.protocol import plan_hash
from assaymark.records import AGGREGATE, Agent, Decision, Measurement, Provenance, Verdict
from assaymark.report import AssayRun, RubricView, render_pages

LOWER = ("gemini", "gpt", "qwen3")
Decided = Callable[[], dict[str, Verdict]]

both_rules = pytest.mark.parametrize("decided", [published_verdicts, verdicts], ids=["published", "defaults"])
"""The source's rule (the regime bootstrap with Holm, and the sign of each drop), and the defaults of a plan."""


@cache
def by_id() -> dict[str, Measurement]:
    return {item.id: item for item in measurements()}


def value(name: str) -> float:
    found = by_id()[name].value
    assert found is not None
    return found


def as_tuple(verdict: Verdict) -> tuple[str, str, str, str]:
    return (
        verdict.agreement_status,
        verdict.stability_status,
        verdict.adversarial_status,
        verdict.publication_level,
    )


def first(agent: str, dimension: str = AGGREGATE, decided: Decided = verdicts) -> Verdict:
    return decided()[f"first[agent={agent},dimension={dimension}]"]


def above(high: str, low: str, decided: Decided = verdicts) -> Verdict:
    return decided()[f"above[dimension={AGGREGATE},high={high},low={low}]"]


def run() -> AssayRun:
    """The study as the report reads it."""
    study, rubric = study_of(), load_rubric("v1.0")
    return AssayRun(
        study=study,
        plan_hash=plan_hash(study, {}),
        locked_at="3 May 2026",
        rubric=RubricView(
            name="v1.0",
            title=rubric.title,
            dimensions=tuple((name, name.replace("_", " ").capitalize()) for name in rubric.names),
        ),
        verdicts=tuple(verdicts().values()),
        measurements=measurements(),
        decisions=tuple(decision(*key) for key in product(AGENTS, REGIMES, range(CYCLES))),
        evidence=(),
        calls=5500,
    )


def decision(agent: str, regime: str, cycle: int) -> Decision:
    """The record behind a trajectory, as far as the pages need it: it holds no text."""
    return Decision(
        record_id=honest_name(agent, regime, cycle),
        episode_id=regime,
        step=cycle,
        cluster=regime,
        decided_at=datetime(2026, 1, 1, tzinfo=UTC),
        agent=Agent(id=agent, family=agent),
        context_id="0" * 64,
        actions=(),
        rationales=(),
        format="simulated",
        provenance=Provenance(source="simulated"),
    )


@cache
def page() -> dict[str, tuple[str, str]]:
    """Result and permitted conclusion of each experiment on the page."""
    rows = re.findall(r"<tr.*?</tr>", str(render_pages(run())["claim-map.html"]), flags=re.DOTALL)
    found = {}
    for row in rows:
        cells = [_text(cell) for cell in re.findall(r"<t[dh].*?</t[dh]>", row, flags=re.DOTALL)]
        if len(cells) == 4:
            found[cells[0]] = (cells[2], cells[3])
    return found


def _text(cell: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", cell)).split())


def row(experiment: str) -> tuple[str, str]:
    (found,) = [said for name, said in page().items() if name.startswith(experiment)]
    return found


# --- the tables are those of section 4 --------------------------------------------------------------------------------


def test_the_tables_have_the_published_size_and_hold_whole_scores():
    made = tables()
    sizes = [made.honest.n, *(cell.table.n for cell in made.cells)]
    assert sizes == [1000, 50, 50]
    calls = [one.total for table in (made.honest, *(c.table for c in made.cells)) for one in table.calls.values()]
    assert sum(calls) == 5500
    assert np.bincount(made.honest.agent * 5 + made.honest.cluster).tolist() == [50] * 20
    for j, (name, _, trials) in enumerate(JUDGES):
        grades = made.honest.scores[:, made.honest.judges.index(name)] * trials
        assert np.abs(grades - np.rint(grades)).max() < 1e-9, j
    assert made.honest.scores.min() >= 1
    assert made.honest.scores.max() <= 5


def test_equal_seeds_make_equal_tables():
    one, again = tables(), tables.__wrapped__()
    assert one.honest.digest == again.honest.digest
    assert (one.outside, one.after) == (again.outside, again.after)


# --- agreement: sections 4.1 and 5.1 ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("dimension", "printed"), [(AGGREGATE, KAPPA_AGGREGATE), *KAPPA.items()])
def test_section_5_1_agreement_and_what_it_permits(dimension, printed):
    assert value(f"kappa.mean_pairwise[dimension={dimension}]") == pytest.approx(printed, abs=0.03)
    expected = "methodology" if dimension == "constraint_awareness" else "publish"
    found = [v for v in verdicts().values() if v.claim.dimension == dimension and kind_of(v.claim) != "cell"]
    assert {v.agreement_status for v in found} == {expected}
    if expected == "methodology":
        assert "headline" not in {v.publication_level for v in found}


def test_section_4_1_the_page_downgrades_one_dimension():
    result, conclusion = row("Overall κ gate")
    assert result.startswith("κ 0.72 (")
    assert conclusion.startswith("Enough for claims on the overall score.")
    result, conclusion = row("Per-dimension")
    assert result.startswith("Five dimensions of six at or above the gate; constraint awareness κ 0.20 (")
    assert result.endswith(", weak; n = 1,000")
    assert conclusion == "No headline on constraint awareness."


def test_section_5_1_constraint_awareness_is_fragile_and_the_headline_is_not():
    downgraded, leader = first("claude", "constraint_awareness").fragility, first("claude").fragility
    assert downgraded["lower bound of kappa"] == "no-claim"
    assert downgraded["kappa cut-offs 0.5 and 0.25"] == "no-claim"
    assert leader["kappa cut-offs 0.5 and 0.25"] == "qualified"


def test_section_3_4_repetition_stability_clears_the_gate():
    assert value("noise.repetition_stability[ddof=1,judge=claude-judge]") == pytest.approx(STABILITY, abs=0.001)
    result, conclusion = row("Repetition stability")
    assert "claude-judge 0.987" in result
    assert conclusion == "Averaging trials clears the gate of 0.90."


def test_section_5_1_the_post_cutoff_regime_does_not_differ():
    gaps = {name: by_id()[f"contamination.gap[dimension=aggregate,split={name}]"]
            for name in ("all", "instrument:BTC", "instrument:SOL")}  # fmt: skip
    assert gaps["all"].value == pytest.approx(-0.009, abs=0.001)
    assert all(item.detail["p"] > 0.3 for item in gaps.values())
    counts = {name: (item.detail["n_post"], item.detail["n_earlier"]) for name, item in gaps.items()}
    assert counts == {"all": (200, 800), "instrument:BTC": (200, 800), "instrument:SOL": (200, 400)}
    assert row("Contamination")[1].startswith("None of three splits shows a difference after the cutoff")


# --- ranks: sections 5.2 to 5.4 ---------------------------------------------------------------------------------------


def test_section_5_2_gaps_between_the_lower_ranks():
    level = {agent: value(f"score.effect[agent={agent},dimension=aggregate]") for agent in AGENTS}
    assert level["gemini"] - level["gpt"] == pytest.approx(0.009, abs=0.001)
    assert level["qwen3"] - level["gemini"] == pytest.approx(0.018, abs=0.001)
    assert level["qwen3"] - level["gpt"] == pytest.approx(0.027, abs=0.001)
    assert level["claude"] - max(level[agent] for agent in LOWER) > 0.25


def test_section_5_2_claude_is_first_in_every_resample_and_the_lower_places_are_dispersed():
    shares = {agent: by_id()[f"rank.first[agent={agent},dimension=aggregate]"].detail["shares"] for agent in AGENTS}
    assert shares["claude"][0] == pytest.approx(1)
    assert all(share > 0.05 for agent in LOWER for share in shares[agent][1:])
    result, conclusion = row("Rank intervals")
    assert result == "claude rank 1 in 100 % of all 126 resamples of 5 clusters; three agents share a tier"
    assert conclusion == "claude ranks first (qualified)."


def test_section_5_2_drops_keep_rank_1_and_reverse_the_rest():
    rho = {family: value(f"lofo.rho[dimension=aggregate,dropped={family}]") for _, family, _ in JUDGES}
    assert rho == pytest.approx({"anthropic": 0.2, "openai": 1.0, "google": 1.0})
    levels = {a: value(f"lofo.effect[agent={a},dimension=aggregate,dropped=anthropic]") for a in AGENTS}
    assert sorted(levels, key=levels.__getitem__, reverse=True) == ["claude", "gpt", "gemini", "qwen3"]
    result, conclusion = row("Leave-one-family-out")
    assert result.startswith("Without judge family anthropic ρ 0.20; without judge family google ρ 1.00; ")
    assert conclusion == "3 of 3 significant pairs hold."


@both_rules
def test_section_4_1_only_rank_1_is_publishable_and_with_a_condition(decided):
    for agent in LOWER:
        assert as_tuple(first(agent, decided=decided)) == (
            "publish",
            "tie-class",
            "construct-sensitive",
            "no-claim",
        )
        assert as_tuple(above("claude", agent, decided))[1:] == ("stable", "construct-sensitive", "qualified")
    lower = [v for v in decided().values() if v.claim.asserts_order and not {"claude"} & set(v.claim.subjects)]
    on_the_aggregate = [v for v in lower if v.claim.dimension == AGGREGATE]
    assert {v.publication_level for v in on_the_aggregate} == {"no-claim"}
    orders = [v for v in decided().values() if v.claim.asserts_order]
    assert "headline" not in {v.publication_level for v in orders}


def test_section_4_1_the_page_orders_claude_above_each_other_agent_alone():
    result, conclusion = row("Order procedure")
    assert result.startswith("3 of 6 pairs significant at .04 for all together.")
    assert conclusion == "Pairs: 3 ordered and 3 within the margin."


def test_limitation_9_no_judge_is_needed_for_its_own_makers_agent():
    """Three of four agents have a judge of their maker: without it claude is as far ahead."""
    for agent in LOWER:
        whole = by_id()[f"contrast[dimension=aggregate,high=claude,low={agent}]"]
        aside = by_id()[f"recusal.contrast[dimension=aggregate,high=claude,low={agent}]"]
        assert aside.value == pytest.approx(whole.value, abs=0.05)
        assert aside.detail["p"] < 0.001
        assert above("claude", agent).own_family == "clear"
    assert row("Own-family judges")[1] == "0 of 3 significant pairs rest on it."
    assert first("claude").own_family == "clear"


def test_section_5_5_length_explains_no_order():
    assert {above("claude", agent).length for agent in LOWER} == {"clear"}
    assert row("Equal length")[1] == "3 of 3 significant pairs remain at equal length."


@both_rules
def test_section_5_3_worked_verdict_1(decided):
    verdict = first("claude", decided=decided)
    assert verdict.claim.scope == "aggregate-ranking"
    assert as_tuple(verdict) == ("publish", "stable", "construct-sensitive", "qualified")
    assert verdict.binding == ("adversarial",)
    assert verdict.stability.state == "stable"
    agreement, standing, *controls = verdict.reasons
    assert "kappa 0.72 (" in agreement
    assert "at or above the cut-off 0.40" in agreement
    assert standing.startswith("The lead over each of the other three agents is significant")
    assert standing.endswith("and holds without any one judge family.")
    assert any("Terse but correct rationales lose 2.81 points under this rubric" in said for said in controls)
    assert any("84.4 % of the rationales of gemini have fewer than 60 words" in said for said in controls)
    assert verdict.condition.startswith(
        "Terse but correct rationales lose 2.81 points under this rubric. "
        "84.4 % of the rationales of gemini have fewer than 60 words."
    )


def test_five_regimes_are_said_with_every_order():
    """The source has no such sentence: five clusters rest on normal errors."""
    found = [v for v in verdicts().values() if v.claim.asserts_order and v.publication_level != "no-claim"]
    assert found
    assert all("Few clusters (5): this rests on normal errors." in v.condition for v in found)


@both_rules
def test_section_5_3_worked_verdict_2(decided):
    verdict = above("qwen3", "gemini", decided)
    assert verdict.claim.scope == "pairwise-contrast"
    assert as_tuple(verdict) == ("publish", "tie-class", "construct-sensitive", "no-claim")
    assert verdict.binding == ("stability",)
    assert verdict.reasons[1].startswith("The difference is not resolved: p = 1 adjusted")
    assert any("84.4 % of the rationales of gemini" in said for said in verdict.reasons[2:])


def test_section_5_3_what_stands_behind_worked_verdict_2():
    """The gap of .018 turns without the claude judge, and the outside judge sees +.04, an interval that contains 0."""
    pair = "high=qwen3,low=gemini"
    assert value(f"contrast[dimension=aggregate,{pair}]") == pytest.approx(0.018, abs=0.001)
    without = {f: value(f"lofo.contrast[dimension=aggregate,dropped={f},{pair}]") for _, f, _ in JUDGES}
    assert without["anthropic"] == pytest.approx(-0.025, abs=0.001)
    assert min(without["openai"], without["google"]) > 0
    known = index(
        [replace(m, detail={**m.detail, "p_bootstrap": 1e-4}) if m.name == "contrast" else m for m in measurements()]
    )
    rules = replace(Rules.of(study_of()), test="p_bootstrap", source=True)
    verdict = decide(above("qwen3", "gemini").claim, known, rules, "hash")
    assert (verdict.stability_status, verdict.stability.state) == ("tie-class", "reversed-without")
    assert verdict.stability.families == ("anthropic",)
    reason = verdict.reasons[1]
    assert "turns without" in reason
    assert reason.endswith("anthropic. The held-out judge deepseek was asked; its interval contains 0.")
    unasked = decide(above("gemini", "gpt").claim, known, rules, "hash")
    assert unasked.stability_status == "judge-dependent", "the outside judge never compared the two"


def test_section_5_2_the_outside_judge_is_asked_about_the_lower_ranks():
    plan = contested(measurements(), study_of())
    assert plan.needed
    assert "without anthropic rho is 0.2 on aggregate" in plan.reason
    assert {frozenset(pair[1:]) for pair in plan.pairs if pair[0] == AGGREGATE} == {
        frozenset(pair) for pair in combinations(LOWER, 2)
    }
    probe = by_id()["probe.contrast[dimension=aggregate,high=qwen3,low=gemini]"]
    assert (probe.value, probe.low, probe.high) == pytest.approx((0.04, -0.01, 0.09), abs=0.005)
    assert probe.n == 247
    for high, low in (("gemini", "gpt"), ("qwen3", "gpt")):
        assert by_id()[f"probe.contrast[dimension=aggregate,high={high},low={low}]"].state == "never compared"
        verdict = above(high, low)
        assert (verdict.stability_status, verdict.publication_level) == ("tie-class", "no-claim")


@both_rules
def test_section_5_2_ranks_2_to_4_are_one_tier(decided):
    summary = summary_of(list(decided().values()), AGENTS)
    assert summary.tiers[AGGREGATE] == (("claude",), LOWER)
    assert summary.ranks[AGGREGATE] == {"claude": (1, 1), **dict.fromkeys(LOWER, (2, 4))}
    assert summary.top_set[AGGREGATE] == ("claude",)


def test_section_5_2_the_lower_ranks_score_within_the_margin_of_each_other():
    """More than a tie class: their gaps are shown to be below .3, not only not resolved."""
    for high, low in (("qwen3", "gemini"), ("gemini", "gpt"), ("qwen3", "gpt")):
        verdict = verdicts()[f"within[dimension=aggregate,high={high},low={low}]"]
        assert (verdict.publication_level, verdict.pair_state) == ("qualified", "within-the-margin")
        assert verdict.p_adjusted < 0.001
        assert "score within 0.3 of each other" in verdict.claim.statement
    for agent in LOWER:
        claim = f"within[dimension=aggregate,high=claude,low={agent}]"
        assert verdicts()[claim].publication_level == "no-claim"


def test_section_5_4_single_judges_agree_on_the_first_place_alone():
    orders = []
    for judge, _, _ in JUDGES:
        level = {a: value(f"single.level[agent={a},dimension=aggregate,judge={judge}]") for a in AGENTS}
        orders.append(tuple(sorted(level, key=level.__getitem__, reverse=True)))
    assert {order[0] for order in orders} == {"claude"}
    assert len(set(orders)) == 3
    rho = [m.value for m in measurements() if m.name == "single.rho" and m.labels["dimension"] == AGGREGATE]
    assert (min(rho), max(rho)) == pytest.approx((0.2, 0.8))


def test_section_5_4_the_panel_makes_20_of_36_discoveries_and_single_judges_make_others():
    """By the source's test; a cluster t over five regimes finds 14 of them."""
    contrasts = [m for m in measurements() if m.name == "contrast" and m.labels["dimension"] != AGGREGATE]
    found = [
        m.labels["dimension"]
        for m, p in zip(contrasts, holm([m.detail["p_bootstrap"] for m in contrasts]), strict=True)
        if p <= 0.05
    ]
    assert (len(contrasts), len(found), found.count("constraint_awareness")) == (36, 20, 3)
    panel = by_id()["panel.discoveries[]"]
    assert (panel.value, panel.detail["family"]) == (14, 36)
    alone = [m for m in measurements() if m.name == "single.discoveries"]
    assert len({(m.value, m.detail["overlap"]) for m in alone}) == 3
    assert all(m.detail["only"] for m in alone)
    result, conclusion = row("Single-judge")
    assert "correlate at ρ 0.20 to 0.80" in result
    assert "the panel finds 14 of 36 differences significant" in result
    assert conclusion.startswith("One judge is not enough")


# --- control cells: sections 5.3 and 5.5 ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "mean", "quartiles", "within"),
    [
        ("cell.honest[dimension=aggregate]", 4.35, (4.33, 4.50, 4.61), 0.06),
        ("cell.score[cell=cell_a,dimension=aggregate]", 1.44, (1.33, 1.44, 1.53), 0.02),
        ("cell.score[cell=cell_b,dimension=aggregate]", 1.54, (1.48, 1.54, 1.58), 0.021),
    ],
)
def test_section_5_5_summaries(name, mean, quartiles, within):
    found = by_id()[name]
    assert found.value == pytest.approx(mean, abs=0.001)
    assert [found.detail[key] for key in ("q1", "median", "q3")] == pytest.approx(quartiles, abs=within)


def test_section_4_1_cell_a_is_refused():
    gate = by_id()["cell.gate[cell=cell_a]"]
    assert (gate.detail["outcome"], gate.detail["primary"]) == ("passed", "panel")
    assert gate.detail["p"] < 1e-3
    verdict = verdicts()["cell[cell=cell_a]"]
    assert as_tuple(verdict) == ("publish", "stable", "passed", "headline")
    result, conclusion = row("Cell A")
    assert result.startswith("Panel mean 1.44 against honest 4.35")
    assert conclusion == "The panel does not simply reward length and confidence. Verdict: supported."


def test_section_4_1_cell_b_makes_the_rubric_construct_sensitive():
    gate = by_id()["cell.gate[cell=cell_b]"]
    assert gate.value == pytest.approx(-2.81, abs=0.001)
    assert gate.detail["outcome"] == "verbosity-bias"
    assert gate.high < -0.5
    verdict = verdicts()["cell[cell=cell_b]"]
    assert as_tuple(verdict) == ("publish", "stable", "passed", "headline")
    assert "more than 0.5 points below honest ones" in verdict.claim.statement
    others = [v for v in verdicts().values() if kind_of(v.claim) != "cell"]
    assert {v.adversarial_status for v in others} == {"construct-sensitive"}
    result, conclusion = row("Cell B")
    assert result.startswith("Panel mean 1.54 against honest 4.35, difference by its rule −2.81 (")
    assert conclusion.startswith("The rubric is sensitive to style: short, correct texts are marked down; claims are")


def test_section_5_5_the_cells_hardly_differ():
    assert value("cell.separation[dimension=aggregate]") == pytest.approx(0.10, abs=0.001)


@pytest.mark.parametrize("kind", ["cell_a", "cell_b"])
def test_section_5_5_no_halo(kind):
    halo = by_id()[f"cell.halo[cell={kind}]"]
    assert halo.value == pytest.approx(0.0, abs=0.03)
    assert halo.detail == {"family": "anthropic", "triggered": False}
    (cell,) = [one for one in tables().cells if one.kind == kind]
    given = cell.table.stacked[:, :, 0].mean(axis=0)
    assert given == pytest.approx([given[0]] * 3), "no judge gives the cell more than another"
    assert row("Self-preference")[1].startswith("No cell moves by 0.3 or more")


@pytest.mark.parametrize("agent", AGENTS)
def test_section_5_3_terse_shares(agent):
    share = by_id()[f"terse.share[agent={agent}]"]
    assert (share.detail["below"], share.n) == (TERSE[agent], 250)
    assert row("Terse tail")[1] == "Every contrast with gemini is sensitive to style."


def test_section_5_5_length_is_unrelated_to_honest_scores():
    assert value("score.length_correlation[dimension=aggregate]") == pytest.approx(CORRELATION, abs=0.001)
    assert by_id()["style.threshold[dimension=aggregate]"].detail["p"] > 0.05


# --- the anchor probe: section 5.6 ------------------------------------------------------------------------------------


def test_section_5_6_the_anchors_carry_the_dimension():
    shift = by_id()["anchor.shift[dimension=constraint_awareness]"]
    assert shift.n == 120
    assert shift.value == pytest.approx(-0.42, abs=0.005)
    assert (shift.low, shift.high) == pytest.approx((-0.51, -0.33), abs=0.02)
    assert (shift.detail["sd_before"], shift.detail["sd_after"]) == pytest.approx((0.60, 0.81), abs=0.02)
    assert shift.detail["order_before"][0] == "claude"
    assert shift.detail["order_after"] == ["qwen3", "claude", "gpt", "gemini"]
    assert shift.detail["changed"] is True
    same = [by_id()[f"anchor.shift[dimension={name}]"] for name in DIMENSIONS if name != "constraint_awareness"]
    assert not any(item.detail["changed"] for item in same)
    result, conclusion = row("Rubric wording")
    assert result.startswith("Constraint awareness −0.42 (")
    assert "pairs of agents turned" in result
    assert "the score depends on how its anchors are written" in conclusion
    assert conclusion.endswith("Agreement under the other anchors was not measured by one judge.")


# --- certificates and the page ----------------------------------------------------------------------------------------


def test_every_certificate_verifies():
    made = list(certificates(verdicts().values(), index(measurements()), study_of()))
    assert len(made) == len(verdicts())
    assert [differences for one in made if (differences := verify(one).differences)] == []


def test_section_4_1_the_page_says_what_became_of_the_outside_judge():
    result, conclusion = row("Held-out judge")
    assert "; a difference in 1 and none in 1; " in result
    assert conclusion == "None of 10 claims is supported."


def test_the_page_counts_only_pairs_that_the_outside_judge_compared():
    """It saw qwen3 and gemini alone: on the aggregate a tie, on constraint_awareness +.45 (section 5.6)."""
    seen = [m for m in measurements() if m.name == "probe.contrast" and m.value is not None]
    assert [{m.labels["high"], m.labels["low"]} for m in seen] == [{"qwen3", "gemini"}] * 2
    result, _ = row("Held-out judge")
    assert result.startswith("2 pairs judged; a difference in 1 and none in 1")
    assert "n = 247 common cycles a pair" in result
