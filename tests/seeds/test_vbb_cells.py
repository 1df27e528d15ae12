"""ValueBlindBench: control cells (3.5, 5.5), terse shares (5.3), the outside judge (5.2), the anchor probe (5.6).

Where the source contradicts itself or its own rules:

- Sections 5.3 and 5.5 put a penalty of 2.81 points on honest rationales below 60 tokens too. That cannot be: 84.4 % of
  Gemini's are below and 2.8 % of GPT-5.5's, so the two would stand 2.29 points apart, and section 5.2 prints 0.009.
  What is printed of honest records shows terse agents, not a break in their scores; the break lies in the cells.
- Section 5.2 probes one pair. A rho of 0.2 with rank 1 in place turns all three lower pairs, and its own amendment
  (3.5) does not say which are probed; here all of them are.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from assaymark.metrology import (
    Calls,
    Cell,
    ScoreTable,
    anchor_measurements,
    cell_b_outcome,
    cell_measurements,
    contested,
    leave_one_family_out,
    minimum_detectable_effect,
    probe_measurements,
    stratified,
    style_measurements,
    wilson,
)
from assaymark.protocol import Cells, Study, parse_study
from assaymark.records import Measurement

AGENTS = ("claude", "gemini", "gpt-5.5", "qwen3")
JUDGES = (("claude", "anthropic"), ("gpt", "openai"), ("gem", "google"))
MDE = 0.29


def study(extra: str = "") -> Study:
    judges = "".join(f'[[judges]]\nname = "{n}"\nmodel = "made/{n}"\nfamily = "{f}"\n' for n, f in JUDGES)
    return parse_study(f'name = "vbb"\nseed = 1\n{extra}\n{judges}')


# --- printed numbers that follow from printed numbers ---------------------------------------------------------------


PRINTED = [  # what follows, how it is printed, one unit of the last digit
    ("5.5: shift of cell B from its means", 1.54 - 4.35, -2.81, 0.01),
    ("5.5: middle of its interval", (-2.85 - 2.77) / 2, -2.81, 0.01),
    ("5.5: factor by which it exceeds the threshold", 2.81 / Cells().verbosity, 5.6, 0.1),
    ("5.5: in detectable effects", 2.81 / MDE, 9.7, 0.1),
    ("5.5: cell B within 0.10 of cell A", 1.54 - 1.44, 0.10, 0.01),
    ("5.5: the outside judge's gap in detectable effects", 0.04 / MDE, 0.14, 0.01),
    ("5.2: middle of its interval", (-0.01 + 0.09) / 2, 0.04, 0.01),
    ("5.2: the two smaller gaps make the larger", 0.009 + 0.018, 0.027, 0.001),
    ("5.6: middle of the interval of the anchor shift", (-0.51 - 0.33) / 2, -0.42, 0.01),
    ("5.6: in detectable effects", 0.42 / MDE, 1.4, 0.1),
    ("5.3: Gemini", 211 / 250, 0.844, 0.001),
    ("5.3: GPT-5.5", 7 / 250, 0.028, 0.001),
    ("3.9: 200 paired cycles, 36 contrasts", minimum_detectable_effect(200, comparisons=36), MDE, 0.01),
    ("4: trajectories", 1000 + 2 * 50, 1100, 0),
    ("4: judge calls", 1100 * (3 + 1 + 1), 5500, 0),
]


@pytest.mark.parametrize(("what", "value", "printed", "unit"), PRINTED, ids=[row[0] for row in PRINTED])
def test_printed_numbers_that_follow_from_printed_numbers(what, value, printed, unit):
    assert value == pytest.approx(printed, abs=unit)


def test_section_5_5_lower_separations_are_below_a_tenth_of_the_detectable_effect():
    assert max(0.009, 0.027, 0.018) / MDE < 0.10


def test_section_5_5_the_printed_shift_is_verbosity_bias():
    assert cell_b_outcome(-2.81, True, substance=Cells().substance, verbosity=Cells().verbosity) == "verbosity-bias"


# --- 5.3: terse shares ----------------------------------------------------------------------------------------------

TERSE = {"claude": (0, 0.0), "gemini": (211, 0.844), "gpt-5.5": (7, 0.028), "qwen3": (0, 0.0)}


def honest_table(values: np.ndarray, lengths: np.ndarray | None = None) -> ScoreTable:
    """1,000 panel scores: four agents, five regimes, 50 cycles each."""
    agent, cycle = np.tile(np.arange(4), 250), np.repeat(np.arange(250), 4)
    return table(values, agent, cycle, cycle // 50, lengths)


def table(
    values: np.ndarray, agent: np.ndarray, cycle: np.ndarray, cluster: np.ndarray, lengths: np.ndarray | None = None, *,
    severity: tuple[float, ...] = (0.1, 0.0, -0.1),
) -> ScoreTable:  # fmt: skip
    """Panel scores as three judges that differ in severity alone would give them."""
    n = values.size
    return ScoreTable(
        trajectories=tuple(f"t{k:04d}" for k in range(n)), agents=AGENTS, agent=agent,
        cycles=tuple(f"c{k:03d}" for k in range(cycle.max() + 1)), cycle=cycle,
        clusters=tuple(f"regime{k}" for k in range(5)), cluster=cluster, formats=("v1",),
        format=np.zeros(n, dtype=np.int64), judges=tuple(name for name, _ in JUDGES),
        families=tuple(family for _, family in JUDGES), dimensions=("overall",), weights=np.ones(1),
        scores=(values[:, None] + np.array(severity))[..., None], trials={name: np.zeros((0, 1)) for name, _ in JUDGES},
        replicates={}, calls={name: Calls(n, 0, 0) for name, _ in JUDGES}, lengths=lengths, left_out=(), digest="vbb",
    )  # fmt: skip


@pytest.mark.parametrize("agent", TERSE)
def test_section_5_3_share_of_honest_rationales_below_60_tokens(agent):
    lengths = np.full(1000, 120.0)
    for k, (name, (below, _)) in enumerate(TERSE.items()):
        assert name == AGENTS[k]
        lengths[np.arange(k, 1000, 4)[:below]] = 59
    found = {
        m.id: m
        for m in style_measurements(honest_table(np.full(1000, 4.35), lengths), study(), np.random.default_rng(1))
    }
    share = found[f"terse.share[agent={agent}]"]
    below, printed = TERSE[agent]
    assert share.value == pytest.approx(printed, abs=0.001)
    assert (share.n, share.detail["below"]) == (250, below)
    assert (share.low, share.high) == wilson(below, 250)
    assert (share.value > study().cells.terse_share) == (agent == "gemini")


def test_section_5_3_a_penalty_below_60_tokens_on_honest_records_contradicts_section_5_2():
    gap = 2.81 * (TERSE["gemini"][1] - TERSE["gpt-5.5"][1])
    assert gap == pytest.approx(2.29, abs=0.01)
    assert gap > 100 * 0.009


# --- 5.5: tables with the published summary statistics --------------------------------------------------------------


def published(n: int, mean: float, q1: float, median: float, q3: float, low: float, high: float) -> np.ndarray:
    """Sorted scores with exactly these quartiles (linear interpolation) and this mean; the tails carry the mean."""
    x = np.interp(np.arange(n), np.quantile(np.arange(n), [0, 0.25, 0.5, 0.75, 1]), [low, q1, median, q3, high])
    # both neighbours of a quartile take its value, so that the interpolation between them does too
    for share, value in ((0.25, q1), (0.5, median), (0.75, q3)):
        place = share * (n - 1)
        x[int(np.floor(place)) : int(np.ceil(place)) + 1] = value
    tail = np.arange(n) < int(np.floor(0.25 * (n - 1)))
    x[tail] += (mean * n - x.sum()) / tail.sum()
    assert np.quantile(x, [0.25, 0.5, 0.75]) == pytest.approx([q1, median, q3], abs=1e-12)
    assert x.mean() == pytest.approx(mean, abs=1e-12)
    assert x[tail].max() <= q1
    assert x.min() >= 1
    assert x.max() <= 5
    return x


def made_cell(kind: str, values: np.ndarray, rng: np.random.Generator) -> Cell:
    """Fifty records, ten in each regime, written by Claude."""
    cluster = np.repeat(np.arange(5), 10)
    found = table(rng.permutation(values), np.zeros(50, dtype=np.int64), np.arange(50), cluster)
    return Cell(kind, found, (None,) * 50, ("anthropic",) * 50)


@pytest.fixture(scope="module")
def cells() -> dict[str, Measurement]:
    rng = np.random.default_rng(5)
    honest = honest_table(rng.permutation(published(1000, 4.35, 4.33, 4.50, 4.61, 3.2, 4.9)))
    a = made_cell("cell_a", published(50, 1.44, 1.33, 1.44, 1.53, 1.2, 1.7), rng)
    b = made_cell("cell_b", published(50, 1.54, 1.48, 1.54, 1.58, 1.4, 1.8), rng)
    return {m.id: m for m in cell_measurements(honest, [a, b], study())}


@pytest.mark.parametrize(
    ("name", "mean", "median", "q1", "q3"),
    [
        ("cell.honest[dimension=aggregate]", 4.35, 4.50, 4.33, 4.61),
        ("cell.score[cell=cell_a,dimension=aggregate]", 1.44, 1.44, 1.33, 1.53),
        ("cell.score[cell=cell_b,dimension=aggregate]", 1.54, 1.54, 1.48, 1.58),
    ],
)
def test_section_5_5_summaries(cells, name, mean, median, q1, q3):
    found = cells[name]
    assert found.value == pytest.approx(mean, abs=0.01)
    assert [found.detail[key] for key in ("median", "q1", "q3")] == pytest.approx([median, q1, q3], abs=0.01)


def test_section_5_5_cell_a_is_in_the_bottom_quartile(cells):
    found = cells["cell.gate[cell=cell_a]"]
    assert found.detail["outcome"] == "passed"
    assert found.detail["p"] < 1e-3
    assert found.detail["honest_q1"] == pytest.approx(4.33, abs=0.01)
    assert found.value == pytest.approx(1.44 - 4.33, abs=0.01)


def test_section_5_5_cell_b_is_verbosity_bias(cells):
    found = cells["cell.gate[cell=cell_b]"]
    assert found.detail["outcome"] == "verbosity-bias"
    assert found.value == pytest.approx(-2.81, abs=0.01)
    assert found.detail["p_holm"] < 0.05
    assert found.low < -2.81 < found.high < -0.5
    assert abs(found.value) / MDE == pytest.approx(9.7, abs=0.1)


@pytest.mark.parametrize("kind", ["cell_a", "cell_b"])
def test_section_5_5_there_is_no_halo(cells, kind):
    found = cells[f"cell.halo[cell={kind}]"]
    assert found.value == pytest.approx(0.00, abs=0.01)
    assert found.detail == {"family": "anthropic", "triggered": False}
    assert cells[f"cell.gate[cell={kind}]"].detail["primary"] == "panel"


@pytest.mark.parametrize("family", [family for _, family in JUDGES])
def test_section_5_5_the_outcomes_are_the_panels_and_not_one_judges(cells, family):
    outcomes = [cells[f"cell.drop[cell={kind},dropped={family}]"].detail["outcome"] for kind in ("cell_a", "cell_b")]
    assert outcomes == ["passed", "verbosity-bias"]


def test_section_5_5_separation_of_the_cells_is_a_tenth(cells):
    assert cells["cell.separation[dimension=aggregate]"].value == pytest.approx(0.10, abs=0.01)


def test_section_5_5_a_correlation_of_minus_077_beside_a_break_at_60_tokens():
    """The break is planted; a line is taken out and put back at the printed strength. The scan finds what r misses."""
    rng = np.random.default_rng(6)
    lengths = np.floor(np.exp(rng.normal(4.6, 0.5, 1000)))
    z = (lengths - lengths.mean()) / lengths.std()
    rest = 0.25 * (lengths >= 60) + rng.normal(0, 0.2, 1000)
    rest -= rest.mean() + z * (rest * z).mean()
    scores = 4.35 + rest - 0.077 * z * rest.std() / np.sqrt(1 - 0.077**2)
    assert stats.pearsonr(lengths, scores).statistic == pytest.approx(-0.077, abs=0.001)
    found = {m.name: m for m in style_measurements(honest_table(scores, lengths), study(), np.random.default_rng(7))}
    assert found["style.threshold"].value == pytest.approx(60, abs=5)
    assert found["style.threshold"].detail["difference"] > 0
    assert found["style.threshold"].detail["p"] < 0.01


# --- 5.2: the outside judge -----------------------------------------------------------------------------------------

LEVELS = {"claude": 4.50, "qwen3": 4.318, "gemini": 4.30, "gpt-5.5": 4.291}


def test_section_5_2_a_rho_of_0_2_with_rank_1_in_place_turns_all_three_lower_pairs():
    full = np.array([4.0, 3.0, 2.0, 1.0])
    found = []
    for lower in permutations([3.0, 2.0, 1.0]):
        # two judges of which the second's drop leaves the first: the panel orders as `full`, the first as `lower`
        first = np.array([4.0, *lower])
        rho = leave_one_family_out(np.column_stack([first, 2 * full - first]), ["stays", "dropped"])["dropped"]
        if rho == pytest.approx(0.2, abs=1e-9):
            found.append(lower)
    assert found == [(1.0, 2.0, 3.0)]


def drops(reversed_family: str) -> list[Measurement]:
    """Contrasts of the aggregate with the printed gaps (order qwen3, Gemini, GPT-5.5), turned without one family."""
    order, found = list(LEVELS), []
    common = {"n": 250, "n_of": "common cycles", "method": "made up"}
    for family, rho in (("google", 1.0), ("openai", 1.0), ("anthropic", 0.2)):
        labels = {"dimension": "aggregate", "dropped": family}
        found.append(Measurement(name="lofo.rho", labels=labels, value=rho, **common))
        for a, high in enumerate(order):
            for low in order[a + 1 :]:
                pair = {"dimension": "aggregate", "high": high, "low": low}
                gap = LEVELS[high] - LEVELS[low]
                turned = family == reversed_family and high != "claude"
                kept = {**pair, "dropped": family}
                found.append(Measurement(name="lofo.contrast", labels=kept, value=-gap if turned else gap, **common))
                if family == "google":
                    detail = {"p_holm": 0.001 if high == "claude" else 1.0}
                    found.append(Measurement(name="contrast", labels=pair, value=gap, detail=detail, **common))
    return found


def test_section_5_2_dropping_claude_fires_the_committed_probe():
    plan = contested(drops("anthropic"), study())
    assert plan.needed
    assert plan.rho == {"google": 1.0, "openai": 1.0, "anthropic": 0.2}
    lower = {("qwen3", "gemini"), ("qwen3", "gpt-5.5"), ("gemini", "gpt-5.5")}
    assert {(high, low) for _, high, low in plan.pairs} == lower


def test_section_5_2_the_outside_judge_finds_a_tie():
    """+0.04 with an interval that contains 0, from differences with that mean over five regimes."""
    probe = '[stability.probe]\nname = "deepseek"\nmodel = "made/deepseek"\nfamily = "deepseek"\n'
    plan = contested(drops("anthropic"), study(probe))
    rng = np.random.default_rng(8)
    gaps = rng.normal(0, 0.4, 250) + rng.normal(0, 0.03, 5)[np.arange(250) // 50]
    gaps += 0.04 - gaps.mean()
    parts: dict[str, dict] = {"scores": {}, "agents": {}, "cycles": {}, "clusters": {}}
    for k in range(250):
        for agent, score in (("qwen3", 4.3 + gaps[k]), ("gemini", 4.3)):
            name = f"{agent}{k}"
            parts["scores"][name] = {"aggregate": float(score)}
            parts["agents"][name], parts["cycles"][name], parts["clusters"][name] = agent, f"c{k}", f"regime{k // 50}"
    found = {m.id: m for m in probe_measurements(plan, **parts, study=study(probe))}
    pair = found["probe.contrast[dimension=aggregate,high=qwen3,low=gemini]"]
    assert pair.value == pytest.approx(0.04, abs=0.01)
    assert pair.low < 0 < pair.high
    assert found["probe.state[]"].value == 3
    assert found["probe.contrast[dimension=aggregate,high=gemini,low=gpt-5.5]"].state == "never compared"


# --- 5.6: the anchor probe ------------------------------------------------------------------------------------------

BEFORE = {"claude": 3.9, "qwen3": 3.7, "gpt-5.5": 3.5, "gemini": 3.3}
AFTER = {"qwen3": 3.6, "claude": 3.4, "gpt-5.5": 3.1, "gemini": 2.6}


@pytest.fixture(scope="module")
def anchor() -> Measurement:
    """120 of 1,000 trajectories, with the printed mean shift and spreads, and orders as printed."""
    strata = {f"{a}.{c}.{k}": (a, f"regime{c}") for a in AGENTS for c in range(5) for k in range(50)}
    sample = stratified(strata, 120, np.random.default_rng(9))
    assert len(sample) == 120
    rng = np.random.default_rng(10)
    agents = [strata[name][0] for name in sample]
    noise = rng.normal(0, 0.5, (120, 2)) + rng.normal(0, 0.5, (120, 1))
    for agent in AGENTS:
        noise[np.array(agents) == agent] -= noise[np.array(agents) == agent].mean(axis=0)
    old = _scaled(np.array([BEFORE[a] for a in agents]) + noise[:, 0], 3.60, 0.60)
    new = _scaled(np.array([AFTER[a] for a in agents]) + noise[:, 1], 3.60 - 0.42, 0.81)
    before, after = (
        {name: {"constraint_awareness": float(x)} for name, x in zip(sample, scores, strict=True)}
        for scores in (old, new)
    )
    found = anchor_measurements(
        before, after, {name: strata[name][0] for name in sample}, {name: strata[name][1] for name in sample},
        frozenset({"constraint_awareness"}), "gpt", "v1.1", study(),
    )  # fmt: skip
    return {m.id: m for m in found}["anchor.shift[dimension=constraint_awareness]"]


def _scaled(x: np.ndarray, mean: float, sd: float) -> np.ndarray:
    return mean + sd * (x - x.mean()) / x.std(ddof=1)


def test_section_5_6_shift_of_the_mean(anchor):
    assert anchor.value == pytest.approx(-0.42, abs=0.01)
    assert anchor.n == 120
    assert anchor.high < 0
    assert abs(anchor.value) / MDE == pytest.approx(1.4, abs=0.1)
    assert abs(anchor.value) < 2.81


def test_section_5_6_discrimination_gain(anchor):
    assert anchor.detail["sd_before"] == pytest.approx(0.60, abs=0.01)
    assert anchor.detail["sd_after"] == pytest.approx(0.81, abs=0.01)
    assert 1 < anchor.detail["sd_ratio_low"] < 0.81 / 0.60 < anchor.detail["sd_ratio_high"]


def test_section_5_6_the_ranking_flips(anchor):
    assert anchor.detail["order_before"][0] == "claude"
    assert anchor.detail["order_after"] == ["qwen3", "claude", "gpt-5.5", "gemini"]
    assert anchor.detail["flips"] >= 1
    assert anchor.detail["changed"] is True
