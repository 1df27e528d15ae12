"""ValueBlindBench: printed figures that follow from printed inputs, its gates and control cells.

`tests/planted/test_claim_map_rebuilt.py` has the study from single scores on, with its claim map. Where the source
contradicts itself: sections 5.3 and 5.5 put a penalty of 2.81 points on honest rationales below 60 tokens too. That
cannot be: 84.4 % of Gemini's are below and 2.8 % of GPT-5.5's, so the two would stand 2.29 points apart, and section
5.2 prints 0.009. What is printed of honest records shows terse agents, not a break in their scores; the break lies in
the cells."""

from __future__ import annotations

import math
from itertools import combinations, permutations

import numpy as np
import pytest
from scipy import stats

from assaymark.claims import agreement_status, cell_b_outcome, publication_level
from assaymark.metrology import (
    CallCounts,
    ControlCell,
    ScoreTable,
    all_resamples,
    bootstrap_contrast,
    bootstrap_kappa,
    cell_measurements,
    cluster_t,
    leave_one_family_out,
    mean_pairwise_kappa,
    minimum_detectable_effect,
    round_half_up,
    style_measurements,
    weighted_kappa,
)
from assaymark.protocol import CellThresholds, parse_study
from assaymark.records import AGGREGATE, Measurement

AGENTS = "claude", "gemini", "gpt-5.5", "qwen3"
JUDGES = {"claude": "anthropic", "gpt": "openai", "gem": "google"}
STUDY = parse_study('name = "valueblindbench"\nseed = 42\n' + "".join(
    f'[[judges]]\nname = "{name}"\nmodel = "made/{name}"\nfamily = "{family}"\n' for name, family in JUDGES.items()
))  # fmt: skip
REGIMES, FAMILY = 5, math.comb(4, 2) * 6
MDE = 0.29

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
