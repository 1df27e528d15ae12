"""Simulated studies: their form is that of a judged one, and what is planted is there."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assaymark.errors import InputError
from assaymark.metrology import Truth, analyse, score_table, simulate_scores
from assaymark.metrology.simulation import Composer, Panelist, Spread

PLAIN = Truth(
    composers=(Composer("ash", 3.4), Composer("birch", 3.0)),
    panel=(Panelist("auditor", "north"), Panelist("reader", "south"), Panelist("skeptic", "east")),
    dimensions=("clarity", "risk"),
)

REVERSED = replace(PLAIN, panel=tuple(reversed(PLAIN.panel)), composers=tuple(reversed(PLAIN.composers)))


def simulated(truth, seed=1):
    return simulate_scores(truth, np.random.default_rng(seed))


def panel_means(truth, seed=1):
    """Mean score of each agent under each judge [A, J], over all dimensions."""
    table = simulated(truth, seed)
    return np.array([table.scores[table.agent == a].mean(axis=(0, 2)) for a in range(len(table.agents))])


def test_it_is_the_table_that_its_judgments_would_give(one_decision, one_judgment):
    """The same scores, handed over as records, make the same table and the same analysis."""
    truth = replace(REVERSED, cycles=4)
    table = simulated(truth)
    decisions, judgments = [], []
    for i in range(table.n):
        agent, cycle = table.agents[table.agent[i]], 100 + int(table.cycle[i])
        record = one_decision(agent, cycle, f"week{table.cluster[i]:02d}", format="simulated")
        decisions.append(record)
        for j, judge in enumerate(table.judges):
            scores = dict(zip(table.dimensions, table.scores[i, j].tolist(), strict=True))
            judgments.append(one_judgment(record.record_id, judge, scores, family=table.families[j]))
    other = score_table(judgments, decisions)
    for name in ("agents", "judges", "families", "dimensions"):
        assert getattr(other, name) == getattr(table, name)
    for name in ("agent", "cycle", "cluster", "scores", "weights"):
        np.testing.assert_array_equal(getattr(other, name), getattr(table, name))
    for judge in table.judges:
        np.testing.assert_allclose(other.trials[judge], table.trials[judge])


def test_names_are_sorted_and_columns_go_with_them():
    truth = replace(
        PLAIN, composers=(Composer("elm", (4.0, 2.0)), Composer("ash", (2.0, 4.0))), dimensions=("risk", "clarity"),
        weights=(3.0, 1.0), residual=Spread(0.1), cycle=Spread(0.0),
    )  # fmt: skip
    table = simulated(truth)
    assert (table.agents, table.dimensions) == (("ash", "elm"), ("clarity", "risk"))
    assert table.weights.tolist() == [0.25, 0.75]
    ash = table.scores[table.agent == 0].mean(axis=(0, 1))
    assert ash == pytest.approx([4.0, 2.0], abs=0.2)


def test_equal_seeds_give_equal_tables_and_digests():
    one, other, third = simulated(PLAIN), simulated(PLAIN), simulated(PLAIN, 2)
    np.testing.assert_array_equal(one.scores, other.scores)
    assert one.digest == other.digest != third.digest


@given(st.integers(0, 10_000), st.floats(0, 3), st.floats(-3, 3))
@settings(max_examples=30, deadline=None)
def test_every_call_is_a_whole_score_on_the_scale(seed, noise, severity):
    judge = Panelist("auditor", "north", severity=severity, disagreement=Spread(noise), trials=3)
    table = simulated(replace(PLAIN, panel=(judge,)), seed)
    thirds = table.scores * 3
    assert np.abs(thirds - np.rint(thirds)).max() < 1e-9
    assert table.scores.min() >= 1
    assert table.scores.max() <= 5
    assert table.trials["auditor"].shape == (table.n, 3)
    assert table.mean is table.scores
    assert (table.first == np.rint(table.first)).all()


def test_severities_halos_and_bonuses_are_added():
    panel = (
        Panelist("auditor", "north", severity=-0.5, disagreement=Spread(0.3)),
        Panelist("reader", "south", halo=0.4, disagreement=Spread(0.3)),
        Panelist("skeptic", "east", bonus=(("birch", 0.3),), disagreement=Spread(0.3)),
    )
    composers = (Composer("ash", 3.0, family="south"), Composer("birch", 3.0, family="west"))
    truth = replace(PLAIN, panel=panel, composers=composers, clusters=200, interaction=Spread(0.0))
    found = panel_means(truth)
    shared = found - found.mean()
    expected = np.array([[2.5, 3.4, 3.0], [2.5, 3.0, 3.3]])
    np.testing.assert_allclose(shared, expected - expected.mean(), atol=0.05)


def test_terse_texts_are_marked_down():
    composer = Composer("ash", 3.5, tokens=60.0, token_spread=0.5)
    truth = replace(
        PLAIN, composers=(composer,), panel=(Panelist("auditor", "north", terse_penalty=1.0),), clusters=200
    )
    table = simulated(truth)
    terse = table.lengths < truth.terse_tokens
    assert terse.mean() == pytest.approx(0.5, abs=0.05)
    score = table.scores.mean(axis=(1, 2))
    assert score[terse].mean() - score[~terse].mean() == pytest.approx(-1.0, abs=0.1)


def test_agents_attend_as_often_as_planted():
    composers = (Composer("ash", 3.0, attendance=0.3), Composer("birch", 3.0))
    table = simulated(replace(PLAIN, composers=composers, clusters=100))
    counts = np.bincount(table.agent)
    assert counts[1] == 1000
    assert counts[0] == pytest.approx(300, abs=3.3 * math.sqrt(1000 * 0.3 * 0.7))
    assert len(table.cycles) == 1000


def test_cycles_that_nobody_attended_are_not_there():
    table = simulated(replace(PLAIN, composers=(Composer("ash", 3.0, attendance=0.1),)))
    assert len(table.cycles) == table.n == len(np.unique(table.cycle))
    assert table.cluster.max() == len(table.clusters) - 1


def test_shared_draws_move_all_dimensions_together():
    together = Spread(0.7, 1.0).draw(np.random.default_rng(1), (50,), 3)
    assert np.ptp(together, axis=1).max() < 1e-12
    half = Spread((0.5, 1.0), 0.5).draw(np.random.default_rng(1), (40_000,), 2)
    np.testing.assert_allclose(half.std(axis=0), [0.5, 1.0], rtol=0.02)
    assert np.corrcoef(half.T)[0, 1] == pytest.approx(0.5, abs=0.02)


def test_equal_levels_are_tie_classes():
    truth = replace(PLAIN, composers=(Composer("a", 3.0), Composer("b", 2.0), Composer("c", (3.0, 3.0))))
    assert truth.tie_classes() == (("a", "c"),)
    assert truth.calls == 5 * 10 * 3 * 3


def test_it_can_be_analysed(study):
    names = {item.name for item in analyse(simulated(PLAIN), study(), rng=np.random.default_rng(1))}
    assert {"kappa.mean_pairwise", "contrast", "lofo.rho"} <= names


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"composers": ()}, r"composers: at least one is needed \(got 0\)"),
        ({"panel": (Panelist("a", "x"), Panelist("a", "y"))}, "panel: each needs a name of its own"),
        ({"clusters": 0}, r"clusters: must be at least 1 \(got 0\)"),
        ({"cycles": -1}, "cycles"),
        ({"residual": Spread(-0.1)}, r"residual.sd: must be finite and at least 0 \(got -0.1\)"),
        ({"cycle": Spread(0.1, 1.5)}, "cycle.correlation: must lie in 0..1"),
        ({"interaction": Spread((0.1, 0.2, 0.3))}, "interaction.sd: must have one entry for each of the 2 dimensions"),
        ({"composers": (Composer("a", (3.0,)),)}, "a.means: must be one number or one for each of the 2 dimensions"),
        ({"composers": (Composer("a", math.nan),)}, "a.means: must be finite"),
        ({"composers": (Composer("a", attendance=0.0),)}, "a.attendance: must lie above 0 and up to 1"),
        ({"composers": (Composer("a", tokens=0.0),)}, "tokens must be above 0"),
        ({"panel": (Panelist("a", "x", trials=0),)}, "a.trials: must be at least 1"),
        ({"panel": (Panelist("a", "x", trial_noise=Spread(math.inf)),)}, "a.trial_noise.sd"),
        ({"weights": (1.0,)}, "weights: must be 2 finite numbers"),
        ({"weights": (0.0, 0.0)}, "weights"),
    ],
)
def test_a_truth_says_what_is_wrong_with_it(parts, message):
    with pytest.raises(InputError, match=message):
        replace(PLAIN, **parts)


def test_a_truth_names_all_problems_at_once():
    with pytest.raises(InputError) as caught:
        replace(PLAIN, clusters=0, cycles=0, residual=Spread(-1.0))
    assert len(caught.value.problems) == 3
