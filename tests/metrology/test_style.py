"""Terse shares, the break in score by length, and contrasts on length-matched records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import made_cells
import numpy as np
import pytest
from made_cells import AGENTS, band
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from assaymark.metrology import ControlCell, ScoreTable, analyse, cluster_t, holm, length


def made(scores, lengths, agent, cycle, cluster, **more) -> ScoreTable:
    """A table in which every judge gives the same score [n] or [n, D]."""
    alike = np.repeat(scores[:, None], 3, axis=1)
    return made_cells.made(alike, cluster, agent=agent, cycle=cycle, lengths=lengths, **more)


def design(agents: int = 4, clusters: int = 5, cycles: int = 10) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Agent, cycle and cluster of every record of a balanced study."""
    cycle = np.repeat(np.arange(clusters * cycles), agents)
    return np.tile(np.arange(agents), clusters * cycles), cycle, cycle // cycles


def run(table: ScoreTable, plan: object, seed: int = 0) -> dict[str, object]:
    return {m.id: m for m in length.style_measurements(table, plan, np.random.default_rng(seed))}


def threshold(table: ScoreTable, plan: object, seed: int = 0):
    return run(table, plan, seed)["style.threshold[dimension=aggregate]"]


def test_share_of_terse_rationales_against_statsmodels(plan, study):
    agent, cycle, cluster = design()
    four, lengths = np.full(agent.size, 4.0), np.where(agent == 1, 59.0, 60.0)
    lengths[np.flatnonzero(agent == 2)[:7]] = 12
    found = run(made(four, lengths, agent, cycle, cluster), plan)
    for name, hits in (("ash", 0), ("birch", 50), ("cedar", 7), ("elm", 0)):
        share = found[f"terse.share[agent={name}]"]
        wanted = (hits / 50, *proportion_confint(hits, 50, method="wilson"))
        assert (share.value, share.low, share.high) == pytest.approx(wanted, abs=1e-12)
        assert (share.n, share.detail) == (50, {"below": hits, "tokens": 60})
    # The number of tokens is the plans.
    table = made(four, np.full(agent.size, 70.0), agent, cycle, cluster)
    for tokens, share in ((71, 1.0), (70, 0.0)):
        assert run(table, study(f"[cells]\nterse_tokens = {tokens}"))["terse.share[agent=ash]"].value == share
    # Lengths that were not given are a state, and so is an agent without records.
    found = run(made(four, None, agent, cycle, cluster), plan)
    state = "undefined: lengths of the judged texts were not given"
    assert [(m.value, m.state) for m in found.values()] == [(None, state)] * 5
    agent, cycle, cluster = design(agents=3)
    found = run(made(four[: agent.size], np.full(agent.size, 50.0), agent, cycle, cluster), plan)
    assert found["terse.share[agent=elm]"].state == "undefined: no trajectory with a usable score from every judge"


def with_break(rng: np.random.Generator, *, jump: float = 0.3, cycles: int = 50) -> ScoreTable:
    """Below 60 tokens the score is lower; above, longer is slightly worse, so that no straight line is left."""
    agent, cycle, cluster = design(cycles=cycles)
    lengths = np.floor(np.exp(rng.normal(4.6, 0.5, agent.size)))
    shape = jump * (lengths >= 60)
    shape -= np.polyval(np.polyfit(lengths, shape, 1), lengths)
    regime, question, own = rng.normal(0, 0.3, 5), rng.normal(0, 0.2, 5 * cycles), np.array([0.0, 0.1, -0.1, 0.0])
    scores = 4 + shape + regime[cluster] + question[cycle] + own[agent] + rng.normal(0, 0.25, agent.size)
    return made(scores, lengths, agent, cycle, cluster)


def test_a_break_near_sixty_tokens_is_found_where_a_straight_line_finds_nothing(plan):
    """Every one of 200 studies within 5 tokens; the linear test alone rejects as often as it would without a break."""
    near = found = linear = 0
    for seed in range(200):
        table = with_break(np.random.default_rng([51, seed]))
        measured = threshold(table, plan, seed)
        near += abs(measured.value - 60) <= 5
        found += measured.detail["p"] < 0.01
        linear += stats.pearsonr(table.lengths, table.scores[:, 0, 0]).pvalue < 0.05
    assert (near, found) == (200, 200)
    assert linear <= band(200, 0.05)[1]


def test_what_the_scan_says(plan):
    table = with_break(np.random.default_rng(7))
    measured = threshold(table, plan)
    assert run(table, plan, 3) == run(table, plan, 3)
    scores, scan = table.scores[:, 0, 0], {row[0]: row[1:] for row in measured.detail["scan"]}
    assert len(scan) <= 40
    assert measured.detail["difference"] == scan[measured.value][0]
    for tokens, (difference, below) in scan.items():
        above = table.lengths >= tokens
        assert (difference, below) == pytest.approx((scores[above].mean() - scores[~above].mean(), (~above).sum()))
        assert 20 <= below <= 980


def test_the_best_split_against_least_squares_over_every_split(plan):
    """The split with the smallest residual sum of squares beside one level for each agent in each cluster."""
    table = with_break(np.random.default_rng(8), cycles=8)
    levels = (table.agent * 5 + table.cluster)[:, None] == np.arange(20)
    scores = table.scores[:, 0, 0]

    def fit(tokens: float) -> tuple[float, float]:
        x = np.column_stack([levels, table.lengths >= tokens]).astype(float)
        b, residual, _, _ = np.linalg.lstsq(x, scores, rcond=None)
        return float(residual[0]), float(b[-1])

    candidates = [t for t in np.unique(table.lengths) if 5 <= (table.lengths < t).sum() <= 155]
    best = min(candidates, key=lambda t: fit(t)[0])
    measured = threshold(table, plan)
    assert (measured.value, measured.detail["within"]) == (best, pytest.approx(fit(best)[1]))


def test_a_terse_agent_that_is_weak_is_not_a_break_in_length(plan):
    rng = np.random.default_rng(9)
    agent, cycle, cluster = design(cycles=50)
    lengths = np.where(agent == 0, rng.integers(30, 60, agent.size), rng.integers(60, 200, agent.size)).astype(float)
    scores = 4 - 1.0 * (agent == 0) + rng.normal(0, 0.3, agent.size)
    measured = threshold(made(scores, lengths, agent, cycle, cluster), plan)
    assert measured.detail["p"] > 0.01
    assert abs(measured.detail["within"]) < 0.25


def shuffled_p(table: ScoreTable, splits: Sequence[float], rng: np.random.Generator, times: int) -> float:
    """The slow definition: cycles really change places within their cluster."""
    cycles = len(table.cycles)
    y = np.empty((cycles, 4))
    above = np.empty((cycles, 4, len(splits)))
    y[table.cycle, table.agent] = table.scores[:, 0, 0]
    above[table.cycle, table.agent] = table.lengths[:, None] >= np.array(splits)
    groups = np.zeros(cycles, dtype=int)
    groups[table.cycle] = table.cluster
    weeks = [np.flatnonzero(groups == g) for g in range(5)]
    for week in weeks:
        y[week] -= y[week].mean(axis=0)
    above = above.transpose(2, 0, 1).reshape(len(splits), -1)
    totals = np.empty((times + 1, len(splits)))
    for at in range(times + 1):
        order = np.arange(cycles)
        for week in weeks if at else ():
            order[week] = rng.permutation(week)
        totals[at] = above @ y[order].ravel()
    largest = np.abs(totals / totals[1:].std(axis=0)).max(axis=1)
    return float((largest >= largest[0]).mean())


@pytest.mark.parametrize("seed", [1, 2, 3, 6])
def test_p_against_shuffling_cycles(plan, seed):
    rng = np.random.default_rng([52, seed])
    table = with_break(rng, jump=0.05)
    measured = threshold(table, plan)
    slow = shuffled_p(table, [row[0] for row in measured.detail["scan"]], rng, 2000)
    assert measured.detail["p"] == pytest.approx(slow, abs=0.035)


@pytest.mark.parametrize(("cycles", "attend"), [(10, 1.0), (10, 0.7), (4, 1.0)])
def test_the_scan_keeps_its_level_with_five_clusters(plan, cycles, attend):
    """Length and score both hang on the regime, the question and the agent, and on nothing that they share."""
    agent, cycle, cluster = design(cycles=cycles)
    n, questions = agent.size, 5 * cycles
    rejected = 0
    for seed in range(400):
        rng = np.random.default_rng([53, cycles, seed])

        def effect(size: float, rng: np.random.Generator = rng) -> np.ndarray:
            parts = [rng.normal(0, size, k) for k in (5, questions, 4, n)]
            return parts[0][cluster] + parts[1][cycle] + parts[2][agent] + parts[3]

        scores, lengths = 4 + effect(0.4), np.floor(np.exp(4.6 + effect(0.3)))
        keep = rng.random(n) < attend
        table = made(scores[keep], lengths[keep], agent[keep], cycle[keep], cluster[keep])
        rejected += threshold(table, plan, seed).detail["p"] <= 0.05
    low, high = band(400, 0.05)
    assert low <= rejected <= high


def test_records_that_cannot_be_split_are_a_state(plan):
    for n in (0, 3, 40):
        agent, cycle, cluster = (part[:n] for part in design())
        measured = threshold(made(np.full(n, 4.0), np.full(n, 80.0), agent, cycle, cluster), plan)
        state = f"undefined: no token count splits the {n} records within an agent and cluster"
        assert (measured.value, measured.state) == (None, state)
    # Constant scores have no break to find.
    agent, cycle, cluster = design()
    lengths = np.random.default_rng(11).integers(30, 200, agent.size).astype(float)
    measured = threshold(made(np.full(agent.size, 4.0), lengths, agent, cycle, cluster), plan)
    assert (measured.detail["p"], measured.detail["difference"]) == (1.0, pytest.approx(0.0))


def two_tables(rng: np.random.Generator) -> tuple[ScoreTable, ScoreTable]:
    """Honest records in which elm looks worst, and length-matched ones, every second cycle, in which it is not."""
    agent, cycle, cluster = design()
    scores = 4 + np.array([0.0, 0.3, -0.2, -0.8])[agent][:, None] + rng.normal(0, 0.3, (agent.size, 2))
    honest = made(scores, None, agent, cycle, cluster)
    keep = cycle % 2 == 0
    again = 4 + np.array([0.0, 0.3, -0.2, 0.5])[agent][:, None] + rng.normal(0, 0.3, (agent.size, 2))
    return honest, made(again[keep], None, agent[keep], cycle[keep], cluster[keep])


def matched(honest: ScoreTable, table: ScoreTable, plan: object) -> list:
    cell = ControlCell("length_matched", table, (None,) * table.n, ("x",) * table.n)
    return list(length.length_matched_contrasts(cell, honest, plan))


def test_contrasts_at_equal_length_keep_the_panels_direction(plan):
    honest, table = two_tables(np.random.default_rng(12))
    found = {m.id: m for m in matched(honest, table, plan)}
    panel = [m.id for m in analyse(honest, plan, rng=np.random.default_rng(0)) if m.name == "contrast"]
    assert {f"length_matched.{name}" for name in panel} == set(found)
    turned = found["length_matched.contrast[dimension=aggregate,high=ash,low=elm]"]
    assert (turned.value < 0, turned.n) == (True, 25)
    assert turned.high < 0 or turned.detail["p"] > 0.05


def test_contrasts_at_equal_length_are_those_of_the_length_matched_table(plan):
    """The record-weighted tests of that table alone, with Holm over the aggregate, and over all dimensions together."""
    honest, table = two_tables(np.random.default_rng(13))
    contrasts = [m for m in analyse(table, plan, rng=np.random.default_rng(0)) if m.name == "contrast"]
    alone = {(m.labels["dimension"], frozenset((m.labels["high"], m.labels["low"]))): m for m in contrasts}
    p = {key: m.detail["p_cluster_t"] for key, m in alone.items()}
    adjusted = {}
    for family in ([key for key in p if key[0] == "aggregate"], [key for key in p if key[0] != "aggregate"]):
        adjusted |= dict(zip(family, holm([p[key] for key in family]), strict=True))
    for m in matched(honest, table, plan):
        key = m.labels["dimension"], frozenset((m.labels["high"], m.labels["low"]))
        sign = 1 if alone[key].labels["high"] == m.labels["high"] else -1
        scores = table.stacked[:, :, table.names.index(m.labels["dimension"])].mean(axis=1)
        first, second = (scores[table.agent == AGENTS.index(m.labels[side])] for side in ("high", "low"))
        slow = cluster_t(first - second, table.cluster[table.agent == 0])
        assert (m.value, m.low, m.high) == pytest.approx((sign * alone[key].value, slow.low, slow.high))
        assert (m.detail["p"], m.detail["p"], m.detail["p_holm"]) == pytest.approx((p[key], slow.p, adjusted[key]))


def test_a_pair_that_never_met_at_equal_length_keeps_its_place(plan):
    honest, table = two_tables(np.random.default_rng(14))
    keep = table.agent != 3
    some = made(table.scores[keep][:, 0], None, table.agent[keep], table.cycle[keep], table.cluster[keep])
    found = matched(honest, some, plan)
    never = [m for m in found if "elm" in m.labels.values()]
    told = [(m.state, m.value, m.n, m.detail["p"], m.detail["p_holm"]) for m in never]
    assert told == [("never compared", None, 0, 1.0, 1.0)] * 9
    met = next(m for m in found if m.labels["dimension"] == "aggregate" and "elm" not in m.labels.values())
    gaps = some.scores[:, 0].mean(axis=1)
    first, second = ("ash", "birch", "cedar").index(met.labels["high"]), AGENTS.index(met.labels["low"])
    slow = cluster_t(gaps[some.agent == first] - gaps[some.agent == second], some.cluster[some.agent == first])
    assert (met.value, met.detail["p"]) == pytest.approx((slow.difference, slow.p))
    # One agent has no contrasts.
    agent, cycle, cluster = design(agents=1)
    table = made(np.full(agent.size, 4.0), None, agent, cycle, cluster, agents=("ash",))
    assert matched(table, replace(table), plan) == []
