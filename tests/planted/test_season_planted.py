"""Seasons with a known truth: equal agents are not ordered, and what is planted in judges is found in them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from repetitions import over_seeds
from season_worlds import Played, World, decided, measured, panel_median, played

from assaymark.claims import SeasonGates, SeasonVerdicts, decide_season
from assaymark.metrology import daily_excess
from assaymark.records import Measurement
from assaymark.workflow import tracks

ALPHA = 0.05
SEASONS = 100
MEDIAN_OF_THREE = 0.4487
"""Variance of the median of three normal variables, in units of theirs."""


def band_above(rate: float, n: int) -> float:
    """Three Monte Carlo standard errors above a rate."""
    return rate + 3 * math.sqrt(rate * (1 - rate) / n)


def drawn(world: World, seed: int) -> Played:
    return played(world, np.random.default_rng([seed, 11]))


def ordered(found: SeasonVerdicts) -> set[tuple[str, ...]]:
    """First ranks and pairs that are claimed."""
    return {
        one.verdict.claim.subjects
        for one in found.verdicts
        if one.kind in ("first", "above") and one.verdict.publication_level != "no-claim"
    }


def false_orders(world: World, seeds: int = SEASONS) -> float:
    """The share of seasons in which any order is claimed."""
    return float(np.mean(over_seeds(lambda seed: bool(ordered(decided(drawn(world, seed)))), range(seeds))))


CALM = {"noise": 0.5, "decisions": 0.1, "trials": 4, "replicates": 8}
"""Judges and agents that hardly waver: the noise floor lets nearly every gap through."""


@pytest.mark.parametrize("serial", [0.0, 0.5])
@pytest.mark.parametrize("periods", [12, 24, 36])
def test_equal_agents_are_ordered_no_more_often_than_alpha_allows(periods: int, serial: float):
    """Over periods alone, also where a good week is likely to follow a good week."""
    world = World((55.0,) * 4, periods=periods, serial=serial, **CALM)
    assert false_orders(world) <= band_above(ALPHA, SEASONS)


def test_equal_agents_with_noisy_judges_are_ordered_no_more_often_than_alpha_allows():
    assert false_orders(World((55.0,) * 4, periods=24)) <= band_above(ALPHA, SEASONS)


@pytest.mark.parametrize("calm", [{}, CALM])
def test_a_favour_of_one_family_makes_no_more_orders_than_alpha_allows(calm: dict[str, float]):
    assert false_orders(World((55.0,) * 3, favour=15.0, periods=24, **calm)) <= band_above(ALPHA, SEASONS)


def test_planted_orders_are_found_and_never_turned_round():
    """36 weeks with gaps of five standard deviations of a week find every order; 12 find a first rank now and then."""
    found = over_seeds(lambda seed: decided(drawn(World((75.0, 55.0, 35.0), periods=36), seed)), range(40))
    assert sum(one.tiers == (("a00",), ("a01",), ("a02",)) for one in found) >= 36
    short = over_seeds(lambda seed: decided(drawn(World((75.0, 55.0, 35.0)), seed)), range(40))
    assert sum(("a00",) in ordered(one) for one in short) >= 8
    assert not any(subjects[0] > subjects[-1] for one in (*found, *short) for subjects in ordered(one))
    assert {one.verdict.publication_level for each in found for one in each.verdicts if one.kind == "above"} >= {
        "headline"
    }
    assert not any(
        one.verdict.publication_level == "headline" for each in short for one in each.verdicts if one.kind == "above"
    )


def test_fewer_than_twelve_weeks_rank_nobody():
    found = decided(drawn(World((75.0, 55.0, 35.0), periods=11), 1))
    assert ordered(found) == set()
    assert {one.why.key for one in found.places} == {"claim.why.periods"}


def test_agents_that_are_equal_are_shown_to_be_within_the_margin():
    """36 weeks with a standard deviation of 2 points; agents 30 points apart never are."""
    world = World((60.0, 60.0, 30.0), periods=36, weeks=2.0)

    def close(found: SeasonVerdicts) -> set[tuple[str, ...]]:
        return {
            tuple(sorted(one.verdict.claim.subjects))
            for one in found.verdicts
            if one.kind == "within" and one.verdict.publication_level != "no-claim"
        }

    found = over_seeds(lambda seed: close(decided(drawn(world, seed))), range(20))
    assert sum(("a00", "a01") in one for one in found) >= 18
    assert all(one <= {("a00", "a01")} for one in found)


def test_nothing_is_ordered_where_nothing_was_repeated():
    for once in ({"replicates": 1}, {"trials": 1}):
        world = World((75.0, 55.0, 35.0), periods=36, **once)
        assert decided(drawn(world, 1)).tiers == (("a00", "a01", "a02"),)


def test_an_agent_that_one_judge_lifts_is_put_above_its_equals_no_more_often_than_alpha_allows():
    """By 40 points: its rank is shared."""
    world = World((50.0, 50.0, 25.0), favour=40.0, noise=1.0, decisions=0.3, trials=4, periods=24)
    found = over_seeds(lambda seed: decided(drawn(world, seed)), range(60))
    assert np.mean([("a00", "a01") in ordered(one) for one in found]) <= band_above(ALPHA, len(found))
    assert np.mean([one.place("a00").shown for one in found]) <= band_above(ALPHA, len(found))


def test_the_order_of_judges_and_the_names_of_agents_change_no_number():
    season = drawn(World((70.0, 55.0, 40.0), periods=30), 3)
    scores = season.scores
    turned = Played(
        type(scores)(
            agents=scores.agents,
            families=dict(reversed(scores.families.items())),
            whole={agent: dict(reversed(row.items())) for agent, row in scores.whole.items()},
            composites={agent: dict(reversed(row.items())) for agent, row in scores.composites.items()},
            periods={
                name: {agent: dict(reversed(row.items())) for agent, row in agents.items()}
                for name, agents in scores.periods.items()
            },
            replicates={
                agent: {k: dict(reversed(row.items())) for k, row in found.items()}
                for agent, found in scores.replicates.items()
            },
            states={},
        ),
        season.tokens,
        season.families,
    )
    one, two = ({item.id: item for item in measured(each)} for each in (season, turned))
    assert one.keys() == two.keys()
    assert all(_near(one[name], two[name]) for name in one)
    assert decided(season).tiers == decided(turned).tiers


def _near(one: Measurement, two: Measurement) -> bool:
    pairs = [(one.value, two.value), (one.low, two.low), (one.high, two.high)]
    return one.state == two.state and all(
        a is b or (a is not None and b is not None and math.isclose(a, b, abs_tol=1e-9)) for a, b in pairs
    )


# --- judges -----------------------------------------------------------------------------------------------------------


def of_judges(season: Played, world: World, name: str) -> dict[str, Measurement]:
    items = tracks.judge_measurements(season.totals(), world.families, season.tokens, level=0.95)
    return {one.labels["judge"]: one for one in items if one.name == name}


def test_planted_self_preference_is_recovered():
    """20 points for 4 of 12 agents. The judge moves the median, which hides about .56 of its noise."""
    world = World((55.0,) * 12, favour=20.0, own=4, periods=3, harshness=(0.0,))
    found = over_seeds(lambda seed: of_judges(drawn(world, seed), world, "season.self_preference")["j0"], range(60))
    published = world.noise / math.sqrt(world.trials)
    expected = world.favour - 0.56 * published
    values = np.array([one.value for one in found], dtype=float)
    assert values.mean() == pytest.approx(expected, abs=3 * values.std() / math.sqrt(len(values)))
    assert all(one.low is not None and one.low > 0 and one.n == 4 for one in found)


def test_planted_self_preference_of_one_agent_is_seen_over_fourteen_weeks():
    """20 points, one agent of the family: whole records are one observation, and its weeks are fourteen."""
    world = World((55.0,) * 4, favour=20.0, periods=14)
    found = over_seeds(lambda seed: of_judges(drawn(world, seed), world, "season.self_preference"), range(30))
    assert all(one["j0"].low is not None and one["j0"].low > 0 for one in found)
    assert {(one["j0"].n, one["j0"].n_of, one["j0"].detail["agents"]) for one in found} == {(14, "periods", 1)}
    assert all(one["j0"].detail["whole"] is not None for one in found)
    level = World((55.0,) * 4, periods=14)
    none = over_seeds(lambda seed: of_judges(drawn(level, seed), level, "season.self_preference"), range(60))
    missed = sum(not one["j0"].low <= 0 <= one["j0"].high for one in none)
    assert missed / len(none) <= band_above(0.05, len(none))


def test_one_agent_of_a_family_in_one_period_is_a_single_observation():
    world = World((55.0,) * 5, favour=17.0, periods=1)
    one = of_judges(drawn(world, 2), world, "season.self_preference")["j0"]
    assert (one.n, one.low, one.detail["state"]) == (1, None, "single observation")
    assert one.value is not None
    assert one.value > 8


@pytest.mark.parametrize("planted", [0.0, 4.0])
def test_planted_verbosity_is_recovered(planted: float):
    """Points for each doubling: the mean is unbiased, and 95 % intervals cover it."""
    world = World((50.0, 55.0, 60.0, 65.0), verbosity=planted, taste=5.0)
    found = over_seeds(lambda seed: of_judges(drawn(world, seed), world, "season.verbosity"), range(60))
    values = np.array([one["j0"].value for one in found], dtype=float)
    assert values.mean() == pytest.approx(planted, abs=3 * values.std() / math.sqrt(len(values)))
    ends = [(one["j0"].low, one["j0"].high) for one in found]
    missed = sum(not (low is not None and high is not None and low <= planted <= high) for low, high in ends)
    assert missed / len(found) <= band_above(0.05, len(found))
    if planted:
        assert sum(one["j0"].low is not None and one["j0"].low > 0 for one in found) >= 55


def test_planted_noise_is_recovered():
    """Of single judges, of the panel's published median, and of agents, whose replicates hold the panel's noise too."""
    world = World((45.0, 55.0, 65.0), noise=3.0, decisions=2.0, trials=3, replicates=5, periods=3)
    seasons = over_seeds(lambda seed: drawn(world, seed), range(80))
    floors = [{one.id: one for one in tracks.table_measurements(season.totals())} for season in seasons]
    single = [one.value for season in seasons for one in tracks.judge_noise(season.scores)]
    panel = [one["season.noise[of=panel]"].value for one in floors]
    agent = [one["season.noise[of=a00]"].value for one in floors]
    # Judges differ in harshness, so the median is mostly one judge: its variance lies between those two.
    least, most = MEDIAN_OF_THREE * world.noise**2, world.noise**2
    assert _variance(single) == pytest.approx(world.noise**2, rel=0.1)
    assert least * 0.9 <= _variance(panel) * world.trials <= most * 1.1
    assert least * 0.9 <= _variance(agent) - world.decisions**2 <= most * 1.1


def _variance(spreads: list[float | None]) -> float:
    return float(np.mean([one**2 for one in spreads if one is not None]))


# --- blinding ---------------------------------------------------------------------------------------------------------


def guesses(names: list[str], taken: list[str], weeks: int) -> list[tracks.SeasonGuess]:
    """A judge that takes each author for one other author in every week."""
    return [
        tracks.SeasonGuess(
            author=name,
            judge="j",
            trial=1,
            period=f"w{week}",
            options=len(names),
            state="ok",
            guess=guess,
            call_key="k",
        )
        for name, guess in zip(names, taken, strict=True)
        for week in range(weeks)
    ]


def test_a_judge_that_only_sorts_authors_is_not_said_to_know_them():
    """It tells them apart and names them by lot: some lots hit two of five, in all weeks."""
    names = [f"a{at}" for at in range(5)]

    def seen(seed: int) -> bool:
        taken = np.random.default_rng([seed, 5]).permutation(names).tolist()
        (one,) = tracks.probe_measurements(guesses(names, taken, 12), level=0.95)
        return one.detail["state"] == "above chance"

    n = 150
    assert np.mean(over_seeds(seen, range(n))) <= band_above(0.025, n)


def test_a_judge_that_knows_authors_is_found():
    names = [f"a{at}" for at in range(5)]
    (one,) = tracks.probe_measurements(guesses(names, names, 6), level=0.95)
    assert (one.value, one.detail["state"], one.detail["chance"]) == (1.0, "above chance", 0.2)


# --- returns ----------------------------------------------------------------------------------------------------------


def excesses(seed: int, *, edge: float = 0.0, agents: int = 6, days: int = 80) -> list[Measurement]:
    """Agents that differ from the baseline by noise of 0.4 % a day, the first with an edge besides."""
    rng = np.random.default_rng([seed, 23])
    market = rng.normal(0.0004, 0.01, days)
    found = []
    for at in range(agents):
        own = market + rng.normal(edge if at == 0 else 0.0, 0.004, days)
        one = daily_excess(own, market, rng=rng, resamples=300)
        found.append(
            Measurement(
                name="season.excess", labels={"agent": f"a{at}", "baseline": "equal weight"}, value=one.value, n=days,
                n_of="days", method="", low=one.low, high=one.high, level=0.95, detail={"p": one.p, "whole": 0.0},
            )
        )  # fmt: skip
    return found


def beaten(seed: int, **world: float) -> set[str]:
    decision = decide_season(excesses(seed, **world), SeasonGates(alpha=ALPHA), "plan")  # type: ignore[arg-type]
    return {
        one.verdict.claim.subjects[0]
        for one in decision.verdicts
        if one.kind == "beats" and one.verdict.publication_level == "qualified"
    }


def test_agents_without_an_edge_beat_the_baseline_no_more_often_than_alpha_allows():
    n = 100
    found = over_seeds(lambda seed: bool(beaten(seed)), range(n))
    assert np.mean(found) <= band_above(ALPHA, n)


def test_a_planted_edge_is_found():
    found = over_seeds(lambda seed: beaten(seed, edge=0.002), range(30))
    assert sum("a0" in one for one in found) >= 24


def test_the_panel_median_is_that_of_the_truth_and_the_middle_judge():
    """A check of the simulation: without noise the median judge of three adds its harshness and nothing else."""
    world = World((40.0, 60.0), weeks=0.0, noise=0.0, decisions=0.0, harshness=(-4.0, 1.0, 5.0))
    season = drawn(world, 0)
    assert [panel_median(season, agent) for agent in world.agents] == pytest.approx([41.0, 61.0])
