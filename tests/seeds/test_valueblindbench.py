"""ValueBlindBench: printed figures that follow from printed inputs, its gates, control cells and claim map.

`tests/planted/test_claim_map_rebuilt.py` has the same study from single scores on. Where the source contradicts itself:
sections 5.3 and 5.5 put a penalty of 2.81 points on honest rationales below 60 tokens too. That cannot be: 84.4 % of
Gemini's are below and 2.8 % of GPT-5.5's, so the two would stand 2.29 points apart, and section 5.2 prints 0.009. What
is printed of honest records shows terse agents, not a break in their scores; the break lies in the cells."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import combinations, permutations

import numpy as np
import pytest
from scipy import stats

from assaymark.claims import (
    Rules,
    agreement_status,
    cell_b_outcome,
    certificate,
    decide,
    decide_claims,
    index,
    publication_level,
    summary_of,
)
from assaymark.metrology import (
    CallCounts,
    ControlCell,
    ScoreTable,
    all_resamples,
    anchor_measurements,
    bootstrap_contrast,
    bootstrap_kappa,
    cell_measurements,
    cluster_t,
    leave_one_family_out,
    mean_pairwise_kappa,
    minimum_detectable_effect,
    round_half_up,
    stratified,
    style_measurements,
    weighted_kappa,
    wilson,
)
from assaymark.protocol import CellThresholds, parse_study
from assaymark.records import AGGREGATE, Measurement, canonical_json

CLAUDE, GEMINI, GPT, QWEN = AGENTS = "claude", "gemini", "gpt-5.5", "qwen3"
JUDGES = {"claude": "anthropic", "gpt": "openai", "gem": "google"}
STUDY = parse_study('name = "valueblindbench"\nseed = 42\n' + "".join(
    f'[[judges]]\nname = "{name}"\nmodel = "made/{name}"\nfamily = "{family}"\n' for name, family in JUDGES.items()
))  # fmt: skip
REGIMES, FAMILY = 5, math.comb(4, 2) * 6
MDE = 0.29
TERSE = {CLAUDE: 0, GEMINI: 211, GPT: 7, QWEN: 0}

# --- printed numbers that follow from printed numbers -----------------------------------------------------------------

PRINTED = [  # what follows, how it is printed, one unit of the last digit
    ("5.5: shift of cell B from its means", 1.54 - 4.35, -2.81, 0.01),
    ("5.5: middle of its interval", (-2.85 - 2.77) / 2, -2.81, 0.01),
    ("5.5: factor by which it exceeds the threshold", 2.81 / CellThresholds().verbosity, 5.6, 0.1),
    ("5.5: in detectable effects", 2.81 / MDE, 9.7, 0.05),
    ("5.5: cell B within 0.10 of cell A", 1.54 - 1.44, 0.10, 0.01),
    ("5.5: the outside judge's gap in detectable effects", 0.04 / MDE, 0.14, 0.005),
    ("5.2: middle of its interval", (-0.01 + 0.09) / 2, 0.04, 0.01),
    ("5.2: the two smaller gaps make the larger", 0.009 + 0.018, 0.027, 0.001),
    ("5.2: in detectable effects below .10", 0.027 / MDE, 0.05, 0.05),
    ("5.6: middle of the interval of the anchor shift", (-0.51 - 0.33) / 2, -0.42, 0.01),
    ("5.6: in detectable effects", 0.42 / MDE, 1.4, 0.05),
    ("5.3: Gemini", 211 / 250, 0.844, 0.001),
    ("5.3: GPT-5.5", 7 / 250, 0.028, 0.001),
    ("5.3: a penalty on honest records would part the two by", 2.81 * (0.844 - 0.028), 2.29, 0.01),
    ("3.9: contrasts", FAMILY, 36, 0),
    ("3.9: 200 paired cycles, 36 contrasts", minimum_detectable_effect(200, comparisons=FAMILY), MDE, 0.005),
    ("3.9: the 250 cycles that each pair shares", minimum_detectable_effect(250, comparisons=FAMILY), 0.26, 0.005),
    ("3.9: resamples of five regimes", all_resamples(REGIMES).size, math.comb(2 * REGIMES - 1, REGIMES), 0),
    ("3.9: sign flips of five regimes", cluster_t([0.2] * REGIMES, list("abcde")).p, 0.0625, 0),
    ("3.9: their bootstrap", bootstrap_contrast([0.2] * REGIMES, list("abcde")).p, 2 / 5**5, 1e-15),
    ("3.6: 2, 2 and 3 are a 2 for kappa", round_half_up((2 + 2 + 3) / 3), 2, 0),
    ("3.6: 4.5 is a 5", round_half_up((4 + 5) / 2), 5, 0),
    ("4: trajectories", 1000 + 2 * 50, 1100, 0),
    ("4: judge calls", 1100 * (3 + 1 + 1), 5500, 0),
]


@pytest.mark.parametrize(("what", "value", "printed", "unit"), PRINTED, ids=[row[0] for row in PRINTED])
def test_printed_numbers_that_follow_from_printed_numbers(what, value, printed, unit):
    assert value == pytest.approx(printed, abs=unit)


def test_section_5_2_which_rank_correlations_four_agents_with_one_leader_can_have():
    """Between single judges .2 to .8; a drop of .2 with rank 1 in place can only mean that the other three turn."""
    full, found = np.array([4.0, 3.0, 2.0, 1.0]), {}
    for lower in permutations([3.0, 2.0, 1.0]):
        # Two judges of which the second's drop leaves the first: the panel orders as `full`, the first as `lower`.
        first = np.array([4.0, *lower])
        drops = leave_one_family_out(np.column_stack([first, 2 * full - first]), ["stays", "dropped"])
        found[lower] = round(drops["dropped"], 9)
    assert set(found.values()) == {0.2, 0.4, 0.8, 1.0}
    assert [lower for lower, rho in found.items() if rho == 0.2] == [(1.0, 2.0, 3.0)]


def test_section_3_9_a_thousand_draws_can_reject_none_of_36_contrasts():
    """1,000 resamples and Holm over 36 leave a smallest adjusted p of 36 x 2 / 1001; five regimes have 126 resamples,
    so that the interval of kappa, the mean of three pairs (3.6), can be exact."""
    rng = np.random.default_rng(1)
    drawn = bootstrap_contrast(np.full(9, 0.2), np.arange(9), resamples=1000, rng=rng)
    assert FAMILY * drawn.p == pytest.approx(0.0719, abs=5e-5)
    ratings = np.clip(rng.integers(1, 6, (250, 1)) + rng.integers(-1, 2, (250, 3)), 1, 5)
    assert "exact" in bootstrap_kappa(ratings, np.repeat(np.arange(REGIMES), 50)).method
    pairs = [weighted_kappa(x, y) for x, y in combinations(ratings.T, 2)]
    assert mean_pairwise_kappa(ratings) == pytest.approx(sum(pairs) / 3)


# --- gates: 3.5, 3.7, 5.1, 5.3 ----------------------------------------------------------------------------------------

KAPPA = {  # sections 4.1 and 5.1: value and interval
    AGGREGATE: (0.7168, 0.7006, 0.7330), "action_coherence": (0.9354, 0.9216, 0.9510),
    "risk_alignment": (0.8834, 0.8725, 0.8949), "uncertainty_handling": (0.7905, 0.7621, 0.8203),
    "position_sizing": (0.7626, 0.7470, 0.7770), "information_use": (0.6037, 0.5979, 0.6082),
    "constraint_awareness": (0.2022, 0.1792, 0.2256),
}  # fmt: skip


@pytest.mark.parametrize("dimension", KAPPA)
def test_section_5_1_gates_by_dimension_by_the_lower_bound_and_by_stricter_cut_offs(dimension):
    weak = dimension == "constraint_awareness"
    kappa, low, high = KAPPA[dimension]
    assert agreement_status(kappa) == ("methodology" if weak else "publish")
    assert agreement_status(low) == ("halt" if weak else "publish")
    # "even its CI upper bound is below 0.25"
    strict = [agreement_status(value, publish=0.5, halt=0.25) for value in (kappa, high)]
    assert strict == ["halt" if weak else "publish"] * 2


@pytest.mark.parametrize(
    ("kappa", "status"), [(0.4, "publish"), (0.2, "methodology"), (0.39999, "methodology"), (0.19999, "halt")]
)
def test_section_3_7_boundaries_belong_to_the_better_side(kappa, status):
    assert agreement_status(kappa) == status


@pytest.mark.parametrize(
    ("delta", "significant", "outcome"),
    [
        (-0.3, True, "substance"), (0.3, True, "substance"), (4.05 - 4.35, True, "substance"),
        (-0.31, True, "inconclusive"), (-0.5, True, "inconclusive"), (-0.51, True, "verbosity-bias"),
        (-0.51, False, "inconclusive"), (0.31, False, "terse-favoured"), (-2.81, True, "verbosity-bias"),
    ],
)  # fmt: skip
def test_section_3_5_trichotomy_and_the_two_cases_it_leaves_open(delta, significant, outcome):
    assert cell_b_outcome(delta, significant) == outcome


LEVEL_OF = [  # sections 4.1 and 5.3, the rows that permit or withhold a claim
    ("only rank 1 is publishable, and qualified by cell B", 0.7168, "stable", "construct-sensitive", True, "qualified"),
    ("constraint_awareness downgraded, no headline", 0.2022, "stable", "passed", True, "qualified"),
    ("lower ranks: a class, not an order", 0.7168, "tie-class", "construct-sensitive", True, "no-claim"),
    ("lower ranks as one class may be named", 0.7168, "tie-class", "construct-sensitive", False, "qualified"),
    ("a lower rank that only one judge supports", 0.7168, "judge-dependent", "passed", True, "no-claim"),
]


@pytest.mark.parametrize(("conclusion", "kappa", "stability", "adversarial", "order", "level"), LEVEL_OF)
def test_section_4_1_levels(conclusion, kappa, stability, adversarial, order, level):
    assert publication_level(agreement_status(kappa), stability, adversarial, asserts_order=order) == level


# --- control cells and lengths: 5.3, 5.5 ------------------------------------------------------------------------------


def table(values: np.ndarray, agent, cycle, cluster, lengths: np.ndarray | None = None) -> ScoreTable:
    """Panel scores as three judges that differ in severity alone would give them."""
    n, nobody = values.size, {name: np.zeros((0, 1)) for name in JUDGES}
    return ScoreTable(
        trajectories=tuple(f"t{k:04d}" for k in range(n)), agents=AGENTS, agent=agent,
        cycles=tuple(f"c{k:03d}" for k in range(cycle.max() + 1)), cycle=cycle,
        clusters=tuple(f"regime{k}" for k in range(5)), cluster=cluster, formats=("v1",),
        format=np.zeros(n, dtype=np.int64), judges=tuple(JUDGES), families=tuple(JUDGES.values()),
        dimensions=("overall",), weights=np.ones(1), scores=(values[:, None] + np.array([0.1, 0.0, -0.1]))[..., None],
        trials=nobody, replicates={}, calls={name: CallCounts(n, 0, 0) for name in JUDGES}, lengths=lengths,
        left_out=(), digest="vbb",
    )  # fmt: skip


def honest_table(values: np.ndarray, lengths: np.ndarray | None = None) -> ScoreTable:
    """1,000 panel scores: four agents, five regimes, 50 cycles each."""
    cycle = np.repeat(np.arange(250), 4)
    return table(values, np.tile(np.arange(4), 250), cycle, cycle // 50, lengths)


def style_of(values: np.ndarray, lengths: np.ndarray, seed: int) -> dict[str, Measurement]:
    found = style_measurements(honest_table(values, lengths), STUDY, np.random.default_rng(seed))
    return {one.id: one for one in found}


def published(n: int, mean: float, q1: float, median: float, q3: float, low: float, high: float) -> np.ndarray:
    """Scores with exactly these quartiles (linear interpolation) and this mean; the tails carry the mean."""
    x = np.interp(np.arange(n), np.quantile(np.arange(n), [0, 0.25, 0.5, 0.75, 1]), [low, q1, median, q3, high])
    # both neighbours of a quartile take its value, so that the interpolation between them does too
    for share, value in ((0.25, q1), (0.5, median), (0.75, q3)):
        place = share * (n - 1)
        x[int(np.floor(place)) : int(np.ceil(place)) + 1] = value
    tail = np.arange(n) < int(np.floor(0.25 * (n - 1)))
    x[tail] += (mean * n - x.sum()) / tail.sum()
    assert 1 <= x.min() <= x[tail].max() <= q1
    return x


def test_section_5_3_shares_of_honest_rationales_below_60_tokens():
    lengths = np.full(1000, 120.0)
    for k, below in enumerate(TERSE.values()):
        lengths[np.arange(k, 1000, 4)[:below]] = 59
    found = style_of(np.full(1000, 4.35), lengths, 1)
    for agent, below in TERSE.items():
        share = found[f"terse.share[agent={agent}]"]
        assert (share.n, share.detail["below"], share.value) == (250, below, below / 250)
        assert (share.low, share.high) == wilson(below, 250)
        assert (share.value > STUDY.cells.terse_share) == (agent == GEMINI)
    assert wilson(211, 250)[0] > 0.5


def test_section_5_5_a_correlation_of_minus_077_beside_a_break_at_60_tokens():
    """The break is planted; a line is taken out and put back at the printed strength. The scan finds what r misses."""
    rng = np.random.default_rng(6)
    lengths = np.floor(np.exp(rng.normal(4.6, 0.5, 1000)))
    z = (lengths - lengths.mean()) / lengths.std()
    rest = 0.25 * (lengths >= 60) + rng.normal(0, 0.2, 1000)
    rest -= rest.mean() + z * (rest * z).mean()
    scores = 4.35 + rest - 0.077 * z * rest.std() / np.sqrt(1 - 0.077**2)
    assert stats.pearsonr(lengths, scores).statistic == pytest.approx(-0.077, abs=0.001)
    found = style_of(scores, lengths, 7)["style.threshold[dimension=aggregate]"]
    assert found.value == pytest.approx(60, abs=5)
    assert found.detail["difference"] > 0
    assert found.detail["p"] < 0.01


def test_section_5_5_the_cells_from_tables_with_the_published_statistics():
    rng = np.random.default_rng(5)
    summaries = {"honest": (4.35, 4.33, 4.50, 4.61), "cell_a": (1.44, 1.33, 1.44, 1.53),
                 "cell_b": (1.54, 1.48, 1.54, 1.58)}  # fmt: skip
    honest = honest_table(rng.permutation(published(1000, *summaries["honest"], 3.2, 4.9)))
    cells = []
    for kind, ends in (("cell_a", (1.2, 1.7)), ("cell_b", (1.4, 1.8))):
        # fifty records, ten in each regime, written by Claude
        values = rng.permutation(published(50, *summaries[kind], *ends))
        made = table(values, np.zeros(50, dtype=np.int64), np.arange(50), np.repeat(np.arange(5), 10))
        cells.append(ControlCell(kind, made, (None,) * 50, ("anthropic",) * 50))
    found = {one.id: one for one in cell_measurements(honest, cells, STUDY)}
    for kind, (mean, *quartiles) in summaries.items():
        one = found["cell.honest[dimension=aggregate]" if kind == "honest" else
                    f"cell.score[cell={kind},dimension=aggregate]"]  # fmt: skip
        assert one.value == pytest.approx(mean, abs=0.01)
        assert [one.detail[key] for key in ("q1", "median", "q3")] == pytest.approx(quartiles, abs=0.01)
    a, b = (found[f"cell.gate[cell={kind}]"] for kind in ("cell_a", "cell_b"))
    assert (a.value, a.detail["honest_q1"]) == pytest.approx((1.44 - 4.33, 4.33), abs=0.01)
    assert a.detail["p"] < 1e-3
    assert b.value == pytest.approx(-2.81, abs=0.01)
    assert b.detail["p_holm"] < 0.05
    assert b.low < -2.81 < b.high < -0.5
    for kind, outcome in (("cell_a", "passed"), ("cell_b", "verbosity-bias")):
        assert found[f"cell.halo[cell={kind}]"].value == pytest.approx(0.00, abs=0.01)
        assert found[f"cell.halo[cell={kind}]"].detail == {"family": "anthropic", "triggered": False}
        gate = found[f"cell.gate[cell={kind}]"].detail
        assert (gate["outcome"], gate["primary"]) == (outcome, "panel")
        drops = {found[f"cell.drop[cell={kind},dropped={family}]"].detail["outcome"] for family in JUDGES.values()}
        assert drops == {outcome}, "the panel's, and not one judge's"
    assert found["cell.separation[dimension=aggregate]"].value == pytest.approx(0.10, abs=0.01)


def test_section_5_6_other_anchors_spread_the_scores_of_a_dimension():
    """120 of 1,000 trajectories, with the printed mean shift and spreads, and orders as printed."""
    levels = np.array([(3.9, 3.4), (3.3, 2.6), (3.5, 3.1), (3.7, 3.6)])
    strata = {f"{a}.{c}.{k}": (a, f"regime{c}") for a in AGENTS for c in range(5) for k in range(50)}
    sample, rng = stratified(strata, 120, np.random.default_rng(9)), np.random.default_rng(10)
    assert len(sample) == 120
    who = np.array([AGENTS.index(strata[name][0]) for name in sample])
    noise = rng.normal(0, 0.5, (120, 2)) + rng.normal(0, 0.5, (120, 1))
    noise -= np.stack([noise[who == k].mean(axis=0) for k in range(4)])[who]
    x = levels[who] + noise
    x = np.array([3.60, 3.60 - 0.42]) + np.array([0.60, 0.81]) * (x - x.mean(axis=0)) / x.std(axis=0, ddof=1)
    before, after = ({name: {"constraint_awareness": value} for name, value in zip(sample, scores, strict=True)}
                     for scores in x.T.tolist())  # fmt: skip
    agents, clusters = ({name: strata[name][k] for name in sample} for k in (0, 1))
    changed = frozenset({"constraint_awareness"})
    (shift,) = (one for one in anchor_measurements(before, after, agents, clusters, changed, "gpt", "v1.1", STUDY)
                if one.name == "anchor.shift" and one.labels["dimension"] in changed)  # fmt: skip
    assert (shift.n, shift.value) == (120, pytest.approx(-0.42, abs=0.01))
    assert shift.high < 0
    assert (shift.detail["sd_before"], shift.detail["sd_after"]) == pytest.approx((0.60, 0.81), abs=0.01)
    assert 1 < shift.detail["sd_ratio_low"] < 0.81 / 0.60 < shift.detail["sd_ratio_high"]
    assert (shift.detail["order_before"][0], shift.detail["changed"]) == (CLAUDE, True)
    assert shift.detail["order_after"] == [QWEN, CLAUDE, GPT, GEMINI]


# --- the claim map (4.1) and worked verdicts (5.3) by the source's own rule -------------------------------------------

# Section 5.2: gpt-5.5 to gemini .009, gemini to qwen3 .018, gpt-5.5 to qwen3 .027. Which of the three stands highest is
# not printed, nor is Claude's lead; qwen3 is put first because the probe is reported as qwen3 minus gemini.
LEVELS = {CLAUDE: 4.71, QWEN: 4.254, GEMINI: 4.236, GPT: 4.227}
# Without Claude as a judge rank 1 stays and rho is .2: one of the orders of ranks 2 to 4 that give it.
WITHOUT = {"google": (1.0, LEVELS), "openai": (1.0, LEVELS),
           "anthropic": (0.2, {CLAUDE: 4.70, GPT: 4.29, QWEN: 4.26, GEMINI: 4.27})}  # fmt: skip


def measured(name: str, labels: Mapping[str, str], value: float, **more) -> Measurement:
    return Measurement(
        name=name, labels=labels, value=value, **{"n": 250, "n_of": "", "method": "as published", **more}
    )


def cell(kind: str, outcome: str, value: float, **more) -> Measurement:
    return measured("cell.gate", {"cell": kind}, value, **more,
                    detail={"outcome": outcome, "p": 1e-4, "p_holm": 1e-4, "primary": "panel"})  # fmt: skip


@cache
def printed() -> tuple[Measurement, ...]:
    """Agreement, levels, drops, cells, terse shares and the probe. On dimensions the aggregate's gaps stand in; of
    bootstrap p-values there is the smallest of 1,000 resamples, and a large one for pairs of lower ranks."""
    found = [
        cell("cell_a", "passed", 1.44 - 4.33),
        cell("cell_b", "verbosity-bias", -2.81, low=-2.85, high=-2.77, level=0.95),
        measured("probe.contrast", {"dimension": AGGREGATE, "high": QWEN, "low": GEMINI}, 0.04, n=247, low=-0.01,
                 high=0.09, level=0.95, detail={"judge": "deepseek-v4-pro", "family": "deepseek"}),
        *(measured("terse.share", {"agent": agent}, below / 250, detail={"below": below, "tokens": 60})
          for agent, below in TERSE.items()),
    ]  # fmt: skip
    for dimension, (value, low, high) in KAPPA.items():
        on = {"dimension": dimension}
        found += [measured("kappa.mean_pairwise", on, value, low=low, high=high, level=0.95)]
        found += [measured("score.effect", {**on, "agent": agent}, level) for agent, level in LEVELS.items()]
        found += [measured("lofo.rho", {**on, "dropped": one}, rho) for one, (rho, _) in WITHOUT.items()]
        for one, other in combinations(LEVELS, 2):
            pair, p = {**on, "high": one, "low": other}, 2 / 1001 if one == CLAUDE else 0.6
            detail = {"p_bootstrap": p, "clusters": 5}
            found += [measured("contrast", pair, LEVELS[one] - LEVELS[other], detail=detail)]
            found += [measured("lofo.contrast", {**pair, "dropped": family}, levels[one] - levels[other])
                      for family, (_, levels) in WITHOUT.items()]  # fmt: skip
    return tuple(found)


def decided(measurements):
    """Every verdict by the source's own rule: Holm over percentile bootstrap p-values, and the sign of each drop."""
    known, by_source = index(measurements), replace(Rules.of(STUDY), test="p_bootstrap", source=True)
    return {v.claim.id: decide(v.claim, known, by_source, "hash")
            for v in decide_claims(measurements, STUDY, "hash", variants=False)}  # fmt: skip


def above(high: str, low: str) -> str:
    return f"above[dimension=aggregate,high={high},low={low}]"


def first(dimension: str = AGGREGATE) -> str:
    return f"first[agent={CLAUDE},dimension={dimension}]"


def as_tuple(one):
    return one.agreement_status, one.stability_status, one.adversarial_status, one.publication_level


def test_section_4_1_only_rank_1_is_publishable_and_each_verdict_has_a_certificate_without_text():
    found = decided(printed())
    allowed = {name for name, v in found.items() if v.claim.asserts_order and v.publication_level != "no-claim"}
    assert {name for name in allowed if "dimension=aggregate" in name} == {
        first(), *(above(CLAUDE, other) for other in (GEMINI, GPT, QWEN))
    }  # fmt: skip
    assert as_tuple(found[first()]) == ("publish", "stable", "construct-sensitive", "qualified")
    assert "kappa 0.72 (0.70 to 0.73)" in found[first()].reasons[0]
    assert as_tuple(found[above(QWEN, GEMINI)]) == ("publish", "tie-class", "construct-sensitive", "no-claim")
    assert summary_of([*found.values()], AGENTS).tiers[AGGREGATE] == ((CLAUDE,), (GEMINI, GPT, QWEN))
    assert "−2.810 points (−2.850 to −2.770)" in found["cell[cell=cell_b]"].reasons[1]
    for dimension in KAPPA:
        weak = dimension == "constraint_awareness"
        assert found[first(dimension)].publication_level == "qualified"
        assert ("agreement" in found[first(dimension)].binding) == weak
    known = index(printed())
    for verdict in found.values():
        made = certificate(verdict, known, STUDY)
        assert made["tuple"]["permitted_publication_level"] == verdict.publication_level
        assert len(canonical_json(made)) < 60_000


def test_section_4_1_no_headline_on_constraint_awareness_whatever_else_is_green():
    """With clean cells and no terse agent the five dimensions reach a headline and this one does not."""
    clean = [item for item in printed() if not item.name.startswith(("cell.", "terse."))]
    found = decided([*clean, cell("cell_a", "passed", -2.89), cell("cell_b", "substance", -0.1)])
    levels = {name: found[first(name)].publication_level for name in KAPPA}
    assert levels == {**dict.fromkeys(KAPPA, "headline"), "constraint_awareness": "qualified"}


def test_section_3_8_lower_ranks_that_were_significant_would_need_the_probe():
    """Had the bootstrap called the lower gaps significant, drop-Claude would have left them to DeepSeek."""
    unprobed = [item for item in printed() if item.name != "probe.contrast"]
    verdict = decided(unprobed)[above(QWEN, GEMINI)]
    assert verdict.stability_status == "tie-class", "a gap of .018 points is nothing that a probe would have to settle"
    assert "held-out judge" not in verdict.reasons[1]
    eager, without = (
        decided([replace(item, detail={**item.detail, "p_bootstrap": 1e-4}) if item.name == "contrast" else item
                 for item in items])
        for items in (printed(), unprobed)
    )  # fmt: skip
    assert eager[above(QWEN, GEMINI)].stability_status == "tie-class"
    assert without[above(QWEN, GEMINI)].stability_status == "judge-dependent"
    assert eager[above(GEMINI, GPT)].stability_status == "judge-dependent"


def test_this_protocols_own_rule_needs_more_than_a_bootstrap_p_value():
    """The paper prints no cluster means, so that nothing is published here by another rule than its own."""
    found = {v.claim.id: v for v in decide_claims(printed(), STUDY, "hash")}
    assert not any(v.claim.asserts_order and v.publication_level != "no-claim" for v in found.values())
    assert found[first()].fragility["source: percentile bootstrap"] == "qualified"
