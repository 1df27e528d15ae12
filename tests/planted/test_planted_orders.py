"""Orders that are claimed: false ones at most at the stated rate, planted ones found, biases stopped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from planted_studies import (
    AGENTS,
    DIMENSIONS,
    FAMILIES,
    NULL,
    PANEL,
    PLANTED,
    asserted,
    band,
    generator,
    headline_if_passed,
    liking_length,
    of_families,
    orders,
    refusing,
    study_of,
    verdicts_of,
)
from repetitions import over_seeds, untraced

from assaymark.claims import decide_claims
from assaymark.metrology import Composer, Spread, Truth, analyse, holm, simulate_scores

STUDIES, FEWER = 120, 80
FEW = study_of("inference = {resamples = 1000}")
AGGREGATE = study_of('inference = {resamples = 1000}\nclaims = {dimensions = ["aggregate"]}')
ORDERS = study_of("inference = {resamples = 1000}\nclaims = {within = false}")
LEADER = "first[agent=ash,dimension=aggregate]"
TWO = replace(NULL, dimensions=DIMENSIONS[:2])
LIMIT = band(STUDIES, 0.05)[1]
"""Counts above it contradict a rate of 5 %."""


def counts(said: Callable[[int], tuple[bool, ...]], studies: int) -> list[int]:
    """How many of so many studies answer each question with yes."""
    return [sum(column) for column in zip(*over_seeds(said, range(studies)), strict=True)]


def led(truth: Truth, mean: float | tuple[float, ...] = 3.8, clusters: int = 20, **more) -> Truth:
    """The world with ash in place of its first agent, and three equals."""
    rest = (Composer(name, 3.0) for name in AGENTS[1:])
    return replace(truth, composers=(Composer("ash", mean, **more), *rest), clusters=clusters)


# --- equal agents -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("clusters", [5, 8])
def test_equal_agents_rarely_give_an_order(clusters):
    """At most 5 % of studies permit any order under the default plan, as a headline too had the cells been passed."""
    found = untraced(lambda: orders(replace(TWO, clusters=clusters), FEW, STUDIES, seed=3, variants=True))
    assert found.headline <= found.claimed <= LIMIT
    assert found.bootstrap > LIMIT  # the warning number: why the source's percentile bootstrap decides nothing


def test_equal_agents_in_weeks_that_follow_each_other_rarely_give_an_order():
    """What agents gain in a week stays for the next ones: taken as independent, weeks give many more false orders."""
    claims = 'claims = {dimensions = ["aggregate"], within = false}'
    plans = [study_of(f'inference = {{resamples = 1000, cluster_order = "{order}"}}\n{claims}')
             for order in ("consecutive", "exchangeable")]  # fmt: skip
    truth = replace(TWO, clusters=30, cycles=2, interaction=Spread(0.0), residual=Spread(0.3, 0.5))

    def said(number: int) -> tuple[bool, ...]:
        rng = generator(21, number)
        table, swing = of_families(simulate_scores(truth, rng), truth), np.zeros((4, 30))
        for week in range(30):
            swing[:, week] = 0.6 * swing[:, week - 1] * (week > 0) + rng.normal(0, 0.3, 4)
        scores = np.clip(table.scores + swing[table.agent, table.cluster][:, None, None], 1, 5)
        moved = replace(table, scores=scores, lengths=None)
        return tuple(
            bool(asserted(decide_claims(analyse(moved, plan, rng=generator(21, number, 1)), plan, "hash",
                                        variants=False)))
            for plan in plans
        )  # fmt: skip

    honest, naive = counts(said, FEWER)
    assert honest <= band(FEWER, 0.06)[1]
    assert naive > band(FEWER, 0.1)[1]


# --- planted orders ---------------------------------------------------------------------------------------------------


def test_a_tie_class_is_not_ordered_and_the_rest_is():
    """A leader, two equals, and a last one: the equals get an order in at most 5 % of studies."""
    levels = zip(AGENTS, (3.7, 3.0, 3.0, 2.4), strict=True)
    truth = replace(PLANTED, clusters=6, cycles=12, composers=tuple(Composer(name, mean) for name, mean in levels))
    assert truth.tie_classes() == (("birch", "cedar"),)
    wrong = {("birch", "ash"), ("cedar", "ash"), ("elm", "ash"), ("elm", "birch"), ("elm", "cedar")}

    def said(number: int) -> tuple[bool, ...]:
        found = [v.claim for v in asserted(verdicts_of(truth, FEW, seed=8, number=number))]
        return (
            any(set(claim.subjects) == {"birch", "cedar"} for claim in found),
            any(claim.id == LEADER for claim in found),
            any(claim.subjects in wrong for claim in found),
        )

    tied, leader, turned = counts(said, STUDIES)
    assert tied <= LIMIT
    assert leader >= band(STUDIES, 0.95)[0]
    assert turned == 0


def test_a_leader_among_eight_agents_in_five_clusters_is_found_where_holm_finds_none():
    """A cluster t for each pair alone and Holm over the 28 of them, which the source has, needs larger gaps."""
    names = ("ash", "birch", "cedar", "elm", "fir", "hazel", "oak", "yew")
    composers = tuple(Composer(name, 3.8 if name == "ash" else 3.0) for name in names)
    truth, studies = replace(TWO, composers=composers, interaction=Spread(0.25, 0.5), clusters=5), 60

    def said(number: int) -> tuple[bool, ...]:
        table = of_families(simulate_scores(truth, generator(9, number)), truth)
        measured = analyse(table, AGGREGATE, rng=generator(9, number, 1))
        claimed = asserted(decide_claims(measured, AGGREGATE, "hash", variants=False))
        first = {v.claim.id for v in claimed if len(v.claim.subjects) == 1}
        pairs = [m for m in measured if m.name == "contrast" and m.labels["dimension"] == "aggregate"]
        adjusted = holm([m.detail["p_cluster_t"] for m in pairs])
        alone = [p <= 0.05 for m, p in zip(pairs, adjusted, strict=True) if m.labels["high"] == "ash"]
        return LEADER in first, len(alone) == 7 and all(alone), bool(first - {LEADER})

    leader, by_holm, false = counts(said, studies)
    assert leader >= band(studies, 0.45)[0]
    assert by_holm <= band(studies, 0.05)[1]
    assert false <= band(studies, 0.05)[1]


def test_two_agents_within_the_margin_may_be_said_to_be():
    """A gap of .1 is shown to be below .3 in most studies of 16 clusters, one of .3 itself at the stated rate."""
    plan = study_of('inference = {resamples = 1000}\nclaims = {dimensions = ["aggregate"], first = false}')

    def said_of(gap: float, studies: int) -> int:
        composers = (Composer("ash", 3.0 + gap), Composer("birch", 3.0))
        truth = replace(PLANTED, composers=composers, clusters=16, cycles=8)

        def said(number: int) -> bool:
            (near,) = (v for v in verdicts_of(truth, plan, seed=10, number=number) if not v.claim.asserts_order)
            return near.publication_level != "no-claim"

        return sum(over_seeds(said, range(studies)))

    assert said_of(0.1, 50) > 30
    assert said_of(0.3, STUDIES) <= LIMIT


# --- what all judges may share ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("favoured", [1, 3])
def test_a_liking_for_the_own_family_orders_no_equals(favoured):
    """Half a point for agents of the judge's maker, at twenty clusters: a false order in at most 5 % of studies."""
    families = (*FAMILIES[:favoured], *[""] * (4 - favoured))
    composers = tuple(Composer(name, 3.0, family=family) for name, family in zip(AGENTS, families, strict=True))
    truth = replace(TWO, composers=composers, panel=tuple(replace(j, halo=0.5) for j in PANEL), clusters=20)
    found = untraced(lambda: orders(truth, AGGREGATE, STUDIES, seed=11))
    assert found.headline <= found.claimed <= LIMIT


def test_without_the_makers_of_the_agents_no_order_is_a_headline():
    """Nothing tells a liking from quality then, whatever the drops say, and the sentence has to say so."""
    truth = replace(TWO, composers=(Composer("ash", 3.8), *NULL.composers[1:]), clusters=12)

    def said(number: int) -> tuple[bool, ...]:
        found = verdicts_of(truth, AGGREGATE, seed=11, number=number, change=lambda t: replace(t, agent_families=None))
        claimed = asserted(found)
        worded = all("families-unknown" in {c.id for c in v.conditions} for v in claimed)
        return LEADER in {v.claim.id for v in claimed}, any(map(headline_if_passed, claimed)), worded

    claimed, headline, worded = counts(said, 40)
    assert (claimed >= 36, headline, worded) == (True, 0, 40)


def test_what_length_explains_is_no_headline():
    """A quarter of a point a doubling, and an agent that writes twice as much: capped, with the word for it."""
    truth = led(TWO, 3.0, tokens=300.0)

    def said(number: int) -> tuple[bool, ...]:
        found = verdicts_of(truth, AGGREGATE, seed=13, number=number, change=lambda table: liking_length(table, 0.25))
        claimed = asserted(found)
        capped = all(v.length != "clear" and "length" in {c.id for c in v.conditions} for v in claimed)
        return bool(claimed), any(map(headline_if_passed, claimed)), capped

    claimed, headline, capped = counts(said, FEWER)
    assert claimed > FEWER / 3, "the longer texts do score higher"
    assert headline <= band(FEWER, 0.05)[1]
    assert FEWER - capped <= band(FEWER, 0.05)[1]


@pytest.mark.parametrize(
    ("truth", "plan", "seed", "slope", "least"),
    [
        # better also without the judge of its maker, who adds three tenths; at any length; and on one dimension apart
        (replace(led(TWO, clusters=12, family="north"), panel=tuple(replace(j, halo=0.3) for j in PANEL)), AGGREGATE,
         12, None, 36),
        (led(TWO, tokens=300.0), AGGREGATE, 14, 0.1, 32),
        (led(replace(NULL, dimensions=DIMENSIONS[:3], residual=Spread(0.8, 0.0)), (4.0, 3.0, 3.0)), ORDERS, 16, None,
         36),
    ],
    ids=["own family", "length", "dimension"],
)  # fmt: skip
def test_an_agent_that_is_better_is_found_beside_what_might_explain_it(truth, plan, seed, slope, least):
    def said(number: int) -> bool:
        if slope is not None:  # as a headline
            found = verdicts_of(truth, plan, seed=seed, number=number, change=lambda table: liking_length(table, slope))
            return any(v.claim.id == LEADER and headline_if_passed(v) for v in found)
        found = asserted(verdicts_of(truth, plan, seed=seed, number=number))
        if plan is AGGREGATE:
            return LEADER in {v.claim.id for v in found}
        return any(v.claim.id == "first[agent=ash,dimension=d0]" and v.distinct == "passed" for v in found)

    assert sum(over_seeds(said, range(40))) >= least


def test_dimensions_that_copy_one_impression_are_not_told_apart():
    """Each judge has one impression of a text and gives it on every dimension."""
    panel, studies = tuple(replace(judge, disagreement=Spread(0.4, 1.0)) for judge in PANEL), 100
    copied = replace(NULL, dimensions=DIMENSIONS[:3], panel=panel, interaction=Spread(0.2, 1.0),
                     residual=Spread(0.6, 1.0))  # fmt: skip
    truth = led(copied, clusters=12)

    def noisy(table):
        rng = np.random.default_rng(int(table.digest, 16))
        return replace(table, scores=np.clip(table.scores + rng.normal(0, 0.3, table.scores.shape), 1, 5))

    def said(number: int) -> tuple[bool, ...]:
        found = verdicts_of(truth, ORDERS, seed=15, number=number, change=noisy)
        on_dimensions = [v for v in asserted(found) if v.claim.dimension != "aggregate"]
        told = [v for v in on_dimensions if v.distinct != "not-told-apart"]
        worded = all("not tell" in v.claim.statement for v in on_dimensions if v.distinct == "not-told-apart")
        return bool(on_dimensions), bool(told), worded

    claimed, told, worded = counts(said, studies)
    assert claimed > 0.9 * studies
    assert told <= band(studies, 0.05)[1]
    assert worded == studies


@pytest.mark.parametrize("severity", [0.0, -0.8])
def test_a_judge_that_refuses_the_weakest_texts_of_an_agent_orders_no_equals(severity):
    """The mean over the judges who are there would raise that agent; the fit of judges and records hardly does."""
    truth = replace(TWO, panel=(replace(PANEL[0], severity=severity), *PANEL[1:]), clusters=20)

    def refuse(table):
        quality = table.scores.mean(axis=(1, 2))
        return refusing(table, 0, (table.agent == 0) & (quality < np.quantile(quality[table.agent == 0], 0.15)))

    found = untraced(lambda: orders(truth, AGGREGATE, FEWER, seed=17, change=refuse))
    assert found.claimed <= band(FEWER, 0.06)[1]
