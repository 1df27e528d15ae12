"""The claim map of ValueBlindBench section 4.1, from tables of scores through every step to the page.

`claim_map_study` says how the tables come about, and which published numbers contradict each other."""

from __future__ import annotations

import html
import re
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
PAIRS = (("qwen3", "gemini"), ("gemini", "gpt"), ("qwen3", "gpt"))

both_rules = pytest.mark.parametrize("decided", [published_verdicts, verdicts], ids=["published", "defaults"])
"""The source's rule (the regime bootstrap with Holm, and the sign of each drop), and the defaults of a plan."""


@cache
def by_id() -> dict[str, Measurement]:
    return {item.id: item for item in measurements()}


def on_aggregate(name: str, **labels: str) -> Measurement:
    """One measurement of the aggregate."""
    named = {"dimension": AGGREGATE, **labels}
    return by_id()[f"{name}[{','.join(f'{key}={named[key]}' for key in sorted(named))}]"]


def as_tuple(one: Verdict) -> tuple[str, str, str, str]:
    return one.agreement_status, one.stability_status, one.adversarial_status, one.publication_level


def first(agent: str, dimension: str = AGGREGATE, decided=verdicts) -> Verdict:
    return decided()[f"first[agent={agent},dimension={dimension}]"]


def above(high: str, low: str, decided=verdicts) -> Verdict:
    return decided()[f"above[dimension={AGGREGATE},high={high},low={low}]"]


def decision(agent: str, regime: str, cycle: int) -> Decision:
    """The record behind a trajectory, as far as the pages need it: it holds no text."""
    return Decision(
        record_id=honest_name(agent, regime, cycle), episode_id=regime, step=cycle, cluster=regime,
        decided_at=datetime(2026, 1, 1, tzinfo=UTC), agent=Agent(id=agent, family=agent), context_id="0" * 64,
        actions=(), rationales=(), format="simulated", provenance=Provenance(source="simulated"),
    )  # fmt: skip


@cache
def page() -> dict[str, list[str]]:
    """Result and permitted conclusion of each experiment on the page."""
    study, rubric = study_of(), load_rubric("v1.0")
    names = tuple((name, name.replace("_", " ").capitalize()) for name in rubric.names)
    run = AssayRun(
        study=study, plan_hash=plan_hash(study, {}), locked_at="3 May 2026", evidence=(), calls=5500,
        rubric=RubricView(name="v1.0", title=rubric.title, dimensions=names), verdicts=tuple(verdicts().values()),
        measurements=measurements(), decisions=tuple(decision(*key) for key in product(AGENTS, REGIMES, range(CYCLES))),
    )  # fmt: skip
    found = {}
    for row in re.findall(r"<tr.*?</tr>", str(render_pages(run)["claim-map.html"]), flags=re.DOTALL):
        cells = [" ".join(html.unescape(re.sub(r"<[^>]+>", " ", cell)).split())
                 for cell in re.findall(r"<t[dh].*?</t[dh]>", row, flags=re.DOTALL)]  # fmt: skip
        if len(cells) == 4:
            found[cells[0]] = cells[2:]
    return found


PAGE = [
    # the experiment, parts of its result in their order, and of what it permits; a whole conclusion ends with a stop
    ("Overall κ gate", ["κ 0.72 ("], "Enough for claims on the overall score."),
    ("Per-dimension", ["Five dimensions of six at or above the gate; constraint awareness κ 0.20 (",
                       ", weak; n = 1,000"], "No headline on constraint awareness."),
    ("Repetition stability", ["claude-judge 0.987"], "Averaging trials clears the gate of 0.90."),
    ("Contamination", [], "None of three splits shows a difference after the cutoff"),
    ("Rank intervals", ["claude rank 1 in 100 % of all 126 resamples of 5 clusters; three agents share a tier"],
     "claude ranks first (qualified)."),
    ("Leave-one-family-out", ["Without judge family anthropic ρ 0.20; without judge family google ρ 1.00; "],
     "3 of 3 significant pairs hold."),
    ("Ranking procedure", ["3 of 6 pairs significant at .04 for all together."],
     "Pairs: 3 ordered and 3 within the margin."),
    ("Own-family judges", [], "0 of 3 significant pairs rest on it."),
    ("Equal length", [], "3 of 3 significant pairs remain at equal length."),
    ("Single-judge", ["correlate at ρ 0.20 to 0.80", "the panel finds 14 of 36 differences significant"],
     "One judge is not enough"),
    ("Cell A", ["Panel mean 1.44 against honest 4.35"],
     "The panel does not simply reward length and confidence. Verdict: supported."),
    ("Cell B", ["Panel mean 1.54 against honest 4.35, difference by its rule −2.81 ("],
     "The rubric is sensitive to style: short, correct texts are marked down; claims are"),
    ("Self-preference", [], "No cell moves by 0.3 or more"),
    ("Terse tail", [], "Every contrast with gemini is sensitive to style."),
    ("Rubric wording", ["Constraint awareness −0.42 (", "pairs of agents reversed"],
     "the score depends on how its anchors are written"),
    ("Rubric wording", [], "Agreement under the other anchors was not measured by one judge."),
    # The outside judge saw qwen3 and gemini alone: on the aggregate a tie, on constraint_awareness +.45 (section 5.6)
    ("Held-out judge", ["2 pairs judged; a difference in 1 and none in 1; ", "n = 247 common cycles a pair"],
     "None of 10 claims is supported."),
]  # fmt: skip


@pytest.mark.parametrize(("experiment", "parts", "permitted"), PAGE)
def test_section_4_1_the_page_says_of_each_experiment(experiment, parts, permitted):
    ((result, conclusion),) = [said for name, said in page().items() if name.startswith(experiment)]
    places = [result.find(part) for part in parts]
    assert -1 not in places
    assert places == sorted(places)
    assert permitted in conclusion


# --- the tables are those of section 4 --------------------------------------------------------------------------------


def test_the_tables_have_the_published_size_hold_whole_scores_and_are_equal_for_equal_seeds():
    made, again = tables(), tables.__wrapped__()
    assert [made.honest.n, *(cell.table.n for cell in made.cells)] == [1000, 50, 50]
    calls = [one.total for table in (made.honest, *(c.table for c in made.cells)) for one in table.calls.values()]
    assert sum(calls) == 5500
    assert np.bincount(made.honest.agent * 5 + made.honest.cluster).tolist() == [50] * 20
    for name, _, trials in JUDGES:
        grades = made.honest.scores[:, made.honest.judges.index(name)] * trials
        assert np.abs(grades - np.rint(grades)).max() < 1e-9, name
    assert (made.honest.scores.min() >= 1, made.honest.scores.max() <= 5) == (True, True)
    assert (made.honest.digest, made.outside, made.after) == (again.honest.digest, again.outside, again.after)


# --- agreement: sections 4.1 and 5.1 ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("dimension", "printed"), [(AGGREGATE, KAPPA_AGGREGATE), *KAPPA.items()])
def test_section_5_1_agreement_and_what_it_permits(dimension, printed):
    assert on_aggregate("kappa.mean_pairwise", dimension=dimension).value == pytest.approx(printed, abs=0.03)
    weak = dimension == "constraint_awareness"
    found = [v for v in verdicts().values() if v.claim.dimension == dimension and kind_of(v.claim) != "cell"]
    assert {v.agreement_status for v in found} == {"methodology" if weak else "publish"}
    assert not weak or "headline" not in {v.publication_level for v in found}


def test_section_5_1_constraint_awareness_is_fragile_and_the_headline_is_not():
    downgraded, leader = first("claude", "constraint_awareness").fragility, first("claude").fragility
    assert downgraded["lower bound of kappa"] == downgraded["kappa cut-offs 0.5 and 0.25"] == "no-claim"
    assert leader["kappa cut-offs 0.5 and 0.25"] == "qualified"
    stability = by_id()["noise.repetition_stability[ddof=1,judge=claude-judge]"].value
    assert stability == pytest.approx(STABILITY, abs=0.001), "section 3.4"


def test_section_5_1_the_post_cutoff_regime_does_not_differ():
    gaps = {name: on_aggregate("contamination.gap", split=name) for name in ("all", "instrument:BTC", "instrument:SOL")}
    assert gaps["all"].value == pytest.approx(-0.009, abs=0.001)
    assert all(item.detail["p"] > 0.3 for item in gaps.values())
    counts = [(item.detail["n_post"], item.detail["n_earlier"]) for item in gaps.values()]
    assert counts == [(200, 800), (200, 800), (200, 400)]


# --- ranks: sections 5.2 to 5.4 ---------------------------------------------------------------------------------------


def test_section_5_2_levels_gaps_and_resampled_ranks():
    level = {agent: on_aggregate("score.effect", agent=agent).value for agent in AGENTS}
    gaps = [level["gemini"] - level["gpt"], level["qwen3"] - level["gemini"], level["qwen3"] - level["gpt"]]
    assert gaps == pytest.approx([0.009, 0.018, 0.027], abs=0.001)
    assert level["claude"] - max(level[agent] for agent in LOWER) > 0.25
    shares = {agent: on_aggregate("rank.first", agent=agent).detail["shares"] for agent in AGENTS}
    assert shares["claude"][0] == pytest.approx(1), "first in every resample"
    assert all(share > 0.05 for agent in LOWER for share in shares[agent][1:])


def test_section_5_2_drops_keep_rank_1_and_reverse_the_rest():
    rho = {family: on_aggregate("lofo.rho", dropped=family).value for _, family, _ in JUDGES}
    assert rho == pytest.approx({"anthropic": 0.2, "openai": 1.0, "google": 1.0})
    levels = {a: on_aggregate("lofo.effect", agent=a, dropped="anthropic").value for a in AGENTS}
    assert sorted(levels, key=levels.__getitem__, reverse=True) == ["claude", "gpt", "gemini", "qwen3"]


@both_rules
def test_section_4_1_only_rank_1_is_publishable_and_with_a_condition(decided):
    for agent in LOWER:
        lost = as_tuple(first(agent, decided=decided))
        assert lost == ("publish", "tie-class", "construct-sensitive", "no-claim")
        assert as_tuple(above("claude", agent, decided))[1:] == ("stable", "construct-sensitive", "qualified")
    orders = [v for v in decided().values() if v.claim.asserts_order]
    assert "headline" not in {v.publication_level for v in orders}
    lower = [v for v in orders if "claude" not in v.claim.subjects and v.claim.dimension == AGGREGATE]
    assert {v.publication_level for v in lower} == {"no-claim"}
    # The source has no such sentence: five clusters rest on normal errors.
    said = [v.condition for v in verdicts().values() if v.claim.asserts_order and v.publication_level != "no-claim"]
    assert said
    assert all("Few clusters (5): this rests on normal errors." in condition for condition in said)


def test_limitation_9_no_judge_is_needed_for_its_own_makers_agent_and_length_explains_no_order():
    """Three of four agents have a judge of their maker: without it claude is as far ahead."""
    for agent in LOWER:
        whole, aside = (on_aggregate(f"{kind}contrast", high="claude", low=agent) for kind in ("", "recusal."))
        assert aside.value == pytest.approx(whole.value, abs=0.05)
        assert aside.detail["p"] < 0.001
        assert (above("claude", agent).own_family, above("claude", agent).length) == ("clear", "clear")
    assert first("claude").own_family == "clear"


@both_rules
def test_section_5_3_worked_verdict_1(decided):
    verdict = first("claude", decided=decided)
    assert as_tuple(verdict) == ("publish", "stable", "construct-sensitive", "qualified")
    states = verdict.claim.scope, verdict.binding, verdict.stability.state
    assert states == ("aggregate-ranking", ("adversarial",), "stable")
    agreement, standing, *controls = verdict.reasons
    assert "kappa 0.72 (" in agreement
    assert "at or above the cut-off 0.40" in agreement
    assert standing.startswith("The lead over each of the other three agents is significant")
    assert standing.endswith("and holds without any one judge family.")
    terse = "Terse but correct rationales lose 2.81 points under this rubric"
    tail = "84.4 % of the rationales of gemini have fewer than 60 words"
    assert all(any(part in said for said in controls) for part in (terse, tail))
    assert verdict.condition.startswith(f"{terse}. {tail}.")


@both_rules
def test_section_5_3_worked_verdict_2(decided):
    verdict = above("qwen3", "gemini", decided)
    assert as_tuple(verdict) == ("publish", "tie-class", "construct-sensitive", "no-claim")
    assert (verdict.claim.scope, verdict.binding) == ("pairwise-contrast", ("stability",))
    assert verdict.reasons[1].startswith("The difference is not resolved: p = 1 adjusted")
    assert any("84.4 % of the rationales of gemini" in said for said in verdict.reasons[2:])


def test_section_5_3_what_stands_behind_worked_verdict_2():
    """The gap of .018 turns without the claude judge, and the outside judge sees +.04, an interval that contains 0."""
    pair = {"high": "qwen3", "low": "gemini"}
    assert on_aggregate("contrast", **pair).value == pytest.approx(0.018, abs=0.001)
    without = {f: on_aggregate("lofo.contrast", dropped=f, **pair).value for _, f, _ in JUDGES}
    assert without["anthropic"] == pytest.approx(-0.025, abs=0.001)
    assert min(without["openai"], without["google"]) > 0
    known = index(replace(m, detail={**m.detail, "p_bootstrap": 1e-4}) if m.name == "contrast" else m
                  for m in measurements())  # fmt: skip
    rules = replace(Rules.of(study_of()), test="p_bootstrap", source=True)
    verdict = decide(above("qwen3", "gemini").claim, known, rules, "hash")
    assert (verdict.stability_status, verdict.stability.state) == ("tie-class", "reversed-without")
    assert verdict.stability.families == ("anthropic",)
    assert "reverses without" in verdict.reasons[1]
    assert verdict.reasons[1].endswith("anthropic. The held-out judge deepseek was asked; its interval contains 0.")
    unasked = decide(above("gemini", "gpt").claim, known, rules, "hash")
    assert unasked.stability_status == "judge-dependent", "the outside judge never compared the two"


def test_section_5_2_the_outside_judge_is_asked_about_the_lower_ranks():
    plan = contested(measurements(), study_of())
    assert plan.needed
    assert "without anthropic rho is 0.2 on aggregate" in plan.reason
    asked = {frozenset(pair[1:]) for pair in plan.pairs if pair[0] == AGGREGATE}
    assert asked == {frozenset(pair) for pair in combinations(LOWER, 2)}
    probe = on_aggregate("probe.contrast", high="qwen3", low="gemini")
    assert (probe.value, probe.low, probe.high, probe.n) == pytest.approx((0.04, -0.01, 0.09, 247), abs=0.005)
    for high, low in PAIRS[1:]:
        assert on_aggregate("probe.contrast", high=high, low=low).state == "never compared"
        assert as_tuple(above(high, low))[1::2] == ("tie-class", "no-claim")
    seen = [{m.labels["high"], m.labels["low"]} for m in measurements()
            if m.name == "probe.contrast" and m.value is not None]  # fmt: skip
    assert seen == [{"qwen3", "gemini"}] * 2


@both_rules
def test_section_5_2_ranks_2_to_4_are_one_tier(decided):
    summary = summary_of(list(decided().values()), AGENTS)
    assert summary.tiers[AGGREGATE] == (("claude",), LOWER)
    assert summary.ranks[AGGREGATE] == {"claude": (1, 1), **dict.fromkeys(LOWER, (2, 4))}
    assert summary.top_set[AGGREGATE] == ("claude",)


def test_section_5_2_the_lower_ranks_score_within_the_margin_of_each_other():
    """More than a tie class: their gaps are shown to be below .3, not only not resolved."""
    near = {pair: verdicts()[f"within[dimension=aggregate,high={pair[0]},low={pair[1]}]"]
            for pair in (*PAIRS, *product(["claude"], LOWER))}  # fmt: skip
    for pair in PAIRS:
        assert (near[pair].publication_level, near[pair].pair_state) == ("qualified", "within-the-margin")
        assert near[pair].p_adjusted < 0.001
        assert "score within 0.3 of each other" in near[pair].claim.statement
    assert {one.publication_level for pair, one in near.items() if pair[0] == "claude"} == {"no-claim"}


def test_section_5_4_single_judges_agree_on_the_first_place_alone():
    orders = set()
    for judge, _, _ in JUDGES:
        level = {a: on_aggregate("single.level", agent=a, judge=judge).value for a in AGENTS}
        orders.add(tuple(sorted(level, key=level.__getitem__, reverse=True)))
    assert {order[0] for order in orders} == {"claude"}
    assert len(orders) == 3
    rho = [m.value for m in measurements() if m.name == "single.rho" and m.labels["dimension"] == AGGREGATE]
    assert (min(rho), max(rho)) == pytest.approx((0.2, 0.8))


def test_section_5_4_the_panel_makes_20_of_36_discoveries_and_single_judges_make_others():
    """By the source's test; a cluster t over five regimes finds 14 of them."""
    contrasts = [m for m in measurements() if m.name == "contrast" and m.labels["dimension"] != AGGREGATE]
    adjusted = holm([m.detail["p_bootstrap"] for m in contrasts])
    found = [m.labels["dimension"] for m, p in zip(contrasts, adjusted, strict=True) if p <= 0.05]
    assert (len(contrasts), len(found), found.count("constraint_awareness")) == (36, 20, 3)
    panel = by_id()["panel.discoveries[]"]
    assert (panel.value, panel.detail["family"]) == (14, 36)
    alone = [m for m in measurements() if m.name == "single.discoveries"]
    assert len({(m.value, m.detail["overlap"]) for m in alone}) == 3
    assert all(m.detail["only"] for m in alone)


# --- control cells: sections 5.3 and 5.5 ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "labels", "mean", "quartiles", "within"),
    [
        ("cell.honest", {}, 4.35, (4.33, 4.50, 4.61), 0.06),
        ("cell.score", {"cell": "cell_a"}, 1.44, (1.33, 1.44, 1.53), 0.02),
        ("cell.score", {"cell": "cell_b"}, 1.54, (1.48, 1.54, 1.58), 0.021),
    ],
)
def test_section_5_5_summaries(name, labels, mean, quartiles, within):
    found = on_aggregate(name, **labels)
    assert found.value == pytest.approx(mean, abs=0.001)
    assert [found.detail[key] for key in ("q1", "median", "q3")] == pytest.approx(quartiles, abs=within)
    assert on_aggregate("cell.separation").value == pytest.approx(0.10, abs=0.001), "the cells hardly differ"


def test_section_4_1_cell_a_is_refused_and_cell_b_makes_the_rubric_construct_sensitive():
    one, two = (by_id()[f"cell.gate[cell={cell}]"] for cell in ("cell_a", "cell_b"))
    assert (one.detail["outcome"], one.detail["primary"]) == ("passed", "panel")
    assert one.detail["p"] < 1e-3
    assert (two.detail["outcome"], two.value) == ("verbosity-bias", pytest.approx(-2.81, abs=0.001))
    assert two.high < -0.5
    for cell in ("cell_a", "cell_b"):
        assert as_tuple(verdicts()[f"cell[cell={cell}]"]) == ("publish", "stable", "passed", "headline")
    assert "more than 0.5 points below honest ones" in verdicts()["cell[cell=cell_b]"].claim.statement
    others = {v.adversarial_status for v in verdicts().values() if kind_of(v.claim) != "cell"}
    assert others == {"construct-sensitive"}


@pytest.mark.parametrize("kind", ["cell_a", "cell_b"])
def test_section_5_5_no_halo(kind):
    halo = by_id()[f"cell.halo[cell={kind}]"]
    assert halo.value == pytest.approx(0.0, abs=0.03)
    assert halo.detail == {"family": "anthropic", "triggered": False}
    (cell,) = [one for one in tables().cells if one.kind == kind]
    given = cell.table.stacked[:, :, 0].mean(axis=0)
    assert given == pytest.approx([given[0]] * 3), "no judge gives the cell more than another"


def test_section_5_3_terse_shares_and_lengths_unrelated_to_honest_scores():
    shares = {agent: by_id()[f"terse.share[agent={agent}]"] for agent in AGENTS}
    assert {agent: (share.detail["below"], share.n) for agent, share in shares.items()} == {
        agent: (below, 250) for agent, below in TERSE.items()
    }
    assert on_aggregate("score.length_correlation").value == pytest.approx(CORRELATION, abs=0.001)
    assert on_aggregate("style.threshold").detail["p"] > 0.05


# --- the anchor probe, section 5.6, and certificates ------------------------------------------------------------------


def test_section_5_6_the_anchors_carry_the_dimension():
    shifts = {name: by_id()[f"anchor.shift[dimension={name}]"] for name in DIMENSIONS}
    shift = shifts["constraint_awareness"]
    assert (shift.n, shift.value) == (120, pytest.approx(-0.42, abs=0.005))
    assert (shift.low, shift.high) == pytest.approx((-0.51, -0.33), abs=0.02)
    assert (shift.detail["sd_before"], shift.detail["sd_after"]) == pytest.approx((0.60, 0.81), abs=0.02)
    assert shift.detail["flips"] >= 1
    assert shift.detail["order_before"][0] == "claude"
    assert shift.detail["order_after"] == ["qwen3", "claude", "gpt", "gemini"]
    assert [name for name, item in shifts.items() if item.detail["changed"]] == ["constraint_awareness"]


def test_every_certificate_verifies():
    made = list(certificates(verdicts().values(), index(measurements()), study_of()))
    assert len(made) == len(verdicts())
    assert [differences for one in made if (differences := verify(one).differences)] == []
