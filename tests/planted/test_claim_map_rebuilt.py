"""The claim map of ValueBlindBench section 4.1, from tables of scores through every step to the page.

`claim_map_study` says how the tables come about, and which published numbers contradict each other.
"""

from __future__ import annotations

import html
import re
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
    PUBLISHED,
    REGIMES,
    STABILITY,
    TERSE,
    honest_name,
    measurements,
    study_of,
    tables,
    verdicts,
)

from assaymark.claims import certificates, index, kind_of, verify
from assaymark.judging import load_rubric
from assaymark.metrology import contested
from assaymark.protocol import plan_hash
from assaymark.records import AGGREGATE, Agent, Decision, Measurement, Provenance, Verdict
from assaymark.report import AssayRun, RubricView, render_pages

LOWER = ("gemini", "gpt", "qwen3")
OURS = ""
"""The defaults of a plan: cluster t, and alpha shared between the aggregate and the dimensions."""

both_tests = pytest.mark.parametrize("inference", [PUBLISHED, OURS], ids=["published", "defaults"])


@cache
def by_id(inference: str = PUBLISHED) -> dict[str, Measurement]:
    return {item.id: item for item in measurements(inference)}


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


def first(agent: str, dimension: str = AGGREGATE, inference: str = PUBLISHED) -> Verdict:
    return verdicts(inference)[f"first[agent={agent},dimension={dimension}]"]


def above(high: str, low: str, inference: str = PUBLISHED) -> Verdict:
    return verdicts(inference)[f"above[dimension={AGGREGATE},high={high},low={low}]"]


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
        family_size=36,
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
    result, conclusion = row("Aggregate")
    assert result.startswith("κ 0.72 (")
    assert conclusion.startswith("Claims on the aggregate may be published.")
    result, conclusion = row("Per-dimension")
    assert result.startswith("Five dimensions of six at or above the gate; constraint awareness κ 0.20 (")
    assert "methodology" in result
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
    result, conclusion = row("Bootstrap rank")
    assert result.startswith("claude in place 1 in 100 % of all 126 resamples")
    assert result.endswith("the shares of three agents withheld")
    assert conclusion == "claude may be called first (qualified)."


def test_section_5_2_drops_keep_rank_1_and_reverse_the_rest():
    rho = {family: value(f"lofo.rho[dimension=aggregate,dropped={family}]") for _, family, _ in JUDGES}
    assert rho == pytest.approx({"anthropic": 0.2, "openai": 1.0, "google": 1.0})
    levels = {a: value(f"lofo.effect[agent={a},dimension=aggregate,dropped=anthropic]") for a in AGENTS}
    assert sorted(levels, key=levels.__getitem__, reverse=True) == ["claude", "gpt", "gemini", "qwen3"]
    assert row("LOFO")[0].startswith("Without anthropic ρ 0.20; without google ρ 1.00; without openai ρ 1.00")


@both_tests
def test_section_4_1_only_rank_1_is_publishable_and_with_a_condition(inference):
    for agent in LOWER:
        assert as_tuple(first(agent, inference=inference)) == (
            "publish",
            "tie-class",
            "construct-sensitive",
            "no-claim",
        )
        assert as_tuple(above("claude", agent, inference))[1:] == ("stable", "construct-sensitive", "qualified")
    ranking = verdicts(inference)["ranking[dimension=aggregate]"]
    assert (ranking.stability_status, ranking.publication_level) == ("tie-class", "no-claim")
    orders = [v for v in verdicts(inference).values() if v.claim.asserts_order]
    assert "headline" not in {v.publication_level for v in orders}


@both_tests
def test_section_5_3_worked_verdict_1(inference):
    verdict = first("claude", inference=inference)
    assert verdict.claim.scope == "aggregate-ranking"
    assert as_tuple(verdict) == ("publish", "stable", "construct-sensitive", "qualified")
    assert verdict.binding == ("adversarial",)
    agreement, standing, *controls = verdict.reasons
    assert "kappa 0.72 (" in agreement
    assert "at or above the cut-off 0.40" in agreement
    assert "survives the loss of each judge family" in standing
    assert any("Terse but correct rationales lose 2.81 points under this rubric" in said for said in controls)
    assert any("84.4 % of the rationales of gemini have fewer than 60 tokens" in said for said in controls)
    assert verdict.condition == (
        "Terse but correct rationales lose 2.81 points under this rubric. "
        "84.4 % of the rationales of gemini have fewer than 60 tokens."
    )


@both_tests
def test_section_5_3_worked_verdict_2(inference):
    verdict = above("qwen3", "gemini", inference)
    assert verdict.claim.scope == "pairwise-contrast"
    assert as_tuple(verdict) == ("publish", "tie-class", "construct-sensitive", "no-claim")
    assert verdict.binding == ("stability",)
    standing = verdict.reasons[1]
    assert "+0.018 points" in standing
    assert "Without anthropic it is −0.025" in standing
    assert "The outside judge deepseek sees +0.040 (−0.010 to +0.090)" in standing
    assert "which contains 0" in standing
    assert any("84.4 % of the rationales of gemini" in said for said in verdict.reasons[2:])


def test_section_5_2_the_outside_judge_is_asked_and_the_unprobed_pairs_inherit():
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
        assert "was not put to the outside judge: it stands in one class (gemini, gpt and qwen3)" in verdict.reasons[1]


@both_tests
def test_section_5_2_ranks_2_to_4_are_one_class(inference):
    (tie,) = [v for v in verdicts(inference).values() if kind_of(v.claim) == "tie" and v.claim.dimension == AGGREGATE]
    assert tie.claim.subjects == LOWER
    assert tie.claim.statement.endswith("no order among them is established.")
    assert as_tuple(tie) == ("publish", "tie-class", "construct-sensitive", "qualified")
    assert row("LOFO")[1] == "4 of 11 order claims on the aggregate are stable and 7 fall in a tie class."


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
    panel = by_id()["panel.discoveries[]"]
    assert (panel.value, panel.detail["family"]) == (20, 36)
    assert sum(name.startswith("constraint_awareness|") for name in panel.detail["found"]) == 3
    alone = [m for m in measurements() if m.name == "single.discoveries"]
    assert len({m.value for m in alone}) == 3
    assert all(m.detail["only"] for m in alone)
    result, conclusion = row("Single-judge")
    assert "correlate at ρ 0.20 to 0.80" in result
    assert "the panel makes 20 of 36 discoveries" in result
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
    assert conclusion == "The panel does not simply reward length and confidence. Verdict: headline."


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
    assert row("Halo")[1].startswith("No cell moves by 0.3 or more")


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
    result, conclusion = row("Anchor probe")
    assert result.startswith("Constraint awareness −0.42 (")
    assert "pairs of agents turned" in result
    assert "the score depends on how its anchors are written" in conclusion
    assert conclusion.endswith("Agreement under the other anchors was not measured by one judge.")


# --- certificates and the page ----------------------------------------------------------------------------------------


@both_tests
def test_every_certificate_verifies(inference):
    made = list(certificates(verdicts(inference).values(), index(measurements(inference)), study_of(inference)))
    assert len(made) == len(verdicts(inference))
    assert [differences for one in made if (differences := verify(one).differences)] == []


def test_section_4_1_the_page_says_what_became_of_the_outside_judge():
    result, conclusion = row("Out-of-family")
    assert "the interval contains zero for 1 and" in result
    assert conclusion.endswith("in a tie class, without a strict order.")


def test_the_page_counts_only_pairs_that_the_outside_judge_compared():
    """It saw qwen3 and gemini alone: on the aggregate a tie, on constraint_awareness +.45 (section 5.6)."""
    seen = [m for m in measurements() if m.name == "probe.contrast" and m.value is not None]
    assert [{m.labels["high"], m.labels["low"]} for m in seen] == [{"qwen3", "gemini"}] * 2
    result, _ = row("Out-of-family")
    assert result.startswith("2 pairs judged; the interval contains zero for 1 and excludes it for 1")
    assert "n = 247 common cycles a pair" in result
