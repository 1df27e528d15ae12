"""Seasons with a known truth: equal agents are not ordered, and what is planted in judges is found in them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from repetitions import over_seeds
from season_worlds import Played, World, decided, measured, ordered, panel_median, played

from assaymark.claims import SeasonGates, decide_season
from assaymark.metrology import daily_excess
from assaymark.records import Measurement
from assaymark.workflow import tracks

ALPHA = 0.05
MEDIAN_OF_THREE = 0.4487
"""Variance of the median of three normal variables, in units of theirs."""
CALM = {"noise": 0.5, "decisions": 0.1, "trials": 4, "replicates": 8}
"""Judges and agents that hardly waver: the noise floor lets nearly every gap through."""
APART = World((75.0, 55.0, 35.0))


def rarely(found: list[bool], rate: float = ALPHA) -> bool:
    """Whether a share is at most three Monte Carlo standard errors above a rate."""
    return bool(np.mean(found) <= rate + 3 * math.sqrt(rate * (1 - rate) / len(found)))


def drawn(world: World, seed: int) -> Played:
    return played(world, np.random.default_rng([seed, 11]))


# --- orders -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "world",
    [
        # also where a good week is likely to follow a good week
        *(World((55.0,) * 4, periods=n, serial=serial, **CALM) for n in (12, 24, 36) for serial in (0.0, 0.5)),
        World((55.0,) * 4, periods=24),
        *(World((55.0,) * 3, favour=15.0, periods=24, **calm) for calm in ({}, CALM)),
    ],
    ids=lambda world: f"{len(world.quality)} agents, {world.periods} weeks, {world.serial}, {world.noise}",
)
def test_equal_agents_are_ordered_no_more_often_than_alpha_allows(world):
    """Over periods alone, by noisy judges, and by one that favours its family."""
    assert rarely(over_seeds(lambda seed: bool(ordered(drawn(world, seed))), range(100)))


def test_nothing_is_ordered_where_the_tests_of_all_judges_order_nothing():
    """Other tests here rest on it."""
    for world in (World((55.0,) * 4, periods=24, **CALM), APART):
        for seed in range(6):
            season = drawn(world, seed)
            claimed = {one.verdict.claim.subjects for one in decided(season).verdicts
                       if one.kind in ("first", "above") and one.verdict.publication_level != "no-claim"}  # fmt: skip
            assert ordered(season) == claimed


def test_planted_orders_are_found_and_never_turned_round():
    """36 weeks with gaps of five standard deviations of a week find every order; 12 find a first rank now and then."""

    def told(world: World, seed: int):
        season = drawn(world, seed)
        if not (claimed := ordered(season)):
            return claimed, None, set()
        found = decided(season)
        return claimed, found.tiers, {one.verdict.publication_level for one in found.verdicts if one.kind == "above"}

    long = over_seeds(lambda seed: told(replace(APART, periods=36), seed), range(40))
    short = over_seeds(lambda seed: told(APART, seed), range(40))
    assert sum(tiers == (("a00",), ("a01",), ("a02",)) for _, tiers, _ in long) >= 36
    assert sum(("a00",) in claimed for claimed, *_ in short) >= 8
    assert not any(subjects[0] > subjects[-1] for claimed, *_ in (*long, *short) for subjects in claimed)
    assert any("headline" in levels for *_, levels in long)
    assert not any("headline" in levels for *_, levels in short)


def test_too_few_weeks_and_what_was_never_repeated_rank_nobody():
    found = decided(drawn(replace(APART, periods=11), 1))
    assert ordered(drawn(replace(APART, periods=11), 1)) == set()
    assert {one.why.key for one in found.places} == {"claim.why.periods"}
    for once in ({"replicates": 1}, {"trials": 1}):
        assert decided(drawn(replace(APART, periods=36, **once), 1)).tiers == (("a00", "a01", "a02"),)


def test_agents_that_are_equal_are_shown_to_be_within_the_margin():
    """36 weeks with a standard deviation of 2 points; agents 30 points apart never are."""
    world = World((60.0, 60.0, 30.0), periods=36, weeks=2.0)

    def close(seed: int) -> set[tuple[str, ...]]:
        return {tuple(sorted(one.verdict.claim.subjects)) for one in decided(drawn(world, seed)).verdicts
                if one.kind == "within" and one.verdict.publication_level != "no-claim"}  # fmt: skip

    found = over_seeds(close, range(20))
    assert sum(("a00", "a01") in one for one in found) >= 18
    assert all(one <= {("a00", "a01")} for one in found)


def test_an_agent_that_one_judge_lifts_is_put_above_its_equals_no_more_often_than_alpha_allows():
    """By 40 points: its rank is shared."""
    world = World((50.0, 50.0, 25.0), favour=40.0, noise=1.0, decisions=0.3, trials=4, periods=24)

    def lifted(seed: int) -> tuple[bool, bool]:
        season = drawn(world, seed)
        return ("a00", "a01") in ordered(season), decided(season).place("a00").shown

    above, shown = zip(*over_seeds(lifted, range(60)), strict=True)
    assert rarely([*above])
    assert rarely([*shown])


def test_the_order_of_judges_and_the_names_of_agents_change_no_number():
    season = drawn(World((70.0, 55.0, 40.0), periods=30), 3)
    scores = season.scores

    def turned(value, depth: int):
        """The same with the innermost mapping, of judges, the other way round."""
        items = value.items() if depth else reversed(value.items())
        return {name: turned(part, depth - 1) if depth else part for name, part in items}

    changed = {"families": 0, "records": 1, "periods": 2, "replicates": 2}
    other = replace(season, scores=replace(scores, **{n: turned(getattr(scores, n), k) for n, k in changed.items()}))
    one, two = ({item.id: item for item in measured(each)} for each in (season, other))
    assert one.keys() == two.keys()
    for name, item in one.items():
        again = two[name]
        assert item.state == again.state
        assert [item.value, item.low, item.high] == [
            None if x is None else pytest.approx(x, abs=1e-9) for x in (again.value, again.low, again.high)
        ]
    assert decided(season).tiers == decided(other).tiers


# --- judges -----------------------------------------------------------------------------------------------------------


def of_judges(world: World, name: str, seeds: int) -> list[dict[str, Measurement]]:
    """What is measured of each judge in so many seasons."""

    def one(seed: int) -> dict[str, Measurement]:
        season = drawn(world, seed)
        items = tracks.judge_measurements(season.totals(), world.families, season.tokens)
        return {item.labels["judge"]: item for item in items if item.name == name}

    return over_seeds(one, range(seeds))


def misses(found: list[Measurement], planted: float) -> list[bool]:
    return [not (one.low is not None and one.high is not None and one.low <= planted <= one.high) for one in found]


def unbiased(found: list[Measurement], expected: float) -> bool:
    values = np.array([one.value for one in found], dtype=float)
    return abs(values.mean() - expected) <= 3 * values.std() / math.sqrt(len(values))


def test_planted_self_preference_is_recovered():
    """20 points for 4 of 12 agents. The judge moves the median, which hides about .56 of its noise."""
    world = World((55.0,) * 12, favour=20.0, own=4, periods=3, harshness=(0.0,))
    found = [one["j0"] for one in of_judges(world, "season.self_preference", 60)]
    assert unbiased(found, world.favour - 0.56 * world.noise / math.sqrt(world.trials))
    assert all(one.low is not None and one.low > 0 and one.n == 4 for one in found)


def test_planted_self_preference_of_one_agent_is_seen_over_fourteen_weeks():
    """20 points, one agent of the family: whole records are one observation, and its weeks are fourteen."""
    world = World((55.0,) * 4, favour=20.0, periods=14)
    found = [one["j0"] for one in of_judges(world, "season.self_preference", 30)]
    assert all(one.low is not None and one.low > 0 for one in found)
    assert {(one.n, one.n_of, one.detail["agents"]) for one in found} == {(14, "periods", 1)}
    assert all(one.detail["whole"] is not None for one in found)
    level = [one["j0"] for one in of_judges(replace(world, favour=0.0), "season.self_preference", 60)]
    assert rarely(misses(level, 0.0))
    # In one period it is a single observation.
    *_, one = of_judges(World((55.0,) * 5, favour=17.0, periods=1), "season.self_preference", 3)
    assert (one["j0"].n, one["j0"].low, one["j0"].detail["state"]) == (1, None, "single observation")
    assert one["j0"].value > 8


@pytest.mark.parametrize("planted", [0.0, 4.0])
def test_planted_verbosity_is_recovered(planted):
    """Points for each doubling: the mean is unbiased, and 95 % intervals cover it."""
    world = World((50.0, 55.0, 60.0, 65.0), verbosity=planted, taste=5.0)
    found = [one["j0"] for one in of_judges(world, "season.verbosity", 60)]
    assert unbiased(found, planted)
    assert rarely(misses(found, planted))
    assert not planted or sum(one.low is not None and one.low > 0 for one in found) >= 55


def test_planted_noise_is_recovered():
    """Of single judges, of the panel's published median, and of agents, whose replicates hold the panel's noise too."""
    world = World((45.0, 55.0, 65.0), noise=3.0, decisions=2.0, trials=3, replicates=5, periods=3)
    seasons = over_seeds(lambda seed: drawn(world, seed), range(80))
    floors = [{one.id: one for one in tracks.table_measurements(season.totals())} for season in seasons]

    def variance(found) -> float:
        return float(np.mean([one.value**2 for one in found if one.value is not None]))

    single = variance(one for season in seasons for one in tracks.judge_noise(season.scores))
    panel, agent = (variance(one[f"season.noise[of={of}]"] for one in floors) for of in ("panel", "a00"))
    # Judges differ in harshness, so the median is mostly one judge: its variance lies between those two.
    least, most = MEDIAN_OF_THREE * world.noise**2, world.noise**2
    assert single == pytest.approx(world.noise**2, rel=0.1)
    assert least * 0.9 <= panel * world.trials <= most * 1.1
    assert least * 0.9 <= agent - world.decisions**2 <= most * 1.1
    # A check of the simulation: without noise the median judge of three adds its harshness and nothing else.
    still = World((40.0, 60.0), weeks=0.0, noise=0.0, decisions=0.0, harshness=(-4.0, 1.0, 5.0))
    assert [panel_median(drawn(still, 0), agent) for agent in still.agents] == pytest.approx([41.0, 61.0])


# --- blinding ---------------------------------------------------------------------------------------------------------


def probed(taken: list[str], weeks: int) -> Measurement:
    """A judge that takes each author for one other author in every week."""
    guesses = [
        tracks.SeasonGuess(author=f"a{at}", judge="j", trial=1, period=f"w{week}", options=5, state="ok", guess=guess,
                           call_key="k")
        for at, guess in enumerate(taken) for week in range(weeks)
    ]  # fmt: skip
    (one,) = tracks.probe_measurements(guesses)
    return one


def test_a_judge_is_said_to_know_authors_only_if_it_does():
    """One tells them apart and names them by lot: some lots hit two of five, in all weeks."""
    names = [f"a{at}" for at in range(5)]

    def seen(seed: int) -> bool:
        taken = np.random.default_rng([seed, 5]).permutation(names).tolist()
        return probed(taken, 12).detail["state"] == "above chance"

    assert rarely(over_seeds(seen, range(150)), 0.025)
    one = probed(names, 6)
    assert (one.value, one.detail["state"], one.detail["chance"]) == (1.0, "above chance", 0.2)


# --- returns ----------------------------------------------------------------------------------------------------------


def beaten(seed: int, edge: float = 0.0) -> set[str]:
    """Who is said to beat the baseline, of six that differ from it by noise of 0.4 % a day, the first by an edge."""
    rng = np.random.default_rng([seed, 23])
    market, found = rng.normal(0.0004, 0.01, 80), []
    for at in range(6):
        own = market + rng.normal(edge if at == 0 else 0.0, 0.004, 80)
        one = daily_excess(own, market, rng=rng, resamples=300)
        found.append(Measurement(
            name="season.excess", labels={"agent": f"a{at}", "baseline": "equal weight"}, value=one.value, n=80,
            n_of="days", method="", low=one.low, high=one.high, level=0.95, detail={"p": one.p, "whole": 0.0},
        ))  # fmt: skip
    return {one.verdict.claim.subjects[0] for one in decide_season(found, SeasonGates(alpha=ALPHA), "plan").verdicts
            if one.kind == "beats" and one.verdict.publication_level == "qualified"}  # fmt: skip


def test_a_planted_edge_over_the_baseline_is_found_and_none_no_more_often_than_alpha_allows():
    assert rarely(over_seeds(lambda seed: bool(beaten(seed)), range(100)))
    found = over_seeds(lambda seed: beaten(seed, edge=0.002), range(30))
    assert sum("a0" in one for one in found) >= 24
