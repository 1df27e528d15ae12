"""Orders that are claimed: false ones at most at the stated rate, planted ones found, biases stopped."""

# ruff: noqa: I001  # names in packed lines

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from planted_studies import (
    AGENTS, DIMENSIONS, FAMILIES, NULL, PANEL, PLANTED, asserted, band, claimed, generator, headline_if_passed,
    liking_length, of_families, refusing, simulated, study_of, unmeasured, verdicts_on,
)  # fmt: skip
from repetitions import over_seeds, untraced

from assaymark.claims import decide_claims
from assaymark.metrology import (
    Composer, ScoreTable, Spread, Truth, analyse, bootstrap_tests, holm, simulate_scores, t_test,
)  # fmt: skip
from assaymark.metrology.panel import panel_of

STUDIES, FEWER = 120, 80
ORDERS = study_of("inference = {resamples = 1000}\nclaims = {within = false}")
AGGREGATE, FIRSTS, NEAR = (
    study_of(f'inference = {{resamples = 1000}}\nclaims = {{dimensions = ["aggregate"], {more}}}')
    for more in ("within = false", "within = false, pairs = false", "first = false")
)
LEADER = "first[agent=ash,dimension=aggregate]"
LIMIT = band(STUDIES, 0.05)[1]
"""Counts above it contradict a rate of 5 %."""


def counts(said: Callable[[int], tuple[bool, ...]], studies: int) -> list[int]:
    """How many of so many studies answer each question with yes."""
    return [sum(column) for column in zip(*over_seeds(said, range(studies)), strict=True)]


def more_than(limit: int, found: Iterator[bool]) -> bool:
    """Whether more than so many are true; what comes after these is not asked."""
    return untraced(lambda: len([*islice(filter(None, found), limit + 1)]) > limit)


def led(truth: Truth, mean: float | tuple[float, ...] = 3.8, clusters: int = 20, **more) -> Truth:
    """The world with ash in place of its first agent, and three equals."""
    rest = (Composer(name, 3.0) for name in AGENTS[1:])
    return replace(truth, composers=(Composer("ash", mean, **more), *rest), clusters=clusters)


def favoured(agents: int, **more) -> Truth:
    """Half a point for agents of the judge's maker, whom so many agents have."""
    families = (*FAMILIES[:agents], *[""] * (4 - agents))
    composers = tuple(Composer(name, 3.0, family=family) for name, family in zip(AGENTS, families, strict=True))
    return replace(TWO, composers=composers, panel=tuple(replace(one, halo=0.5) for one in PANEL), clusters=20)


def refuse(table: ScoreTable) -> ScoreTable:
    """The first judge has no usable reply to the weakest texts of the first agent."""
    quality = table.scores.mean(axis=(1, 2))
    return refusing(table, 0, (table.agent == 0) & (quality < np.quantile(quality[table.agent == 0], 0.15)))


TWO = replace(NULL, dimensions=DIMENSIONS[:2])
SEVERE = replace(TWO, panel=(replace(PANEL[0], severity=-0.8), *PANEL[1:]), clusters=20)


# --- equal agents -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("truth", "plan", "seed", "studies", "rate", "change"),
    [
        (replace(TWO, clusters=5), ORDERS, 3, STUDIES, 0.05, unmeasured),
        (replace(TWO, clusters=8), ORDERS, 3, STUDIES, 0.05, unmeasured),
        (replace(NULL, clusters=5), study_of(), 77, STUDIES, 0.05, unmeasured),
        (favoured(1), AGGREGATE, 11, STUDIES, 0.05, unmeasured),
        (favoured(3), AGGREGATE, 11, STUDIES, 0.05, unmeasured),
        # The mean over the judges who are there would raise that agent; the fit of judges and records hardly does.
        (replace(TWO, clusters=20), AGGREGATE, 17, FEWER, 0.06, refuse),
        (SEVERE, AGGREGATE, 17, FEWER, 0.06, refuse),
    ],
    ids=["5 clusters", "8 clusters", "6 dimensions", "a favoured one", "3 favoured", "refused", "refused, severe"],
)  # fmt: skip
def test_equal_agents_rarely_give_an_order(truth, plan, seed, studies, rate, change):
    """Under the default plan, and whatever all judges may share."""
    said = over_seeds(lambda number: bool(claimed(simulated(truth, seed, number, change=change), plan)), range(studies))
    assert sum(said) <= band(studies, rate)[1]


@pytest.mark.parametrize("clusters", [5, 8])
def test_the_percentile_bootstrap_of_the_source_gives_equal_agents_many_orders(clusters):
    """Why it decides nothing."""

    def ordered(number: int) -> bool:
        table, rng = simulated(replace(TWO, clusters=clusters), 3, number), generator(3, number, 1)
        meetings = [(sums[:, :3], cycles) for sums, cycles in panel_of(table, ORDERS).meetings]
        found = bootstrap_tests(meetings, resamples=1000, rng=rng)
        if min(one.p.min() for one in found) * 3 > 0.025:  # Holm over the pairs of one agent takes none
            return False
        verdicts = decide_claims(analyse(table, ORDERS, rng), ORDERS, "hash")
        levels = [one.fragility.get("source: percentile bootstrap") for one in verdicts if one.claim.asserts_order]
        return bool({*levels} & {"qualified", "headline"})

    assert more_than(LIMIT, map(ordered, range(STUDIES)))


def test_equal_agents_in_weeks_that_follow_each_other_rarely_give_an_order():
    """What agents gain in a week stays for the next ones: taken as independent, weeks give many more false orders."""
    truth = replace(TWO, clusters=30, cycles=2, interaction=Spread(0.0), residual=Spread(0.3, 0.5))
    honest, naive = (
        study_of(f'inference = {{cluster_order = "{order}"}}\nclaims = {{dimensions = ["aggregate"], within = false}}')
        for order in ("consecutive", "exchangeable")
    )

    def drifted(number: int) -> ScoreTable:
        rng = generator(21, number)
        table, swing = of_families(simulate_scores(truth, rng), truth), np.zeros((4, 30))
        for week in range(30):
            swing[:, week] = 0.6 * swing[:, week - 1] * (week > 0) + rng.normal(0, 0.3, 4)
        scores = np.clip(table.scores + swing[table.agent, table.cluster][:, None, None], 1, 5)
        return unmeasured(replace(table, scores=scores))

    said = over_seeds(lambda number: bool(claimed(drifted(number), honest)), range(FEWER))
    assert sum(said) <= band(FEWER, 0.06)[1]
    assert more_than(band(FEWER, 0.1)[1], (bool(claimed(drifted(number), naive)) for number in range(FEWER)))


@pytest.mark.parametrize(
    ("truth", "plan", "change"),
    [
        (replace(PLANTED, clusters=6), ORDERS, lambda table: table),
        (favoured(3), AGGREGATE, lambda table: table),
        (led(TWO), AGGREGATE, refuse),
        (replace(TWO, composers=TWO.composers[:2], clusters=16), NEAR, lambda table: table),
    ],
    ids=["dimensions", "families", "refusals", "near"],
)
def test_what_simulated_studies_leave_out_decides_nothing(truth, plan, change):
    """The other tests rest on it: fewer measurements, no lengths, and none where no test of the panel rejects."""

    def told(found):
        return [(one.claim, one.publication_level, one.stability_status, one.distinct, one.own_family, one.reasons[:2])
                for one in found if one.claim.scope != "adversarial-cell"]  # fmt: skip

    for number in range(4):
        table = simulated(truth, 4, number, change=change)
        whole = decide_claims(analyse(table, plan, generator(4, number, 1)), plan, "hash", variants=False)
        for some, short in ((whole, verdicts_on(table, plan)), (asserted(whole), claimed(unmeasured(table), plan))):
            assert told(some) == told(short)


# --- planted orders ---------------------------------------------------------------------------------------------------


def test_a_tie_class_is_not_ordered_and_the_rest_is():
    """A leader, two equals, and a last one: the equals get an order in at most 5 % of studies."""
    levels = zip(AGENTS, (3.7, 3.0, 3.0, 2.4), strict=True)
    truth = replace(PLANTED, clusters=6, cycles=12, composers=tuple(Composer(name, mean) for name, mean in levels))
    assert truth.tie_classes() == (("birch", "cedar"),)
    wrong = {("birch", "ash"), ("cedar", "ash"), ("elm", "ash"), ("elm", "birch"), ("elm", "cedar")}

    def said(number: int) -> tuple[bool, ...]:
        found = [one.claim for one in claimed(simulated(truth, 8, number, change=unmeasured), ORDERS)]
        pairs = {claim.subjects for claim in found}
        tied = any({*pair} == {"birch", "cedar"} for pair in pairs)
        return tied, LEADER in {claim.id for claim in found}, bool(pairs & wrong)

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
        table = simulated(truth, 9, number, change=unmeasured)
        first = {one.claim.id for one in claimed(table, FIRSTS)}
        alone = [t_test(sums[:, :1], cycles) for sums, cycles in panel_of(table, FIRSTS).meetings]
        adjusted, ahead = holm([float(one.p[0]) for one in alone]), [one.difference[0] > 0 for one in alone[:7]]
        return LEADER in first, all(ahead) and bool((adjusted[:7] <= 0.05).all()), bool(first - {LEADER})

    leader, by_holm, false = counts(said, studies)
    assert leader >= band(studies, 0.45)[0]
    assert by_holm <= band(studies, 0.05)[1]
    assert false <= band(studies, 0.05)[1]


def test_two_agents_within_the_margin_may_be_said_to_be():
    """A gap of .1 is shown to be below .3 in most studies of 16 clusters, one of .3 itself at the stated rate."""

    def said(gap: float, number: int) -> bool:
        composers = (Composer("ash", 3.0 + gap), Composer("birch", 3.0))
        truth = replace(PLANTED, composers=composers, clusters=16, cycles=8)
        found = verdicts_on(simulated(truth, 10, number, change=unmeasured), NEAR)
        (near,) = (one for one in found if one.claim.id.startswith("within"))
        return near.publication_level != "no-claim"

    assert more_than(30, (said(0.1, number) for number in range(50)))
    assert sum(over_seeds(lambda number: said(0.3, number), range(STUDIES))) <= LIMIT


@pytest.mark.parametrize(
    ("truth", "plan", "seed", "slope", "least"),
    [
        # better also without the judge of its maker, who adds three tenths; at any length; and on one dimension apart
        (replace(led(TWO, clusters=12, family="north"), panel=tuple(replace(j, halo=0.3) for j in PANEL)), FIRSTS,
         12, None, 36),
        (led(TWO, tokens=300.0), FIRSTS, 14, 0.1, 32),
        (led(replace(NULL, dimensions=DIMENSIONS[:3], residual=Spread(0.8, 0.0)), (4.0, 3.0, 3.0)), ORDERS, 16, None,
         36),
    ],
    ids=["own family", "length", "dimension"],
)  # fmt: skip
def test_an_agent_that_is_better_is_found_beside_what_might_explain_it(truth, plan, seed, slope, least):
    def said(number: int) -> bool:
        table = simulated(truth, seed, number)
        table = unmeasured(table) if slope is None else liking_length(table, slope)
        found = {one.claim.id: one for one in claimed(table, plan)}
        if plan is ORDERS:
            return getattr(found.get("first[agent=ash,dimension=d0]"), "distinct", None) == "passed"
        return LEADER in found and (slope is None or headline_if_passed(found[LEADER]))

    assert more_than(least - 1, map(said, range(40)))


# --- what all judges may share ----------------------------------------------------------------------------------------


def test_without_the_makers_of_the_agents_no_order_is_a_headline():
    """Nothing tells a liking from quality then, whatever the drops say, and the sentence has to say so."""

    def said(number: int) -> tuple[bool, ...]:
        table = simulated(led(TWO, clusters=12), 11, number, change=lambda t: replace(t, agent_families=None))
        found = claimed(unmeasured(table), AGGREGATE)
        worded = all("families-unknown" in {c.id for c in one.conditions} for one in found)
        return LEADER in {one.claim.id for one in found}, any(map(headline_if_passed, found)), worded

    leader, headline, worded = counts(said, 40)
    assert (leader >= 36, headline, worded) == (True, 0, 40)


def test_what_length_explains_is_no_headline():
    """A quarter of a point a doubling, and an agent that writes twice as much: capped, with the word for it."""
    truth = led(TWO, 3.0, tokens=300.0)

    def said(number: int) -> tuple[bool, ...]:
        found = claimed(simulated(truth, 13, number, change=lambda table: liking_length(table, 0.25)), AGGREGATE)
        capped = all(one.length != "clear" and "length" in {c.id for c in one.conditions} for one in found)
        return bool(found), any(map(headline_if_passed, found)), capped

    longer, headline, capped = counts(said, FEWER)
    assert longer > FEWER / 3, "the longer texts do score higher"
    assert headline <= band(FEWER, 0.05)[1]
    assert FEWER - capped <= band(FEWER, 0.05)[1]


def test_dimensions_that_copy_one_impression_are_not_told_apart():
    """Each judge has one impression of a text and gives it on every dimension."""
    panel, studies = tuple(replace(judge, disagreement=Spread(0.4, 1.0)) for judge in PANEL), 100
    truth = led(replace(NULL, dimensions=DIMENSIONS[:3], panel=panel, interaction=Spread(0.2, 1.0),
                        residual=Spread(0.6, 1.0)), clusters=12)  # fmt: skip

    def noisy(table: ScoreTable) -> ScoreTable:
        rng = np.random.default_rng(int(table.digest, 16))
        return unmeasured(replace(table, scores=np.clip(table.scores + rng.normal(0, 0.3, table.scores.shape), 1, 5)))

    def said(number: int) -> tuple[bool, ...]:
        on_dimensions = [one for one in claimed(simulated(truth, 15, number, change=noisy), ORDERS)
                         if one.claim.dimension != "aggregate"]  # fmt: skip
        copied = [one for one in on_dimensions if one.distinct == "not-told-apart"]
        worded = all("not tell" in one.claim.statement for one in copied)
        return bool(on_dimensions), len(copied) < len(on_dimensions), worded

    ordered, told, worded = counts(said, studies)
    assert ordered > 0.9 * studies
    assert told <= band(studies, 0.05)[1]
    assert worded == studies
